"""Which stored messages a batch shows again, and which of them repeat too often in a second."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.kernels import align, find_floods
from lcm_fast.kernels.reference import replay as twin

USER, ASSISTANT, TOOL = 1, 2, 3
# Second, role and text.
Message = tuple[int, int, str]

repetitive = st.lists(st.integers(0, 3), max_size=25)
mixed = st.lists(st.integers(0, 30), max_size=40)
unique = st.lists(st.integers(0, 10_000), max_size=40, unique=True)


def digests(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def aligned(stored: list[int], batch: list[int]) -> list[int]:
    matches: list[int] = align(digests(stored), digests(batch)).tolist()
    return matches


@given(mixed, mixed)
def test_every_message_of_a_batch_has_an_entry(stored: list[int], batch: list[int]) -> None:
    assert len(aligned(stored, batch)) == len(batch)


@given(st.one_of(mixed, repetitive), st.one_of(mixed, repetitive))
def test_matched_indices_strictly_increase(stored: list[int], batch: list[int]) -> None:
    matched = [index for index in aligned(stored, batch) if index >= 0]
    assert matched == sorted(set(matched))


@given(st.one_of(mixed, repetitive), st.one_of(mixed, repetitive))
def test_only_equal_values_match(stored: list[int], batch: list[int]) -> None:
    matches = zip(batch, aligned(stored, batch), strict=True)
    assert all(stored[index] == value for value, index in matches if index >= 0)


@given(st.one_of(mixed, repetitive))
def test_what_is_sent_again_unchanged_is_itself(stored: list[int]) -> None:
    assert aligned(stored, stored) == list(range(len(stored)))


@given(unique, st.data())
def test_survivors_of_deletions_and_insertions_are_recognised(
    stored: list[int], data: st.DataObject
) -> None:
    expected: list[int] = []
    batch: list[int] = []
    for index, value in enumerate(stored):
        change = data.draw(st.sampled_from(("keep", "keep", "delete", "insert")))
        if change == "insert":
            batch.append(20_000 + index)
            expected.append(-1)
        if change != "delete":
            batch.append(value)
            expected.append(index)
    assert aligned(stored, batch) == expected


@given(unique, st.integers(0, 40), st.integers(0, 5))
def test_a_batch_that_goes_on_from_the_end_shows_the_end(
    stored: list[int], kept: int, added: int
) -> None:
    first = max(0, len(stored) - kept)
    batch = stored[first:] + [20_000 + n for n in range(added)]
    assert aligned(stored, batch) == [*range(first, len(stored)), *([-1] * added)]


@given(repetitive, st.integers(1, 25), st.integers(1, 5))
def test_where_all_values_repeat_the_longest_end_that_the_batch_begins_with_matches(
    stored: list[int], kept: int, added: int
) -> None:
    # Doubled, every stored value repeats and none is an anchor.
    stored = stored * 2
    batch = stored[-kept:] + [9, 9] * added
    length = next(k for k in range(len(stored), -1, -1) if stored[len(stored) - k :] == batch[:k])
    expected = [*range(len(stored) - length, len(stored)), *([-1] * (len(batch) - length))]
    assert aligned(stored, batch) == expected


@given(unique, unique, st.randoms())
def test_as_many_anchors_match_as_stand_in_one_order(
    shared: list[int], others: list[int], rng: Any
) -> None:
    batch = list(shared)
    rng.shuffle(batch)
    orders = [shared.index(value) for value in batch]
    longest = [0] * len(orders)
    for i, order in enumerate(orders):
        longest[i] = 1 + max((longest[k] for k in range(i) if orders[k] < order), default=0)
    matched = sum(index >= 0 for index in aligned(shared, batch + [-1 - v for v in others]))
    assert matched == max(longest, default=0)


@pytest.mark.parametrize(
    ("stored", "batch", "expected"),
    [
        pytest.param("abcx", "bcy", [1, 2, -1], id="anchors"),
        pytest.param("abba", "ba", [2, 3], id="no anchor, an end"),
        pytest.param("abab", "cab", [-1, -1, -1], id="no anchor, no end"),
        pytest.param("okok", "okokok", [0, 1, 2, 3, -1, -1], id="no anchor, all"),
        pytest.param("xxaxx", "xaxn", [1, 2, 3, -1], id="neighbours of an anchor"),
        pytest.param("axb", "axxb", [0, 1, -1, 2], id="the older anchor comes first"),
        pytest.param("axxb", "axb", [0, 1, 3], id="a match is not made twice"),
        pytest.param("axyb", "axnyb", [0, 1, -1, 2, 3], id="both edges of a gap"),
        pytest.param("xzaxx", "xnaxx", [-1, -1, 2, 3, 4], id="a start is no edge"),
        pytest.param("xxazx", "xxanx", [0, 1, 2, -1, -1], id="an end is no edge"),
        pytest.param("abcd", "acbd", [0, -1, 1, 3], id="a tie of chains"),
        pytest.param("abc", "cab", [-1, 0, 1], id="the longer chain"),
        pytest.param("", "ab", [-1, -1], id="nothing stored"),
        pytest.param("ab", "", [], id="nothing sent"),
    ],
)
def test_a_batch_is_aligned(stored: str, batch: str, expected: list[int]) -> None:
    assert aligned([ord(c) for c in stored], [ord(c) for c in batch]) == expected


def said(second: int, role: int, *texts: str) -> list[Message]:
    return [(second, role, text) for text in texts]


def group_of(message: Message) -> Message:
    second, role, _ = message
    return (second, role, "") if role == USER else message


def floods_of(
    stored: list[Message], sent: list[Message], external: int = 3, internal: int = 32
) -> list[tuple[int, int]]:
    """Return the floods of what is sent, where a repeat is what was said in an earlier second."""

    def is_repeat(message: Message) -> bool:
        second, *rest = message
        return any(older < second and others == rest for older, *others in stored)

    texts = sorted({text for _, _, text in sent})
    repeats = [group_of(message) for message in stored if is_repeat(message)]
    return find_floods(
        np.array([role for _, role, _ in sent], dtype=np.uint8),
        digests([second for second, _, _ in sent]),
        digests([1 + texts.index(text) if text else 0 for _, _, text in sent]),
        np.array([is_repeat(message) for message in sent], dtype=np.uint8),
        digests([repeats.count(group_of(message)) for message in sent]),
        external,
        internal,
    )


def test_a_user_text_repeated_three_times_in_a_second_is_a_flood() -> None:
    assert floods_of(said(0, USER, "X"), said(1, USER, "X", "X", "X")) == [(0, 3)]


def test_three_user_texts_repeated_in_a_second_are_one_flood() -> None:
    assert floods_of(said(0, USER, *"XYZ"), said(1, USER, *"XYZ")) == [(0, 3)]


def test_three_user_texts_repeated_in_three_seconds_are_no_flood() -> None:
    sent = [message for second, text in enumerate("XYZ") for message in said(second, USER, text)]
    assert floods_of(said(-1, USER, *"XYZ"), sent) == []


def test_five_tool_results_repeated_are_no_flood_by_default() -> None:
    assert floods_of(said(0, TOOL, *["X"] * 5), said(1, TOOL, *["X"] * 5)) == []


def test_six_tool_results_repeated_are_a_flood_at_a_threshold_of_six() -> None:
    stored, sent = said(0, TOOL, *["X"] * 5), said(1, TOOL, *["X"] * 6)
    assert floods_of(stored, sent, internal=6) == [(0, 6)]


def test_six_different_tool_results_repeated_are_no_flood() -> None:
    assert floods_of(said(0, TOOL, *"UVWXYZ"), said(1, TOOL, *"UVWXYZ"), internal=6) == []


def test_repeats_of_an_assistant_and_of_a_tool_do_not_add_up() -> None:
    stored = said(0, ASSISTANT, *["X"] * 2) + said(0, TOOL, *["X"] * 2)
    sent = said(1, ASSISTANT, *["X"] * 3) + said(1, TOOL, *["X"] * 3)
    assert floods_of(stored, sent, internal=6) == []


def test_a_flood_of_users_among_tool_results_starts_at_a_user() -> None:
    stored = said(0, TOOL, *["R"] * 10) + said(0, USER, "X")
    sent = said(1, TOOL, *["R"] * 2) + said(1, USER, *["X"] * 3)
    assert floods_of(stored, sent) == [(2, 3)]


@pytest.mark.parametrize(("sends_before", "floods"), [(0, []), (1, []), (2, [(0, 3)])])
def test_the_third_of_single_repeats_in_a_second_is_a_flood(
    sends_before: int, floods: list[tuple[int, int]]
) -> None:
    stored = said(0, USER, "X") + said(1, USER, *["X"] * sends_before)
    assert floods_of(stored, said(1, USER, "X")) == floods


def test_what_is_new_is_no_flood() -> None:
    assert floods_of(said(0, USER, "X"), said(1, USER, *["Y"] * 9)) == []


def test_new_messages_do_not_add_to_the_repeats_beside_them() -> None:
    assert floods_of(said(0, USER, "X"), said(1, USER, "X", "Y", "X", "Z")) == []


def test_empty_messages_are_no_flood() -> None:
    assert floods_of(said(0, USER, ""), said(1, USER, *[""] * 9)) == []


def test_floods_come_in_the_order_of_their_first_messages() -> None:
    stored = said(0, TOOL, "R") + said(0, USER, "X")
    sent = said(2, TOOL, "R") + said(1, USER, *["X"] * 3) + said(2, TOOL, "R", "R")
    assert floods_of(stored, sent, internal=3) == [(0, 3), (1, 3)]


def test_a_batch_without_messages_has_no_floods() -> None:
    assert floods_of(said(0, USER, "X"), []) == []


def test_a_total_beyond_64_bits_is_exact() -> None:
    role, flag, most = np.array([3], np.uint8), np.array([1], np.uint8), digests([2**63 - 1])
    assert find_floods(role, digests([1]), digests([1]), flag, most, 3, 32) == [(0, 2**63)]


@pytest.mark.parametrize(("external", "internal"), [(0, 32), (3, 0), (-1, 32)])
def test_a_threshold_below_one_is_refused(external: int, internal: int) -> None:
    with pytest.raises(ValueError, match="expected 1 or more"):
        floods_of([], said(1, USER, "X"), external, internal)


def test_arrays_of_different_lengths_are_refused() -> None:
    flags = np.ones(2, dtype=np.uint8)
    with pytest.raises(ValueError, match="contents has 3 items, expected 2"):
        find_floods(flags, digests([1, 1]), digests([1, 1, 1]), flags, digests([0, 0]), 3, 32)


def count_lines(function: Callable[..., object], *arguments: object) -> int:
    """Return how many lines of the twin a call executes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != twin.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return count


ADVERSE_SIDES: dict[str, Callable[[int], tuple[list[int], list[int]]]] = {
    "all equal": lambda n: ([0] * n, [0] * n),
    "alternating": lambda n: ([0, 1] * (n // 2), [1, 0] * (n // 2)),
    "all equal up to the end": lambda n: ([0] * n, [0] * (n - 1) + [1]),
    "a mismatch at every end": lambda n: (([0] * 9 + [1]) * (n // 10), [0] * n),
    "all equal around an anchor": lambda n: ([0] * n + [1], [1] + [0] * n),
    "an anchor in every second place": lambda n: (
        [v for i in range(n // 2) for v in (0, i + 1)],
        [v for i in range(n // 2) for v in (i + 1, 0)],
    ),
    "anchors in reverse": lambda n: (list(range(n)), list(range(n))[::-1]),
}


@pytest.mark.parametrize("sides", ADVERSE_SIDES.values(), ids=ADVERSE_SIDES.keys())
def test_the_steps_of_an_alignment_grow_with_the_length(
    sides: Callable[[int], tuple[list[int], list[int]]],
) -> None:
    small, large = (
        count_lines(twin.align, *(digests(side) for side in sides(length)))
        for length in (400, 1600)
    )
    assert large < 1.25 * 4 * small


@pytest.mark.parametrize("text", ["X", ""])
def test_the_steps_of_finding_floods_grow_with_the_length(text: str) -> None:
    def steps(length: int) -> int:
        flags, counts = np.ones(length, dtype=np.uint8), np.zeros(length, dtype=np.int64)
        contents = np.full(length, 7 if text else 0)
        return count_lines(twin.find_floods, flags, counts, contents, flags, counts, 3, 32)

    assert steps(1600) < 1.25 * 4 * steps(400)
