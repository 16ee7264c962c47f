"""Leaf chunks and condensation on the documented cases (compaction spec F, G and AB10 to AB22)."""

from __future__ import annotations

import numpy as np

from lcm_fast.kernels import plan_condensation, plan_leaf_chunks

MESSAGE, SUMMARY = 0, 1


def leaf_chunks(
    tokens: list[int], boundary: int, max_tokens: int, kinds: list[int] | None = None
) -> list[list[int]]:
    """Plan over items that make no tool calls; all are messages unless told."""
    ordinals = np.arange(len(tokens))
    kind_array = np.array(kinds or [MESSAGE] * len(tokens), dtype=np.uint8)
    return plan_leaf_chunks(
        kind_array, ordinals, ordinals, np.array(tokens), 0, boundary, max_tokens
    ).tolist()


def condensation(
    depths: list[int],
    leaf_fanout: int,
    condensed_fanout: int,
    meaningful: list[int] | None = None,
    max_depth: int = -1,
) -> tuple[int, int, int] | None:
    """Plan over summaries of 60 tokens each."""
    kinds = np.ones(len(depths), dtype=np.uint8)
    flags = np.array(meaningful or [1] * len(depths), dtype=np.uint8)
    tokens = np.full(len(depths), 60)
    return plan_condensation(
        kinds,
        np.array(depths),
        tokens,
        flags,
        len(depths),
        leaf_fanout,
        condensed_fanout,
        0,
        20_000,
        max_depth,
    )


def test_ab10_a_chunk_of_300_takes_the_first_three_messages() -> None:
    assert leaf_chunks([100] * 5, 3, 300) == [[0, 3]]


def test_ab11_a_message_above_the_limit_is_a_chunk_of_its_own() -> None:
    assert leaf_chunks([2020, 20, 20], 3, 50) == [[0, 1], [1, 3]]


def test_ab14_a_summary_ends_a_chunk() -> None:
    kinds = [MESSAGE, MESSAGE, SUMMARY, MESSAGE]
    assert leaf_chunks([10] * 4, 4, 1000, kinds) == [[0, 2], [3, 4]]


def test_ab17_eight_old_messages_make_four_chunks() -> None:
    assert leaf_chunks([200] * 10, 8, 400) == [[0, 2], [2, 4], [4, 6], [6, 8]]


def test_ab64_chunks_start_after_the_summaries_of_earlier_ones() -> None:
    kinds = [SUMMARY] + [MESSAGE] * 8
    assert leaf_chunks([60] * 9, 7, 120, kinds) == [[1, 3], [3, 5], [5, 7]]


def test_f2_a_chunk_ends_before_the_message_that_passes_the_limit() -> None:
    assert leaf_chunks([60, 60, 60], 3, 130) == [[0, 2], [2, 3]]


def test_f2_a_chunk_ends_where_it_reaches_the_limit() -> None:
    assert leaf_chunks([60, 60, 0], 3, 120) == [[0, 2], [2, 3]]


def test_f3_a_single_small_message_is_a_chunk() -> None:
    assert leaf_chunks([1], 1, 20_000) == [[0, 1]]


def test_ab18_two_leaves_condense_at_depth_one_but_not_at_depth_zero() -> None:
    assert condensation([0, 0], 2, 2, max_depth=1) == (0, 0, 2)
    assert condensation([0, 0], 2, 2, max_depth=0) is None


def test_ab19_two_of_depth_one_wait_for_four_unless_pressed() -> None:
    assert condensation([1, 1], 8, 4) is None
    assert condensation([1, 1], 2, 2) == (1, 0, 2)


def test_ab20_another_depth_ends_the_run() -> None:
    assert condensation([0, 0, 1, 0], 2, 2) == (0, 0, 2)


def test_ab20_leaves_come_before_deeper_summaries() -> None:
    assert condensation([1, 1, 0, 0], 2, 2) == (0, 2, 4)


def test_ab21_summaries_without_meaning_ride_along_and_start_nothing() -> None:
    assert condensation([0] * 5, 2, 2, meaningful=[0, 0, 1, 0, 1]) == (0, 2, 5)


def test_ab21_summaries_without_meaning_alone_are_not_condensed() -> None:
    assert condensation([0] * 3, 1, 1, meaningful=[0, 0, 0]) is None


def test_ab22_two_leaves_are_too_few_for_a_fanout_of_three() -> None:
    assert condensation([0, 0], 3, 3) is None


def test_ab65_a_short_old_run_hides_no_longer_one() -> None:
    assert condensation([0, 1] + [0] * 10, 2, 2) == (0, 2, 12)


def test_g1_a_chunk_needs_its_minimum_of_tokens() -> None:
    arrays = (np.ones(2, dtype=np.uint8), np.zeros(2, dtype=np.int64), np.full(2, 60))
    assert plan_condensation(*arrays, np.ones(2, dtype=np.uint8), 2, 2, 2, 120, 500) == (0, 0, 2)
    assert plan_condensation(*arrays, np.ones(2, dtype=np.uint8), 2, 2, 2, 121, 500) is None


def test_g2_a_chunk_ends_before_the_summary_that_passes_the_limit() -> None:
    arrays = (np.ones(4, dtype=np.uint8), np.zeros(4, dtype=np.int64), np.full(4, 60))
    assert plan_condensation(*arrays, np.ones(4, dtype=np.uint8), 4, 3, 3, 0, 200) == (0, 0, 3)
