"""Which context items no leaf may cover; pure functions over a frontier's arrays.

The newest user message stays raw. So does a tool exchange that stands on both sides of an item that
stays: one half of it in a summary would leave the other without its partner (decision 1).
"""

from __future__ import annotations

import numpy as np

from ..store import MESSAGE, SUMMARY, Frontier
from ..store.frontier import Int64, UInt8

__all__ = ["leaf_kinds"]


def leaf_kinds(frontier: Frontier) -> UInt8:
    """Return the kinds with `SUMMARY` in the place of every message that must stay raw.

    Complexity: linear in the frontier, once for each ring of interlocked exchanges.
    """
    kinds = frontier.kinds.copy()
    if frontier.newest_user_index is not None:
        kinds[frontier.newest_user_index] = SUMMARY
    members, heads = _late_members(frontier)
    while True:
        walls = np.cumsum(kinds == SUMMARY)
        split = (walls[members] != walls[heads]) | (kinds[heads] == SUMMARY)
        torn = np.concatenate((members[split], heads[split]))
        if not (kinds[torn] == MESSAGE).any():
            return kinds
        kinds[torn] = SUMMARY


def _late_members(frontier: Frontier) -> tuple[Int64, Int64]:
    """Return the indexes of results, and of the calls they belong to, that stand in the frontier.

    A call that has been summarised ties its result to nothing any more.
    """
    positions = np.searchsorted(frontier.ordinals, frontier.openers)
    positions = np.minimum(positions, max(len(frontier) - 1, 0))
    tied = (
        (frontier.kinds == MESSAGE)
        & (frontier.openers < frontier.ordinals)
        & (frontier.ordinals[positions] == frontier.openers)
        & (frontier.kinds[positions] == MESSAGE)
    )
    members = np.flatnonzero(tied)
    return members, positions[members]
