"""Leaf chunks cover their messages without cutting exchanges; condensation sees every run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.kernels import plan_condensation, plan_leaf_chunks

MESSAGE, SUMMARY = 0, 1


class Frontier(NamedTuple):
    kinds: npt.NDArray[np.uint8]
    ordinals: npt.NDArray[np.int64]
    openers: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]


def frontier(*items: tuple[int, int, int]) -> Frontier:
    """Build a frontier from (kind, index of the opener, tokens) per item."""
    kinds, openers, tokens = zip(*items, strict=True)
    return Frontier(
        np.array(kinds, dtype=np.uint8),
        np.arange(len(items)),
        np.array(openers, dtype=np.int64),
        np.array(tokens, dtype=np.int64),
    )


@st.composite
def plans(draw: st.DrawFn) -> tuple[Frontier, int, int, int, list[list[int]]]:
    """A frontier, begin, boundary, limit, and the chunks planned for them."""
    items: list[tuple[int, int, int]] = []
    for i in range(draw(st.integers(1, 20))):
        kind = draw(st.sampled_from((MESSAGE, MESSAGE, MESSAGE, SUMMARY)))
        back = draw(st.sampled_from((0, 0, 1, 2, 4)))
        opener = items[i - back][1] if kind == MESSAGE and 0 < back <= i else i
        items.append((kind, opener, draw(st.integers(0, 60))))
    f = frontier(*items)
    boundary = draw(st.integers(0, len(items)))
    begin = draw(st.integers(0, boundary))
    limit = draw(st.integers(0, 150))
    return f, begin, boundary, limit, plan_leaf_chunks(*f, begin, boundary, limit).tolist()


Plan = tuple[Frontier, int, int, int, list[list[int]]]


@given(plans())
def test_chunks_are_all_messages_before_the_boundary_once_each(plan: Plan) -> None:
    f, begin, boundary, _, chunks = plan
    covered = [i for first, last in chunks for i in range(first, last)]
    assert covered == [i for i in range(begin, boundary) if f.kinds[i] == MESSAGE]


@given(plans())
def test_a_chunk_above_the_limit_cannot_be_cut(plan: Plan) -> None:
    f, _, _, limit, chunks = plan
    for first, last in chunks:
        held = [
            (f.openers[cut:last] >= first) & (f.openers[cut:last] < cut)
            for cut in range(first + 1, last)
        ]
        assert f.tokens[first:last].sum() <= limit or all(result.any() for result in held)


@given(plans())
def test_a_chunk_ends_between_exchanges_unless_the_run_ends(plan: Plan) -> None:
    f, _, boundary, _, chunks = plan
    for first, last in chunks:
        run_end = last
        while run_end < boundary and f.kinds[run_end] == MESSAGE:
            run_end += 1
        later = f.openers[last:run_end]
        assert not ((later >= first) & (later < last)).any()


@given(plans(), st.integers(0, 4))
def test_a_limited_plan_is_the_start_of_the_whole_one(plan: Plan, most: int) -> None:
    f, begin, boundary, limit, chunks = plan
    assert plan_leaf_chunks(*f, begin, boundary, limit, most).tolist() == chunks[:most]


def test_no_messages_make_a_plan_of_no_rows_and_two_columns() -> None:
    f = frontier((SUMMARY, 0, 5))
    assert plan_leaf_chunks(*f, 0, 1, 100).shape == (0, 2)


def test_a_begin_after_the_boundary_makes_no_chunks() -> None:
    f = frontier((MESSAGE, 0, 5), (MESSAGE, 1, 5))
    assert plan_leaf_chunks(*f, 2, 1, 100).tolist() == []


def test_a_cut_inside_an_exchange_moves_back_to_its_start() -> None:
    f = frontier((MESSAGE, 0, 40), (MESSAGE, 1, 40), (MESSAGE, 1, 40), (MESSAGE, 3, 40))
    assert plan_leaf_chunks(*f, 0, 4, 100).tolist() == [[0, 1], [1, 3], [3, 4]]


def test_an_exchange_larger_than_a_chunk_is_a_chunk() -> None:
    f = frontier((MESSAGE, 0, 90), (MESSAGE, 0, 90), (MESSAGE, 0, 90), (MESSAGE, 3, 40))
    assert plan_leaf_chunks(*f, 0, 4, 100).tolist() == [[0, 3], [3, 4]]


def test_interleaved_exchanges_stay_in_one_chunk() -> None:
    f = frontier((MESSAGE, 0, 50), (MESSAGE, 1, 50), (MESSAGE, 0, 50), (MESSAGE, 1, 50))
    assert plan_leaf_chunks(*f, 0, 4, 100).tolist() == [[0, 4]]


def test_an_exchange_ends_at_a_summary_and_at_the_boundary() -> None:
    f = frontier((MESSAGE, 0, 5), (SUMMARY, 1, 5), (MESSAGE, 0, 5), (MESSAGE, 2, 5))
    assert plan_leaf_chunks(*f, 0, 3, 100).tolist() == [[0, 1], [2, 3]]


def test_a_position_beyond_the_frontier_is_refused() -> None:
    f = frontier((MESSAGE, 0, 5))
    with pytest.raises(ValueError, match=r"^boundary is 2, expected 0 to 1$"):
        plan_leaf_chunks(*f, 0, 2, 100)


def condense(
    items: list[tuple[int, int, int, int]], *rule: int, boundary: int | None = None
) -> tuple[int, int, int] | None:
    """Plan over (kind, depth, tokens, meaningful) items."""
    kinds, depths, tokens, meaningful = zip(*items, strict=True) if items else ((),) * 4
    return plan_condensation(
        np.array(kinds, dtype=np.uint8),
        np.array(depths, dtype=np.int64),
        np.array(tokens, dtype=np.int64),
        np.array(meaningful, dtype=np.uint8),
        len(items) if boundary is None else boundary,
        *rule,
    )


LEAF, UPPER, NOTE, TALK = (
    (SUMMARY, 0, 60, 1),
    (SUMMARY, 1, 60, 1),
    (SUMMARY, 0, 60, 0),
    (0, 0, 9, 0),
)
DEEP = (SUMMARY, 4, 60, 1)


@given(
    st.lists(st.sampled_from((LEAF, UPPER, NOTE, TALK, DEEP)), max_size=20),
    st.tuples(*[st.integers(1, 4)] * 2, st.integers(0, 200), st.integers(60, 300)),
)
def test_sources_are_one_run_of_one_depth_with_enough_in_it(
    items: list[tuple[int, int, int, int]], rule: tuple[int, int, int, int]
) -> None:
    found = condense(items, *rule)
    if found is not None:
        depth, begin, end = found
        sources = [item for item in items[begin:end] if item[3]]
        assert {item[:2] for item in items[begin:end]} == {(SUMMARY, depth)}
        assert len(sources) >= rule[0 if depth == 0 else 1]
        assert rule[2] <= 60 * len(sources) <= rule[3]


def test_a_message_ends_a_run() -> None:
    assert condense([LEAF, TALK, LEAF, LEAF], 2, 2, 0, 1000) == (0, 2, 4)


def test_a_chunk_that_does_not_qualify_hides_nothing_behind_it() -> None:
    large = (SUMMARY, 0, 900, 1)
    assert condense([large, large, LEAF, LEAF], 2, 2, 0, 950) == (0, 2, 4)


def test_too_few_tokens_are_not_condensed() -> None:
    assert condense([LEAF, LEAF], 2, 2, 121, 1000) is None


def test_summaries_at_the_depth_limit_are_left_alone() -> None:
    assert condense([UPPER, UPPER], 2, 2, 0, 1000, 1) is None


def test_summaries_in_the_tail_are_not_looked_at() -> None:
    assert condense([LEAF, LEAF], 2, 2, 0, 1000, boundary=1) is None


def test_depths_far_apart_are_met_lowest_first() -> None:
    assert condense([DEEP, DEEP, UPPER, UPPER], 2, 2, 0, 1000) == (1, 2, 4)


def test_no_summaries_condense_to_nothing() -> None:
    assert condense([], 2, 2, 0, 1000) is None


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^min_tokens is -1, expected 0 or more$"):
        condense([LEAF], 2, 2, -1, 1000)
