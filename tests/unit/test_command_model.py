"""A program as summariser: what it is given, what it may do wrong, and that it ends."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from summarize_server import a_call

from lcm_fast.errors import ConfigError, SummarizerContentError, SummarizerOutageError
from lcm_fast.summarize.models import CommandModel

GRANDCHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
with open({path!r}, "w") as note:
    note.write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""


def program(source: str) -> CommandModel:
    return CommandModel([sys.executable, "-c", source])


def test_the_prompt_is_on_standard_input_and_the_answer_on_standard_output() -> None:
    answer = CommandModel("cat").complete(a_call(system="Be brief.", user="Größe: 5 µm"))
    assert answer.text == "Be brief.\n\nGröße: 5 µm"
    assert answer.model == "command/cat"


def test_a_text_is_split_as_a_shell_would_and_reaches_no_shell() -> None:
    command = f"{shlex.quote(sys.executable)} -c 'import sys; print(sys.argv[1:])' '$HOME; ls' *"
    assert CommandModel(command).complete(a_call()).text == "['$HOME; ls', '*']"


def test_a_long_prompt_and_a_long_answer_pass_each_other() -> None:
    text = "word " * 400_000
    assert CommandModel("cat").complete(a_call(user=text)).text.endswith(text.strip())


def test_a_program_that_does_not_read_its_input_may_answer() -> None:
    assert program("print('S')").complete(a_call(user="word " * 100_000)).text == "S"


def test_reasoning_is_taken_out_of_what_it_wrote() -> None:
    assert program("print('<think>hm</think>S')").complete(a_call()).text == "S"


def test_a_program_that_fails_is_an_outage_with_the_last_line_of_its_complaint() -> None:
    failing = program("import sys; print('S'); sys.exit('first\\nno such model')")
    with pytest.raises(SummarizerOutageError, match=r"ended with status 1: no such model "):
        failing.complete(a_call())


def test_a_program_that_is_killed_is_an_outage() -> None:
    with pytest.raises(SummarizerOutageError, match="killed by signal 9"):
        program("import os; os.kill(os.getpid(), 9)").complete(a_call())


def test_a_program_that_writes_nothing_is_empty() -> None:
    with pytest.raises(SummarizerContentError) as caught:
        program("pass").complete(a_call())
    assert caught.value.code == "empty"


def test_a_program_that_writes_for_ever_is_stopped() -> None:
    with pytest.raises(SummarizerContentError, match="more than"):
        CommandModel("yes").complete(a_call(timeout_s=30))


@pytest.mark.parametrize(
    "source",
    [
        "import time; time.sleep(60)",
        "import sys, time\nwhile True: print('x', file=sys.stderr)",
        "import os, time; os.close(1); os.close(2); time.sleep(60)",
    ],
    ids=["silent", "complaining", "outputs closed"],
)
def test_a_program_that_does_not_end_is_given_up(source: str) -> None:
    with pytest.raises(SummarizerOutageError, match=r"gave no answer in 0\.3 s"):
        program(source).complete(a_call(timeout_s=0.3))


def test_at_the_timeout_what_the_program_started_ends_too(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    with pytest.raises(SummarizerOutageError):
        program(GRANDCHILD.format(path=str(note))).complete(a_call(timeout_s=1.0))
    assert [pid for pid in map(int, note.read_text().split()) if is_running(pid)] == []


def test_no_program_outlives_the_process_that_called_it(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    caller = f"""
import pathlib, sys, threading, time
from lcm_fast.summarize.models import CommandModel, ModelCall
model = CommandModel([sys.executable, "-c", {GRANDCHILD.format(path=str(note))!r}])
call = ModelCall("", "", 100, 60.0)
threading.Thread(target=model.complete, args=(call,), daemon=True).start()
while not pathlib.Path({str(note)!r}).exists() or not pathlib.Path({str(note)!r}).read_text():
    time.sleep(0.01)
"""
    subprocess.run([sys.executable, "-c", caller], check=True, timeout=60)
    assert [pid for pid in map(int, note.read_text().split()) if is_running(pid)] == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("no-such-program --fast", "'no-such-program' is no program"),
        ("cat 'open", "No closing quotation"),
        ("  ", "is empty"),
        ([], "is empty"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_at_once(
    command: str | list[str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        CommandModel(command)


def test_a_program_that_is_gone_when_it_is_called_is_an_outage(tmp_path: Path) -> None:
    script = tmp_path / "summarise"
    script.write_text("#!/bin/sh\necho S\n")
    script.chmod(0o700)
    model = CommandModel(str(script))
    script.unlink()
    with pytest.raises(SummarizerOutageError, match="command/summarise: cannot be started"):
        model.complete(a_call())


def is_running(pid: int) -> bool:
    """Tell whether a process is there in a moment, when the killed have been buried."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return False
        time.sleep(0.02)
    return True
