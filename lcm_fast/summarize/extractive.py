"""The offline summariser: notes made of exact quotes, chosen by TF-IDF, in order of time.

It only quotes, names who spoke, and so states no plan as done and turns no tool's output into an
order. Same input, same output; needs no network and no model. Quotes are picked greedily: each
lowers the worth of the terms it covers, so that the next one says something else.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from lcm_fast.kernels import estimate_tokens
from lcm_fast.summarize.notes import (
    EXPAND_PREFIX,
    MENTIONED_PREFIX,
    Entry,
    bullet,
    header_candidates,
    message_entries,
    summary_entries,
)
from lcm_fast.summarize.protocol import SummaryRequest, SummaryResponse
from lcm_fast.summarize.quotes import CALL_SIGN, LINE_SIGN, Quote, collect_quotes
from lcm_fast.summarize.salience import TermWeights, identifier_weight
from lcm_fast.summarize.source_text import time_span
from lcm_fast.summarize.topics import name_topics

__all__ = ["ExtractiveSummarizer"]

_LONGEST_QUOTE = {"normal": 80, "aggressive": 48}
_AGGRESSIVE_SHARE = 0.7
_SOURCE_SHARE = 0.6
_MENTION_SHARE = 0.12
_TOPIC_SHARE = 0.06

_MOST_MENTIONS = 30
_LEAST_MENTION_SHARE = 0.2

_COVERED_TERM_WORTH = 0.3
_REPETITION_SHARE = 0.36
_COST_OFFSET = 8
_COST_EXPONENT = 0.8
# A further quote of the same message is worth less; one long tool output must not fill the notes.
_SAME_ENTRY_DISCOUNT = {"tool": 1.0}
_SAME_ENTRY_DEFAULT = 0.2
# One message shows at most this share of what an even split over all messages would give, and a few
# at least.
_MOST_OF_ENTRY = {"tool": (3, 48)}
_MOST_OF_ENTRY_DEFAULT = (6, 96)
_SENTENCE_ENDS = tuple(".!?:;。！？：；؟।…")
_RECENCY = {"leaf": 0.15, "condensed": 0.6}


class ExtractiveSummarizer:
    """Summarises offline by quoting; deterministic, in any language.

    Examples
    --------
    >>> from lcm_fast.summarize.source_text import SourceItem
    >>> item = SourceItem("1", "user", "Please keep the port at 8443. " * 9, "2026-03-01T10:02:00Z")
    >>> request = SummaryRequest("leaf", 0, (item,), target_tokens=60)
    >>> print(ExtractiveSummarizer().summarize(request).text)
    Notes on 1 message (1 user), 2026-03-01 10:02 UTC
    - [10:02 user] Please keep the port at 8443.
    """

    name = "extractive-v1"

    def summarize(self, request: SummaryRequest) -> SummaryResponse:
        """Return notes on the request's items.

        Parameters
        ----------
        request
            With at least one item.

        Returns
        -------
        SummaryResponse
            At most `request.target_tokens` long by the package's estimate, unless the shortest
            header alone is longer; shorter than the source when that has more than 60 tokens.

        Complexity
        ----------
        O(n log n) in the number of sentences, linear in the length of the texts.
        """
        return SummaryResponse(_notes(request), self.name)


def _notes(request: SummaryRequest) -> str:
    read = message_entries if request.kind == "leaf" else summary_entries
    entries = read(request)
    span = time_span(request.items, request.timezone)
    budget = _budget(request)
    header = _first_fitting(header_candidates(request, span), budget)
    room = budget - estimate_tokens(f"{header}\n")
    longest = min(_LONGEST_QUOTE[request.level], max(16, room // 4))
    quotes = collect_quotes(entries, longest)
    weights = TermWeights([quote.terms for quote in quotes], [quote.entry for quote in quotes])
    topics = _list_line(EXPAND_PREFIX, name_topics(quotes, weights), int(room * _TOPIC_SHARE))
    room -= estimate_tokens(f"{topics}\n") if topics else 0
    mention_room = int(room * _MENTION_SHARE)
    chosen = _choose(quotes, entries, weights, room - mention_room, request.kind)
    first_day = span[0].strftime("%Y-%m-%d") if span else ""
    lines = [header, *_bullets(chosen, quotes, entries, first_day if first_day in header else "")]
    if len(lines) == 1:
        return header
    mentions = _mentions(quotes, entries, "\n".join(lines))
    closing = (_list_line(MENTIONED_PREFIX, mentions, mention_room), topics)
    return "\n".join([*lines, *filter(None, closing)])


def _budget(request: SummaryRequest) -> int:
    share = 1.0 if request.level == "normal" else _AGGRESSIVE_SHARE
    source_tokens = estimate_tokens(request.text)
    return min(int(request.target_tokens * share), int(source_tokens * _SOURCE_SHARE * share))


def _first_fitting(candidates: Iterator[str], budget: int) -> str:
    line = ""
    for line in candidates:
        if estimate_tokens(line) <= budget:
            break
    return line


def _choose(
    quotes: Sequence[Quote],
    entries: Sequence[Entry],
    weights: TermWeights,
    room: int,
    kind: str,
) -> list[int]:
    """Return the numbers of the quotes to show; lazy greedy, since worth only ever falls."""
    worth = _Worth(quotes, entries, weights, _RECENCY[kind])
    heap = [(-worth.now(number), number) for number, quote in enumerate(quotes) if quote.quotable]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and room > 0:
        _, number = heapq.heappop(heap)
        current = worth.now(number)
        if worth.is_repetition(number) or worth.is_exhausted(quotes[number].entry):
            continue
        if heap and -heap[0][0] > current:
            heapq.heappush(heap, (-current, number))
            continue
        cost = worth.cost(number)
        if cost <= room:
            chosen.append(number)
            room -= cost
            worth.take(number)
    return sorted(chosen)


class _Worth:
    """What each quote is worth per token, given the quotes already taken."""

    def __init__(
        self,
        quotes: Sequence[Quote],
        entries: Sequence[Entry],
        weights: TermWeights,
        recency: float,
    ) -> None:
        self._quotes = quotes
        self._entries = entries
        self._terms = [tuple(dict.fromkeys(quote.terms)) for quote in quotes]
        self._remaining = {term: weights[term] for terms in self._terms for term in terms}
        self._taken_of_entry: Counter[int] = Counter()
        self._tokens = [estimate_tokens(quote.text) for quote in quotes]
        scale = recency / max(1, len(entries) - 1)
        self._factors = [
            quote.factor
            * (1 + scale * quote.entry)
            / math.pow(tokens + _COST_OFFSET, _COST_EXPONENT)
            for quote, tokens in zip(quotes, self._tokens, strict=True)
        ]
        self._first = [self._plain(number) for number in range(len(quotes))]

    def now(self, number: int) -> float:
        """Return the present worth of a quote."""
        entry = self._quotes[number].entry
        role = self._entries[entry].role
        discount = _SAME_ENTRY_DISCOUNT.get(role, _SAME_ENTRY_DEFAULT)
        return self._plain(number) / (1 + discount * self._taken_of_entry[entry])

    def is_repetition(self, number: int) -> bool:
        """Tell whether the quotes taken already say nearly all that this one says."""
        return self._plain(number) <= self._first[number] * _REPETITION_SHARE

    def is_exhausted(self, entry: int) -> bool:
        """Tell whether a message has had its share; never is a whole dump quoted."""
        least, even = _MOST_OF_ENTRY.get(self._entries[entry].role, _MOST_OF_ENTRY_DEFAULT)
        return self._taken_of_entry[entry] >= max(least, even // len(self._entries))

    def cost(self, number: int) -> int:
        """Return the tokens a quote adds; a further one of the same entry needs no new bullet."""
        quote = self._quotes[number]
        if self._taken_of_entry[quote.entry]:
            return estimate_tokens(f" … {quote.text}")
        return estimate_tokens(bullet(self._entries[quote.entry], quote.text, "") + "\n")

    def take(self, number: int) -> None:
        """Note that a quote is shown."""
        self._taken_of_entry[self._quotes[number].entry] += 1
        for term in self._terms[number]:
            self._remaining[term] *= _COVERED_TERM_WORTH

    def _plain(self, number: int) -> float:
        remaining = self._remaining
        novelty = sum([remaining[term] for term in self._terms[number]])
        return self._factors[number] * novelty


def _bullets(
    chosen: Sequence[int], quotes: Sequence[Quote], entries: Sequence[Entry], day: str
) -> Iterator[str]:
    position = 0
    while position < len(chosen):
        first = chosen[position]
        entry = quotes[first].entry
        text = quotes[first].text
        position += 1
        while position < len(chosen) and quotes[chosen[position]].entry == entry:
            adjacent = chosen[position] == chosen[position - 1] + 1
            text = _joined(text, quotes[chosen[position]].text, adjacent)
            position += 1
        yield bullet(entries[entry], text, day)
        day = entries[entry].day or day


def _joined(text: str, following: str, adjacent: bool) -> str:
    """Join two quotes of one entry; a gap between them shows as one ellipsis."""
    if text.endswith("…") and following.startswith("…") and adjacent:
        return f"{text[:-1]} {following[1:]}"
    if following.startswith(CALL_SIGN) or (adjacent and text.endswith(_SENTENCE_ENDS)):
        return f"{text} {following}"
    if adjacent:
        return f"{text} {LINE_SIGN} {following}"
    return f"{text.removesuffix('…')} … {following.removeprefix('…')}"


def _mentions(quotes: Sequence[Quote], entries: Sequence[Entry], shown: str) -> list[str]:
    """Return the exact names that no bullet shows, the most telling first."""
    seen_in: dict[str, set[int]] = {}
    speakers: dict[str, float] = {}
    for quote in quotes:
        entry = entries[quote.entry]
        voice = {"user": 1.5, "tool": 0.5}.get(entry.role, 1.0) * (1.0 if quote.quotable else 0.4)
        for name in quote.identifiers:
            seen_in.setdefault(name, set()).add(quote.entry)
            speakers[name] = max(speakers.get(name, 0.0), voice)
    scores = {
        name: identifier_weight(name) * speakers[name] * math.sqrt(1 + len(where))
        for name, where in seen_in.items()
    }
    ranked = sorted((-score / _length_cost(name), name) for name, score in scores.items())
    unseen = [(score, name) for score, name in ranked if name not in shown]
    least = unseen[0][0] * _LEAST_MENTION_SHARE if unseen else 0.0
    return [name for score, name in unseen[:_MOST_MENTIONS] if score <= least]


def _length_cost(name: str) -> float:
    return math.sqrt(len(name) + 40)


def _list_line(prefix: str, words: Iterable[str], room: int) -> str:
    """Return a line naming as many words as fit, or nothing."""
    line = ""
    for word in words:
        longer = f"{line}, {word}" if line else prefix + word
        if estimate_tokens(f"{longer}\n") > room:
            break
        line = longer
    return line
