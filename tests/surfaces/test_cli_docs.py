"""docs/command-line.md tells what is so: its examples run, no verb, option or key is left out."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import Result
from conftest import said
from surfaces.command import Command, isolated_command, talk, write_session

import lcm_fast
from lcm_fast.surfaces.cli import cli, failures

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
VERBS = sorted(cli.commands)


@dataclass
class Example:
    """A command of the page and what the page says it prints."""

    command: str
    output: list[str]
    exit_code: int = 0


def examples() -> list[Example]:
    found: list[Example] = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        lines = iter(block.splitlines())
        for line in lines:
            if line == "$ echo $?":
                found[-1].exit_code = int(next(lines))
            elif line.startswith("$ "):
                found.append(Example(line[2:], []))
            else:
                found[-1].output.append(line)
    return found


EXAMPLES = examples()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Result]]:
    """What the commands of the page do, one after another."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "session.jsonl", folder / "examples")
    with pytest.MonkeyPatch.context() as patch:
        lcm = isolated_command(folder, patch)
        patch.setenv("OPENCLAW_STATE_DIR", ".")
        patch.delenv("LCM_TOKEN_COUNTER")
        yield [_run(lcm, example.command) for example in EXAMPLES]


def _run(lcm: Command, command: str) -> Result:
    program, *words = shlex.split(command)
    assert program == "lcm-fast"
    if any(word.startswith("sum_") for word in words):
        # A summary is named by its text; the page's own summary has changed its name with its text.
        listed = json.loads(lcm("summaries", "--session-key", "session", "--json").stdout)
        words = [listed["summaries"][0]["id"] if "sum_" in word else word for word in words]
    return lcm(*words)


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=lambda at: EXAMPLES[at].command)
def test_an_example_ends_as_the_page_says(results: list[Result], number: int) -> None:
    assert results[number].exit_code == EXAMPLES[number].exit_code


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=lambda at: EXAMPLES[at].command)
def test_an_example_prints_what_the_page_says(results: list[Result], number: int) -> None:
    said = "\n".join(EXAMPLES[number].output)
    wanted = ".*".join(re.escape(part) for part in _masked(said).split("<LEFT-OUT>"))
    assert re.fullmatch(wanted, _masked(results[number].output), re.DOTALL), results[number].output


def _masked(text: str) -> str:
    """Return a text without what differs from run to run: figures, digests, kernels, spacing."""
    text = re.sub(r"^\.\.\.$", "<LEFT-OUT>", text, flags=re.MULTILINE)
    text = re.sub(r"(sum|focus)_[0-9a-f]{16}", r"\1_X", text)
    text = re.sub(r"(compiled|reference) kernels", "any kernels", text)
    text = re.sub(r"\d[\d,.:]*", "N", text)
    return " ".join(text.split())


def test_every_verb_has_a_section_and_no_other_has() -> None:
    sections = re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)
    assert sorted(set(sections) - {"JSON"}) == VERBS


def test_every_verb_is_in_the_table_in_the_order_of_the_help() -> None:
    assert re.findall(r"^\| \[`(\w+)`\]", PAGE, re.MULTILINE) == list(cli.commands)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_example(verb: str) -> None:
    assert any(example.command.split()[1] == verb for example in EXAMPLES)


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_a_verb_is_on_the_page(verb: str) -> None:
    names = [name for parameter in cli.commands[verb].params for name in parameter.opts]
    assert [name for name in names if name.startswith("-") and name not in PAGE] == []


def test_every_exit_code_is_on_the_page() -> None:
    codes = {value for name, value in vars(failures).items() if name.startswith("EXIT_")}
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert documented == {0, 4, 5} | codes


def documented_keys() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `([^`]+)` \| (`ok`.*|`checks`.*) \|$", PAGE, re.MULTILINE)
    return {command: set(re.findall(r"`(\w+)`", keys)) for command, keys in rows}


@pytest.mark.parametrize("command", documented_keys())
def test_the_keys_on_the_page_are_the_keys_printed(
    lcm: Command, tmp_path: Path, command: str
) -> None:
    lcm("run", write_session(tmp_path / "session.jsonl", talk(200)), "--budget", 5000)
    with lcm_fast.open(json.loads(lcm("status", "--json").stdout)["database"]["path"]) as engine:
        for at in (1, 1000):
            engine.ingest([said(f"again {n}", at) for n in range(3)])
        engine.ingest([said("a long listing " * 10_000)])
        ((file_id, _, _),) = engine.store.large_files()
    words = _runnable(command).replace("FILE_ID", file_id)
    assert set(json.loads(_run(lcm, words).stdout)) == documented_keys()[command]


def _runnable(command: str) -> str:
    which = " --session-key session"
    more = {
        "run": " session.jsonl",
        "ingest": " session.jsonl",
        "assemble": f"{which} --budget 5000",
        "compact": f"{which} --budget 5000",
        "compact --dry-run": f"{which} --budget 5000",
        "export --to FILE": which,
        "messages": which,
        "summaries": which,
        "focus": which,
        "focus PROMPT": which,
        "refocus": which,
        "unfocus": which,
    }
    for name, example in (("msg_N", "msg_1"), ("sum_X", "sum_0"), ("BATCH", "q1")):
        command = command.replace(name, example)
    return f"lcm-fast {command} --json{more.get(command, '')}"


def test_the_keys_of_every_verb_that_prints_json_are_on_the_page() -> None:
    assert {command.split()[0] for command in documented_keys()} == set(VERBS) - {"completion"}
