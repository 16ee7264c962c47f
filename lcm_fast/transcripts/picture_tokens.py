"""What a picture costs a model, by the published rules of its provider; pure functions.

Sources: OpenAI, "Images and vision", and Anthropic, "Vision", both as of 2025. The shape of a block
tells whose rule applies; one of OpenClaw's may be sent to either, and costs the more.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from io import BytesIO
from math import ceil
from typing import Any

from .payloads import Picture, picture_of

__all__ = ["MOST_TOKENS", "picture_tokens"]

# What the largest picture costs with Anthropic, and what a payload of unknown size counts for.
MOST_TOKENS = 1600
_ANTHROPIC_LONGEST_SIDE = 1568
_ANTHROPIC_PIXELS_PER_TOKEN = 750

_OPENAI_BASE_TOKENS = 85
_OPENAI_TILE_TOKENS = 170
_OPENAI_TILE_SIDE = 512
_OPENAI_LONGEST_SIDE = 2048
_OPENAI_SHORTER_SIDE = 768

# Enough for the size to be in it, behind the previews that cameras put first.
_HEAD_CHARS = 256 * 1024
_SPACES = str.maketrans("", "", " \t\r\n")


def picture_tokens(block: Mapping[str, Any]) -> int:
    """Return the tokens of a block that is a picture.

    One whose size cannot be read (at an address, or damaged) counts as the largest.

    >>> picture_tokens({"type": "image_url", "image_url": {"url": "https://a.b/c.png"}})
    1445
    """
    picture = picture_of(block)
    size = None if picture is None else _size(picture)
    if "image_url" in block:
        return _openai_tokens(size, _detail(block))
    if "source" in block:
        return _anthropic_tokens(size)
    return max(_openai_tokens(size, None), _anthropic_tokens(size))


def _anthropic_tokens(size: tuple[int, int] | None) -> int:
    if size is None:
        return MOST_TOKENS
    width, height = _within(size, max(size), _ANTHROPIC_LONGEST_SIDE)
    return min(MOST_TOKENS, ceil(width * height / _ANTHROPIC_PIXELS_PER_TOKEN))


def _openai_tokens(size: tuple[int, int] | None, detail: Any) -> int:
    if detail == "low":
        return _OPENAI_BASE_TOKENS
    largest = (_OPENAI_LONGEST_SIDE, _OPENAI_SHORTER_SIDE)
    size = largest if size is None else _within(size, max(size), _OPENAI_LONGEST_SIDE)
    width, height = _within(size, min(size), _OPENAI_SHORTER_SIDE)
    tiles = ceil(width / _OPENAI_TILE_SIDE) * ceil(height / _OPENAI_TILE_SIDE)
    return _OPENAI_BASE_TOKENS + _OPENAI_TILE_TOKENS * tiles


def _within(size: tuple[int, int], side: int, longest: int) -> tuple[int, int]:
    """Return a size made smaller so that one of its sides is no longer than it may be."""
    if side <= longest:
        return size
    return max(1, round(size[0] * longest / side)), max(1, round(size[1] * longest / side))


def _detail(block: Mapping[str, Any]) -> Any:
    address = block.get("image_url")
    return address.get("detail") if isinstance(address, Mapping) else block.get("detail")


def _size(picture: Picture) -> tuple[int, int] | None:
    """Return width and height in pixels, None where they cannot be read."""
    if picture.data is None:
        return None
    import imagesize  # noqa: PLC0415  # few conversations hold pictures

    head = picture.data[:_HEAD_CHARS].translate(_SPACES)
    try:
        width, height = imagesize.get(BytesIO(b64decode(head[: len(head) // 4 * 4])))
    except Exception:  # damaged pictures make it raise what its readers happen to
        return None
    return (int(width), int(height)) if width > 0 and height > 0 else None
