"""How the command parses, ends and survives: options, exit codes, odd terminals, completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from surfaces.command import Command, talk, write_session

import lcm_fast
from lcm_fast.surfaces.cli import cli
from lcm_fast.surfaces.cli.failures import failure_of
from lcm_fast.surfaces.cli.output import encode_json, one_line, printable

PROJECT = Path(lcm_fast.__file__).parents[1]
VERBS = sorted(cli.commands)


def process(
    *words: str, stdout: int | IO[bytes] = subprocess.PIPE, **environ: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "lcm_fast", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **environ},
    )


@pytest.fixture
def database(tmp_path: Path, lcm: Command, short: Path) -> str:
    """A database with a short session in it."""
    lcm("ingest", short)
    return str(tmp_path / "lcm.db")


def test_the_global_options_may_stand_before_the_verb(lcm: Command, database: str) -> None:
    assert json.loads(lcm("--json", "--db", database, "status").stdout)["ok"]


def test_the_global_options_may_stand_after_the_verb(lcm: Command, database: str) -> None:
    assert json.loads(lcm("status", "--json", "--db", database).stdout)["ok"]


def test_an_option_after_the_verb_beats_one_before(lcm: Command, database: str) -> None:
    assert lcm("--db", "other.db", "status", "--db", database).exit_code == 0


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("option", ["-h", "--help", "--version"])
def test_every_verb_answers_help_and_version(lcm: Command, verb: str, option: str) -> None:
    assert lcm(verb, option).exit_code == 0


def test_the_version_is_the_packages(lcm: Command) -> None:
    assert lcm("--version").stdout == f"lcm-fast {lcm_fast.__version__}\n"


def test_without_a_verb_the_help_is_shown_and_it_is_a_usage_error(lcm: Command) -> None:
    found = lcm()
    assert (found.exit_code, found.stdout.split()[0]) == (2, "Usage:")


def test_an_error_is_one_line_and_a_hint_on_stderr(lcm: Command) -> None:
    lines = lcm("status").stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == ["lcm-fast", "hint"]


def test_an_error_is_an_object_on_stdout_for_programs(lcm: Command) -> None:
    found = json.loads(lcm("status", "--json").stdout)
    assert found["error"].keys() == {"code", "detail", "hint"}


def test_a_usage_error_is_an_object_on_stdout_for_programs(lcm: Command) -> None:
    assert json.loads(lcm("run", "--json").stdout)["error"]["code"] == "usage"


def test_a_bad_configuration_value_ends_with_4(
    lcm: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCM_CONTEXT_THRESHOLD", "7")
    assert lcm("status").exit_code == 4


def test_a_missing_configuration_file_ends_with_3(lcm: Command, database: str) -> None:
    assert lcm("--config", "nowhere.json", "status").exit_code == 3


def test_a_bug_ends_with_70() -> None:
    assert failure_of(ZeroDivisionError("x")).exit_code == 70


def test_a_bug_says_where_to_report_it() -> None:
    assert "issue tracker" in failure_of(ZeroDivisionError("x")).hint


def test_an_error_of_the_system_is_no_bug() -> None:
    assert failure_of(OSError(28, "No space left on device")).exit_code == 1


def test_a_reader_that_stops_early_is_no_error_to_talk_about(database: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = process("export", "--session-key", "short", "--db", database, stdout=writing)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout_is_one_line(database: str) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = process("status", "--db", database, stdout=full)
    assert (ended.returncode, ended.stderr.count(b"\n")) == (1, 1)


def test_a_locale_that_lacks_characters_is_survived(lcm: Command, tmp_path: Path) -> None:
    lcm("ingest", write_session(tmp_path / "zh.jsonl", [{"role": "user", "content": "没有意见"}]))
    words = ("messages", "--session-key", "zh", "--db", str(tmp_path / "lcm.db"))
    assert process(*words, PYTHONIOENCODING="ascii").returncode == 0


def test_json_is_utf8_whatever_the_locale(lcm: Command, tmp_path: Path) -> None:
    lcm("ingest", write_session(tmp_path / "zh.jsonl", [{"role": "user", "content": "没有意见"}]))
    words = ("messages", "--session-key", "zh", "--json", "--db", str(tmp_path / "lcm.db"))
    assert "没有意见".encode() in process(*words, PYTHONIOENCODING="ascii").stdout


def test_stored_text_cannot_drive_the_terminal(lcm: Command, tmp_path: Path) -> None:
    message = {"role": "user", "content": "before \x1b]0;title\x07 after"}
    lcm("ingest", write_session(tmp_path / "esc.jsonl", [message]))
    assert "\x1b" not in lcm("messages", "--id", "msg_1").stdout


def test_nothing_heavy_is_loaded_for_a_program(database: str) -> None:
    report = process("status", "--json", "--db", database, PYTHONPROFILEIMPORTTIME="1").stderr
    loaded = {line.split(b"|")[-1].strip().decode() for line in report.splitlines()}
    assert "lcm_fast.engine" in loaded
    assert not loaded & {"rich", "rich.console", "sklearn", "scipy"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_names_the_command(lcm: Command, shell: str) -> None:
    assert "_LCM_FAST_COMPLETE" in lcm("completion", shell).stdout


def test_verbs_are_completed() -> None:
    words = {"COMP_WORDS": "lcm-fast conv", "COMP_CWORD": "1"}
    found = process(_LCM_FAST_COMPLETE="bash_complete", **words).stdout
    assert found == b"plain,conversations\n"


def test_a_name_that_is_no_text_is_a_usage_error(lcm: Command, short: Path) -> None:
    assert lcm("run", short, "--session-key", "a\udcffb").exit_code == 2


def test_a_file_name_that_is_no_text_is_told_in_one_line(lcm: Command) -> None:
    found = lcm("run", "a\udcffb.jsonl")
    assert (found.exit_code, found.stderr.count("error:")) == (1, 1)


@given(st.text(st.characters(codec=None), max_size=40))
def test_printable_text_has_no_control_character_and_can_be_encoded(text: str) -> None:
    shown = printable(text).encode().decode()
    assert all(char.isprintable() or char in "\n\t" for char in shown if ord(char) < 0xA0)


@given(st.text(st.characters(codec=None), max_size=40))
def test_json_keeps_every_character(text: str) -> None:
    assert json.loads(encode_json({"text": text})) == {"text": text}


@given(st.text(max_size=60), st.integers(1, 20))
def test_one_line_is_never_wider_than_asked(text: str, columns: int) -> None:
    line = one_line(text, columns)
    assert "\n" not in line
    assert len(line) <= columns


def test_every_error_of_clicks_own_is_usage() -> None:
    assert failure_of(click.BadParameter("x")).exit_code == 2


def test_run_keeps_going_over_a_session_in_any_script(lcm: Command, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "数据库 🦊 قاعدة"}, *talk(2)]
    assert lcm("run", write_session(tmp_path / "会议.jsonl", messages)).exit_code == 0
