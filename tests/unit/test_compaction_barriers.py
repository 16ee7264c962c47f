"""Which messages no leaf may cover."""

from __future__ import annotations

import numpy as np

from lcm_fast.compaction.barriers import leaf_kinds
from lcm_fast.store import MESSAGE, ROLE_CODES, SUMMARY, Frontier


def frontier(roles: list[str], openers: dict[int, int] | None = None) -> Frontier:
    """A frontier with ordinals 10, 20, ...; `openers` maps index to the index of the call."""
    count = len(roles)
    ordinals = np.arange(1, count + 1, dtype=np.int64) * 10
    opener_of = ordinals.copy()
    for member, head in (openers or {}).items():
        opener_of[member] = ordinals[head]
    is_summary = np.array([role == "summary" for role in roles])
    return Frontier(
        revision=0,
        ordinals=ordinals,
        kinds=np.where(is_summary, SUMMARY, MESSAGE).astype(np.uint8),
        roles=np.array([ROLE_CODES[role] for role in roles], dtype=np.uint8),
        depths=np.where(is_summary, 0, -1).astype(np.int64),
        tokens=np.full(count, 5, dtype=np.int64),
        openers=opener_of,
        message_ids=np.where(is_summary, -1, ordinals),
        summary_ids=[f"sum_{n}" if role == "summary" else None for n, role in enumerate(roles)],
    )


def raw(roles: list[str], openers: dict[int, int] | None = None) -> list[int]:
    """Indexes of the messages that must stay."""
    given = frontier(roles, openers)
    stays = (leaf_kinds(given) == SUMMARY) & (given.kinds == MESSAGE)
    return np.flatnonzero(stays).tolist()


def test_nothing_stays_of_an_empty_frontier() -> None:
    assert raw([]) == []


def test_only_the_newest_user_message_stays() -> None:
    assert raw(["user", "assistant", "user", "assistant"]) == [2]


def test_an_exchange_on_one_side_of_it_may_be_covered() -> None:
    assert raw(["assistant", "tool", "user"], {1: 0}) == [2]


def test_an_exchange_around_it_stays() -> None:
    assert raw(["assistant", "user", "tool"], {2: 0}) == [0, 1, 2]


def test_an_exchange_around_a_summary_stays() -> None:
    assert raw(["assistant", "summary", "tool"], {2: 0}) == [0, 2]


def test_an_exchange_around_one_that_stays_also_stays() -> None:
    roles = ["assistant", "assistant", "tool", "user", "tool"]
    assert raw(roles, {2: 0, 4: 1}) == [0, 1, 2, 3, 4]


def test_a_result_whose_call_is_summarised_may_be_covered() -> None:
    assert raw(["summary", "tool"], {1: 0}) == []
