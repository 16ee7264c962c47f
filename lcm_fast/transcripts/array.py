"""Elements of a JSON array in a stream, one at a time, with byte offsets and exact bytes.

Finds where elements end by brackets and strings alone, so that one broken element does not hide
those behind it, and holds one element at a time in memory. Must not decode: that is
`jsonl.parse_objects`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from .jsonl import BLANK, MAX_PIECE_BYTES, Piece

__all__ = ["read_elements", "starts_array"]

_READ_BYTES = 1024 * 1024
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Between elements a comma matters too; inside one only brackets do.
_OUTSIDE = re.compile(rb'(?:[^"\[\]{},]++|' + _STRING + rb")*+", re.DOTALL)
_INSIDE = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+", re.DOTALL)
_ARRAY_OF_OBJECTS = re.compile(rb"\[[ \t\r\n]*[{\]]")


def starts_array(head: bytes) -> bool:
    """Tell whether a file that begins like this is an array of objects rather than lines.

    >>> starts_array(b'[ {"role": "user"'), starts_array(b"[2026-01-05] started")
    (True, False)
    """
    return _ARRAY_OF_OBJECTS.match(head) is not None


def read_elements(
    stream: BinaryIO, end: int, *, limit: int = MAX_PIECE_BYTES, read_bytes: int = _READ_BYTES
) -> Iterator[Piece]:
    """Yield the elements of an array, then what follows its end, if anything does.

    Parameters
    ----------
    stream
        A buffered binary stream that stands at the opening bracket.
    end
        Byte offset to stop at. What is left when no bracket closed the array is an unterminated
        piece.
    limit
        Bytes of the longest element that is held in memory; a longer one ends the reading.
    read_bytes
        Bytes to read at least at a time.

    Notes
    -----
    Complexity: amortised linear in the bytes read, as reads double within an element; memory of one
    element and one read.
    """
    scan = _Scan(stream, end, limit, read_bytes)
    while scan.find_element_end():
        yield scan.take_element()
        if scan.closed:
            break
    if leftover := scan.leftover():
        yield leftover


class _Scan:
    """The part of the stream from the current element on, and how far it has been looked at."""

    def __init__(self, stream: BinaryIO, end: int, limit: int, read_bytes: int) -> None:
        self._stream = stream
        self._end = end
        self._limit = limit
        self._read_bytes = read_bytes
        self._offset = stream.tell()
        self._buffer = b""
        self._start = 0
        self._position = 0
        self.closed = False
        self._grow()
        self._start = self._position = 1

    def find_element_end(self) -> bool:
        """Move to the comma or bracket that ends the current element; False when there is none."""
        depth = 0
        while True:
            match = (_INSIDE if depth else _OUTSIDE).match(self._buffer, self._position)
            self._position = match.end() if match else self._position
            character = self._buffer[self._position : self._position + 1]
            # The scan stops at a quote when the string's end is not in the buffer yet.
            if character in (b"", b'"'):
                if not self._grow():
                    return False
                continue
            if not depth and character in (b",", b"]"):
                return True
            self._position += 1
            if character in (b"[", b"{"):
                depth += 1
            elif depth:
                depth -= 1

    def take_element(self) -> Piece:
        """Return the element that ends here and move behind it; `closed` tells whether the array
        ends too."""
        data = self._buffer[self._start : self._position]
        piece = Piece(self._offset + self._start, len(data), data, True)
        self.closed = self._buffer[self._position] == ord("]")
        self._position += 1
        self._start = self._position
        return piece

    def leftover(self) -> Piece | None:
        """Return what no comma or bracket ended, or what follows the array; None when all is
        blank."""
        offset = self._offset + self._start
        while self._grow():
            pass
        data = self._buffer[self._start :]
        if self._stream.tell() < self._end:
            return Piece(offset, self._end - offset, None, True)
        if not data.strip(BLANK):
            return None
        # A closing bracket at the very end: nothing more will come, an element before it is broken.
        complete = self.closed or data.rstrip(BLANK).endswith(b"]")
        return Piece(offset, len(data), data, complete)

    def _grow(self) -> bool:
        """Read on, keeping the buffer from the current element's start; False at the end or the
        limit."""
        kept = self._buffer[self._start :]
        room = self._end - self._stream.tell()
        if room <= 0 or len(kept) > self._limit:
            return False
        data = self._stream.read(min(room, max(self._read_bytes, len(kept))))
        if not data:
            return False
        self._buffer = kept + data
        self._offset += self._start
        self._position -= self._start
        self._start = 0
        return True
