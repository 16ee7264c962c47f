"""Lines of a session file and the JSON objects on them, with byte offsets and exact bytes.

Must not know what an object means: that is `reader`. Only a line feed ends a line; whatever stands
on a line is read object by object, and what cannot be read is reported, never dropped silently
(design: decision 13).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from ..types import UnreadableSpan

__all__ = [
    "BLANK",
    "BOM",
    "MAX_PIECE_BYTES",
    "FoundObject",
    "Piece",
    "leading_blanks",
    "parse_objects",
    "read_lines",
]

MAX_PIECE_BYTES = 512 * 1024 * 1024
BOM = b"\xef\xbb\xbf"
BLANK = b" \t\r\n"

BROKEN = "broken JSON"
NOT_AN_OBJECT = "not a JSON object"
TOO_DEEP = "nested too deeply"

_SKIP_BYTES = 1024 * 1024
_BLANK_TEXT = re.compile("[ \t\r\n\ufeff]*")

_decode_strict = msgspec.json.decode
# Accepts raw control characters and NaN, which agents do write.
_decode_tolerant = json.JSONDecoder(strict=False).raw_decode


class Piece(NamedTuple):
    """A line, or an element of an array: what is read at one go.

    `length` counts the line feed; `data` is None when the piece is longer than the limit; a piece
    that is not `terminated` is the file's last and may still be growing.
    """

    offset: int
    length: int
    data: bytes | None
    terminated: bool


class FoundObject(NamedTuple):
    """One JSON object: where it starts in the file, its exact bytes, its value."""

    offset: int
    raw: bytes
    value: dict[str, Any]


def read_lines(stream: BinaryIO, end: int, *, limit: int = MAX_PIECE_BYTES) -> Iterator[Piece]:
    """Yield the lines of a stream, from its current position up to a byte offset.

    Parameters
    ----------
    stream
        A buffered binary stream.
    end
        Byte offset to stop at. The line it cuts is unterminated: bytes a writer adds meanwhile are
        left for the next read.
    limit
        Bytes of the longest line that is held in memory.

    Notes
    -----
    Complexity: linear in the bytes read; memory of one line.
    """
    offset = stream.tell()
    while offset < end:
        data = stream.readline(min(limit + 1, end - offset))
        if not data:
            return
        terminated = data.endswith(b"\n")
        if len(data) > limit and not terminated:
            length, terminated = _skip_line(stream, offset + len(data), end)
            line = Piece(offset, len(data) + length, None, terminated)
        else:
            line = Piece(offset, len(data), data, terminated)
        yield line
        offset += line.length


def _skip_line(stream: BinaryIO, offset: int, end: int) -> tuple[int, bool]:
    """Read past the rest of a line; return how many bytes that was and whether a line feed ended
    it."""
    start = offset
    while offset < end:
        data = stream.readline(min(_SKIP_BYTES, end - offset))
        offset += len(data)
        if not data or data.endswith(b"\n"):
            return offset - start, bool(data)
    return offset - start, False


def parse_objects(data: bytes, offset: int) -> tuple[list[FoundObject], UnreadableSpan | None]:
    r"""Read every JSON object that stands in `data`, one after the other.

    Parameters
    ----------
    data
        The bytes of one line, or of one element of an array.
    offset
        Byte offset of `data` in its file.

    Returns
    -------
    tuple
        The objects before the first thing that cannot be read, and the span from there to the end
        (blanks trimmed), or None when all was read.

    Notes
    -----
    Invalid UTF-8 and lone surrogates inside strings are kept as surrogate code points; `raw` stays
    exact. Complexity: linear in the length of `data`.

    Examples
    --------
    >>> found, rest = parse_objects(b'{"a": 1}{"b": 2} oops\r\n', 100)
    >>> [(one.offset, one.raw) for one in found]
    [(100, b'{"a": 1}'), (108, b'{"b": 2}')]
    >>> rest
    UnreadableSpan(offset=117, length=4, reason='not a JSON object')
    """
    raw = data.strip(BLANK)
    if not raw:
        return [], None
    try:
        value = _decode_strict(raw)
    except (ValueError, RecursionError):
        return _parse_tolerantly(data, offset)
    if not isinstance(value, dict):
        start = offset + leading_blanks(data)
        return [], UnreadableSpan(start, len(raw), NOT_AN_OBJECT)
    return [FoundObject(offset + leading_blanks(data), raw, value)], None


def leading_blanks(data: bytes) -> int:
    """Return how many bytes stand before the first that is not blank."""
    return len(data) - len(data.lstrip(BLANK))


def _parse_tolerantly(data: bytes, offset: int) -> tuple[list[FoundObject], UnreadableSpan | None]:
    text = _decode_text(data)
    found: list[FoundObject] = []
    position = 0
    while True:
        start = _end_of_blanks(text, position)
        offset += _byte_length(text[position:start])
        if start == len(text):
            return found, None
        value, position, reason = _decode_at(text, start)
        if value is None:
            rest = text[start:].rstrip(" \t\r\n\ufeff")
            return found, UnreadableSpan(offset, _byte_length(rest), reason)
        raw = text[start:position].encode("utf-8", "surrogateescape")
        found.append(FoundObject(offset, raw, value))
        offset += len(raw)


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


def _byte_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _end_of_blanks(text: str, position: int) -> int:
    match = _BLANK_TEXT.match(text, position)
    return match.end() if match else position


def _decode_at(text: str, start: int) -> tuple[dict[str, Any] | None, int, str]:
    """Decode the object at `start`; return it and its end, or None, `start` and why not."""
    if text[start] != "{":
        return None, start, NOT_AN_OBJECT
    try:
        value, end = _decode_tolerant(text, start)
    except RecursionError:
        return None, start, TOO_DEEP
    except ValueError:
        return None, start, BROKEN
    return value, end, ""
