"""Decide what to summarise next; pure functions over a frontier's arrays.

Nothing is read or written here (spec F, G, H7 to H11; decision 7).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ..config import Config
from ..kernels import plan_condensation, plan_leaf_chunks
from ..store import SUMMARY, Frontier
from ..store.frontier import Int64
from .barriers import leaf_kinds

__all__ = [
    "Plan",
    "count_leaf_chunks",
    "next_condensation",
    "next_leaf",
    "summary_prefix_tokens",
    "tail_start",
]


@dataclass(frozen=True, slots=True)
class Plan:
    """A run of context items to replace by one summary.

    Attributes
    ----------
    begin, end
        Index range in the frontier it was planned on.
    first_ordinal, last_ordinal
        The same range as the store knows it.
    depth
        Depth of the summary to make; 0 is a leaf, made of messages.
    tokens
        What the run takes in the frontier.
    message_ids, source_ids
        The items, in order: messages for a leaf, summaries otherwise.
    """

    begin: int
    end: int
    first_ordinal: int
    last_ordinal: int
    depth: int
    tokens: int
    message_ids: list[int]
    source_ids: list[str]

    @property
    def item_count(self) -> int:
        """How many items are replaced."""
        return self.end - self.begin

    def replaced_by(
        self, frontier: Frontier, *, summary_id: str, tokens: int, revision: int
    ) -> Frontier:
        """Return a frontier with a summary in the place of the planned items, which stand in it."""
        begin = int(np.searchsorted(frontier.ordinals, self.first_ordinal))
        end = int(np.searchsorted(frontier.ordinals, self.last_ordinal, side="right"))
        return frontier.with_summary(
            begin, end, summary_id=summary_id, depth=self.depth, tokens=tokens, revision=revision
        )


def next_leaf(
    frontier: Frontier, config: Config, chunk_tokens: int, after_ordinal: int = 0
) -> Plan | None:
    """Return the oldest chunk of messages before the fresh tail whose items all stand after an
    ordinal."""
    chunks = _leaf_chunks(frontier, config, chunk_tokens, after_ordinal, 1)
    if not len(chunks):
        return None
    first, last = (int(index) for index in chunks[0])
    return _plan(frontier, first, last, depth=0)


def count_leaf_chunks(frontier: Frontier, config: Config, chunk_tokens: int, most: int) -> int:
    """Return how many chunks of messages wait before the fresh tail, up to `most`."""
    return len(_leaf_chunks(frontier, config, chunk_tokens, 0, most))


def _leaf_chunks(
    frontier: Frontier, config: Config, chunk_tokens: int, after_ordinal: int, most: int
) -> Int64:
    begin = int(np.searchsorted(frontier.ordinals, after_ordinal, side="right"))
    return plan_leaf_chunks(
        leaf_kinds(frontier),
        frontier.ordinals,
        frontier.openers,
        frontier.tokens,
        max(begin, frontier.leading_system_count),
        tail_start(frontier, config),
        chunk_tokens,
        most,
    )


def next_condensation(
    frontier: Frontier, config: Config, *, hard: bool, refused: Collection[str] = ()
) -> Plan | None:
    """Return the oldest eligible run of summaries of one depth, shallowest depth first.

    Parameters
    ----------
    hard
        Under pressure: the smallest fanout at every depth, and no depth limit.
    refused
        Ids of summaries whose condensation was tried and was no smaller: they count for nothing in
        a run, and a run does not begin with them.
    """
    smallest = config.condensed_min_fanout_hard
    counts = np.array([summary_id not in refused for summary_id in frontier.summary_ids], np.uint8)
    found = plan_condensation(
        frontier.kinds,
        frontier.depths,
        frontier.tokens,
        counts,
        tail_start(frontier, config),
        smallest if hard else config.leaf_min_fanout,
        smallest if hard else config.condensed_min_fanout,
        max(config.condensed_target_tokens, config.leaf_chunk_tokens // 10),
        config.leaf_chunk_tokens,
        -1 if hard else config.sweep_max_depth,
    )
    if found is None:
        return None
    depth, first, last = found
    return _plan(frontier, first, last, depth=depth + 1)


def summary_prefix_tokens(frontier: Frontier, config: Config) -> int:
    """Return the tokens of the summaries before the fresh tail."""
    boundary = tail_start(frontier, config)
    is_summary = frontier.kinds[:boundary] == SUMMARY
    return int(frontier.tokens[:boundary][is_summary].sum())


def tail_start(frontier: Frontier, config: Config) -> int:
    """Return the index where the fresh tail begins."""
    return frontier.fresh_tail_start(config.fresh_tail_count, config.fresh_tail_max_tokens)


def _plan(frontier: Frontier, first: int, last: int, *, depth: int) -> Plan:
    is_leaf = depth == 0
    return Plan(
        begin=first,
        end=last,
        first_ordinal=int(frontier.ordinals[first]),
        last_ordinal=int(frontier.ordinals[last - 1]),
        depth=depth,
        tokens=int(frontier.tokens[first:last].sum()),
        message_ids=frontier.message_ids[first:last].tolist() if is_leaf else [],
        source_ids=[] if is_leaf else [name or "" for name in frontier.summary_ids[first:last]],
    )
