"""The `replay` kernel equals its twin in values, exception classes and messages."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from differential.frontiers import WAYS_TO_BREAK, break_array, odd_counts
from differential.outcomes import outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.kernels.reference import replay as twin

kernel = pytest.importorskip("lcm_fast.kernels._replay", reason="no binary of the replay kernel")

Digests = npt.NDArray[np.int64]

INT64_EDGES = (0, -1, 1, 255, 256, 2**32, 2**63 - 1, -(2**63))
LENGTH_WITHOUT_LOCK = 5000


def digests(values: list[int]) -> Digests:
    return np.array(values, dtype=np.int64)


def lists_over(values: st.SearchStrategy[int]) -> st.SearchStrategy[Digests]:
    return st.lists(values, max_size=30).map(digests)


# From so few values that nearly all repeat, to so many that hardly one does.
pairs_of_sides = st.sampled_from((2, 3, 6, 16, 60)).flatmap(
    lambda count: st.tuples(*[lists_over(st.integers(0, count - 1))] * 2)
)
candidates = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(-1, 1),
        st.integers(-1, 2),
        st.sampled_from((0, 1, 1, 255)),
        st.integers(0, 4),
    ),
    max_size=30,
)


def as_arrays(rows: list[tuple[int, int, int, int, int]]) -> list[npt.NDArray[Any]]:
    """Return roles, seconds, contents, replayed and persisted."""
    columns = zip(*rows, strict=True) if rows else ((),) * 5
    types = (np.uint8, np.int64, np.int64, np.uint8, np.int64)
    return [np.array(column, dtype=kind) for column, kind in zip(columns, types, strict=True)]


SOUND = as_arrays([(1, 7, 1, 1, 0), (1, 7, 2, 1, 0), (3, 7, 1, 1, 2), (2, 8, 3, 0, 0)])


@settings(max_examples=500)
@given(pairs_of_sides)
def test_sides_are_aligned_as_by_the_twin(sides: tuple[Digests, Digests]) -> None:
    assert outcome(kernel.align, *sides) == outcome(twin.align, *sides)


@given(*[lists_over(st.one_of(st.sampled_from(INT64_EDGES), st.integers(-(2**63), 2**63 - 1)))] * 2)
def test_digests_of_any_value_are_aligned_as_by_the_twin(stored: Digests, batch: Digests) -> None:
    assert outcome(kernel.align, stored, batch) == outcome(twin.align, stored, batch)


@given(st.permutations(range(40)), st.permutations(range(40)))
def test_anchors_in_any_order_are_aligned_as_by_the_twin(old: list[int], new: list[int]) -> None:
    sides = digests(old), digests(new)
    assert outcome(kernel.align, *sides) == outcome(twin.align, *sides)


@pytest.mark.parametrize("distinct", [1, 2, 50, 2**62])
def test_sides_long_enough_to_run_without_the_lock_are_aligned_as_by_the_twin(
    distinct: int,
) -> None:
    rng = random.Random(distinct)
    stored = [rng.randrange(distinct) for _ in range(LENGTH_WITHOUT_LOCK)]
    batch = [value for value in stored if rng.random() > 0.02] + [2**62 + 1]
    sides = digests(stored), digests(batch)
    assert outcome(kernel.align, *sides) == outcome(twin.align, *sides)


# A kernel that is not near linear does not come back from these.
@pytest.mark.parametrize(
    ("stored", "batch"),
    [
        pytest.param([0] * 100_000, [0] * 100_000, id="all equal"),
        pytest.param([0, 1] * 50_000, [1, 0] * 50_000, id="alternating"),
        pytest.param(([0] * 99 + [1]) * 1000, [0] * 100_000, id="broken off again and again"),
        pytest.param([*range(100_000)], [*range(100_000)][::-1], id="anchors in reverse"),
    ],
)
def test_long_adverse_sides_are_aligned_as_by_the_twin(stored: list[int], batch: list[int]) -> None:
    sides = digests(stored), digests(batch)
    assert outcome(kernel.align, *sides) == outcome(twin.align, *sides)


@settings(max_examples=500)
@given(candidates, st.integers(1, 5), st.integers(1, 5))
def test_floods_are_those_of_the_twin(
    rows: list[tuple[int, int, int, int, int]], external: int, internal: int
) -> None:
    arguments = (*as_arrays(rows), external, internal)
    assert outcome(kernel.find_floods, *arguments) == outcome(twin.find_floods, *arguments)


def test_floods_of_batches_that_run_without_the_lock_are_those_of_the_twin() -> None:
    rows = [(i % 4, i % 7, i % 5, i % 3, i % 2) for i in range(LENGTH_WITHOUT_LOCK)]
    arguments = (*as_arrays(rows), 3, 32)
    assert outcome(kernel.find_floods, *arguments) == outcome(twin.find_floods, *arguments)


@given(st.lists(st.sampled_from((0, 1, -1, 2**63 - 1, -(2**63))), max_size=4))
def test_negative_and_huge_counts_of_persisted_rows_have_the_outcome_of_the_twin(
    counts: list[int],
) -> None:
    arrays = as_arrays([(3, 7, 1, 1, count) for count in counts])
    assert outcome(kernel.find_floods, *arrays, 3, 2) == outcome(twin.find_floods, *arrays, 3, 2)


def test_an_unknown_role_has_the_error_of_the_twin() -> None:
    arrays = as_arrays([(3, 7, 1, 1, 0), (4, 7, 1, 1, 0)])
    assert outcome(kernel.find_floods, *arrays, 3, 2) == outcome(twin.find_floods, *arrays, 3, 2)


@pytest.mark.parametrize("how", WAYS_TO_BREAK)
@pytest.mark.parametrize("position", range(2))
def test_a_malformed_side_has_the_outcome_of_the_twin(position: int, how: str) -> None:
    sides: list[object] = [digests([5, 6, 7]), digests([6, 7, 8])]
    sides[position] = break_array(digests([5, 6, 7]), how)
    assert outcome(kernel.align, *sides) == outcome(twin.align, *sides)


@pytest.mark.parametrize("how", WAYS_TO_BREAK)
@pytest.mark.parametrize("position", range(5))
def test_a_malformed_array_of_candidates_has_the_outcome_of_the_twin(
    position: int, how: str
) -> None:
    arrays: list[object] = list(SOUND)
    arrays[position] = break_array(SOUND[position], how)
    assert outcome(kernel.find_floods, *arrays, 2, 3) == outcome(twin.find_floods, *arrays, 2, 3)


@given(st.one_of(odd_counts, st.just(0)), st.one_of(odd_counts, st.just(0)))
def test_odd_thresholds_have_the_outcome_of_the_twin(external: object, internal: object) -> None:
    assert outcome(kernel.find_floods, *SOUND, external, internal) == outcome(
        twin.find_floods, *SOUND, external, internal
    )


def test_read_only_arrays_are_accepted() -> None:
    arrays = [array.copy() for array in SOUND]
    for array in arrays:
        array.flags.writeable = False
    assert kernel.find_floods(*arrays, 2, 3) == [(0, 2), (2, 3)]
    assert kernel.align(arrays[1], arrays[1]).tolist() == [0, 1, 2, 3]
