"""Choose which context items go into an assembly; pure functions over a frontier's arrays.

Nothing is fetched here: the arrays hold all that choosing needs (decisions 1 to 3). What is shown
changes in steps: room is made for several turns at once, so that in between the output only grows
at its end and a provider's prompt cache stays good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernels import select_context
from ..store import BRIEF, Frontier
from ..store.frontier import Int64, UInt8

__all__ = ["Choice", "Ranking", "Room", "choose"]

Float64 = npt.NDArray[np.float64]

# Of the room beside the tail, what the best items may take: they are shown even where that changes
# the prefix.
_CORE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Room:
    """What there is to fill.

    Attributes
    ----------
    budget_tokens
        Tokens of all that is chosen.
    step_tokens
        Tokens that are freed beyond need when something must be left out.
    fresh_tail_count, fresh_tail_max_tokens
        Newest messages that come first.
    """

    budget_tokens: int
    step_tokens: int
    fresh_tail_count: int
    fresh_tail_max_tokens: int | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """How much each item of a frontier of n items has to do with the prompt.

    Attributes
    ----------
    scores : float64[n]
        0 for nothing.
    shown : bool[n]
        What the assembly before showed.
    """

    scores: Float64
    shown: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen of a frontier of n items.

    Attributes
    ----------
    indexes
        Indexes of the chosen items, ascending.
    pinned : uint8[n]
        Items that stay whatever the budget: leading system messages, a focus brief, and the newest
        user message.
    tail_start, wanted_tail_start
        Index of the fresh tail's first item, after and before it yielded to the budget.
    is_ranked
        The prompt decided what stays.
    is_prompt_unknown
        It was to decide, and nothing has to do with it.
    """

    indexes: list[int]
    pinned: UInt8
    tail_start: int
    wanted_tail_start: int
    is_ranked: bool = False
    is_prompt_unknown: bool = False


def choose(
    frontier: Frontier,
    room: Room,
    rank: Callable[[], Ranking] | None = None,
    *,
    pin_user: bool = True,
) -> Choice:
    """Choose the items for a budget: the fresh tail, what is pinned, then whole exchanges, newest
    first or those that have most to do with the prompt.

    Parameters
    ----------
    rank
        Called when not all fits beside a whole fresh tail and the prompt is to decide.
    pin_user
        The newest user message stays; not so where the host has a newer one.

    Complexity: linear in the frontier, in the kernels; a ranking is sorted.
    """
    pinned = _pinned(frontier, pin_user=pin_user)
    wanted = frontier.fresh_tail_start(room.fresh_tail_count, room.fresh_tail_max_tokens)
    chooser = _Chooser(frontier, pinned, wanted, room)
    mask, tail_start = chooser.select(None)
    ranking = None
    is_ranked = False
    if not mask.all():
        ranking = rank() if rank is not None and tail_start == wanted else None
        if ranking is not None and ranking.scores[:tail_start].any():
            mask = chooser.best(ranking, tail_start)
            is_ranked = True
        elif room.step_tokens:
            mask, tail_start = chooser.newest(mask, tail_start)
    return Choice(
        indexes=np.flatnonzero(mask).tolist(),
        pinned=pinned,
        tail_start=tail_start,
        wanted_tail_start=wanted,
        is_ranked=is_ranked,
        is_prompt_unknown=ranking is not None and not is_ranked,
    )


class _Chooser:
    def __init__(self, frontier: Frontier, pinned: UInt8, wanted: int, room: Room) -> None:
        self._frontier = frontier
        self._pinned = pinned
        self._wanted = wanted
        self._room = room

    def select(
        self, order: Int64 | None, reserve: int = 0, wanted: int | None = None
    ) -> tuple[UInt8, int]:
        frontier = self._frontier
        return select_context(
            frontier.ordinals,
            frontier.openers,
            frontier.tokens,
            self._pinned,
            self._wanted if wanted is None else wanted,
            self._room.budget_tokens,
            order,
            reserve,
        )

    def newest(self, filled: UInt8, tail_start: int) -> tuple[UInt8, int]:
        """Return the newest items, from a place on that moves in steps, and the tail's start.

        The place follows from the frontier alone: it is the last with at most a certain multiple of
        a step before it. An exchange larger than a step that does not fit hides nothing behind it.
        """
        step = self._room.step_tokens
        has_yielded = tail_start > self._wanted
        if not has_yielded:
            first = _first_in_sequence(self._frontier, filled, tail_start, step)
        elif self._exchange_tokens(tail_start - 1) > step:
            return filled, tail_start
        else:
            first = tail_start
        before = np.concatenate(([0], np.cumsum(self._frontier.tokens)))
        start = int(np.searchsorted(before, -(-int(before[first]) // step) * step, "right")) - 1
        if has_yielded:
            tail_start = min(max(start, tail_start), self._frontier.fresh_tail_start(1, 0))
        order = np.arange(tail_start - 1, start - 1, -1, dtype=np.int64)
        return self.select(order, wanted=tail_start)

    def _exchange_tokens(self, index: int) -> int:
        """Return the tokens of the exchange that an item belongs to."""
        frontier = self._frontier
        return int(frontier.tokens[frontier.openers == frontier.openers[index]].sum())

    def _left_tokens(self) -> int:
        """Return the tokens left beside the fresh tail and what is pinned."""
        mask, _ = self.select(np.empty(0, dtype=np.int64))
        return self._room.budget_tokens - int(self._frontier.tokens[mask != 0].sum())

    def _taken_up_to(self, order: Int64) -> Int64:
        """Return the tokens of all exchanges that begin with an item's or come before, by item."""
        owners = np.searchsorted(self._frontier.ordinals, self._frontier.openers)[order]
        exchange_tokens = np.bincount(owners, weights=self._frontier.tokens[order])
        first = np.empty(len(exchange_tokens), dtype=np.int64)
        first[owners[::-1]] = np.arange(len(order) - 1, -1, -1)
        begins = first[owners] == np.arange(len(order))
        return np.cumsum(np.where(begins, exchange_tokens[owners], 0).astype(np.int64))

    def best(self, ranking: Ranking, tail_start: int) -> UInt8:
        """Return the items with the highest scores, ties newest first.

        What was shown stays while it fits beside the best ones; when it does not, the lowest scores
        of it go, a step at once.
        """
        order = _best_first(ranking.scores[:tail_start])
        shown = ranking.shown[order]
        if not shown.any():
            return self.select(order)[0]
        in_core = self._taken_up_to(order) <= _CORE_SHARE * self._left_tokens()
        in_core &= ranking.scores[order] > 0
        kept = np.concatenate((order[in_core], order[shown & ~in_core]))
        mask = self.select(kept)[0]
        if not mask[kept].all():
            return self.select(kept, self._room.step_tokens)[0]
        spare = self._room.budget_tokens - int(self._frontier.tokens[mask != 0].sum())
        if spare > 2 * self._room.step_tokens:
            return self.select(np.concatenate((kept, order[~(shown | in_core)])))[0]
        return mask


def _best_first(scores: Float64) -> Int64:
    """Return the indexes of scores from the highest to the lowest, ties newest first.

    Ties are scores that agree to seven digits: whole numbers sort four times as fast as floats.
    """
    ascending = scores.astype(np.float32).view(np.uint32).astype(np.uint64)
    keys = np.sort(ascending << np.uint64(32) | np.arange(len(scores), dtype=np.uint64))
    return (keys[::-1] & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _first_in_sequence(frontier: Frontier, filled: UInt8, tail_start: int, step: int) -> int:
    """Return the index behind the newest exchange that did not fit and is no larger than a step."""
    left_out = np.flatnonzero(filled[:tail_start] == 0)
    _, exchange = np.unique(frontier.openers[left_out], return_inverse=True)
    sizes = np.bincount(exchange, weights=frontier.tokens[left_out])
    ends = left_out[sizes[exchange] <= step]
    return int(ends[-1]) + 1 if len(ends) else 0


def _pinned(frontier: Frontier, *, pin_user: bool) -> UInt8:
    pinned = np.zeros(len(frontier), dtype=np.uint8)
    pinned[: frontier.leading_system_count] = 1
    pinned[frontier.kinds == BRIEF] = 1
    if pin_user and frontier.newest_user_index is not None:
        pinned[frontier.newest_user_index] = 1
    return pinned
