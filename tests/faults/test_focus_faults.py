"""The process ends while a focus brief is written: the old one is shown still, or the new one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import power_fails, violations
from upkeep import memory, turns

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.summarize import SummaryRequest

PLENTY = 100_000
STATEMENTS = 40


def write(request: SummaryRequest) -> str:
    return f"brief on {request.focus} ¤¤" if request.focus else "notes " + "¤" * 60


def shown(engine: Engine) -> str:
    return str(engine.assemble(token_budget=PLENTY).messages[0]["content"])


@pytest.fixture
def focused(database: Path) -> Path:
    with memory(database, write) as engine:
        engine.ingest(turns(12), token_budget=PLENTY)
        engine.focus("one")
        engine.ingest(turns(4, first=12), token_budget=PLENTY)
        engine.compact(token_budget=PLENTY, force=True)
    return database


def test_at_every_statement_the_old_brief_or_the_new_one_is_shown(
    focused: Path, tmp_path: Path
) -> None:
    outcomes = set()
    for at in range(1, STATEMENTS):
        path = tmp_path / f"{at}.db"
        shutil.copy(focused, path)
        engine = memory(path, write)
        failed = power_fails(engine, at, lambda engine=engine: engine.focus("two"))  # type: ignore[misc]
        engine.close()
        with memory(path, write) as again:
            text = shown(again)
            assert ("brief on one" in text) != ("brief on two" in text)
            assert violations(again.store) == []
            assert again.focus("three").status == "active"
            assert "brief on three" in shown(again)
            assert lcm_fast.status(again).problems == []
        outcomes.add((failed, "brief on two" in text))
    assert outcomes == {(True, False), (False, True)}


def test_a_draft_that_a_dead_process_left_is_named_by_the_status(focused: Path) -> None:
    with memory(focused, write) as engine:
        service = engine.upkeep.backend

        def dies(*_: object) -> None:
            (draft,) = [one for one in engine.store.briefs() if one.status == "draft"]
            assert draft.prompt == "two"
            codes = [problem["code"] for problem in lcm_fast.status(engine).problems]
            assert codes == ["focus_draft"]
            raise SystemExit

        service.answer = dies  # type: ignore[assignment]
        with pytest.raises(SystemExit):
            engine.focus("two")
