"""Removes tagged blocks from text: a model's reasoning, and context that plug-ins inject.

Carries rules K3 and K6 of the compaction behaviour. Openers and closers are each found in one pass
and paired by bisection, so that text full of unclosed tags costs no more than any other.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

__all__ = ["strip_injected_context", "strip_reasoning"]

_OPENER = re.compile(
    r"<(think|thinking|reasoning)(?:\s[^<>\n]{0,200})?>"
    r"|<\|(think|thinking|reasoning)\|>"
    r"|\[(think|thinking|reasoning)\]",
    re.IGNORECASE,
)
_CLOSER = re.compile(
    r"</(think|thinking|reasoning)>"
    r"|<\|/?end_?(think|thinking|reasoning)\|>|<\|/(?:think|thinking|reasoning)\|>"
    r"|\[/(think|thinking|reasoning)\]",
    re.IGNORECASE,
)
_UNTRUSTED_HEADER = re.compile(
    r"^Untrusted context \([^)\n]*\):[^\S\n]*\n?", re.IGNORECASE | re.MULTILINE
)
_REST_OF_BLANK_LINE = re.compile(r"[ \t\r]*(?:\n|\Z)")


def strip_reasoning(text: str) -> str:
    """Remove the reasoning a model has left in a plain-text summary.

    Leading blocks and blocks on lines of their own go; an opener on its own line that is never
    closed takes all that follows. A tag quoted inside a sentence stays.

    Parameters
    ----------
    text
        A summary as stored or as returned by a model.

    Returns
    -------
    str
        Trimmed; empty when nothing but reasoning was there.

    Complexity
    ----------
    O(n log n) in the number of tags, linear in the length.

    Examples
    --------
    >>> strip_reasoning("<think>hm</think> Chose SQLite.")
    'Chose SQLite.'
    """
    if "<" not in text and "[" not in text:
        return text.strip()
    kept: list[str] = []
    position = 0
    for start, end in _reasoning_spans(text):
        kept.append(text[position:start])
        position = end
    kept.append(text[position:])
    return "".join(kept).strip()


def _reasoning_spans(text: str) -> Iterator[tuple[int, int]]:
    closers = [match.span() for match in _CLOSER.finditer(text)]
    line_ends = {end for _, end in closers if _ends_line(text, end)}
    position = 0
    leading = True
    for opener in _OPENER.finditer(text):
        if opener.start() < position:
            continue
        leading = leading and not text[position : opener.start()].strip()
        closer = _next_closer(closers, opener.end())
        if leading:
            end = closer[1] if closer else len(text)
        elif not _starts_line(text, opener.start()):
            continue
        elif closer and closer[1] in line_ends:
            end = closer[1]
        elif not closer and _ends_line(text, opener.end()):
            end = len(text)
        else:
            continue
        yield opener.start(), end
        position = end


def strip_injected_context(text: str, tags: Sequence[str]) -> str:
    """Remove the blocks that plug-ins inject into messages, and the header line before them.

    Parameters
    ----------
    text
        A message's text.
    tags
        Exact tag names, compared without case. Tags with attributes are not touched. With no tag
        the text is returned as it is.

    Examples
    --------
    >>> strip_injected_context("<a.b>x</a.b> <A.B>y</A.B> axb", ["a.b"])
    'axb'
    """
    if not tags:
        return text
    if "</" in text:
        for tag in tags:
            text = _without_blocks(text, tag)
    return _UNTRUSTED_HEADER.sub("", text).strip()


def _without_blocks(text: str, tag: str) -> str:
    closer_pattern = re.compile(f"</{re.escape(tag)}>", re.IGNORECASE)
    closers = [match.span() for match in closer_pattern.finditer(text)]
    if not closers:
        return text
    kept: list[str] = []
    position = 0
    for opener in re.finditer(f"<{re.escape(tag)}>", text, re.IGNORECASE):
        closer = _next_closer(closers, opener.end())
        if closer is None:
            break
        if opener.start() >= position:
            kept.append(text[position : opener.start()])
            position = closer[1]
    kept.append(text[position:])
    return "".join(kept)


def _next_closer(closers: list[tuple[int, int]], position: int) -> tuple[int, int] | None:
    index = bisect_left(closers, (position, 0))
    return closers[index] if index < len(closers) else None


def _starts_line(text: str, position: int) -> bool:
    while position and text[position - 1] in " \t\r":
        position -= 1
    return position == 0 or text[position - 1] == "\n"


def _ends_line(text: str, position: int) -> bool:
    return _REST_OF_BLANK_LINE.match(text, position) is not None
