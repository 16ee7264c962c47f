"""Bad input to the command: one clear line and its exit code, or what is readable stored."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from surfaces.command import Command, isolated_command

USER = b'{"role":"user","content":"hello"}\n'
BIG_BYTES = 50_000_000


@pytest.fixture
def lcm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, in a folder of its own."""
    return isolated_command(tmp_path, monkeypatch)


def session(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


REFUSED = {
    "an empty file": (session(b""), 1),
    "a file of blank lines": (session(b"  \n\n"), 1),
    "a directory": (Path.mkdir, 2),
    "a missing file": (lambda path: None, 3),
    "binary junk": (session(random.Random(1).randbytes(5000)), 1),
    "prose": (session(b"Once upon a time\n"), 1),
    "an empty list": (session(b"[]"), 1),
    "objects of other kinds": (session(b'{"a":1}\n'), 1),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_an_unusable_session_is_one_clear_line_with_its_exit_code(
    lcm: Command, tmp_path: Path, kind: str
) -> None:
    make, exit_code = REFUSED[kind]
    make(tmp_path / "session.jsonl")
    found = lcm("run", "session.jsonl")
    assert found.exit_code == exit_code
    assert [line.split(":")[0] for line in found.stderr.splitlines()] == ["lcm-fast", "hint"]
    assert found.stdout == ""


@pytest.mark.parametrize("kind", REFUSED)
def test_an_unusable_session_stores_nothing(lcm: Command, tmp_path: Path, kind: str) -> None:
    make, _ = REFUSED[kind]
    make(tmp_path / "session.jsonl")
    lcm("run", "session.jsonl")
    assert json.loads(lcm("status", "--json").stdout)["totals"]["conversations"] == 0


READABLE = {
    "only tool output": (b'{"role":"tool","tool_call_id":"c","content":"out"}\n' * 2, 2, 0),
    "a lone surrogate escape": (b'{"role":"user","content":"a \\ud800 b"}\n', 1, 0),
    "surrogate bytes": (b'{"role":"user","content":"a \xed\xa0\x80 b"}\n', 1, 0),
    "a truncated last line": (USER + b'{"role":"user","cont', 1, 0),
    "a line that is no JSON": (USER + b"nonsense\n", 1, 1),
}


@pytest.mark.parametrize("kind", READABLE)
def test_what_is_readable_is_stored_and_the_exit_code_tells_of_the_rest(
    lcm: Command, tmp_path: Path, kind: str
) -> None:
    content, stored, exit_code = READABLE[kind]
    (tmp_path / "session.jsonl").write_bytes(content)
    found = lcm("run", "session.jsonl", "--json")
    assert found.exit_code == exit_code
    assert json.loads(found.stdout)["ingest"]["ingested"] == stored


@pytest.mark.parametrize("kind", READABLE)
def test_what_is_readable_can_be_shown_to_people(lcm: Command, tmp_path: Path, kind: str) -> None:
    (tmp_path / "session.jsonl").write_bytes(READABLE[kind][0])
    lcm("run", "session.jsonl")
    for verb in ("messages", "export"):
        assert lcm(verb, "--session-key", "session").exit_code == 0
    assert lcm("assemble", "--session-key", "session", "--budget", 1000).exit_code == 0


def test_an_unreadable_line_is_told_with_its_byte_offset(lcm: Command, tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER + b"nonsense\n" + USER)
    assert f"byte {len(USER)}" in lcm("run", "session.jsonl").stdout


def test_a_truncated_last_line_is_said_to_wait(lcm: Command, tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER + b'{"role":"user","cont')
    assert "the last line is unfinished (20 bytes)" in lcm("run", "session.jsonl").stdout


def test_a_line_of_50_mb_is_stored_and_shown_as_a_reference(lcm: Command, tmp_path: Path) -> None:
    line = b'{"role":"user","content":"' + b"x " * (BIG_BYTES // 2) + b'"}\n'
    (tmp_path / "session.jsonl").write_bytes(line)
    found = json.loads(lcm("run", "session.jsonl", "--budget", 8000, "--json").stdout)
    assert (found["ingest"]["ingested"], found["assembly"]["cut"]) == (1, 0)
    assert found["assembly"]["estimated_tokens"] < 1000


@pytest.mark.parametrize("budget", ["0", "-1", "255", "ten", "1e3", str(10**30)])
def test_a_budget_no_context_fits_is_a_usage_error(
    lcm: Command, tmp_path: Path, budget: str
) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER)
    assert lcm("run", "session.jsonl", "--budget", budget).exit_code == 2


def test_a_budget_no_context_fits_is_refused_before_anything_is_stored(
    lcm: Command, tmp_path: Path
) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER)
    lcm("run", "session.jsonl", "--budget", "0")
    assert not (tmp_path / "lcm.db").exists()


def test_a_budget_smaller_than_one_message_shows_it_in_part(lcm: Command, tmp_path: Path) -> None:
    line = b'{"role":"user","content":"' + b"word " * 4000 + b'"}\n'
    (tmp_path / "session.jsonl").write_bytes(line)
    found = json.loads(lcm("run", "session.jsonl", "--budget", 256, "--json").stdout)
    assert found["assembly"]["estimated_tokens"] <= 256


def test_a_prompt_that_takes_the_whole_budget_is_a_usage_error(
    lcm: Command, tmp_path: Path
) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER)
    found = lcm("run", "session.jsonl", "--budget", 300, "--prompt", "word " * 500)
    assert found.exit_code == 2


def another_programs(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.commit()
    db.close()


DATABASES = {
    "a text file": session(b"this is a text file, not a database\n" * 50),
    "another program's database": another_programs,
    "a directory": Path.mkdir,
}


@pytest.mark.parametrize("verb", ["run", "status"])
@pytest.mark.parametrize("kind", DATABASES)
def test_a_database_that_is_not_ours_ends_with_5(
    lcm: Command, tmp_path: Path, kind: str, verb: str
) -> None:
    DATABASES[kind](tmp_path / "memory.db")
    (tmp_path / "session.jsonl").write_bytes(USER)
    words = [verb, "session.jsonl"] if verb == "run" else [verb]
    found = lcm(*words, "--db", "memory.db")
    assert found.exit_code == 5
    assert "Traceback" not in found.output


def test_a_database_that_is_not_ours_is_left_as_it_was(lcm: Command, tmp_path: Path) -> None:
    another_programs(tmp_path / "memory.db")
    before = (tmp_path / "memory.db").read_bytes()
    (tmp_path / "session.jsonl").write_bytes(USER)
    lcm("run", "session.jsonl", "--db", "memory.db")
    assert (tmp_path / "memory.db").read_bytes() == before


def test_a_database_below_a_file_ends_with_5(lcm: Command, tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER)
    assert lcm("run", "session.jsonl", "--db", "session.jsonl/memory.db").exit_code == 5


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_ends_with_5(lcm: Command, tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER)
    (tmp_path / "locked").mkdir(mode=0o500)
    assert lcm("run", "session.jsonl", "--db", "locked/memory.db").exit_code == 5


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_session_that_may_not_be_read_ends_with_1(lcm: Command, tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER)
    (tmp_path / "session.jsonl").chmod(0)
    assert lcm("run", "session.jsonl").exit_code == 1


def test_an_output_folder_that_is_missing_is_refused_before_anything_is_stored(
    lcm: Command, tmp_path: Path
) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER)
    assert lcm("run", "session.jsonl", "--out", "nowhere/context.json").exit_code == 3
    assert not (tmp_path / "lcm.db").exists()


@pytest.mark.parametrize("cursor", ["-1", str(2**70), "x"])
def test_a_cursor_that_is_none_is_a_usage_error(lcm: Command, tmp_path: Path, cursor: str) -> None:
    (tmp_path / "session.jsonl").write_bytes(USER)
    lcm("ingest", "session.jsonl")
    words = ("messages", "--session-key", "session", "--cursor", cursor)
    assert lcm(*words).exit_code == 2
