"""The offline summariser: notes made of exact quotes, chosen by TF-IDF, in order of time.

It only quotes, names who spoke, and so states no plan as done and turns no tool's output into an
order. Same input, same output; needs no network and no model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ..kernels import analyse_terms, estimate_tokens
from .notes import (
    MENTIONED_PREFIX,
    Entry,
    bullet,
    entries_of,
    header_candidates,
)
from .protocol import SummaryRequest, SummaryResponse
from .quotes import CALL_SIGN, LINE_SIGN, Quote, collect_quotes
from .salience import TermWeights, identifier_weight
from .selection import choose_quotes
from .source_text import EXPAND_PREFIX, RUNNING_PREFIX, calls_under_way, time_span
from .topics import name_topics

__all__ = ["ExtractiveSummarizer"]

_LONGEST_QUOTE = {"normal": 80, "aggressive": 48}
_AGGRESSIVE_SHARE = 0.7
_SOURCE_SHARE = 0.6
_MENTION_SHARE = 0.12
_TOPIC_SHARE = 0.06
_LEAST_TOPIC_ROOM = 24

_MENTIONS_CONSIDERED = 300
_MOST_MENTIONS = 30
_LEAST_MENTION_SHARE = 0.2

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
    entries = entries_of(request)
    span = time_span(request.items, request.timezone)
    budget = _budget(request)
    header = _first_fitting(header_candidates(request, span), budget)
    room = budget - estimate_tokens(f"{header}\n")
    running = _list_line(RUNNING_PREFIX, calls_under_way(request.items), room // 2)
    room -= estimate_tokens(f"{running}\n") if running else 0
    longest = min(_LONGEST_QUOTE[request.level], max(16, room // 2))
    quotes = collect_quotes(entries, longest)
    weights = TermWeights(
        [quote.terms for quote in quotes],
        [quote.entry for quote in quotes],
        raised=analyse_terms(request.focus) if request.focus else (),
    )
    topics = _list_line(EXPAND_PREFIX, name_topics(quotes, weights), _topic_room(room))
    room -= estimate_tokens(f"{topics}\n") if topics else 0
    mention_room = int(room * _MENTION_SHARE)
    chosen = choose_quotes(
        quotes, entries, weights, room=room - mention_room, recency=_RECENCY[request.kind]
    )
    first_day = span[0].strftime("%Y-%m-%d") if span else ""
    lines = [header, *_bullets(chosen, quotes, entries, first_day if first_day in header else "")]
    if len(lines) == 1:
        return header
    mentions = _mentions(quotes, entries, "\n".join(lines))
    closing = (_list_line(MENTIONED_PREFIX, mentions, mention_room), running, topics)
    return "\n".join([*lines, *filter(None, closing)])


def _budget(request: SummaryRequest) -> int:
    share = 1.0 if request.level == "normal" else _AGGRESSIVE_SHARE
    source_tokens = estimate_tokens(request.text)
    return min(int(request.target_tokens * share), int(source_tokens * _SOURCE_SHARE * share))


def _topic_room(room: int) -> int:
    """Return the tokens for the line of topics: none where there is hardly room for quotes."""
    return max(_LEAST_TOPIC_ROOM, int(room * _TOPIC_SHARE)) if room > 4 * _LEAST_TOPIC_ROOM else 0


def _first_fitting(candidates: Iterator[str], budget: int) -> str:
    line = ""
    for line in candidates:
        if estimate_tokens(line) <= budget:
            break
    return line


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
    unseen = [(score, name) for score, name in ranked[:_MENTIONS_CONSIDERED] if name not in shown]
    least = unseen[0][0] * _LEAST_MENTION_SHARE if unseen else 0.0
    return [name for score, name in unseen[:_MOST_MENTIONS] if score <= least]


def _length_cost(name: str) -> int:
    return len(name) + 60


def _list_line(prefix: str, words: Iterable[str], room: int) -> str:
    """Return a line naming as many words as fit, or nothing."""
    line = ""
    for word in words:
        longer = f"{line}, {word}" if line else prefix + word
        if estimate_tokens(f"{longer}\n") > room:
            break
        line = longer
    return line
