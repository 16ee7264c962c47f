"""What the known message shapes mean: role, text, tool calls and results, what a model reads.

OpenClaw and pi (`toolCall` blocks, `toolResult` messages), OpenAI chat (`tool_calls`, role `tool`),
OpenAI Responses items and Anthropic (`tool_use` and `tool_result` blocks). Must not touch files or
the database (spec: storage 2.2 to 2.7; decisions 4 and 5).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..types import Role, Shape, ToolCall
from .envelope import text_at
from .kinds import (
    CALL_TYPES,
    PICTURE_TYPES,
    REASONING_TYPES,
    RESULT_TYPES,
    is_call,
    is_result,
)
from .message_text import content_of
from .picture_tokens import MOST_TOKENS, picture_tokens

__all__ = [
    "CALL_ID_KEYS",
    "CALL_TYPES",
    "PICTURE_TYPES",
    "RESULT_TYPES",
    "call_arguments",
    "content_of",
    "content_token_count",
    "encode_face",
    "has_picture",
    "is_empty",
    "is_terminal",
    "model_face",
    "role_of",
    "shape_of",
    "tool_answers",
    "tool_calls",
    "tool_name_of",
    "wire_form",
]

CALL_ID_KEYS = ("toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "call_id")

# Fields that say something to a model without any content.
_SPEAKING_KEYS = ("reasoning_content", "refusal", "function_call")
_RESULT_KEYS = ("toolName", "isError", "is_error", "output")
# Fields of a message that a model reads; the others are for hosts and for the record.
_FACE_KEYS = frozenset(
    {
        "role",
        "content",
        "type",
        "name",
        "tool_calls",
        "summary",
        "arguments",
        *_SPEAKING_KEYS,
        *_RESULT_KEYS,
        *CALL_ID_KEYS,
    }
)
# What hosts keep for their own display; an assembly leaves it out.
_HOST_ONLY_KEYS = frozenset({"details"})
_HOST_ONLY_BLOCK_KEYS = frozenset({"partialJson", "partialArgs"})
_SIGNATURE_KEYS = frozenset({"thinkingSignature", "thoughtSignature", "textSignature", "signature"})
# Fields of a block that never reach a model as text (decision 4).
_UNREAD_BLOCK_KEYS = (
    _HOST_ONLY_BLOCK_KEYS | _SIGNATURE_KEYS | {"encrypted_content", "cache_control"}
)

# Spec B5: so long a string under one of these keys is a binary payload, in a picture any is.
_OPAQUE_CHARS = 4096
_OPAQUE_KEYS = frozenset({"data", "image", "imageData", "image_data", "base64", "bytes", "source"})
_FACE_NESTED_KEYS = _OPAQUE_KEYS | {"image_url", "content"}
_OPAQUE_TEXT = "[opaque binary payload]"

# What a result that holds nothing says: some providers refuse an empty one.
_NO_OUTPUT = "(no output)"
_EMPTY_RESULT: Mapping[bool, Any] = {
    False: _NO_OUTPUT,
    True: [{"type": "text", "text": _NO_OUTPUT}],
}

_ROLES: Mapping[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "toolResult": "tool",
    "function": "tool",
    "bashExecution": "user",
}

# How deep payloads are looked for inside one another.
_MAX_DEPTH = 6

_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def role_of(body: Mapping[str, Any]) -> Role | None:
    """Return the record's role of a message, or None when no model is ever sent such a message.

    A user message that consists of tool results only (Anthropic) is a ``"tool"`` message.
    """
    role = body.get("role")
    if role is None:
        item = body.get("type")
        if item in CALL_TYPES or item in REASONING_TYPES:
            return "assistant"
        return "tool" if item in RESULT_TYPES else None
    known = _ROLES.get(role) if isinstance(role, str) else None
    if known == "user":
        content = body.get("content")
        if isinstance(content, list) and content and all(map(is_result, content)):
            return "tool"
    return known


def shape_of(body: Mapping[str, Any]) -> Shape:
    """Tell which shape a partner for this message must have (decision 5)."""
    if "tool_calls" in body or "tool_call_id" in body:
        return "openai"
    if body.get("type") in ("function_call", "function_call_output"):
        return "responses"
    content = body.get("content")
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result"):
                return "anthropic"
    return "openclaw"


def tool_calls(body: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the tool calls a message makes, in order; calls without an id are left out."""
    calls: list[ToolCall] = []
    content = body.get("content")
    if isinstance(content, list):
        for block in content:
            if is_call(block):
                _add_call(calls, block.get("id") or block.get("call_id"), block.get("name"))
    chat_calls = body.get("tool_calls")
    if isinstance(chat_calls, list):
        for call in chat_calls:
            if isinstance(call, dict):
                function = call.get("function")
                name = function.get("name") if isinstance(function, dict) else call.get("name")
                _add_call(calls, call.get("id"), name)
    if body.get("type") in CALL_TYPES:
        _add_call(calls, body.get("call_id") or body.get("id"), body.get("name"))
    return tuple(calls)


def call_arguments(body: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return (tool name, arguments) of the calls a message makes; chat arguments are JSON text."""
    found: list[tuple[str, Any]] = []
    content = body.get("content")
    carriers: list[Any] = [body, *(content if isinstance(content, list) else ())]
    for carrier in carriers:
        if is_call(carrier):
            arguments = carrier.get("arguments", carrier.get("input"))
            found.append((str(carrier.get("name") or "unknown"), arguments))
    chat_calls = body.get("tool_calls")
    for call in chat_calls if isinstance(chat_calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            found.append((str(function.get("name") or "unknown"), function.get("arguments")))
    return found


def has_picture(body: Mapping[str, Any]) -> bool:
    """Tell whether a message shows a picture."""
    content = body.get("content")
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") in PICTURE_TYPES for block in content
    )


def tool_answers(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the tool calls a message answers, in order, without repeats."""
    answers: dict[str, None] = {}
    if body.get("role") in ("toolResult", "tool") or body.get("type") in RESULT_TYPES:
        _add_answer(answers, body)
    content = body.get("content")
    if isinstance(content, list):
        for block in content:
            if is_result(block):
                _add_answer(answers, block)
    return tuple(answers)


def tool_name_of(body: Mapping[str, Any]) -> str | None:
    """Return the tool's name a result carries, where it carries one."""
    return text_at(body, "toolName", "tool_name", "name")


def is_terminal(body: Mapping[str, Any]) -> bool:
    """Tell whether an assistant message was cut off: its unanswered calls will stay unanswered."""
    return body.get("stopReason", body.get("stop_reason")) in ("error", "aborted")


def model_face(body: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return what a model reads of a message, and the tokens of the binary payloads in it.

    Binary payloads stand as a short marker. A picture costs what its provider says, another payload
    `MOST_TOKENS`, instead of its length.
    """
    if "command" in body and "content" not in body:
        return {"role": "user", "content": content_of(body)}, 0
    face: dict[str, Any] = {}
    payload_tokens = 0
    for key, value in body.items():
        if key not in _FACE_KEYS:
            continue
        if type(value) is list:
            face[key] = blocks = []
            for block in value:
                shown, tokens = _face_block(block)
                payload_tokens += tokens
                if shown is not None:
                    blocks.append(shown)
        else:
            face[key] = value
    return face, payload_tokens


def encode_face(face: Any) -> bytes:
    """Return compact JSON with sorted keys; lone surrogates are survived."""
    try:
        return _encode_sorted(face)
    except UnicodeEncodeError:
        text = json.dumps(face, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return text.encode("utf-8", "surrogatepass")


def content_token_count(
    face: Mapping[str, Any], role: Role, count_tokens: Callable[[str], int]
) -> int:
    """Return the tokens of a message's content alone (spec B6), given its `model_face`."""
    content = face.get("content")
    if isinstance(content, str):
        if role in ("user", "system"):
            total = count_tokens(content)
        else:
            total = count_tokens(_dumps([{"type": "text", "text": content}])) if content else 0
    elif isinstance(content, list):
        total = _blocks_token_count(content, role, count_tokens)
    else:
        total = 0 if content is None else count_tokens(_dumps([content]))
    reasoning = face.get("reasoning_content")
    if isinstance(reasoning, str):
        total += count_tokens(reasoning)
    for key in ("tool_calls", "arguments", "output"):
        if face.get(key):
            total += count_tokens(_dumps(face[key]))
    return total


def wire_form(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message as an assembly gives it back: its shape and fields kept, host display data
    left out."""
    if "command" in body and "content" not in body:
        return {"role": "user", "content": content_of(body)}
    wire = {key: value for key, value in body.items() if key not in _HOST_ONLY_KEYS}
    content = wire.get("content")
    if isinstance(content, list):
        blocks = [_without_host_only(block) for block in content]
        if any(map(is_result, blocks)):
            blocks = _results_first(blocks)
        elif any(map(_is_function_call, blocks)):
            blocks = _reasoning_first(blocks)
        wire["content"] = blocks
    if role_of(body) == "tool" and "content" in wire and _is_blank(wire):
        wire["content"] = _EMPTY_RESULT[isinstance(content, list)]
    return wire


def _results_first(blocks: list[Any]) -> list[Any]:
    """Return a message's blocks as providers take them: results are a leading run."""
    return [block for block in blocks if is_result(block)] + [
        block for block in blocks if not is_result(block)
    ]


def _is_function_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("functionCall", "function_call")


def _reasoning_first(blocks: list[Any]) -> list[Any]:
    """Return blocks with the reasoning before the call it led to, as OpenAI takes them (spec S2).

    With other blocks or a second call among them, it cannot be told what led to what.
    """
    reasoning = [
        block
        for block in blocks
        if isinstance(block, dict) and block.get("type") in REASONING_TYPES
    ]
    calls = [block for block in blocks if is_call(block)]
    if len(calls) > 1 or len(reasoning) + len(calls) < len(blocks):
        return blocks
    return reasoning + calls


def is_empty(body: Mapping[str, Any]) -> bool:
    """Tell whether a model would be sent nothing (spec R18).

    Nothing is no text, no call, no result, no picture.
    """
    return _is_blank(body) and not call_arguments(body) and not tool_answers(body)


def _is_blank(body: Mapping[str, Any]) -> bool:
    content = body.get("content")
    if isinstance(content, str):
        if content and not content.isspace():
            return False
    elif isinstance(content, list):
        if not all(map(_is_blank_block, content)):
            return False
    elif content is not None or body.get("output"):
        return False
    return "command" not in body and not any(map(body.get, _SPEAKING_KEYS))


def _add_call(calls: list[ToolCall], call_id: Any, name: Any) -> None:
    if isinstance(call_id, str) and call_id:
        calls.append(ToolCall(call_id, name if isinstance(name, str) else "unknown"))


def _add_answer(answers: dict[str, None], carrier: Mapping[str, Any]) -> None:
    if call_id := text_at(carrier, *CALL_ID_KEYS):
        answers[call_id] = None


def _is_blank_block(block: Any) -> bool:
    if isinstance(block, str):
        return not block.strip()
    if not isinstance(block, dict):
        return block is None
    kind = block.get("type")
    if kind == "text":
        return not str(block.get("text") or "").strip()
    return kind in REASONING_TYPES


def _face_block(block: Any, depth: int = 0, least_chars: int = _OPAQUE_CHARS) -> tuple[Any, int]:
    """Return what a model reads of a block, and the tokens of the payloads in it.

    Parameters
    ----------
    least_chars
        How long a text is that may be a payload.
    """
    if type(block) is not dict or depth > _MAX_DEPTH:
        return block, 0
    if block.get("type") in REASONING_TYPES and not _readable_reasoning(block):
        return None, 0
    is_picture = block.get("type") in PICTURE_TYPES
    if is_picture:
        least_chars = 1
    shown: dict[str, Any] = {}
    tokens = 0
    for key, value in block.items():
        if key in _UNREAD_BLOCK_KEYS:
            continue
        if type(value) is str:
            if len(value) >= least_chars and _is_opaque(key, value):
                tokens += MOST_TOKENS
                value = _mask(value)  # noqa: PLW2901
        elif key in _FACE_NESTED_KEYS and value:
            value, nested = _face_nested(value, depth + 1, least_chars)  # noqa: PLW2901
            tokens += nested
        shown[key] = value
    return shown, picture_tokens(block) if is_picture else tokens


def _readable_reasoning(block: Mapping[str, Any]) -> bool:
    return any(block.get(key) for key in ("thinking", "text", "summary", "content"))


def _face_nested(value: Any, depth: int, least_chars: int) -> tuple[Any, int]:
    """Return what a model reads of a nested value (an image's source, a result's blocks)."""
    if isinstance(value, list):
        faces = [_face_block(item, depth, least_chars) for item in value]
        return [item for item, _ in faces if item is not None], sum(tokens for _, tokens in faces)
    return _face_block(value, depth, least_chars)


def _mask(payload: str) -> str:
    """Return what stands for a payload; small ones differ in it, as icons in a text do."""
    if len(payload) >= _OPAQUE_CHARS:
        return _OPAQUE_TEXT
    return f"[picture {zlib.crc32(payload.encode('utf-8', 'surrogatepass')):08x}]"


def _is_opaque(key: str, value: str) -> bool:
    if value.startswith("data:"):
        return True
    return key in _OPAQUE_KEYS and _looks_like_base64(value[:512])


def _looks_like_base64(head: str) -> bool:
    if not head.isascii():
        return False
    letters = head.translate(_BASE64_PUNCTUATION)
    return letters.isalnum() and any(map(str.isdigit, letters)) and any(map(str.isalpha, letters))


_BASE64_PUNCTUATION = str.maketrans("", "", "+/=\r\n")


def _blocks_token_count(blocks: list[Any], role: Role, count_tokens: Callable[[str], int]) -> int:
    if not blocks:
        return 0
    if role == "user" and len(blocks) == 1:
        block = blocks[0]
        if isinstance(block, dict) and block.get("type") == "text":
            return count_tokens(str(block.get("text") or ""))
    return count_tokens(_dumps(blocks))


def _without_host_only(block: Any) -> Any:
    if isinstance(block, dict) and not _HOST_ONLY_BLOCK_KEYS.isdisjoint(block):
        return {key: value for key, value in block.items() if key not in _HOST_ONLY_BLOCK_KEYS}
    return block


def _dumps(value: Any) -> str:
    return encode_face(value).decode("utf-8", "surrogatepass")
