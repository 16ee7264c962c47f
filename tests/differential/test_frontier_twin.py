"""The `frontier` kernel equals its twin in values, exception classes and messages."""

from __future__ import annotations

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

from lcm_fast.kernels.reference import frontier as twin

kernel = pytest.importorskip(
    "lcm_fast.kernels._frontier", reason="no binary of the frontier kernel"
)

SOUND = build([(0, 2, 0, 10, 0), (0, 1, 1, 20, 1), (1, 3, 0, 5, 0), (0, 1, 0, 7, 0)])


@given(frontiers, st.integers(-1, 12), st.integers(-1, 200))
def test_the_tail_starts_where_the_twin_says(
    frontier: Frontier, count: int, max_tokens: int
) -> None:
    arguments = (*frontier[:4], count, max_tokens)
    assert outcome(kernel.select_fresh_tail, *arguments) == outcome(
        twin.select_fresh_tail, *arguments
    )


@given(frontiers, st.integers(0, 24), st.integers(0, 400))
def test_the_choice_is_that_of_the_twin(frontier: Frontier, tail_start: int, budget: int) -> None:
    arguments = (*frontier[1:], min(tail_start, len(frontier.kinds)), budget)
    assert outcome(kernel.select_context, *arguments) == outcome(twin.select_context, *arguments)


orders = st.lists(st.integers(-1, 12), max_size=14)


@given(frontiers, st.integers(0, 24), st.integers(0, 400), orders, st.integers(-1, 90))
def test_the_choice_in_a_given_order_is_that_of_the_twin(
    frontier: Frontier, tail_start: int, budget: int, order: list[int], reserve: int
) -> None:
    tail_start = min(tail_start, len(frontier.kinds))
    best_first = np.array(order, dtype=np.int64)
    arguments = (*frontier[1:], tail_start, budget, best_first, reserve)
    assert outcome(kernel.select_context, *arguments) == outcome(twin.select_context, *arguments)


@pytest.mark.parametrize("how", WAYS_TO_BREAK)
def test_a_malformed_order_has_the_error_of_the_twin(how: str) -> None:
    order = break_array(np.array([2, 0]), how)
    arguments = (*SOUND[1:], 3, 30, order)
    assert outcome(kernel.select_context, *arguments) == outcome(twin.select_context, *arguments)


@given(frontiers, st.integers(1, 6), st.integers(0, 300))
def test_the_choice_beside_a_selected_tail_is_that_of_the_twin(
    frontier: Frontier, count: int, budget: int
) -> None:
    tail_start = twin.select_fresh_tail(*frontier[:4], count)
    arguments = (*frontier[1:], tail_start, budget)
    assert outcome(kernel.select_context, *arguments) == outcome(twin.select_context, *arguments)


def test_frontiers_long_enough_to_run_without_the_lock_have_the_choice_of_the_twin() -> None:
    frontier = build([(i % 9 == 0, 1 + i % 2, i % 3, i % 50, i % 40 == 0) for i in range(5000)])
    start = twin.select_fresh_tail(*frontier[:4], 64)
    arguments = (*frontier[1:], start, 20_000)
    assert kernel.select_fresh_tail(*frontier[:4], 64) == start
    assert outcome(kernel.select_context, *arguments) == outcome(twin.select_context, *arguments)


def test_read_only_arrays_are_accepted() -> None:
    frontier = Frontier(*(array.copy() for array in SOUND))
    for array in frontier:
        array.flags.writeable = False
    assert kernel.select_fresh_tail(*frontier[:4], 2) == twin.select_fresh_tail(*frontier[:4], 2)


@pytest.mark.parametrize("how", WAYS_TO_BREAK)
@pytest.mark.parametrize("position", range(4))
def test_a_malformed_array_has_the_error_of_the_twin(position: int, how: str) -> None:
    arrays: list[object] = list(SOUND[:4])
    arrays[position] = break_array(SOUND[position], how)
    assert outcome(kernel.select_fresh_tail, *arrays, 2) == outcome(
        twin.select_fresh_tail, *arrays, 2
    )


@pytest.mark.parametrize("how", WAYS_TO_BREAK)
@pytest.mark.parametrize("position", range(4))
def test_a_malformed_array_to_choose_from_has_the_error_of_the_twin(
    position: int, how: str
) -> None:
    arrays: list[object] = list(SOUND[1:])
    arrays[position] = break_array(SOUND[1 + position], how)
    assert outcome(kernel.select_context, *arrays, 3, 30) == outcome(
        twin.select_context, *arrays, 3, 30
    )


@given(st.lists(st.sampled_from((0, 5, -1, 2**62, 2**63 - 1, -(2**63))), max_size=5))
def test_negative_and_huge_counts_have_the_outcome_of_the_twin(counts: list[int]) -> None:
    ordinals = np.arange(len(counts))
    arguments = (ordinals, ordinals, np.array(counts, dtype=np.int64))
    kinds = np.zeros(len(counts), dtype=np.uint8)
    assert outcome(kernel.select_fresh_tail, kinds, *arguments, 3) == outcome(
        twin.select_fresh_tail, kinds, *arguments, 3
    )


def test_an_unknown_kind_has_the_error_of_the_twin() -> None:
    kinds = np.array([0, 1, 2, 0], dtype=np.uint8)
    assert outcome(kernel.select_fresh_tail, kinds, *SOUND[1:4], 2) == outcome(
        twin.select_fresh_tail, kinds, *SOUND[1:4], 2
    )


@given(odd_counts, odd_counts)
def test_odd_counts_have_the_outcome_of_the_twin(first: object, second: object) -> None:
    for name, arrays in (("select_fresh_tail", SOUND[:4]), ("select_context", SOUND[1:])):
        assert outcome(getattr(kernel, name), *arrays, first, second) == outcome(
            getattr(twin, name), *arrays, first, second
        )
