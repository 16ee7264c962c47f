"""The summary of last resort: deterministic, always smaller than its source, never failing.

Carries rules J5 to J9 of the compaction behaviour with decisions 6 and 8. It keeps the beginning of
the source and says that it is a truncation; it understands nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from ..kernels import truncate_tokens
from .directives import (
    DIRECTIVE_MARKER,
    OMITTED_DIRECTIVE,
    remove_directives,
)
from .protocol import SummaryRequest
from .source_text import describe_items

__all__ = ["cut_to_tokens", "fallback_text", "textless_note"]

_SMALLEST_LIMIT = 64
_DEFAULT_LIMIT = 512
# Below this many tokens a truncated source is little more than its first header line.
_SMALLEST_QUOTE = 12


def fallback_text(
    request: SummaryRequest,
    source: str,
    *,
    count_tokens: Callable[[str], int],
    max_tokens: int,
    room_tokens: int | None = None,
) -> tuple[str, bool]:
    """Return the deterministic summary of a request, and whether it leaves out some of the source.

    Parameters
    ----------
    request
        What was to be summarised; at least one item.
    source
        Its rendered text.
    count_tokens
        Estimator of the result's size.
    max_tokens
        Upper limit of the result, note included; below 64 the default of 512 applies.
    room_tokens
        What there is room for, however little; by default one less than the source.

    Complexity
    ----------
    O(n log n) in the length of the source.
    """
    source_tokens = count_tokens(source)
    limit = max_tokens if max_tokens >= _SMALLEST_LIMIT else _DEFAULT_LIMIT
    limit = min(limit, source_tokens - 1 if room_tokens is None else room_tokens)
    sanitised, omitted = remove_directives(source)
    note = f"[Truncated from {source_tokens} tokens]"
    if omitted:
        note = f"{DIRECTIVE_MARKER}\n{note}"
    room = limit - count_tokens(f"\n{note}")
    if not sanitised.replace(OMITTED_DIRECTIVE, "").strip() and room >= 0:
        return note, True
    quote = cut_to_tokens(sanitised, room, count_tokens).rstrip()
    if room < _SMALLEST_QUOTE or not quote:
        return _naming_note(request, note, limit, count_tokens), True
    return f"{quote}\n{note}", omitted or quote != sanitised


def textless_note(request: SummaryRequest) -> str:
    """Name, in one line, messages that hold no text.

    Examples
    --------
    >>> from lcm_fast.summarize.source_text import SourceItem
    >>> items = (SourceItem("1", "tool", "", "2026-03-01T10:02:00Z", tool_name="exec"),)
    >>> textless_note(SummaryRequest("leaf", 0, items, target_tokens=192))
    '1 message without text (1 tool: exec), 2026-03-01 10:02 UTC'
    """
    return describe_items(request.items, request.timezone, qualifier=" without text")


def cut_to_tokens(text: str, max_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """Return the longest prefix of at most `max_tokens` by the caller's count, graphemes whole."""
    cut = truncate_tokens(text, max_tokens)
    if count_tokens(cut) > max_tokens:
        cut = _bisect_prefix(cut, max_tokens, count_tokens)
    return cut if len(cut) == len(text) else _without_split_cluster(cut, text[len(cut)])


def _bisect_prefix(text: str, max_tokens: int, count_tokens: Callable[[str], int]) -> str:
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def _without_split_cluster(cut: str, following: str) -> str:
    """Drop the last character group where the cut falls inside a joined emoji or before a mark."""
    end = len(cut)
    while end and _continues_cluster(cut[end - 1], following):
        end -= 1
        following = cut[end]
    return cut[:end]


def _continues_cluster(before: str, after: str) -> bool:
    return (
        before == "\u200d"
        or after in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\u0300" <= after <= "\u036f"
    )


def _naming_note(
    request: SummaryRequest, note: str, limit: int, count_tokens: Callable[[str], int]
) -> str:
    """Name what was there, in as many words as fit; the count of messages at the least."""
    described = describe_items(request.items, request.timezone)
    candidates = (f"{described}\n{note}", described, note)
    count = described.split(" (")[0].split(",")[0]
    return next((line for line in candidates if count_tokens(line) <= limit), count)
