"""The documentation says what is so: examples run, tables are complete, links lead somewhere."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

import lcm_fast
from lcm_fast.config import KEYS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "examples" / "session.jsonl", tmp_path)
    monkeypatch.chdir(tmp_path)
    for source in blocks(page, "python"):
        exec(compile(source, str(page), "exec"), {"__name__": "example"})


def test_sql_examples_run_on_a_database_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with lcm_fast.open(path) as engine:
        engine.bootstrap(ROOT / "examples" / "session.jsonl")
    with sqlite3.connect(path) as db:
        for statement in blocks(ROOT / "docs" / "storage.md", "sql")[0].split(";"):
            db.execute(statement).fetchall()
    db.close()


def test_every_configuration_key_is_documented_with_its_default_and_variable() -> None:
    lines = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8").splitlines()
    for key in KEYS.values():
        default = "" if key.default is None else f"`{json.dumps(key.default)}`"
        variable = f"`{key.env}`" if key.env else ""
        assert f"| `{key.name}` | {default} | {variable} | {key.doc} |" in lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_test_command_of_the_readme_is_the_one_that_ci_runs() -> None:
    (_, command) = [
        line.removeprefix("python3 -m venv .venv && ")
        for line in "\n".join(blocks(ROOT / "README.md", "sh")).splitlines()
        if line.startswith("python3 -m venv")
    ]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert command.split(" && ")[0].replace("install ", "install -q ") in script
    assert command.split(" && ")[1] in script
