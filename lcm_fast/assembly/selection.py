"""Choose which context items go into an assembly; pure functions over a frontier's arrays.

Nothing is fetched here: the arrays hold all that choosing needs (decisions 1 and 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import select_context
from ..store import Frontier
from ..store.frontier import UInt8

__all__ = ["Choice", "choose"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen of a frontier of n items.

    Attributes
    ----------
    indexes
        Indexes of the chosen items, ascending.
    pinned : uint8[n]
        Items that stay whatever the budget: leading system messages and the newest user message.
    tail_start, wanted_tail_start
        Index of the fresh tail's first item, after and before it yielded to the budget.
    """

    indexes: list[int]
    pinned: UInt8
    tail_start: int
    wanted_tail_start: int


def choose(
    frontier: Frontier,
    budget_tokens: int,
    *,
    fresh_tail_count: int,
    fresh_tail_max_tokens: int | None,
) -> Choice:
    """Choose the items for a budget: the fresh tail, what is pinned, then whole exchanges, newest
    first.

    Complexity: linear in the frontier, in the kernels.
    """
    pinned = _pinned(frontier)
    wanted = frontier.fresh_tail_start(fresh_tail_count, fresh_tail_max_tokens)
    mask, tail_start = select_context(
        frontier.ordinals, frontier.openers, frontier.tokens, pinned, wanted, budget_tokens
    )
    return Choice(np.flatnonzero(mask).tolist(), pinned, tail_start, wanted)


def _pinned(frontier: Frontier) -> UInt8:
    pinned = np.zeros(len(frontier), dtype=np.uint8)
    pinned[: frontier.leading_system_count] = 1
    if frontier.newest_user_index is not None:
        pinned[frontier.newest_user_index] = 1
    return pinned
