"""A session file that cannot be told from a replay is held back, until it can be told.

Says when that is, that nothing is stored or lost by it, and every way out (decision 11: no guard
may stop a conversation for good).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import entry, make_engine, said, texts, violations

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.ingest import BootstrapResult

KEY = "agent:main:main"
STORED = [said(f"m{n}", 100 + n) for n in range(10)]
AGAIN = [said(f"m{n}", 50 + n) for n in range(10)]


@pytest.fixture
def memory(engine: Engine, tmp_path: Path) -> Engine:
    """An engine that has read a session of ten messages."""
    read(engine, tmp_path / "first.jsonl", named("a", STORED))
    return engine


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other.jsonl"


def named(prefix: str, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return entries <prefix>0, <prefix>1, ... each the child of the one before."""
    return [
        entry(f"{prefix}{n}", f"{prefix}{n - 1}" if n else None, message)
        for n, message in enumerate(messages)
    ]


def lines(entries: Sequence[object], session_id: str) -> bytes:
    header = {"type": "session", "version": 3, "id": session_id}
    return b"".join(json.dumps(one).encode() + b"\n" for one in (header, *entries))


def read(
    engine: Engine, path: Path, entries: Sequence[object], *, admit: bool = False
) -> BootstrapResult:
    path.write_bytes(lines(entries, f"id-of-{path.stem}"))
    return engine.bootstrap(path, session_key=KEY, admit=admit)


def order(engine: Engine) -> list[str]:
    return texts(engine, session_key=KEY)


def frozen_since(engine: Engine) -> list[str]:
    return [since for _, _, since, _ in engine.store.frozen(20)]


def held_back(count: int, *, new: int = 0, at: int = 50) -> list[dict[str, Any]]:
    """Return entries of which so many say what is stored, at other times, and so many are new."""
    messages = [said(f"m{n}", at + n) for n in range(count)]
    messages += [said(f"new {n}", at + count + n) for n in range(new)]
    return named("b", messages)


class TestWhatIsHeldBack:
    def test_a_file_that_says_at_other_times_what_is_stored(
        self, memory: Engine, other: Path
    ) -> None:
        result = read(memory, other, held_back(10))
        assert (result.is_frozen, result.ingested) == (True, 0)

    def test_the_same_path_with_another_session_that_repeats_the_old_one(
        self, memory: Engine, tmp_path: Path
    ) -> None:
        (tmp_path / "first.jsonl").write_bytes(lines(held_back(10), "another"))
        assert memory.bootstrap(tmp_path / "first.jsonl", session_key=KEY).is_frozen

    def test_a_file_that_says_without_times_what_another_file_showed(
        self, memory: Engine, other: Path
    ) -> None:
        untimed = named("b", [said(f"m{n}") for n in range(10)])
        assert read(memory, other, untimed).is_frozen

    def test_a_file_that_gives_the_ids_of_stored_entries_to_other_ones(
        self, memory: Engine, other: Path
    ) -> None:
        numbered_alike = named("a", [said(f"m{n}", 50 + n) for n in range(1, 10)])
        assert read(memory, other, numbered_alike).is_frozen

    @pytest.mark.parametrize(
        ("repeated", "new", "is_frozen"),
        [
            (3, 0, True),
            (3, 2, True),
            (3, 3, True),
            (3, 4, False),
            (4, 3, True),
            (5, 6, False),
            (2, 0, False),
            (1, 0, False),
            (0, 3, False),
        ],
        ids=str,
    )
    def test_half_of_it_and_at_least_three_messages_must_be_repeated(
        self, memory: Engine, other: Path, repeated: int, new: int, *, is_frozen: bool
    ) -> None:
        result = read(memory, other, held_back(repeated, new=new))
        assert (result.is_frozen, result.ingested) == (
            is_frozen,
            0 if is_frozen else repeated + new,
        )

    def test_not_one_whose_messages_are_all_later_than_what_is_stored(
        self, memory: Engine, other: Path
    ) -> None:
        result = read(memory, other, held_back(10, at=200))
        assert (result.is_frozen, result.ingested) == (False, 10)

    def test_but_one_of_which_a_single_message_is_not_later(
        self, memory: Engine, other: Path
    ) -> None:
        later = [said(f"m{n}", 200 + n) for n in range(9)]
        assert read(memory, other, named("b", [AGAIN[0], *later])).is_frozen

    def test_but_one_of_which_a_single_message_has_no_time(
        self, memory: Engine, other: Path
    ) -> None:
        later = [said(f"m{n}", 200 + n) for n in range(9)]
        assert read(memory, other, named("b", [said("m9"), *later])).is_frozen

    def test_not_one_that_shows_a_stored_entry(self, memory: Engine, other: Path) -> None:
        shows_known = [*named("a", STORED)[-1:], *held_back(5)]
        result = read(memory, other, shows_known)
        assert (result.is_frozen, result.ingested) == (False, 5)

    def test_not_one_that_shows_a_stored_message_at_its_time(
        self, memory: Engine, other: Path
    ) -> None:
        result = read(memory, other, named("b", [*AGAIN[:5], STORED[9]]))
        assert (result.is_frozen, result.ingested) == (False, 5)

    def test_not_one_of_another_conversation(self, memory: Engine, other: Path) -> None:
        other.write_bytes(lines(held_back(10), "another"))
        result = memory.bootstrap(other, session_key="agent:main:other")
        assert (result.is_frozen, result.ingested) == (False, 10)

    def test_not_the_first_of_a_conversation(self, engine: Engine, other: Path) -> None:
        result = read(engine, other, named("b", [said("ok")] * 10))
        assert (result.is_frozen, result.ingested) == (False, 10)

    def test_not_one_that_shows_what_came_live_without_times(
        self, engine: Engine, other: Path
    ) -> None:
        engine.ingest([said(f"m{n}") for n in range(10)], session_key=KEY)
        result = read(engine, other, held_back(10))
        assert (result.is_frozen, result.ingested, result.duplicates) == (False, 0, 10)


class TestWhileItIsHeldBack:
    def test_the_record_is_as_it_was(self, memory: Engine, other: Path) -> None:
        before = list(memory.export_entries(session_key=KEY))
        read(memory, other, held_back(10))
        after = list(memory.export_entries(session_key=KEY))
        assert (after, violations(memory.store)) == (before, [])

    def test_the_result_says_how_much_of_it_is_repeated(self, memory: Engine, other: Path) -> None:
        reason = read(memory, other, held_back(5, new=2)).reason or ""
        assert reason.startswith("reconcile duplicate transcript replay: 5 of 7 messages")

    def test_it_is_looked_at_again_with_each_reading(self, memory: Engine, other: Path) -> None:
        again = [read(memory, other, held_back(10)).is_frozen for _ in range(3)]
        assert again == [True, True, True]

    def test_it_keeps_the_age_of_the_first_time(self, memory: Engine, other: Path) -> None:
        read(memory, other, held_back(10))
        first = frozen_since(memory)
        read(memory, other, held_back(10))
        assert (len(first), frozen_since(memory)) == (1, first)

    def test_it_is_an_error_of_status_with_its_age_and_the_command(
        self, memory: Engine, other: Path
    ) -> None:
        read(memory, other, held_back(10))
        found = lcm_fast.status(memory)
        (problem,) = found.problems
        assert (found.ok, problem["severity"], problem["code"]) == (False, "error", "frozen")
        assert f"{other} is held back since {frozen_since(memory)[0]}" in problem["detail"]
        assert f"lcm-fast ingest {other} --session-key {KEY} --admit" in problem["hint"]

    def test_a_restart_changes_nothing(self, database: Path, tmp_path: Path, other: Path) -> None:
        with make_engine(database) as engine:
            read(engine, tmp_path / "first.jsonl", named("a", STORED))
            read(engine, other, held_back(10))
            since = frozen_since(engine)
        with make_engine(database) as engine:
            assert (engine.bootstrap(other, session_key=KEY).is_frozen, since) == (
                True,
                frozen_since(engine),
            )

    def test_live_messages_are_stored(self, memory: Engine, other: Path) -> None:
        read(memory, other, held_back(10))
        memory.ingest([said("and on", 300)], session_key=KEY)
        assert order(memory)[-1] == "and on"

    def test_a_turn_is_stored_from_its_messages(self, memory: Engine, other: Path) -> None:
        other.write_bytes(lines(held_back(10), "another"))
        turn = memory.after_turn([said("and on", 300)], session_file=other, session_key=KEY)
        assert (turn.transcript and turn.transcript.is_frozen, turn.batch.ingested) == (True, 1)

    def test_the_other_files_of_the_conversation_are_read_on(
        self, memory: Engine, other: Path, tmp_path: Path
    ) -> None:
        read(memory, other, held_back(10))
        grown = named("a", [*STORED, said("and on", 300)])
        result = read(memory, tmp_path / "first.jsonl", grown)
        assert (result.ingested, order(memory)[-1]) == (1, "and on")


class TestWhatEndsIt:
    def test_an_entry_that_is_stored(self, memory: Engine, other: Path) -> None:
        read(memory, other, held_back(10))
        result = read(memory, other, [*held_back(10), *named("a", STORED)[-1:]])
        assert (result.is_frozen, result.ingested, frozen_since(memory)) == (False, 10, [])

    def test_the_next_turn_in_the_file_and_live(self, memory: Engine, other: Path) -> None:
        read(memory, other, held_back(10))
        memory.ingest([said("and on", 300)], session_key=KEY)
        result = read(memory, other, named("b", [*AGAIN, said("and on", 300)]))
        assert (result.is_frozen, frozen_since(memory)) == (False, [])

    def test_growing_until_less_than_half_is_repeated(self, memory: Engine, other: Path) -> None:
        held = [read(memory, other, held_back(5, new=new)).is_frozen for new in (0, 5, 6)]
        assert (held, frozen_since(memory)) == ([True, True, False], [])

    def test_nothing_of_it_is_left_out_then(self, memory: Engine, other: Path) -> None:
        read(memory, other, held_back(5))
        read(memory, other, held_back(5, new=6))
        kept = list(memory.export_entries(session_key=KEY))
        missing = [one for one in other.read_bytes().splitlines() if one not in kept]
        assert (missing, violations(memory.store)) == ([], [])

    def test_admitting_it(self, memory: Engine, other: Path) -> None:
        read(memory, other, held_back(10))
        result = read(memory, other, held_back(10), admit=True)
        assert (result.is_frozen, result.ingested, frozen_since(memory)) == (False, 10, [])

    def test_and_status_is_fine_again(self, memory: Engine, other: Path) -> None:
        read(memory, other, held_back(10))
        read(memory, other, held_back(10), admit=True)
        assert lcm_fast.status(memory).ok

    def test_and_it_is_read_from_its_cursor_from_then_on(self, memory: Engine, other: Path) -> None:
        read(memory, other, held_back(10), admit=True)
        unchanged = read(memory, other, held_back(10))
        grown = read(memory, other, held_back(10, new=1))
        added = len(other.read_bytes().splitlines(keepends=True)[-1])
        assert (unchanged.bytes_read, grown.bytes_read, grown.ingested) == (0, added, 1)


def test_admitting_a_file_that_is_not_held_back_is_reading_it(memory: Engine, other: Path) -> None:
    result = read(memory, other, named("a", [*STORED, said("and on", 300)]), admit=True)
    assert (result.ingested, result.duplicates) == (1, 10)
