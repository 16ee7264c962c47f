"""The ``<file>`` blocks by which hosts put attached texts into a user's message (spec: storage
2.9.6)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["FileBlock", "file_blocks"]

_OPENING = re.compile(r"<file(?:\s((?:\"[^\"<]*\"|'[^'<]*'|[^<>\"'])*))?>", re.IGNORECASE)
_CLOSING = re.compile(r"</file\s*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\b([A-Za-z][\w-]*)\s?=\s?(?:\"([^\"]*)\"|'([^']*)'|([^\s\"']+))")

# Longer ones are cut: no name needs more, and a search over them stays short.
_ATTRIBUTES_CHARS = 2_000


class FileBlock(NamedTuple):
    """Where a block stands in its message, and what it holds."""

    begin: int
    end: int
    text: str
    name: str | None
    mime_type: str | None


def file_blocks(text: str) -> Iterator[FileBlock]:
    """Yield the blocks of a message, in order; each ends at the first closing tag.

    >>> [block[2:] for block in file_blocks("Read <file name='a.md'># A</file>, please.")]
    [('# A', 'a.md', None)]
    """
    position = 0
    while opening := _OPENING.search(text, position):
        position = opening.end()
        if (opening[1] or "").endswith("/"):
            continue
        closing = _CLOSING.search(text, position)
        if closing is None:
            return
        attributes = _attributes(opening[1] or "")
        yield FileBlock(
            opening.start(),
            closing.end(),
            text[position : closing.start()],
            attributes.get("name"),
            attributes.get("mime"),
        )
        position = closing.end()


def _attributes(text: str) -> dict[str, str]:
    """Return attributes by name; values are quoted either way, or bare."""
    return {
        found[1].lower(): found[2] or found[3] or found[4] or ""
        for found in _ATTRIBUTE.finditer(text[:_ATTRIBUTES_CHARS])
    }
