"""Pieces of large texts, cut to a bound before anything is done with them (spec: storage
2.9.10)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = [
    "MAX_SUMMARY_CHARS",
    "Listing",
    "joined",
    "line_count",
    "line_heads",
    "lines_of",
    "one_line",
]

MAX_SUMMARY_CHARS = 2_000


def line_count(text: str) -> int:
    r"""Return how many lines a text has, as split at ``\n`` or ``\r\n``.

    >>> line_count("one\r\ntwo\n")
    3
    """
    return text.count("\n") + 1


def lines_of(text: str) -> Iterator[str]:
    r"""Yield the lines of a text with their ``\n``, without a second copy of the text.

    >>> list(lines_of("one\ntwo"))
    ['one\n', 'two']
    """
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin) + 1 or len(text)
        yield text[begin:end]
        begin = end


def line_heads(text: str, width: int) -> Iterator[str]:
    r"""Yield the first `width` characters of each line that has any.

    >>> list(line_heads("a long line\n\nno", 6))
    ['a long', 'no']
    """
    for line in re.finditer(rf"([^\n]{{1,{width}}})[^\n]*", text):
        yield line[1]


def one_line(text: str, limit: int) -> str:
    r"""Return the beginning of a text on one line, at most `limit` characters of it.

    Runs of blanks become one; characters that do not print are left out.

    >>> one_line("two\n\n  lines", 20), one_line("too long a line", 8)
    ('two lines', 'too lon…')
    """
    head = " ".join(text[: 4 * limit].split())
    if not head.isprintable():
        head = "".join(filter(str.isprintable, head))
    is_whole = len(head) <= limit and len(text) <= 4 * limit
    return head[:limit] if is_whole else head[: limit - 1] + "…"


class Listing:
    """The first items of a listing as far as a bound goes, and how many more there were.

    >>> listing = Listing(limit=10, most=8)
    >>> for item in ("one", "two", "three", "four"):
    ...     listing.add(item)
    >>> listing.text(", ")
    'one, two (+2 more)'
    """

    def __init__(self, limit: int, most: int) -> None:
        self._items: list[str] = []
        self._left_out = 0
        self._room = limit
        self._most = most

    def add(self, item: str) -> None:
        """Take one more item, or count it when there is no room for it."""
        self._room -= len(item)
        if self._left_out or self._room < 0 or len(self._items) == self._most:
            self._left_out += 1
        else:
            self._items.append(item)

    def text(self, separator: str) -> str:
        """Return what was taken on one line; empty when nothing was added."""
        more = f" (+{self._left_out:,} more)" if self._left_out else ""
        return separator.join(self._items) + more


def joined(items: Iterable[str], separator: str, limit: int, most: int) -> str:
    """Return the first items on one line; see `Listing`."""
    listing = Listing(limit, most)
    for item in items:
        listing.add(item)
    return listing.text(separator)
