"""Write a message of any known shape in the form that a given API takes.

What a form has no place for is said in words; reasoning is kept only where its model's API takes it
back. Pure functions (decision 4; the forms are those of the OpenAI and Anthropic APIs and of
OpenClaw's session files).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..types import Shape
from .message_text import as_json
from .parts import Call, File, Part, Picture, Reasoning, Result, Text, parts_of
from .shapes import wire_form

__all__ = ["FORMS", "in_form"]

Message = dict[str, Any]

FORMS: tuple[Shape, ...] = ("openclaw", "openai", "responses", "anthropic")

_ERROR = "[error] "
_SYSTEM = "[system message]\n"
_NOTHING = "(no output)"
_PARTIAL_DIGEST = 8
_CHAT_ID_CHARS = 40
_ANTHROPIC_ID_CHARS = 64


def in_form(body: Mapping[str, Any], form: Shape) -> list[Message]:
    """Return the messages that say what one message says, in the form asked for.

    Parameters
    ----------
    body
        A message of any known shape.
    form
        ``"openclaw"``, ``"openai"`` (chat completions), ``"responses"`` or ``"anthropic"``.

    Returns
    -------
    list
        One message; several where the form has one for each call or result; none where nothing is
        left to say. A system message keeps its role in every form.

    Examples
    --------
    >>> call = {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}}
    >>> in_form({"role": "assistant", "content": [call]}, "responses")
    [{'type': 'function_call', 'call_id': 't1', 'name': 'ls', 'arguments': '{"path":"."}'}]
    """
    if form == "openclaw" and _is_openclaw(body):
        return [wire_form(body)]
    speaker, parts = parts_of(wire_form(body))
    if speaker == "system":
        text = _joined(parts)
        return [{"role": "system", "content": text}] if text else []
    return _WRITERS[form](speaker, parts)


def _is_openclaw(body: Mapping[str, Any]) -> bool:
    if body.get("role") == "toolResult":
        return True
    content = body.get("content")
    is_plain = not any(key in body for key in ("tool_calls", "tool_call_id", "reasoning_content"))
    return (
        body.get("role") in ("user", "assistant")
        and is_plain
        and isinstance(content, list)
        and all(isinstance(block, dict) and _is_openclaw_block(block) for block in content)
    )


def _is_openclaw_block(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    return kind in ("text", "thinking", "toolCall") or (kind == "image" and "data" in block)


def _openclaw(speaker: str, parts: list[Part]) -> list[Message]:
    results = [part for part in parts if isinstance(part, Result)]
    others = [part for part in parts if not isinstance(part, Result)]
    written: list[Message] = [
        {
            "role": "toolResult",
            "toolCallId": part.call_id,
            "toolName": part.name,
            "content": _blocks(part.parts, _openclaw_block) or [_text_block(_NOTHING)],
            "isError": part.is_error,
        }
        for part in results
    ]
    blocks = _blocks(others, _openclaw_block)
    return [*written, {"role": speaker, "content": blocks}] if blocks else written


def _openclaw_block(part: Part) -> Message | None:
    match part:
        case Call(call_id, name, arguments):
            value = {"type": "toolCall", "id": call_id, "name": name}
            return {**value, "arguments": _as_object(arguments)}
        case Picture(media_type, data, None):
            return {"type": "image", "data": data, "mimeType": media_type}
        case Reasoning(block):
            thought = block.get("thinking") or block.get("text")
            return {"type": "thinking", "thinking": thought} if isinstance(thought, str) else None
    return _words_block(part, "text")


def _chat(speaker: str, parts: list[Part]) -> list[Message]:
    results = [part for part in parts if isinstance(part, Result)]
    written: list[Message] = [
        {
            "role": "tool",
            "tool_call_id": _short_id(part.call_id, _CHAT_ID_CHARS),
            "content": _joined(part.parts, is_error=part.is_error) or _NOTHING,
        }
        for part in results
    ]
    if speaker == "user":
        blocks = _blocks([part for part in parts if part not in results], _chat_block)
        return [*written, {"role": "user", "content": _simplest(blocks)}] if blocks else written
    calls = [_chat_call(part) for part in parts if isinstance(part, Call)]
    text = _joined(part for part in parts if isinstance(part, Text | Picture | File))
    if calls:
        written.append({"role": "assistant", "content": text or None, "tool_calls": calls})
    elif text:
        written.append({"role": "assistant", "content": text})
    return written


def _chat_call(call: Call) -> Message:
    return {
        "id": _short_id(call.call_id, _CHAT_ID_CHARS),
        "type": "function",
        "function": {"name": call.name, "arguments": _as_json_object(call.arguments)},
    }


def _chat_block(part: Part) -> Message | None:
    match part:
        case Picture():
            return {"type": "image_url", "image_url": {"url": _address(part)}}
        case File(name, _, data, _) if data:
            return {"type": "file", "file": {"filename": name, "file_data": _address(part)}}
    return _words_block(part, "text")


def _responses(speaker: str, parts: list[Part]) -> list[Message]:
    written: list[Message] = []
    said: list[Part] = []

    def end_message() -> None:
        if speaker == "user" and (blocks := _blocks(said, _responses_block)):
            written.append({"role": "user", "content": _simplest(blocks)})
        elif speaker == "assistant" and (text := _joined(said)):
            written.append({"role": "assistant", "content": text})
        said.clear()

    for part in parts:
        item = _responses_item(part)
        if item is not None:
            end_message()
            written.append(item)
        elif not isinstance(part, Reasoning):
            said.append(part)
    end_message()
    return written


def _responses_item(part: Part) -> Message | None:
    match part:
        case Call(call_id, name, arguments):
            item = {"type": "function_call", "call_id": call_id, "name": name}
            return {**item, "arguments": _as_json_object(arguments)}
        case Result():
            return {
                "type": "function_call_output",
                "call_id": part.call_id,
                "output": _responses_output(part),
            }
        case Reasoning(block):
            return _openai_reasoning(block)
    return None


def _responses_output(result: Result) -> Any:
    if any(isinstance(part, Picture) for part in result.parts):
        blocks = _blocks(result.parts, _responses_block)
        return [_text_block(_ERROR, "input_text"), *blocks] if result.is_error else blocks
    return _joined(result.parts, is_error=result.is_error) or _NOTHING


def _responses_block(part: Part) -> Message | None:
    match part:
        case Picture():
            return {"type": "input_image", "image_url": _address(part), "detail": "auto"}
        case File(name, _, data, _) if data:
            return {"type": "input_file", "filename": name, "file_data": _address(part)}
        case File(_, _, _, url) if url:
            return {"type": "input_file", "file_url": url}
    return _words_block(part, "input_text")


def _openai_reasoning(block: Mapping[str, Any]) -> Message | None:
    """Return a reasoning item that the API takes back: one with its content encrypted."""
    item: Any = block
    signature = block.get("thinkingSignature")
    if isinstance(signature, str) and signature.startswith("{"):
        try:
            item = json.loads(signature)
        except ValueError:
            return None
    if not isinstance(item, Mapping) or item.get("type") != "reasoning":
        return None
    if not (isinstance(item.get("id"), str) and isinstance(item.get("encrypted_content"), str)):
        return None
    kept = {key: item[key] for key in ("type", "id", "encrypted_content")}
    summary = item.get("summary")
    return {**kept, "summary": summary if isinstance(summary, list) else []}


def _anthropic(speaker: str, parts: list[Part]) -> list[Message]:
    results = _blocks([part for part in parts if isinstance(part, Result)], _anthropic_block)
    others = [part for part in parts if not isinstance(part, Result)]
    blocks = _blocks(others, _anthropic_block)
    if speaker == "user" and len(blocks) == 1 and not results:
        return [{"role": "user", "content": _simplest(blocks)}]
    written: list[Message] = [{"role": "user", "content": results}] if results else []
    if blocks and speaker == "user" and results:
        written[0]["content"] += blocks
    elif blocks:
        written.append({"role": speaker, "content": blocks})
    return written


def _anthropic_block(part: Part) -> Message | None:
    match part:
        case Call(call_id, name, arguments):
            value = {"type": "tool_use", "id": _plain_id(call_id), "name": name}
            return {**value, "input": _as_object(arguments)}
        case Result():
            return {
                "type": "tool_result",
                "tool_use_id": _plain_id(part.call_id),
                "content": _simplest(_blocks(part.parts, _anthropic_block)) or _NOTHING,
                **({"is_error": True} if part.is_error else {}),
            }
        case Reasoning():
            return _anthropic_thinking(part)
        case Picture():
            return {"type": "image", "source": _anthropic_source(part)}
        case File(_, "application/pdf", _, _):
            return {"type": "document", "source": _anthropic_source(part)}
    return _words_block(part, "text")


def _anthropic_source(part: Picture | File) -> Message:
    if part.data:
        return {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "url", "url": part.url}


def _anthropic_thinking(part: Reasoning) -> Message | None:
    """Return a thinking block that the API takes back: one with its own signature."""
    block = part.block
    if block.get("type") == "redacted_thinking" and isinstance(block.get("data"), str):
        return {"type": "redacted_thinking", "data": block["data"]}
    own = block.get("signature")
    if own is None and "anthropic" in part.provider:
        own = block.get("thinkingSignature")
    thought = block.get("thinking")
    if isinstance(own, str) and own and isinstance(thought, str):
        return {"type": "thinking", "thinking": thought, "signature": own}
    return None


_WRITERS: Mapping[Shape, Callable[[str, list[Part]], list[Message]]] = {
    "openclaw": _openclaw,
    "openai": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
}


def _blocks(parts: Iterable[Part], write: Callable[[Part], Message | None]) -> list[Message]:
    return [block for part in parts if (block := write(part)) is not None]


def _simplest(blocks: list[Message]) -> Any:
    """Return content as a string where it is one text."""
    if len(blocks) == 1 and "text" in blocks[0]:
        return blocks[0]["text"]
    return blocks


def _text_block(text: str, kind: str = "text") -> Message:
    return {"type": kind, "text": text}


def _words_block(part: Part, kind: str) -> Message | None:
    words = _words(part)
    return _text_block(words, kind) if words else None


def _joined(parts: Iterable[Part], *, is_error: bool = False) -> str:
    text = "\n".join(words for part in parts if (words := _words(part)))
    return _ERROR + text if is_error else text


def _words(part: Part) -> str:
    """Return what stands for a part where only words do; nothing for reasoning."""
    match part:
        case Text(text):
            return text
        case Picture(media_type, _, url):
            return f"[picture: {url or media_type}]"
        case File(name, media_type, _, url):
            return f"[file {name}: {url or media_type}]"
    return ""


def _address(part: Picture | File) -> str:
    return part.url or f"data:{part.media_type};base64,{part.data}"


def _as_object(arguments: Any) -> Any:
    """Return arguments as an object; what is none stands under ``raw``."""
    if isinstance(arguments, str):
        try:
            decoded = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            decoded = arguments
        arguments = decoded
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else {"raw": arguments}


def _as_json_object(arguments: Any) -> str:
    """Return arguments as the JSON of an object, a string of it as it stands."""
    if isinstance(arguments, str) and arguments.strip():
        try:
            if isinstance(json.loads(arguments), dict):
                return arguments
        except (ValueError, RecursionError):
            pass
    return as_json(_as_object(arguments))


def _short_id(call_id: str, most: int) -> str:
    """Return an id of at most so many characters, the same for the same."""
    if len(call_id) <= most:
        return call_id
    return f"{call_id[: most - 1 - _PARTIAL_DIGEST]}_{_digest(call_id)}"


def _plain_id(call_id: str) -> str:
    """Return an id of letters, digits, ``_`` and ``-``, the same for the same."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)
    if plain != call_id:
        plain = f"{plain}_{_digest(call_id)}"
    return _short_id(plain, _ANTHROPIC_ID_CHARS)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_PARTIAL_DIGEST]
