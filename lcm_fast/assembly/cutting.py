"""Show a message in part when it alone is larger than what is left for it.

The largest texts are cut to head and tail around a marker that names the message; structure, ids and names stay
whole (decision 4). Must not decide which message to cut.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from ..transcripts import shapes
from .pieces import Piece

__all__ = ["cut_piece"]

CountTokens = Callable[[str], int]

_MIN_CUT_CHARS = 80
_KEPT_KEYS = frozenset(
    {"id", "type", "role", "name", "toolName", "toolCallId", "tool_call_id", "tool_use_id", "call_id"}
)
_IMAGE_NOTE = "[image left out for lack of room]"


def cut_piece(piece: Piece, allowance_tokens: int, count_tokens: CountTokens) -> bool:
    """Cut a piece's texts so that it takes at most `allowance_tokens`; tell whether it could.

    A picture is left out before a text is cut. When even empty texts do not fit, the piece is left as small as
    it gets.

    Complexity: a binary search over the length kept, each step linear in what is kept.
    """
    if piece.tokens <= allowance_tokens:
        return True
    piece.cut = True
    without_images = _without_images(piece.message)
    if without_images is not None:
        piece.replace(without_images, count_tokens)
        if piece.tokens <= allowance_tokens:
            return True
    original = piece.message
    longest = max((len(text) for _, _, text in _texts(original)), default=0)
    low, high = 0, longest
    while low < high:
        kept = (low + high + 1) // 2
        piece.replace(_cut_texts(original, kept, piece.item_id), count_tokens)
        if piece.tokens <= allowance_tokens:
            low = kept
        else:
            high = kept - 1
    piece.replace(_cut_texts(original, low, piece.item_id), count_tokens)
    return piece.tokens <= allowance_tokens


def _cut_texts(message: dict[str, Any], kept_chars: int, item_id: str) -> dict[str, Any]:
    changed = copy.deepcopy(message)
    for container, key, text in list(_texts(changed)):
        if len(text) > max(kept_chars, _MIN_CUT_CHARS):
            container[key] = _head_and_tail(text, kept_chars, item_id)
    for call in changed.get("tool_calls") or ():
        _cut_arguments(call, kept_chars, item_id)
    return changed


def _head_and_tail(text: str, kept_chars: int, item_id: str) -> str:
    head = (kept_chars + 1) // 2
    tail = kept_chars - head
    left_out = len(text) - kept_chars
    marker = f"[… {left_out:,} characters left out; {item_id} has the whole …]"
    return f"{text[:head]}\n{marker}\n{text[len(text) - tail :] if tail else ''}".strip("\n")


def _texts(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield (container, key, text) of every text in a message that may be cut."""
    pairs: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        pairs = iter(value.items())
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        if isinstance(inner, str):
            if key not in _KEPT_KEYS and len(inner) > _MIN_CUT_CHARS:
                yield value, key, inner
        elif key != "tool_calls":
            yield from _texts(inner)


def _cut_arguments(call: dict[str, Any], kept_chars: int, item_id: str) -> None:
    """Cut the texts inside a chat call's arguments, which are JSON in a string and must stay JSON."""
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = {"arguments": function["arguments"]}
    cut = _cut_texts({"content": arguments}, kept_chars, item_id)
    function["arguments"] = json.dumps(cut["content"], ensure_ascii=False)


def _without_images(message: dict[str, Any]) -> dict[str, Any] | None:
    if not shapes.has_picture(message):
        return None
    content = message["content"]
    note = {"type": "text", "text": _IMAGE_NOTE}
    return {**message, "content": [note if _is_image(block) else block for block in content]}


def _is_image(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in shapes.PICTURE_TYPES
