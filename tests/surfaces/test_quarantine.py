"""What was not stored, as people meet it: set aside, held back, or not read yet.

The verbs `quarantine list`, `admit` and `drop`, `ingest --admit`, and what `status` and `doctor`
say of all three.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import make_engine, said, texts
from surfaces.command import Command, talk, write_session

from lcm_fast.engine import Engine

Memory = Callable[[], Engine]
OLD = ["please go on", "what is left?", "try it again", "thanks"]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Opens the memory that the command uses."""
    return lambda: make_engine(tmp_path / "lcm.db")


@pytest.fixture
def flooded(lcm: Command, memory: Memory) -> Command:
    """The command, with batches q1 of three messages and q4 of four that were set aside."""
    with memory() as engine:
        for key, count in (("one", 3), ("two", 4)):
            engine.ingest([said(text, n) for n, text in enumerate(OLD)], session_key=key)
            replay = [said(text, 1000) for text in OLD[:count]]
            assert engine.ingest(replay, session_key=key).quarantined == count
    return lcm


@pytest.fixture
def replayed(lcm: Command, short: Path, tmp_path: Path) -> Path:
    """A session file that says again, under other ids and times, what its conversation holds."""
    assert lcm("ingest", short, "--session-key", "short").exit_code == 0
    again = tmp_path / "again.jsonl"
    again.write_text(
        short.read_text().replace('"e', '"x').replace("2026-03-01T10", "2026-03-01T09")
    )
    return again


def batches(lcm: Command) -> list[dict[str, Any]]:
    return list(json.loads(lcm("quarantine", "list", "--json").stdout)["batches"])


def problems(lcm: Command) -> dict[str, dict[str, str]]:
    found = json.loads(lcm("status", "--json").stdout)["problems"]
    return {problem["code"]: problem for problem in found}


def failed_checks(lcm: Command) -> dict[str, dict[str, Any]]:
    found = json.loads(lcm("doctor", "--json").stdout)["checks"]
    return {check["name"]: check for check in found if not check["ok"]}


def command_in(hint: str) -> list[str]:
    """Return the words of the first command a hint names, as a shell would take them."""
    program, *words = shlex.split(hint.split("`")[1])
    assert program == "lcm-fast"
    return words


class TestListing:
    def test_says_that_nothing_is_set_aside(self, lcm: Command, memory: Memory) -> None:
        memory().close()
        result = lcm("quarantine", "list")
        assert (result.exit_code, result.stdout) == (0, "nothing is set aside\n")

    def test_prints_no_batch_as_json_where_there_is_none(
        self, lcm: Command, memory: Memory
    ) -> None:
        memory().close()
        assert json.loads(lcm("quarantine", "list", "--json").stdout) == {"ok": True, "batches": []}

    def test_shows_people_each_batch_with_its_size_and_conversation(self, flooded: Command) -> None:
        rows = [line.split() for line in flooded("quarantine", "list").stdout.splitlines()]
        assert [(row[0], row[1], row[3]) for row in rows if row[0] in {"q1", "q4"}] == [
            ("q1", "3", "one"),
            ("q4", "4", "two"),
        ]

    def test_gives_programs_the_same_oldest_first(self, flooded: Command) -> None:
        found = [
            (one["batch_id"], one["messages"], one["session_key"], one["received_at"][:10])
            for one in batches(flooded)
        ]
        assert found == [("q1", 3, "one", "2026-01-01"), ("q4", 4, "two", "2026-01-01")]

    def test_says_why(self, flooded: Command) -> None:
        assert all("replay" in one["reason"] for one in batches(flooded))

    def test_can_be_of_one_conversation(self, flooded: Command) -> None:
        found = json.loads(flooded("quarantine", "list", "--session-key", "two", "--json").stdout)
        assert [one["batch_id"] for one in found["batches"]] == ["q4"]

    def test_can_be_limited(self, flooded: Command) -> None:
        found = json.loads(flooded("quarantine", "list", "--limit", 1, "--json").stdout)
        assert [one["batch_id"] for one in found["batches"]] == ["q1"]

    def test_of_an_unknown_conversation_is_an_error(self, flooded: Command) -> None:
        result = flooded("quarantine", "list", "--session-key", "nobody")
        assert (result.exit_code != 0, "nobody" in result.stderr) == (True, True)


class TestAdmitting:
    def test_stores_the_batch_at_the_end(self, flooded: Command, memory: Memory) -> None:
        result = flooded("quarantine", "admit", "q1")
        assert (result.exit_code, result.stdout) == (0, "q1: 3 messages stored, 0 known before\n")
        with memory() as engine:
            assert texts(engine, session_key="one") == [*OLD, *OLD[:3]]

    def test_takes_it_off_the_list(self, flooded: Command) -> None:
        flooded("quarantine", "admit", "q1")
        assert [one["batch_id"] for one in batches(flooded)] == ["q4"]

    def test_tells_programs_what_was_stored(self, flooded: Command) -> None:
        found = json.loads(flooded("quarantine", "admit", "q1", "--json").stdout)
        assert (found["ok"], found["batch_id"], found["ingested"]) == (True, "q1", 3)

    def test_takes_several_at_once(self, flooded: Command, memory: Memory) -> None:
        assert flooded("quarantine", "admit", "q1", "q4").exit_code == 0
        with memory() as engine:
            assert texts(engine, session_key="two") == OLD * 2
        assert batches(flooded) == []

    def test_does_not_count_what_came_meanwhile_in_another_way(
        self, flooded: Command, memory: Memory
    ) -> None:
        with memory() as engine:
            engine.commit_turn("turn", [said(OLD[0], 1000)], session_key="one")
        found = json.loads(flooded("quarantine", "admit", "q1", "--json").stdout)
        assert (found["ingested"], found["duplicates"]) == (2, 1)

    @pytest.mark.parametrize("verb", ["admit", "drop"])
    def test_or_dropping_a_batch_that_does_not_wait_names_it_and_what_to_do(
        self, flooded: Command, verb: str
    ) -> None:
        result = flooded("quarantine", verb, "q99")
        assert (result.exit_code != 0, "'q99'" in result.stderr) == (True, True)
        assert "lcm-fast quarantine list" in result.stderr

    @pytest.mark.parametrize("verb", ["admit", "drop"])
    def test_or_dropping_it_twice_is_an_error(self, flooded: Command, verb: str) -> None:
        codes = [flooded("quarantine", verb, "q1").exit_code for _ in range(2)]
        assert (codes[0], codes[1] != 0) == (0, True)

    def test_keeps_what_was_stored_before_a_batch_that_does_not_wait(
        self, flooded: Command
    ) -> None:
        assert flooded("quarantine", "admit", "q1", "q99", "q4").exit_code != 0
        assert "q1" not in [one["batch_id"] for one in batches(flooded)]

    @pytest.mark.parametrize("verb", ["admit", "drop"])
    def test_or_dropping_nothing_is_a_usage_error(self, flooded: Command, verb: str) -> None:
        assert flooded("quarantine", verb).exit_code == 2


class TestDropping:
    def test_leaves_the_conversation_as_it_is(self, flooded: Command, memory: Memory) -> None:
        result = flooded("quarantine", "drop", "q4")
        assert (result.exit_code, result.stdout) == (0, "q4: 4 messages dropped\n")
        with memory() as engine:
            assert texts(engine, session_key="two") == OLD

    def test_tells_programs_how_many(self, flooded: Command) -> None:
        found = json.loads(flooded("quarantine", "drop", "q4", "--json").stdout)
        assert found == {"ok": True, "batch_id": "q4", "dropped": 4}

    def test_takes_it_off_the_list(self, flooded: Command) -> None:
        flooded("quarantine", "drop", "q4")
        assert [one["batch_id"] for one in batches(flooded)] == ["q1"]

    def test_keeps_its_bytes_in_the_database(self, flooded: Command, tmp_path: Path) -> None:
        flooded("quarantine", "drop", "q4")
        with closing(apsw.Connection(str(tmp_path / "lcm.db"))) as db:
            rows = db.execute("SELECT content, resolution FROM quarantine WHERE batch_id = 'q4'")
            assert rows.fetchall() == [(text, "dropped") for text in OLD]


class TestStatusOfWhatWasSetAside:
    def test_is_a_warning_with_the_number_and_the_command(self, flooded: Command) -> None:
        problem = problems(flooded)["quarantined"]
        assert (problem["severity"], problem["detail"].split()[0]) == ("warning", "7")
        assert flooded(*command_in(problem["hint"])).exit_code == 0

    def test_is_not_an_error(self, flooded: Command) -> None:
        assert flooded("status").exit_code == 0

    def test_counts_the_messages(self, flooded: Command) -> None:
        found = json.loads(flooded("status", "--json").stdout)
        assert found["ingest"]["quarantined"] == 7
        assert "7 quarantined" in flooded("status").stdout

    @pytest.mark.parametrize("verb", ["admit", "drop"])
    def test_is_gone_once_all_of_it_is_decided(self, flooded: Command, verb: str) -> None:
        flooded("quarantine", verb, "q1", "q4")
        found = json.loads(flooded("status", "--json").stdout)
        assert (found["ingest"]["quarantined"], problems(flooded)) == (0, {})

    def test_does_not_fail_a_check_of_doctor(self, flooded: Command) -> None:
        assert failed_checks(flooded) == {}


class TestAFileHeldBack:
    def test_is_a_problem_of_ingest(self, lcm: Command, replayed: Path) -> None:
        result = lcm("ingest", replayed, "--session-key", "short")
        assert (result.exit_code, "HELD BACK" in result.stdout) == (1, True)

    def test_is_told_to_programs(self, lcm: Command, replayed: Path) -> None:
        found = json.loads(lcm("ingest", replayed, "--session-key", "short", "--json").stdout)
        assert (found["ok"], found["is_frozen"], found["ingested"]) == (False, True, 0)

    def test_does_not_keep_other_files_from_being_stored(
        self, lcm: Command, memory: Memory, replayed: Path, tmp_path: Path
    ) -> None:
        replayed = replayed.rename(tmp_path / "short.jsonl")
        fine = write_session(tmp_path / "fine.jsonl", talk(4))
        assert lcm("ingest", replayed, fine).exit_code == 1
        with memory() as engine:
            assert engine.conversation(session_key="fine").message_count == 4

    def test_is_an_error_of_status_with_its_age(self, lcm: Command, replayed: Path) -> None:
        lcm("ingest", replayed, "--session-key", "short")
        problem = problems(lcm)["frozen"]
        assert (problem["severity"], lcm("status").exit_code) == ("error", 1)
        assert problem["detail"].startswith(f"{replayed} is held back since 20")

    def test_fails_a_check_of_doctor(self, lcm: Command, replayed: Path) -> None:
        lcm("ingest", replayed, "--session-key", "short")
        (check,) = failed_checks(lcm).values()
        assert (check["name"], str(replayed) in check["detail"]) == ("frozen", True)
        assert lcm("doctor").exit_code == 1

    def test_is_stored_by_the_command_that_status_gives(
        self, lcm: Command, memory: Memory, replayed: Path
    ) -> None:
        lcm("ingest", replayed, "--session-key", "short")
        assert lcm(*command_in(problems(lcm)["frozen"]["hint"])).exit_code == 0
        with memory() as engine:
            assert engine.conversation(session_key="short").message_count == 12

    def test_is_stored_by_that_command_from_a_folder_with_a_space_in_its_name(
        self, lcm: Command, replayed: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "my files").mkdir()
        replayed = replayed.rename(tmp_path / "my files" / "again.jsonl")
        lcm("ingest", replayed, "--session-key", "short")
        assert lcm(*command_in(problems(lcm)["frozen"]["hint"])).exit_code == 0

    def test_is_fine_for_status_and_doctor_once_it_is_admitted(
        self, lcm: Command, replayed: Path
    ) -> None:
        lcm("ingest", replayed, "--session-key", "short")
        admitted = lcm("ingest", replayed, "--session-key", "short", "--admit")
        assert (admitted.exit_code, problems(lcm), failed_checks(lcm)) == (0, {}, {})

    def test_does_not_keep_run_from_assembling_what_is_stored(
        self, lcm: Command, replayed: Path
    ) -> None:
        result = lcm("run", replayed, "--session-key", "short", "--json")
        found = json.loads(result.stdout)
        assert (result.exit_code, found["assembly"]["messages"]) == (1, 6)


class TestAFileNotReadYet:
    @pytest.fixture
    def grown(self, lcm: Command, short: Path) -> Path:
        """A session file that has four messages more than were read."""
        lcm("ingest", short)
        return write_session(short, talk(10))

    def test_is_a_warning_of_status_with_its_bytes(self, lcm: Command, grown: Path) -> None:
        lines = grown.read_bytes().splitlines(keepends=True)
        problem = problems(lcm)["unread_transcripts"]
        assert (problem["severity"], lcm("status").exit_code) == ("warning", 0)
        assert f"lcm-fast ingest {grown} --session-key short" in problem["hint"]
        assert f"{sum(map(len, lines[7:])):,} bytes" in problem["hint"]

    def test_fails_a_check_of_doctor(self, lcm: Command, grown: Path) -> None:
        (check,) = failed_checks(lcm).values()
        assert (check["name"], str(grown) in check["detail"]) == ("transcripts_read", True)

    def test_is_fine_once_it_is_read(self, lcm: Command, grown: Path) -> None:
        lcm("ingest", grown)
        assert (problems(lcm), failed_checks(lcm)) == ({}, {})

    def test_is_not_one_that_ends_in_a_half_written_line(self, lcm: Command, short: Path) -> None:
        short.write_bytes(short.read_bytes()[:-20])
        lcm("ingest", short)
        assert (problems(lcm), failed_checks(lcm)) == ({}, {})

    def test_is_not_one_that_is_gone(self, lcm: Command, short: Path) -> None:
        lcm("ingest", short)
        short.unlink()
        assert (problems(lcm), failed_checks(lcm)) == ({}, {})

    def test_is_one_that_was_written_anew_and_is_shorter_than_before(
        self, lcm: Command, long: Path
    ) -> None:
        lcm("ingest", long)
        write_session(long, [{"role": "user", "content": f"new {n}"} for n in range(9)])
        assert "unread_transcripts" in problems(lcm)
