"""Chooses the quotes of a note: the most telling per token, each new, no voice alone.

Greedy: a quote taken lowers the worth of the terms it covers. A first round keeps every message and
the user to a fair share; what room is left goes to whatever is worth most. Weighs no words itself.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence

from ..kernels import estimate_tokens
from .notes import Entry, bullet
from .quotes import Quote
from .salience import TermWeights

__all__ = ["choose_quotes"]

_COVERED_TERM_WORTH = 0.3
_REPETITION_SHARE = 0.36
_COST_OFFSET = 8
_COST_EXPONENT = 0.8
# A further quote of the same message is worth less; one long tool output must not fill the notes.
_SAME_ENTRY_DISCOUNT = {"tool": 1.0}
_SAME_ENTRY_DEFAULT = 0.2
# Quotes of one message in the first round: the least, and how many all messages share evenly.
_SHARE_OF_ENTRY = {"tool": (3, 48)}
_SHARE_OF_ENTRY_DEFAULT = (6, 96)
_LATER_SHARE_FACTOR = 3
_USER_SHARE = 0.5


def choose_quotes(
    quotes: Sequence[Quote],
    entries: Sequence[Entry],
    weights: TermWeights,
    *,
    room: int,
    recency: float,
) -> list[int]:
    """Return the numbers of the quotes to show, in order.

    Parameters
    ----------
    quotes
        All quotes, of which the quotable ones may be chosen.
    entries
        What they belong to.
    weights
        The weights of their terms.
    room
        Tokens for all bullets.
    recency
        How much more the newest entry is worth than the oldest, as a fraction.

    Complexity
    ----------
    O(n log n) in the number of quotes, linear in the number of their terms.
    """
    selection = _Selection(quotes, entries, weights, room, recency)
    selection.fill([number for number, quote in enumerate(quotes) if quote.quotable])
    selection.loosen()
    selection.fill(selection.held)
    return sorted(selection.chosen)


class _Selection:
    """The quotes taken so far, and what each other one is worth given them."""

    def __init__(
        self,
        quotes: Sequence[Quote],
        entries: Sequence[Entry],
        weights: TermWeights,
        room: int,
        recency: float,
    ) -> None:
        self.chosen: list[int] = []
        self.held: list[int] = []
        self._quotes = quotes
        self._entries = entries
        self._room = room
        self._user_room = float(room * _USER_SHARE)
        self._share_factor = 1
        self._taken_of_entry: Counter[int] = Counter()
        self._terms = [tuple(dict.fromkeys(quote.terms)) for quote in quotes]
        self._remaining = {term: weights[term] for terms in self._terms for term in terms}
        self._factors = [_factor(quote, recency / max(1, len(entries) - 1)) for quote in quotes]
        self._first = [self._novelty(number) for number in range(len(quotes))]

    def fill(self, numbers: Sequence[int]) -> None:
        """Take quotes, the worthiest first, while they fit; lazily, since worth only falls."""
        heap = [(-self._worth(number), number) for number in numbers]
        heapq.heapify(heap)
        self.held = []
        while heap and self._room > 0:
            _, number = heapq.heappop(heap)
            if self._novelty(number) <= self._first[number] * _REPETITION_SHARE:
                continue
            worth = self._worth(number)
            if heap and -heap[0][0] > worth:
                heapq.heappush(heap, (-worth, number))
            elif self._has_had_its_share(number):
                self.held.append(number)
            else:
                self._take(number)

    def loosen(self) -> None:
        """Let messages and the user have more than the first round allowed them."""
        self._share_factor = _LATER_SHARE_FACTOR
        self._user_room = math.inf

    def _has_had_its_share(self, number: int) -> bool:
        entry = self._quotes[number].entry
        role = self._entries[entry].role
        if role == "user" and self._cost(number) > self._user_room and self.chosen:
            return True
        least, even = _SHARE_OF_ENTRY.get(role, _SHARE_OF_ENTRY_DEFAULT)
        share = max(least, even // len(self._entries)) * self._share_factor
        return self._taken_of_entry[entry] >= share

    def _take(self, number: int) -> None:
        cost = self._cost(number)
        if cost > self._room:
            return
        entry = self._quotes[number].entry
        self.chosen.append(number)
        self._room -= cost
        if self._entries[entry].role == "user":
            self._user_room -= cost
        self._taken_of_entry[entry] += 1
        for term in self._terms[number]:
            self._remaining[term] *= _COVERED_TERM_WORTH

    def _cost(self, number: int) -> int:
        """Return the tokens a quote adds; a further one of the same entry needs no new bullet."""
        quote = self._quotes[number]
        if self._taken_of_entry[quote.entry]:
            return estimate_tokens(f" … {quote.text}")
        return estimate_tokens(bullet(self._entries[quote.entry], quote.text, "") + "\n")

    def _worth(self, number: int) -> float:
        entry = self._quotes[number].entry
        discount = _SAME_ENTRY_DISCOUNT.get(self._entries[entry].role, _SAME_ENTRY_DEFAULT)
        novelty = self._factors[number] * self._novelty(number)
        return novelty / (1 + discount * self._taken_of_entry[entry])

    def _novelty(self, number: int) -> float:
        remaining = self._remaining
        return sum([remaining[term] for term in self._terms[number]])


def _factor(quote: Quote, recency_per_entry: float) -> float:
    cost = math.pow(estimate_tokens(quote.text) + _COST_OFFSET, _COST_EXPONENT)
    return quote.factor * (1 + recency_per_entry * quote.entry) / cost
