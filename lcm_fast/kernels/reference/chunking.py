"""Twin of the `chunking` kernel: which messages become one leaf, which summaries one condensed.

Leaf chunks follow the compaction spec F1-F3, never cutting a tool exchange (decisions 1);
condensation follows G1-G2 over every contiguous same-depth run (decisions 7).
"""

from __future__ import annotations

import numpy as np

from .checks import (
    Int64Array,
    UInt8Array,
    check_array,
    check_flags,
    check_kinds,
    check_ordinals,
    check_tokens,
    to_count,
    to_limit,
    to_position,
)

__all__ = ["plan_condensation", "plan_leaf_chunks"]

MESSAGE = 0


def plan_leaf_chunks(
    kinds: UInt8Array,
    ordinals: Int64Array,
    openers: Int64Array,
    tokens: Int64Array,
    begin: int,
    boundary: int,
    max_tokens: int,
    max_chunks: int = -1,
) -> Int64Array:
    """See `lcm_fast.kernels.plan_leaf_chunks`."""
    check_ordinals(ordinals)
    length = len(ordinals)
    check_kinds(kinds, length)
    check_array("openers", openers, "int64", length)
    check_tokens(tokens, length)
    begin = to_position("begin", begin, length)
    boundary = to_position("boundary", boundary, length)
    max_tokens = to_limit("max_tokens", max_tokens)
    max_chunks = to_count("max_chunks", max_chunks)
    costs = tokens.tolist()
    ordinal_of = ordinals.tolist()
    opener_of = openers.tolist()
    chunks: list[tuple[int, int]] = []
    for first, last in _message_runs(kinds.tolist(), begin, boundary):
        cuts = _valid_cuts(ordinal_of, opener_of, first, last)
        begin = first
        while begin < last and len(chunks) != max_chunks:
            end = _cut_chunk(costs, cuts, begin, last, max_tokens)
            chunks.append((begin, end))
            begin = end
    return np.array(chunks, dtype=np.int64).reshape(len(chunks), 2)


def _message_runs(kinds: list[int], begin: int, boundary: int) -> list[tuple[int, int]]:
    """Return the runs of messages between summaries, as [first, last) pairs."""
    runs = []
    first = begin
    for i in range(begin, boundary):
        if kinds[i] != MESSAGE:
            runs.append((first, i))
            first = i + 1
    runs.append((first, boundary))
    return [(first, last) for first, last in runs if first < last]


def _valid_cuts(ordinals: list[int], openers: list[int], first: int, last: int) -> list[bool]:
    """Return for each index up to `last` whether cutting there leaves the run's exchanges whole."""
    reach = list(range(first, last))
    seen: dict[int, int] = {}
    for i in range(first, last):
        reach[seen.get(openers[i], i) - first] = i
        seen[ordinals[i]] = i
    cuts = [True] * (last + 1)
    furthest = first
    for i in range(first, last):
        cuts[i] = i == first or furthest < i
        furthest = max(furthest, reach[i - first])
    return cuts


def _cut_chunk(tokens: list[int], cuts: list[bool], first: int, last: int, max_tokens: int) -> int:
    """Return where the chunk that starts at `first` ends."""
    end = first
    total = 0
    while end < last:
        if end > first and total + tokens[end] > max_tokens:
            break
        total += tokens[end]
        end += 1
        if total >= max_tokens:
            break
    for cut in range(end, first, -1):
        if cuts[cut]:
            return cut
    while not cuts[end]:
        end += 1
    return end


def plan_condensation(
    kinds: UInt8Array,
    depths: Int64Array,
    tokens: Int64Array,
    meaningful: UInt8Array,
    boundary: int,
    leaf_fanout: int,
    condensed_fanout: int,
    min_tokens: int,
    max_tokens: int,
    max_depth: int = -1,
) -> tuple[int, int, int] | None:
    """See `lcm_fast.kernels.plan_condensation`."""
    check_kinds(kinds)
    length = len(kinds)
    _check_depths(depths, kinds)
    check_tokens(tokens, length)
    check_flags("meaningful", meaningful, length)
    boundary = to_position("boundary", boundary, length)
    leaf_fanout = to_limit("leaf_fanout", leaf_fanout)
    condensed_fanout = to_limit("condensed_fanout", condensed_fanout)
    min_tokens = to_limit("min_tokens", min_tokens)
    max_tokens = to_limit("max_tokens", max_tokens)
    max_depth = to_count("max_depth", max_depth)
    summary_depths = [
        -1 if kind == MESSAGE else depth
        for kind, depth in zip(kinds.tolist(), depths.tolist(), strict=True)
    ]
    costs = tokens.tolist()
    counts = meaningful.tolist()
    for depth in sorted(set(summary_depths[:boundary]) - {-1}):
        if 0 <= max_depth <= depth:
            break
        fanout = leaf_fanout if depth == 0 else condensed_fanout
        for begin, end in _condensable_chunks(
            summary_depths, costs, counts, boundary, depth, max_tokens
        ):
            sources = [i for i in range(begin, end) if counts[i]]
            total = sum(costs[i] for i in sources)
            if len(sources) >= fanout and total >= min_tokens:
                return depth, begin, end
    return None


def _check_depths(depths: Int64Array, kinds: UInt8Array) -> None:
    check_array("depths", depths, "int64", len(kinds))
    for i, (depth, kind) in enumerate(zip(depths.tolist(), kinds.tolist(), strict=True)):
        if kind != MESSAGE and depth < 0:
            raise ValueError(f"depths[{i}] is {depth}, expected 0 or more for a summary")


def _condensable_chunks(
    summary_depths: list[int],
    tokens: list[int],
    meaningful: list[int],
    boundary: int,
    depth: int,
    max_tokens: int,
) -> list[tuple[int, int]]:
    """Return the chunks of summaries of `depth`, oldest first; each starts at a meaningful one."""
    chunks = []
    i = 0
    while i < boundary:
        if summary_depths[i] != depth or not meaningful[i]:
            i += 1
            continue
        begin = i
        total = 0
        while i < boundary and summary_depths[i] == depth:
            if meaningful[i]:
                if i > begin and total + tokens[i] > max_tokens:
                    break
                total += tokens[i]
            i += 1
            if total >= max_tokens:
                break
        chunks.append((begin, i))
    return chunks
