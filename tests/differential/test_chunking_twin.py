"""The `chunking` kernel equals its twin in values, exception classes and messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential.frontiers import (
    WAYS_TO_BREAK,
    Frontier,
    break_array,
    build,
    frontiers,
    odd_counts,
)
from differential.outcomes import outcome
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.kernels.reference import chunking as twin

kernel = pytest.importorskip(
    "lcm_fast.kernels._chunking", reason="no binary of the chunking kernel"
)

SOUND = build([(0, 2, 0, 10, 0), (0, 1, 1, 20, 1), (1, 3, 0, 5, 0), (0, 1, 0, 7, 0)])

summary_runs = st.lists(
    st.tuples(
        st.sampled_from((1, 1, 1, 1, 0)),
        st.sampled_from((0, 0, 0, 1, 1, 2)),
        st.integers(0, 60),
        st.sampled_from((1, 1, 1, 0)),
    ),
    max_size=24,
)


def summary_arrays(items: list[tuple[int, int, int, int]]) -> tuple[Any, Any, Any, Any]:
    kinds, depths, tokens, meaningful = zip(*items, strict=True) if items else ((),) * 4
    return (
        np.array(kinds, dtype=np.uint8),
        np.array(depths, dtype=np.int64),
        np.array(tokens, dtype=np.int64),
        np.array(meaningful, dtype=np.uint8),
    )


@given(frontiers, st.integers(0, 24), st.integers(0, 24), st.integers(0, 150), st.integers(-1, 4))
def test_leaf_chunks_are_those_of_the_twin(
    frontier: Frontier, begin: int, boundary: int, max_tokens: int, max_chunks: int
) -> None:
    length = len(frontier.kinds)
    arguments = (
        *frontier[:4],
        min(begin, boundary, length),
        min(boundary, length),
        max_tokens,
        max_chunks,
    )
    assert outcome(kernel.plan_leaf_chunks, *arguments) == outcome(
        twin.plan_leaf_chunks, *arguments
    )


@given(
    summary_runs,
    st.integers(0, 24),
    st.tuples(
        st.integers(0, 4),
        st.integers(0, 4),
        st.integers(0, 80),
        st.integers(0, 200),
        st.integers(-1, 3),
    ),
)
def test_condensation_is_that_of_the_twin(
    items: list[tuple[int, int, int, int]], boundary: int, rule: tuple[int, ...]
) -> None:
    arguments = (*summary_arrays(items), min(boundary, len(items)), *rule)
    assert outcome(kernel.plan_condensation, *arguments) == outcome(
        twin.plan_condensation, *arguments
    )


def test_frontiers_long_enough_to_run_without_the_lock_have_the_plans_of_the_twin() -> None:
    frontier = build([(i % 97 == 0, 1 + i % 2, i % 4, i % 50, i % 5) for i in range(5000)])
    chunks = (*frontier[:4], 0, 5000, 500)
    assert outcome(kernel.plan_leaf_chunks, *chunks) == outcome(twin.plan_leaf_chunks, *chunks)
    summaries = summary_arrays([(1, i % 7 // 6, i % 50, i % 5) for i in range(5000)])
    rule = (5000, 7, 7, 0, 5000)
    assert outcome(kernel.plan_condensation, *summaries, *rule) == outcome(
        twin.plan_condensation, *summaries, *rule
    )


@pytest.mark.parametrize("how", WAYS_TO_BREAK)
@pytest.mark.parametrize("position", range(4))
def test_a_malformed_array_to_chunk_has_the_error_of_the_twin(position: int, how: str) -> None:
    arrays: list[object] = list(SOUND[:4])
    arrays[position] = break_array(SOUND[position], how)
    assert outcome(kernel.plan_leaf_chunks, *arrays, 0, 3, 30) == outcome(
        twin.plan_leaf_chunks, *arrays, 0, 3, 30
    )


@pytest.mark.parametrize("how", WAYS_TO_BREAK)
@pytest.mark.parametrize("position", range(4))
def test_a_malformed_array_to_condense_has_the_error_of_the_twin(position: int, how: str) -> None:
    sound = summary_arrays([(1, 0, 10, 1), (1, 1, 20, 0), (0, 0, 7, 1), (1, 1, 9, 1)])
    arrays: list[object] = list(sound)
    arrays[position] = break_array(sound[position], how)
    assert outcome(kernel.plan_condensation, *arrays, 3, 2, 2, 5, 30) == outcome(
        twin.plan_condensation, *arrays, 3, 2, 2, 5, 30
    )


@pytest.mark.parametrize("kinds", [[1, 1], [0, 1], [1, 0], [1, 9]])
def test_a_negative_depth_has_the_outcome_of_the_twin(kinds: list[int]) -> None:
    arrays = (np.array(kinds, dtype=np.uint8), np.array([-1, 0]), np.array([5, -5]))
    meaningful = np.ones(2, dtype=np.uint8)
    assert outcome(kernel.plan_condensation, *arrays, meaningful, 2, 1, 1, 0, 9) == outcome(
        twin.plan_condensation, *arrays, meaningful, 2, 1, 1, 0, 9
    )


@given(st.integers(0, 3), odd_counts)
def test_odd_counts_of_leaf_chunks_have_the_outcome_of_the_twin(
    position: int, value: object
) -> None:
    counts: list[object] = [0, 3, 30, 2]
    counts[position] = value
    assert outcome(kernel.plan_leaf_chunks, *SOUND[:4], *counts) == outcome(
        twin.plan_leaf_chunks, *SOUND[:4], *counts
    )


@given(st.integers(0, 5), odd_counts)
def test_odd_counts_of_condensation_have_the_outcome_of_the_twin(
    position: int, value: object
) -> None:
    counts: list[object] = [2, 1, 1, 0, 30, 4]
    counts[position] = value
    arrays = summary_arrays([(1, 0, 10, 1), (1, 1, 20, 0)])
    assert outcome(kernel.plan_condensation, *arrays, *counts) == outcome(
        twin.plan_condensation, *arrays, *counts
    )
