"""Where the fresh tail starts and what is chosen beside it, on frontiers of every make."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.kernels import select_context, select_fresh_tail

MESSAGE, SUMMARY = 0, 1


class Frontier(NamedTuple):
    kinds: npt.NDArray[np.uint8]
    ordinals: npt.NDArray[np.int64]
    openers: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]

    def is_boundary(self, index: int) -> bool:
        """Whether no item from `index` on was opened by a message before it."""
        earlier = self.ordinals[:index][self.kinds[:index] == MESSAGE]
        return not np.isin(self.openers[index:], earlier).any()


def frontier(*items: tuple[int, int, int]) -> Frontier:
    """Build a frontier from (kind, index of the opener, tokens) per item; ordinals are tens."""
    kinds, openers, tokens = zip(*items, strict=True)
    return Frontier(
        np.array(kinds, dtype=np.uint8),
        10 * np.arange(len(items)),
        10 * np.array(openers, dtype=np.int64),
        np.array(tokens, dtype=np.int64),
    )


def exchanges_of(f: Frontier) -> list[int]:
    """Return for each item the index that stands for its exchange."""
    return (f.openers // 10).tolist()


@st.composite
def frontiers(draw: st.DrawFn) -> Frontier:
    """Summaries first, then messages; results follow their call, other messages in between."""
    summaries = draw(st.integers(0, 5))
    items = [(SUMMARY, i, draw(st.integers(0, 60))) for i in range(summaries)]
    for i in range(summaries, summaries + draw(st.integers(0 if summaries else 1, 16))):
        back = draw(st.sampled_from((0, 0, 1, 2, 4)))
        opener = items[i - back][1] if i - back >= summaries and back else i
        items.append((MESSAGE, opener, draw(st.integers(0, 60))))
    return frontier(*items)


@given(frontiers(), st.integers(1, 10), st.integers(-1, 200))
def test_the_tail_starts_at_a_valid_boundary(f: Frontier, count: int, cap: int) -> None:
    assert f.is_boundary(select_fresh_tail(*f, count, cap))


@given(frontiers(), st.integers(1, 10), st.integers(-1, 200))
def test_the_tail_starts_with_a_message(f: Frontier, count: int, cap: int) -> None:
    start = select_fresh_tail(*f, count, cap)
    assert (f.kinds[start:] == MESSAGE)[:1].all()


@given(frontiers(), st.integers(1, 10))
def test_a_tail_without_a_cap_has_the_messages_asked_for(f: Frontier, count: int) -> None:
    start = select_fresh_tail(*f, count)
    messages = int((f.kinds == MESSAGE).sum())
    assert int((f.kinds[start:] == MESSAGE).sum()) >= min(count, messages)


@given(frontiers(), st.integers(1, 10), st.integers(0, 200))
def test_a_tail_of_several_units_is_within_its_cap(f: Frontier, count: int, cap: int) -> None:
    start = select_fresh_tail(*f, count, cap)
    newest_alone = select_fresh_tail(*f, 1, 0)
    assert start == newest_alone or f.tokens[start:].sum() <= cap


@pytest.mark.parametrize("count", [0, -3])
def test_a_count_of_nothing_protects_nothing(count: int) -> None:
    f = frontier((MESSAGE, 0, 5), (MESSAGE, 1, 5))
    assert select_fresh_tail(*f, count) == 2


def test_summaries_alone_are_no_tail() -> None:
    f = frontier((SUMMARY, 0, 5), (SUMMARY, 1, 5))
    assert select_fresh_tail(*f, 4) == 2


def test_results_keep_their_call_in_the_tail() -> None:
    f = frontier((MESSAGE, 0, 1), (MESSAGE, 1, 1), (MESSAGE, 1, 1), (MESSAGE, 1, 1))
    assert select_fresh_tail(*f, 1) == 1


def test_a_summary_inside_the_tail_rides_along() -> None:
    f = frontier((MESSAGE, 0, 1), (MESSAGE, 1, 1), (SUMMARY, 2, 1), (MESSAGE, 3, 1))
    assert select_fresh_tail(*f, 2) == 1


def test_a_summary_before_the_tail_stays_outside() -> None:
    f = frontier((MESSAGE, 0, 1), (SUMMARY, 1, 1), (MESSAGE, 2, 1))
    assert select_fresh_tail(*f, 1) == 2


def test_a_summary_at_the_opener_s_place_opens_nothing() -> None:
    f = frontier((SUMMARY, 0, 1), (MESSAGE, 1, 1), (MESSAGE, 0, 1))
    assert select_fresh_tail(*f, 1) == 2


def test_an_opener_that_is_gone_counts_as_the_item_itself() -> None:
    f = frontier((MESSAGE, 0, 1), (MESSAGE, -4, 1), (MESSAGE, -4, 1))
    assert select_fresh_tail(*f, 1) == 2


choices = st.tuples(
    frontiers(), st.integers(0, 8), st.integers(0, 400), st.lists(st.booleans(), max_size=21)
)
Choice = tuple[Frontier, int, int, list[bool]]


def choose(choice: Choice) -> tuple[Frontier, list[int], int, list[int], int]:
    """Return frontier, pinned flags, budget, mask and the tail's new start."""
    f, count, budget, flags = choice
    pinned = (flags + [False] * len(f.kinds))[: len(f.kinds)]
    start = select_fresh_tail(*f, count)
    pins = np.array(pinned, dtype=np.uint8)
    mask, start = select_context(*f[1:], pins, start, budget)
    return f, pins.tolist(), budget, mask.tolist(), start


@given(choices)
def test_no_exchange_is_split(choice: Choice) -> None:
    f, _, _, mask, _ = choose(choice)
    chosen = {head for head, bit in zip(exchanges_of(f), mask, strict=True) if bit}
    assert mask == [int(head in chosen) for head in exchanges_of(f)]


@given(choices)
def test_only_pinned_exchanges_and_the_newest_unit_exceed_the_budget(choice: Choice) -> None:
    f, pinned, budget, mask, _ = choose(choice)
    heads = exchanges_of(f)
    pinned_heads = {head for head, pin in zip(heads, pinned, strict=True) if pin}
    newest = select_fresh_tail(*f, 1)
    forced = {i for i, head in enumerate(heads) if head in pinned_heads or i >= newest}
    chosen = {i for i, bit in enumerate(mask) if bit}
    assert f.tokens[sorted(chosen)].sum() <= budget or chosen <= forced


@given(choices)
def test_pinned_items_and_the_tail_are_always_chosen(choice: Choice) -> None:
    _, pinned, _, mask, start = choose(choice)
    assert all(bit for i, bit in enumerate(mask) if pinned[i] or i >= start)


@given(choices)
def test_the_tail_yields_to_a_valid_boundary(choice: Choice) -> None:
    f, _, _, _, start = choose(choice)
    assert f.is_boundary(start)


@given(frontiers(), st.integers(0, 8))
def test_everything_is_chosen_when_it_fits(f: Frontier, count: int) -> None:
    start = select_fresh_tail(*f, count)
    none = np.zeros(len(f.kinds), dtype=np.uint8)
    mask, _ = select_context(*f[1:], none, start, int(f.tokens.sum()))
    assert mask.all()


def test_an_exchange_that_does_not_fit_is_skipped_and_the_walk_goes_on() -> None:
    f = frontier((MESSAGE, 0, 20), (MESSAGE, 1, 30), (MESSAGE, 1, 30), (MESSAGE, 3, 10))
    mask, _ = select_context(*f[1:], np.zeros(4, dtype=np.uint8), 3, 40)
    assert mask.tolist() == [1, 0, 0, 1]


def test_a_pinned_member_pins_its_exchange() -> None:
    f = frontier((MESSAGE, 0, 20), (MESSAGE, 1, 30), (MESSAGE, 1, 30), (MESSAGE, 3, 10))
    mask, _ = select_context(*f[1:], np.array([0, 0, 1, 0], dtype=np.uint8), 3, 0)
    assert mask.tolist() == [0, 1, 1, 1]


def test_what_the_tail_yields_competes_again() -> None:
    f = frontier((MESSAGE, 0, 9), (MESSAGE, 1, 5), (MESSAGE, 2, 50), (MESSAGE, 3, 20))
    mask, start = select_context(*f[1:], np.zeros(4, dtype=np.uint8), 1, 40)
    assert (mask.tolist(), start) == ([1, 1, 0, 1], 3)


def test_a_tail_that_starts_inside_an_exchange_keeps_it_whole() -> None:
    f = frontier((MESSAGE, 0, 9), (MESSAGE, 1, 5), (MESSAGE, 1, 5), (MESSAGE, 3, 5))
    mask, start = select_context(*f[1:], np.zeros(4, dtype=np.uint8), 2, 15)
    assert (mask.tolist(), start) == ([0, 1, 1, 1], 2)


def test_an_empty_frontier_has_an_empty_choice() -> None:
    empty = np.zeros(0, dtype=np.int64)
    mask, start = select_context(empty, empty, empty, np.zeros(0, dtype=np.uint8), 0, 10)
    assert (mask.tolist(), start) == ([], 0)


def test_a_negative_budget_is_refused() -> None:
    f = frontier((MESSAGE, 0, 9))
    with pytest.raises(ValueError, match=r"^budget is -1, expected 0 or more$"):
        select_context(*f[1:], np.zeros(1, dtype=np.uint8), 0, -1)


def test_a_negative_token_count_is_refused_by_its_index() -> None:
    f = frontier((MESSAGE, 0, 9), (MESSAGE, 1, -4))
    with pytest.raises(ValueError, match=r"^tokens\[1\] is -4, expected 0 or more$"):
        select_fresh_tail(*f, 1)


def test_ordinals_that_do_not_increase_are_refused_by_their_index() -> None:
    f = frontier((MESSAGE, 0, 9), (MESSAGE, 1, 4))
    same = np.array([3, 3])
    with pytest.raises(ValueError, match=r"^ordinals\[1\] is 3, not above 3 before it$"):
        select_fresh_tail(f.kinds, same, f.openers, f.tokens, 1)


def test_exchanges_are_chosen_in_the_order_given() -> None:
    f = frontier(*[(MESSAGE, i, 10) for i in range(5)])
    mask, _ = select_context(*f[1:], np.zeros(5, dtype=np.uint8), 4, 30, np.array([1, 3, 2]))
    assert mask.tolist() == [0, 1, 0, 1, 1]


def test_what_an_order_does_not_name_is_left_out() -> None:
    f = frontier(*[(MESSAGE, i, 10) for i in range(4)])
    mask, _ = select_context(*f[1:], np.zeros(4, dtype=np.uint8), 3, 90, np.array([1]))
    assert mask.tolist() == [0, 1, 0, 1]


def test_an_exchange_has_the_place_of_its_best_member() -> None:
    f = frontier((MESSAGE, 0, 10), (MESSAGE, 1, 10), (MESSAGE, 1, 10), (MESSAGE, 3, 10))
    mask, _ = select_context(*f[1:], np.zeros(4, dtype=np.uint8), 3, 30, np.array([2, 0, 1]))
    assert mask.tolist() == [0, 1, 1, 1]


def test_a_reserve_is_not_filled_and_costs_the_tail_nothing() -> None:
    f = frontier(*[(MESSAGE, i, 10) for i in range(4)])
    none = np.zeros(4, dtype=np.uint8)
    masks = [select_context(*f[1:], none, 2, 40, reserve=r)[0].tolist() for r in (10, 40)]
    assert masks == [[0, 1, 1, 1], [0, 0, 1, 1]]
