"""Twin of the `frontier` kernel: where the fresh tail starts, and what fits a budget beside it.

A frontier is parallel arrays, oldest item first: strictly increasing `ordinals`, `kinds`,
`openers` (the ordinal of the item that opened the tool exchange an item belongs to; its own
elsewhere) and `tokens`. An index is a valid boundary when no item at or after it has its opener
before it (decisions 1 and 2).
"""

from __future__ import annotations

import numpy as np

from .checks import (
    Int64Array,
    UInt8Array,
    check_array,
    check_flags,
    check_indexes,
    check_kinds,
    check_ordinals,
    check_tokens,
    to_count,
    to_limit,
    to_position,
)

__all__ = ["select_context", "select_fresh_tail"]

MESSAGE = 0


def _heads(ordinals: list[int], openers: list[int], kinds: list[int] | None) -> list[int]:
    """Return, for each item, the index of the item that opened its exchange.

    An opener counts only where it is an earlier item, and a message where `kinds` are known: a
    summary has taken the ordinal of what it replaced, and opens nothing.
    """
    seen: dict[int, int] = {}
    heads: list[int] = []
    for i, ordinal in enumerate(ordinals):
        opener = seen.get(openers[i])
        heads.append(i if opener is None else heads[opener])
        if kinds is None or kinds[i] == MESSAGE:
            seen[ordinal] = i
    return heads


def _boundaries(heads: list[int]) -> list[int]:
    """Return the valid boundaries below the length, newest first; 0 is always the last of them."""
    boundaries = []
    lowest = len(heads)
    for i in range(len(heads) - 1, -1, -1):
        lowest = min(lowest, heads[i])
        if lowest == i:
            boundaries.append(i)
    return boundaries


def select_fresh_tail(
    kinds: UInt8Array,
    ordinals: Int64Array,
    openers: Int64Array,
    tokens: Int64Array,
    count: int,
    max_tokens: int = -1,
) -> int:
    """See `lcm_fast.kernels.select_fresh_tail`."""
    check_ordinals(ordinals)
    length = len(ordinals)
    check_kinds(kinds, length)
    check_array("openers", openers, "int64", length)
    check_tokens(tokens, length)
    count = to_count("count", count)
    max_tokens = to_count("max_tokens", max_tokens)
    if count <= 0:
        return length
    kind_of = kinds.tolist()
    heads = _heads(ordinals.tolist(), openers.tolist(), kind_of)
    return _walk_tail(kind_of, tokens.tolist(), _boundaries(heads), count, max_tokens)


def _walk_tail(
    kinds: list[int], tokens: list[int], boundaries: list[int], count: int, max_tokens: int
) -> int:
    start = end = len(kinds)
    messages = total = 0
    for boundary in boundaries:
        unit_messages = 0
        for i in range(boundary, end):
            unit_messages += kinds[i] == MESSAGE
            total += tokens[i]
        end = boundary
        if unit_messages == 0:
            continue
        if messages > 0 and (messages >= count or 0 <= max_tokens < total):
            break
        messages += unit_messages
        start = boundary
    return start


def select_context(
    ordinals: Int64Array,
    openers: Int64Array,
    tokens: Int64Array,
    pinned: UInt8Array,
    tail_start: int,
    budget: int,
    order: Int64Array | None = None,
    reserve: int = 0,
) -> tuple[UInt8Array, int]:
    """See `lcm_fast.kernels.select_context`."""
    check_ordinals(ordinals)
    length = len(ordinals)
    check_array("openers", openers, "int64", length)
    check_tokens(tokens, length)
    check_flags("pinned", pinned, length)
    tail_start = to_position("tail_start", tail_start, length)
    budget = to_limit("budget", budget)
    if order is None:
        order = np.arange(length - 1, -1, -1, dtype=np.int64)
    check_indexes("order", order, length)
    reserve = to_limit("reserve", reserve)
    heads = _heads(ordinals.tolist(), openers.tolist(), None)
    costs = tokens.tolist()
    pinned_heads = {head for head, flag in zip(heads, pinned.tolist(), strict=True) if flag}
    tail_start = _yield_tail(heads, costs, pinned_heads, tail_start, budget)
    best_first = [heads[i] for i in order.tolist()]
    fixed = pinned_heads | set(heads[tail_start:])
    kept = _fill(heads, costs, fixed, best_first, budget, reserve)
    mask = [1 if head in kept else 0 for head in heads]
    return np.array(mask, dtype=np.uint8), tail_start


def _yield_tail(
    heads: list[int], tokens: list[int], pinned_heads: set[int], tail_start: int, budget: int
) -> int:
    """Move the tail's start forward, unit by unit, until it fits beside what is pinned."""
    for boundary in reversed(_boundaries(heads)):
        if boundary <= tail_start:
            continue
        fixed_heads = pinned_heads | set(heads[tail_start:])
        fixed = sum(cost for head, cost in zip(heads, tokens, strict=True) if head in fixed_heads)
        if fixed <= budget:
            break
        tail_start = boundary
    return tail_start


def _fill(
    heads: list[int],
    tokens: list[int],
    fixed: set[int],
    best_first: list[int],
    budget: int,
    reserve: int,
) -> set[int]:
    """Return `fixed` and every further exchange, best first, that fits the rest of the budget."""
    group_tokens = dict.fromkeys(heads, 0)
    for head, cost in zip(heads, tokens, strict=True):
        group_tokens[head] += cost
    remaining = budget - sum(group_tokens[head] for head in fixed)
    if remaining < 0:
        return fixed
    remaining -= reserve
    chosen = set(fixed)
    for head in dict.fromkeys(best_first):
        if head not in fixed and group_tokens[head] <= remaining:
            remaining -= group_tokens[head]
            chosen.add(head)
    return chosen
