"""Makes a request small enough for a model: its longest items give way to quotes from all of them.

Never cuts off a beginning or an end: what stands in the middle of a long message reaches the model
too. Drops no item, and leaves a request that is small enough alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from ..kernels import estimate_tokens
from .extractive import ExtractiveSummarizer
from .fallback import cut_to_tokens
from .prompts import render_blocks
from .protocol import SummaryRequest
from .source_text import EXPAND_PREFIX, SourceItem

__all__ = ["bounded_request"]

_LONGEST_SENDER_CHARS = 200
# The offline summariser takes a limited number of quotes at a time.
_PART_CHARS = 16_000
_LEAST_PART_TOKENS = 200
_SEPARATOR = "\n\n"


def bounded_request(
    request: SummaryRequest, max_source_tokens: int, count_tokens: Callable[[str], int]
) -> SummaryRequest:
    """Return the request with sources that take at most so many tokens in a prompt.

    Parameters
    ----------
    request
        What is to be summarised.
    max_source_tokens
        Upper limit of the sources with their headers.
    count_tokens
        The estimator that counts them.

    Returns
    -------
    SummaryRequest
        The request itself when it fits. Otherwise one whose longest items, down to a common
        length, are quotes from their whole text under a note that says how long they were. Above
        the limit only when it leaves an item less than its header and that note.

    Complexity
    ----------
    O(n log n) in the number of sentences of what is shortened, linear in the length of the texts.
    """
    if _tokens(request.items, request.timezone, count_tokens) <= max_source_tokens:
        return request
    sizes = [_tokens((item,), request.timezone, count_tokens) for item in request.items]
    room = max_source_tokens - (len(sizes) - 1) * count_tokens(_SEPARATOR)
    longest = _common_length(sizes, room)
    items = tuple(
        item if size <= longest else _shortened(item, longest, request, count_tokens)
        for item, size in zip(request.items, sizes, strict=True)
    )
    return msgspec.structs.replace(request, items=items)


def _tokens(items: Sequence[SourceItem], timezone: str, count_tokens: Callable[[str], int]) -> int:
    return count_tokens(render_blocks(items, timezone))


def _common_length(sizes: Sequence[int], room: int) -> int:
    """Return the length that the longest are to be cut to for all to fit."""
    left = room
    ascending = sorted(sizes)
    for position, size in enumerate(ascending):
        share = left // (len(ascending) - position)
        if size > share:
            return max(0, share)
        left -= size
    return room


def _shortened(
    item: SourceItem, room: int, request: SummaryRequest, count_tokens: Callable[[str], int]
) -> SourceItem:
    """Return the item, its block within `room` tokens where the note alone is not longer."""

    def with_text(text: str) -> SourceItem:
        return msgspec.structs.replace(item, text=text, sender=_short(item.sender))

    def tokens_of(candidate: SourceItem) -> int:
        return _tokens((candidate,), request.timezone, count_tokens)

    if tokens_of(with_text(item.text)) <= room:
        return with_text(item.text)
    text_tokens = count_tokens(item.text)
    note = f"(shortened from {text_tokens} tokens to quotes from all of it)"
    left = room - tokens_of(with_text(note))
    if left <= 0:
        return min(with_text(note), with_text(item.text), key=tokens_of)

    def tokens_with(quotes: str) -> int:
        return tokens_of(with_text(f"{note}\n{quotes}"))

    # The offline summariser counts by the package's own estimate.
    target = left * estimate_tokens(item.text) // max(1, text_tokens)
    quotes = _quotes(item, target, request)
    if (tokens := tokens_with(quotes)) > room:
        quotes = _quotes(item, target * room // tokens, request)
    if tokens_with(quotes) > room:
        quotes = cut_to_tokens(quotes, room, tokens_with)
    return with_text(f"{note}\n{quotes}".rstrip())


def _short(sender: str | None) -> str | None:
    if sender is None or len(sender) <= _LONGEST_SENDER_CHARS:
        return sender
    return f"{sender[: _LONGEST_SENDER_CHARS - 1]}…"


def _quotes(item: SourceItem, target_tokens: int, request: SummaryRequest) -> str:
    """Return what the offline summariser quotes of the item, each part given its share."""
    text = item.text
    lines: list[str] = []
    count = max(1, min(len(text) // _PART_CHARS, target_tokens // _LEAST_PART_TOKENS))
    for part in _parts(text, len(text) // count + 1):
        of_part = msgspec.structs.replace(
            request,
            items=(msgspec.structs.replace(item, text=part),),
            target_tokens=target_tokens * len(part) // len(text),
            level="normal",
        )
        notes = ExtractiveSummarizer().summarize(of_part).text.split("\n")
        lines += [line for line in notes[1:] if not line.startswith(EXPAND_PREFIX)]
    return "\n".join(lines)


def _parts(text: str, least_chars: int) -> Iterator[str]:
    """Yield whole lines in parts of at least so many characters, the last one apart."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + least_chars)
        end = len(text) if end < 0 else end + 1
        yield text[begin:end]
        begin = end
