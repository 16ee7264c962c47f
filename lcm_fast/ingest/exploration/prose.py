"""What a text of no particular kind holds: its size, its headings, how it begins and ends (spec:
storage 2.9.10)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .bounded import joined, line_count, line_heads, one_line

__all__ = ["text_summary", "word_count"]

_EXCERPT_CHARS = 500
_SHOWN_HEADINGS = 18
_HEADING_CHARS = 160
_HEADINGS_CHARS = 600
_SHORTEST_CAPITALS = 7
_PIECE_CHARS = 1 << 16

_MARKDOWN_HEADING = re.compile(r"#{1,6}[ \t]+\S")


def text_summary(text: str) -> str:
    """Return counts, headings, opening and closing of a text."""
    lines = [
        "Text summary:",
        f"Characters: {len(text):,}.",
        f"Words: {word_count(text):,}.",
        f"Lines: {line_count(text):,}.",
    ]
    if headings := joined(_headings(text), " | ", _HEADINGS_CHARS, _SHOWN_HEADINGS):
        lines.append(f"Section headers: {headings}.")
    if opening := _collapsed(text[:_EXCERPT_CHARS]):
        lines.append(f"Opening excerpt: {opening}")
    if len(text) > _EXCERPT_CHARS and (closing := _collapsed(text[-_EXCERPT_CHARS:])):
        lines.append(f"Closing excerpt: {closing}")
    return "\n".join(lines)


def word_count(text: str) -> int:
    """Return how many runs of characters other than blanks a text has, in bounded memory.

    >>> word_count("one  two\\nthree")
    3
    """
    words = 0
    ends_inside_word = False
    for begin in range(0, len(text), _PIECE_CHARS):
        piece = text[begin : begin + _PIECE_CHARS]
        words += len(piece.split())
        words -= ends_inside_word and not piece[0].isspace()
        ends_inside_word = not piece[-1].isspace()
    return words


def _headings(text: str) -> Iterator[str]:
    for head in line_heads(text, 2 * _HEADING_CHARS):
        line = head.strip()
        in_capitals = len(line) >= _SHORTEST_CAPITALS and line.isupper()
        if in_capitals or _MARKDOWN_HEADING.match(line):
            yield one_line(line, _HEADING_CHARS)


def _collapsed(excerpt: str) -> str:
    return one_line(excerpt, _EXCERPT_CHARS)
