"""Fresh tail and selection on the documented cases, as decisions 1 and 2 change them.

The spec's tail reaches back to the newest user message; ours does not, that message is pinned.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lcm_fast.kernels import select_context, select_fresh_tail


def tail_start(tokens: list[int], count: int, max_tokens: int = -1) -> int:
    """Return the tail's start among messages that make no tool calls."""
    ordinals = np.arange(len(tokens))
    kinds = np.zeros(len(tokens), dtype=np.uint8)
    return select_fresh_tail(kinds, ordinals, ordinals, np.array(tokens), count, max_tokens)


def chosen(tokens: list[int], budget: int, tail: int, pinned: tuple[int, ...] = ()) -> list[int]:
    """Return the indices chosen among items that make no tool calls."""
    ordinals = np.arange(len(tokens))
    pins: npt.NDArray[np.uint8] = np.isin(ordinals, pinned).astype(np.uint8)
    mask, _ = select_context(ordinals, ordinals, np.array(tokens), pins, tail, budget)
    return np.flatnonzero(mask).tolist()


def test_ab8_a_tail_of_one_is_the_newest_message() -> None:
    assert tail_start([100, 100, 100], 1) == 2


def test_ab9_the_cap_stops_the_tail_before_the_message_that_passes_it() -> None:
    assert tail_start([40, 20, 200], 64, 100) == 2


def test_ab9_the_newest_message_is_kept_above_the_cap_and_the_newest_user_message_pinned() -> None:
    assert chosen([40, 20, 200], 100, 2, pinned=(1,)) == [1, 2]


def test_ab10_a_tail_of_two_leaves_three_messages_outside() -> None:
    assert tail_start([100] * 5, 2) == 3


def test_ab17_a_tail_of_two_among_ten() -> None:
    assert tail_start([200] * 10, 2) == 8


def test_ab42_a_tail_larger_than_the_budget_yields_down_to_its_newest_message() -> None:
    assert chosen([200] * 3, 100, tail_start([200] * 3, 8)) == [2]


def test_ab42_the_cap_keeps_one_message_and_the_newest_user_message_stays_beside_it() -> None:
    tokens = [100] * 4
    assert chosen(tokens, 150, tail_start(tokens, 4, 110), pinned=(2,)) == [2, 3]


def test_ab42_user_and_answer_are_kept_at_a_budget_of_one() -> None:
    assert chosen([100, 100], 1, tail_start([100, 100], 1), pinned=(0,)) == [0, 1]


def test_ab42_the_tail_of_an_alternating_conversation_is_its_last_four() -> None:
    assert tail_start([100] * 10, 4) == 6


def test_ab66_an_item_that_does_not_fit_hides_no_older_one() -> None:
    tokens = [44, 131, 44, 4, 5]
    assert chosen(tokens, 140, tail_start(tokens, 2)) == [0, 2, 3, 4]


def test_ab67_a_long_answer_run_does_not_widen_the_tail() -> None:
    assert tail_start([10] * 10, 2) == 8


def test_e3_a_cap_of_nothing_protects_the_newest_message() -> None:
    assert tail_start([5, 5, 5], 3, 0) == 2


def test_e1_summaries_take_no_place_in_the_tail() -> None:
    ordinals = np.arange(4)
    kinds = np.array([0, 0, 1, 0], dtype=np.uint8)
    assert select_fresh_tail(kinds, ordinals, ordinals, np.full(4, 10), 2) == 1
