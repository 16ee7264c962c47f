"""Edit the tool calls and the tool results inside one message, in every known shape.

Pure functions; a message is never changed in place. Must not know what stands around the message
(decision 5).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..transcripts import kinds, shapes, text_at
from ..types import Shape, ToolCall

__all__ = [
    "MISSING_CALL",
    "MISSING_RESULT",
    "add_missing_results",
    "has_unnamed",
    "has_unnamed_calls",
    "has_unnamed_results",
    "is_call_item",
    "is_stand_in",
    "is_top_level_result",
    "map_answers",
    "map_calls",
    "missing_calls",
    "missing_results",
    "only_results",
    "says_nothing_else",
    "unnamed_result_as_text",
    "without_results",
]

MISSING_RESULT = "[lcm_fast] no result of this tool call is in the record"
MISSING_CALL = "[lcm_fast] the call that this result answers is not in the record"
# What stands for a missing result, ours and what hosts have written into their sessions.
_STAND_INS = (
    MISSING_RESULT,
    *(
        f"[{host}] missing tool result in session history;"
        " inserted synthetic error result for transcript repair."
        for host in ("openclaw", "lossless-claw")
    ),
)

Message = dict[str, Any]
# Given an id, "" where there is none; gives the id to have, or None to remove its carrier.
Rename = Callable[[str], str | None]


def has_unnamed(message: Message) -> bool:
    """Tell whether a call or a result has no id."""
    if message.get("role") == "user" and isinstance(message.get("content"), str):
        return False
    return has_unnamed_calls(message) or has_unnamed_results(message)


def has_unnamed_calls(message: Message) -> bool:
    """Tell whether a call has no id."""
    content, calls = message.get("content"), message.get("tool_calls")
    if isinstance(content, list):
        for block in content:
            if kinds.is_call(block) and not _id(block):
                return True
    if isinstance(calls, list) and any(_is_object(call) and not _id(call) for call in calls):
        return True
    return is_call_item(message) and not _id(message)


def has_unnamed_results(message: Message) -> bool:
    """Tell whether a result does not say which call it answers."""
    if is_top_level_result(message):
        return not _answer(message)
    content = message.get("content")
    if isinstance(content, list):
        for block in content:
            if kinds.is_result(block) and not _answer(block):
                return True
    return False


def is_call_item(message: Message) -> bool:
    """Tell whether the whole message is one call, rather than a carrier of calls."""
    return message.get("type") in kinds.CALL_TYPES


def is_top_level_result(message: Message) -> bool:
    """Tell whether the whole message is one result, rather than a carrier of result blocks."""
    return message.get("role") in ("toolResult", "tool") or (
        message.get("type") in kinds.RESULT_TYPES
    )


def is_stand_in(message: Message) -> bool:
    """Tell whether a message is no more than what stands for a missing result."""
    content = message.get("content")
    is_one_block = isinstance(content, list) and len(content) == 1
    if not is_one_block and not is_top_level_result(message):
        return False
    return shapes.content_of(message) in _STAND_INS


def map_calls(message: Message, rename: Rename) -> Message:
    """Return the message with the ids of its calls renamed; a block that gets None is left out.

    A message that is itself a call stays.
    """
    changed = dict(message)
    content, calls = message.get("content"), message.get("tool_calls")
    if isinstance(content, list):
        changed["content"] = _mapped(content, kinds.is_call, rename, ("id", "call_id"))
    if isinstance(calls, list):
        changed["tool_calls"] = _mapped(calls, _is_object, rename, ("id",))
        if not changed["tool_calls"]:
            del changed["tool_calls"]
    if is_call_item(message):
        new = rename(_id(message))
        if new is not None:
            changed = _with_id(changed, new, ("call_id", "id"))
    return changed


def says_nothing_else(message: Message) -> bool:
    """Tell whether a message has nothing to send once its calls are left out."""
    return is_call_item(message) or shapes.is_empty(message)


def map_answers(message: Message, rename: Rename) -> Message:
    """Return the message with the call ids its results name renamed; None leaves a block out."""
    changed = dict(message)
    content = message.get("content")
    if isinstance(content, list):
        changed["content"] = _mapped(content, kinds.is_result, rename, shapes.CALL_ID_KEYS)
    if is_top_level_result(message):
        new = rename(_answer(message))
        if new is not None:
            changed = _with_id(changed, new, shapes.CALL_ID_KEYS)
    return changed


def only_results(message: Message, call_ids: Collection[str]) -> Message:
    """Return the message with nothing but its result blocks for these calls."""
    blocks = [
        block
        for block in message["content"]
        if kinds.is_result(block) and _answer(block) in call_ids
    ]
    return {**message, "content": blocks}


def without_results(message: Message) -> Message:
    """Return the message without its result blocks."""
    return {
        **message,
        "content": [block for block in message["content"] if not kinds.is_result(block)],
    }


def unnamed_result_as_text(message: Message) -> Message | None:
    """Return what a result without an id says as plain text, or None when it says nothing.

    No provider takes a result that answers no call; its text stays readable (spec R3).
    """
    if not is_top_level_result(message):
        content = [_result_as_text(block) for block in message["content"]]
        blocks = [block for block in content if block is not None]
        return {**message, "content": blocks} if blocks else None
    text = shapes.content_of(message)
    if not text.strip():
        return None
    if isinstance(message.get("content"), str):
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def missing_results(calls: Sequence[ToolCall], shape: Shape) -> list[Message]:
    """Return the messages that stand in for results the record lacks."""
    if shape == "anthropic":
        return [{"role": "user", "content": [_missing_block(call) for call in calls]}]
    return [_missing_result(call, shape) for call in calls]


def add_missing_results(message: Message, calls: Sequence[ToolCall]) -> Message:
    """Return a message of result blocks with stand-ins added right behind its own results."""
    content = message["content"]
    last = max(index for index, block in enumerate(content) if kinds.is_result(block)) + 1
    added = [_missing_block(call) for call in calls]
    return {**message, "content": [*content[:last], *added, *content[last:]]}


def missing_calls(calls: Sequence[ToolCall], shape: Shape) -> Message:
    """Return the message that stands in for calls the record lacks."""
    if shape == "openai":
        made = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": "{}"},
            }
            for call in calls
        ]
        return {"role": "assistant", "content": None, "tool_calls": made}
    if shape == "responses":
        call = calls[0]
        item = {"type": "function_call", "call_id": call.call_id, "name": call.name}
        return {**item, "arguments": "{}"}
    kind, arguments = ("tool_use", "input") if shape == "anthropic" else ("toolCall", "arguments")
    blocks: list[Message] = [{"type": "text", "text": MISSING_CALL}]
    blocks += [
        {"type": kind, "id": call.call_id, "name": call.name, arguments: {}} for call in calls
    ]
    return {"role": "assistant", "content": blocks}


def _missing_result(call: ToolCall, shape: Shape) -> Message:
    if shape == "openai":
        return {"role": "tool", "tool_call_id": call.call_id, "content": MISSING_RESULT}
    if shape == "responses":
        return {"type": "function_call_output", "call_id": call.call_id, "output": MISSING_RESULT}
    return {
        "role": "toolResult",
        "toolCallId": call.call_id,
        "toolName": call.name,
        "content": [{"type": "text", "text": MISSING_RESULT}],
        "isError": True,
    }


def _missing_block(call: ToolCall) -> Message:
    return {
        "type": "tool_result",
        "tool_use_id": call.call_id,
        "content": MISSING_RESULT,
        "is_error": True,
    }


def _mapped(
    carriers: list[Any], is_carrier: Callable[[Any], bool], rename: Rename, keys: tuple[str, ...]
) -> list[Any]:
    mapped: list[Any] = []
    for carrier in carriers:
        if not is_carrier(carrier):
            mapped.append(carrier)
            continue
        new = rename(_first(carrier, keys))
        if new is not None:
            mapped.append(_with_id(carrier, new, keys))
    return mapped


def _with_id(carrier: Message, new: str, keys: tuple[str, ...]) -> Message:
    old = _first(carrier, keys)
    if old == new:
        return carrier
    named = [key for key in keys if old and carrier.get(key) == old]
    return {**carrier, **dict.fromkeys(named or [_usual_key(carrier, keys)], new)}


def _usual_key(carrier: Message, keys: tuple[str, ...]) -> str:
    """Return the key under which a carrier of this shape holds its id, when it has none yet."""
    if keys is not shapes.CALL_ID_KEYS:
        return "call_id" if carrier.get("type") == "function_call" else "id"
    if carrier.get("type") == "function_call_output":
        return "call_id"
    if carrier.get("role") == "tool":
        return "tool_call_id"
    is_openclaw = carrier.get("role") == "toolResult" or carrier.get("type") == "toolResult"
    return "toolCallId" if is_openclaw else "tool_use_id"


def _result_as_text(block: Any) -> Any:
    if not kinds.is_result(block) or _answer(block):
        return block
    text = shapes.content_of(block)
    return {"type": "text", "text": text} if text.strip() else None


def _id(carrier: Message) -> str:
    return _first(carrier, ("id", "call_id"))


def _answer(carrier: Message) -> str:
    return _first(carrier, shapes.CALL_ID_KEYS)


def _first(carrier: Message, keys: tuple[str, ...]) -> str:
    return text_at(carrier, *keys) or ""


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)
