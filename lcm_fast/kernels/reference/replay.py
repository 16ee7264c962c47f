"""Twin of the `replay` kernel: what of a batch is stored already, and what repeats too often.

Works on 64-bit digests in place of messages, and knows nothing of rows or conversations. Alignment
serves the recognition of resent history (spec: storage 2.11; decision 11), floods the replay guard
(spec: storage 2.10; decision 12).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

import numpy as np

from .checks import Int64Array, UInt8Array, check_array, check_flags, to_count

__all__ = ["align", "find_floods"]

USER = 1
TOOL = 3
EMPTY = 0


def align(stored: Int64Array, batch: Int64Array) -> Int64Array:
    """See `lcm_fast.kernels.align`."""
    check_array("stored", stored, "int64")
    check_array("batch", batch, "int64")
    old = stored.tolist()
    new = batch.tolist()
    anchors = _anchors(old, new)
    matches = _fill_gaps(old, new, _longest_chain(anchors)) if anchors else _match_suffix(old, new)
    return np.array(matches, dtype=np.int64)


def _anchors(old: list[int], new: list[int]) -> list[tuple[int, int]]:
    """Return (batch index, stored index) of what occurs once on both sides, in batch order."""
    old_counts = Counter(old)
    new_counts = Counter(new)
    indices = {value: i for i, value in enumerate(old)}
    return [
        (i, indices[value])
        for i, value in enumerate(new)
        if old_counts[value] == new_counts[value] == 1
    ]


def _longest_chain(anchors: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest chain of anchors whose stored indices increase too (patience).

    `tails[k]` is the lowest stored index at which a chain of k + 1 anchors can end so far.
    """
    tails: list[int] = []
    tail_anchors: list[int] = []
    previous: list[int] = []
    for n, (_, index) in enumerate(anchors):
        place = bisect_left(tails, index)
        previous.append(tail_anchors[place - 1] if place else -1)
        tails[place : place + 1] = [index]
        tail_anchors[place : place + 1] = [n]
    chain = []
    n = tail_anchors[-1]
    while n >= 0:
        chain.append(anchors[n])
        n = previous[n]
    return chain[::-1]


def _fill_gaps(old: list[int], new: list[int], chain: list[tuple[int, int]]) -> list[int]:
    """Match the chain, and on from each of its anchors what is equal, up to other matches."""
    matches = dict(chain)
    taken = set(matches.values())
    for step in (1, -1):
        for anchor, anchor_index in chain:
            i, index = anchor + step, anchor_index + step
            while (
                0 <= i < len(new)
                and 0 <= index < len(old)
                and i not in matches
                and index not in taken
                and old[index] == new[i]
            ):
                matches[i] = index
                taken.add(index)
                i, index = i + step, index + step
    return [matches.get(i, -1) for i in range(len(new))]


def _match_suffix(old: list[int], new: list[int]) -> list[int]:
    """Match the longest end of `old` that `new` begins with (Knuth, Morris and Pratt).

    `failures[i]` is the length of the longest proper prefix of the batch that ends at i.
    """
    limit = min(len(old), len(new))
    failures = [0] * limit
    for i in range(1, limit):
        failures[i] = _extend_prefix(new, failures, failures[i - 1], new[i])
    matched = 0
    for value in old[len(old) - limit :]:
        matched = _extend_prefix(new, failures, matched, value)
    first = len(old) - matched
    return [first + i if i < matched else -1 for i in range(len(new))]


def _extend_prefix(new: list[int], failures: list[int], matched: int, value: int) -> int:
    """Return how long a prefix ends at `value`, when one of `matched` ended right before it."""
    while matched > 0 and new[matched] != value:
        matched = failures[matched - 1]
    return matched + (new[matched] == value)


def find_floods(
    roles: UInt8Array,
    seconds: Int64Array,
    contents: Int64Array,
    replayed: UInt8Array,
    persisted: Int64Array,
    external_threshold: int,
    internal_threshold: int,
) -> list[tuple[int, int]]:
    """See `lcm_fast.kernels.find_floods`."""
    _check_roles(roles)
    length = len(roles)
    check_array("seconds", seconds, "int64", length)
    check_array("contents", contents, "int64", length)
    check_flags("replayed", replayed, length)
    _check_persisted(persisted, length)
    external_threshold = _to_threshold("external_threshold", external_threshold)
    internal_threshold = _to_threshold("internal_threshold", internal_threshold)
    firsts: dict[tuple[int, int, int], int] = {}
    repeats: Counter[tuple[int, int, int]] = Counter()
    candidates = zip(
        roles.tolist(), seconds.tolist(), contents.tolist(), replayed.tolist(), strict=True
    )
    for i, (role, second, content, is_replayed) in enumerate(candidates):
        if is_replayed and content != EMPTY:
            group = (role, second, EMPTY if role == USER else content)
            firsts.setdefault(group, i)
            repeats[group] += 1
    floods = []
    for group, first in firsts.items():
        total = int(persisted[first]) + repeats[group]
        if total >= (external_threshold if group[0] == USER else internal_threshold):
            floods.append((first, total))
    return floods


def _check_roles(roles: UInt8Array) -> None:
    check_array("roles", roles, "uint8")
    for i, role in enumerate(roles.tolist()):
        if role > TOOL:
            raise ValueError(f"roles[{i}] is {role}, expected 0 (system) to 3 (tool)")


def _check_persisted(persisted: Int64Array, length: int) -> None:
    check_array("persisted", persisted, "int64", length)
    for i, count in enumerate(persisted.tolist()):
        if count < 0:
            raise ValueError(f"persisted[{i}] is {count}, expected 0 or more")


def _to_threshold(name: str, value: int) -> int:
    threshold = to_count(name, value)
    if threshold < 1:
        raise ValueError(f"{name} is {threshold}, expected 1 or more")
    return threshold
