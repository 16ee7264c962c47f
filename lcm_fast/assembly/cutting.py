"""Show a message in part when it alone is larger than what is left for it.

First what is no text goes (pictures, reasoning), then the largest texts are cut to head and tail
around a marker that names the message, at last everything but ids and names becomes one such text
(decision 4). Must not decide which message to cut.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from ..transcripts import kinds, shapes
from .pieces import Piece

__all__ = ["cut_piece"]

CountTokens = Callable[[str], int]
Message = dict[str, Any]

_MIN_CUT_CHARS = 80
# Ids and names tie messages together; signatures are worth nothing in part.
_KEPT_KEYS = frozenset(
    {
        *shapes.CALL_ID_KEYS,
        "id",
        "type",
        "role",
        "name",
        "toolName",
        "signature",
        "textSignature",
        "thoughtSignature",
    }
)
_ARGUMENT_KEYS = ("arguments", "input")
_PICTURE_NOTE = {"type": "text", "text": "[picture left out for lack of room]"}


def cut_piece(piece: Piece, allowance_tokens: int, count_tokens: CountTokens) -> None:
    """Cut a piece so that it takes at most `allowance_tokens`, or as little as it can.

    Complexity: a binary search over the length kept, each step linear in what is kept.
    """
    if piece.tokens <= allowance_tokens:
        return
    piece.cut = True
    piece.replace(_texts_only(piece.message), count_tokens)
    if piece.tokens > allowance_tokens:
        _shorten(piece, allowance_tokens, count_tokens)
    if piece.tokens > allowance_tokens:
        piece.replace(_flattened(piece.message), count_tokens)
        _shorten(piece, allowance_tokens, count_tokens)


def _shorten(piece: Piece, allowance_tokens: int, count_tokens: CountTokens) -> None:
    """Keep as many characters of each text as fit."""
    whole = piece.message
    low, high = 0, max((len(text) for _, _, text in _texts(whole)), default=0)
    while low < high:
        kept = (low + high + 1) // 2
        piece.replace(_with_short_texts(whole, kept, piece.item_id), count_tokens)
        if piece.tokens <= allowance_tokens:
            low = kept
        else:
            high = kept - 1
    piece.replace(_with_short_texts(whole, low, piece.item_id), count_tokens)


def _with_short_texts(message: Message, kept_chars: int, item_id: str) -> Message:
    changed = copy.deepcopy(message)
    for container, key, text in list(_texts(changed)):
        if len(text) > max(kept_chars, _MIN_CUT_CHARS):
            is_json = key == "arguments" and _is_json_object(text)
            shorten = _shorten_json if is_json else _head_and_tail
            container[key] = shorten(text, kept_chars, item_id)
    return changed


def _head_and_tail(text: str, kept_chars: int, item_id: str) -> str:
    head = (kept_chars + 1) // 2
    tail = kept_chars - head
    left_out = len(text) - kept_chars
    marker = f"[… {left_out:,} characters left out; {item_id} has the whole …]"
    return f"{text[:head]}\n{marker}\n{text[len(text) - tail :] if tail else ''}".strip("\n")


def _shorten_json(text: str, kept_chars: int, item_id: str) -> str:
    """Shorten the texts inside arguments that are JSON in a string, and must stay JSON."""
    shortened = _with_short_texts(json.loads(text), kept_chars, item_id)
    return json.dumps(shortened, ensure_ascii=False, separators=(",", ":"))


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _texts(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield (container, key, text) of every text in a message that may be cut."""
    pairs: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        pairs = iter(value.items())
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        if not isinstance(inner, str):
            yield from _texts(inner)
        elif key not in _KEPT_KEYS and len(inner) > _MIN_CUT_CHARS:
            yield value, key, inner


def _texts_only(value: Any) -> Any:
    """Return a message without its pictures and its reasoning."""
    if isinstance(value, dict):
        if value.get("type") in kinds.PICTURE_TYPES:
            return _PICTURE_NOTE
        return {key: _texts_only(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_texts_only(inner) for inner in value if not _is_reasoning(inner)]
    return value


def _is_reasoning(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in kinds.REASONING_TYPES


def _flattened(message: Message) -> Message:
    """Return a message with its many parts as one text each: arguments, results, and the rest."""
    flat = {key: _flat_field(key, value) for key, value in message.items()}
    content = message.get("content")
    if not isinstance(content, list):
        return flat
    tools = [_flat_block(block) for block in content if _is_tool_block(block)]
    others = [block for block in content if not _is_tool_block(block)]
    text = shapes.content_of({"content": others})
    results = [block for block in tools if block.get("type") in kinds.RESULT_TYPES]
    calls = [block for block in tools if block not in results]
    flat["content"] = [*results, *([{"type": "text", "text": text}] if text else []), *calls]
    return flat


def _flat_field(key: str, value: Any) -> Any:
    if key == "tool_calls" and isinstance(value, list):
        return [_flat_chat_call(call) for call in value]
    if key in _ARGUMENT_KEYS:
        return _flat_arguments(value)
    if key == "output" and not isinstance(value, str):
        return _as_json(value)
    return value


def _flat_block(block: Message) -> Message:
    flat = {key: _flat_field(key, value) for key, value in block.items()}
    if isinstance(block.get("content"), list):
        flat["content"] = shapes.content_of(block)
    return flat


def _flat_chat_call(call: Any) -> Any:
    if not isinstance(call, dict) or not isinstance(call.get("function"), dict):
        return call
    function = call["function"]
    return {**call, "function": {**function, **_flat_fields(function)}}


def _flat_fields(carrier: Message) -> Message:
    return {key: _flat_arguments(carrier[key]) for key in _ARGUMENT_KEYS if key in carrier}


def _flat_arguments(arguments: Any) -> Any:
    """Return arguments as one text inside an object, in the form they came in."""
    if isinstance(arguments, str):
        return _as_json({"json": arguments})
    return {"json": _as_json(arguments)}


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_tool_block(block: Any) -> bool:
    return kinds.is_call(block) or kinds.is_result(block)
