"""Decide what to summarise next; pure functions over a frontier's arrays.

Nothing is read or written here (spec F, G, H7 to H11; decision 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..config import Config
from ..kernels import plan_condensation, plan_leaf_chunks
from ..store import SUMMARY, Frontier

__all__ = ["Plan", "next_condensation", "next_leaf", "summary_prefix_tokens"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A run of context items to replace by one summary.

    Attributes
    ----------
    begin, end
        Index range in the frontier it was planned on.
    depth
        Depth of the summary to make; 0 is a leaf, made of messages.
    tokens
        What the run takes in the frontier.
    message_ids, source_ids
        The items, in order: messages for a leaf, summaries otherwise.
    """

    begin: int
    end: int
    depth: int
    tokens: int
    message_ids: list[int]
    source_ids: list[str]


def next_leaf(frontier: Frontier, config: Config, begin: int) -> Plan | None:
    """Return the oldest chunk of messages before the fresh tail, from index `begin` on.

    The newest user message is passed over: it stays raw however long the tool run after it is.
    """
    kinds = frontier.kinds
    if frontier.newest_user_index is not None:
        kinds = kinds.copy()
        kinds[frontier.newest_user_index] = SUMMARY
    chunks = plan_leaf_chunks(
        kinds,
        frontier.ordinals,
        frontier.openers,
        frontier.tokens,
        max(begin, frontier.leading_system_count),
        _boundary(frontier, config),
        config.leaf_chunk_tokens,
        1,
    )
    if not len(chunks):
        return None
    first, last = (int(index) for index in chunks[0])
    return Plan(
        begin=first,
        end=last,
        depth=0,
        tokens=int(frontier.tokens[first:last].sum()),
        message_ids=frontier.message_ids[first:last].tolist(),
        source_ids=[],
    )


def next_condensation(frontier: Frontier, config: Config, *, hard: bool) -> Plan | None:
    """Return the oldest eligible run of summaries of one depth, shallowest depth first.

    Parameters
    ----------
    hard
        Under pressure: the smallest fanout at every depth, and no depth limit.
    """
    smallest = config.condensed_min_fanout_hard
    found = plan_condensation(
        frontier.kinds,
        frontier.depths,
        frontier.tokens,
        np.ones(len(frontier), dtype=np.uint8),  # a summary that says nothing is never published
        _boundary(frontier, config),
        smallest if hard else config.leaf_min_fanout,
        smallest if hard else config.condensed_min_fanout,
        max(config.condensed_target_tokens, config.leaf_chunk_tokens // 10),
        config.leaf_chunk_tokens,
        -1 if hard else config.sweep_max_depth,
    )
    if found is None:
        return None
    depth, first, last = found
    return Plan(
        begin=first,
        end=last,
        depth=depth + 1,
        tokens=int(frontier.tokens[first:last].sum()),
        message_ids=[],
        source_ids=[summary_id or "" for summary_id in frontier.summary_ids[first:last]],
    )


def summary_prefix_tokens(frontier: Frontier, config: Config) -> int:
    """Return the tokens of the summaries before the fresh tail."""
    boundary = _boundary(frontier, config)
    is_summary = frontier.kinds[:boundary] == SUMMARY
    return int(frontier.tokens[:boundary][is_summary].sum())


def _boundary(frontier: Frontier, config: Config) -> int:
    return frontier.fresh_tail_start(config.fresh_tail_count, config.fresh_tail_max_tokens)
