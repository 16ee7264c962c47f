"""The main job on real conversations that no one here wrote: OpenClaw v3 and pi v1 sessions."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import make_engine

import lcm_fast
from lcm_fast import Engine
from lcm_fast.transcripts import open_transcript, shapes

pytestmark = pytest.mark.corpus

FOLDERS = ("openclaw-v3", "openclaw-v3-long", "openclaw-v3-chats", "pi-sessions-v1")
BUDGETS = (100_000, 32_000, 8_000)


@pytest.fixture(scope="module", params=FOLDERS)
def stored(
    request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, dict[str, Path]]]:
    """An engine that has read every session of a folder, and the files by session key."""
    folder = corpus / request.param
    pattern = "*/*.jsonl" if request.param == "openclaw-v3-chats" else "*.jsonl"
    with make_engine(tmp_path_factory.mktemp(request.param) / "memory.db") as engine:
        files = {engine.bootstrap(path).session_key or "": path for path in folder.glob(pattern)}
        assert files
        yield engine, files


def test_every_byte_of_a_session_comes_back_in_its_place(
    stored: tuple[Engine, dict[str, Path]],
) -> None:
    engine, files = stored
    for key, path in files.items():
        read = [entry.raw for entry in open_transcript(path)]
        assert list(engine.export_entries(session_key=key)) == read


def test_a_second_reading_adds_nothing(stored: tuple[Engine, dict[str, Path]]) -> None:
    engine, files = stored
    again = {key: engine.bootstrap(path) for key, path in files.items()}
    assert {key: result.ingested for key, result in again.items()} == dict.fromkeys(files, 0)
    assert sum(result.unreadable for result in again.values()) == 0


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_context_fits_its_budget_with_complete_tool_exchanges(
    stored: tuple[Engine, dict[str, Path]], budget: int
) -> None:
    engine, files = stored
    for key in files:
        engine.compact(session_key=key, token_budget=budget)
        assembly = engine.assemble(session_key=key, token_budget=budget)
        assert assembly.estimated_tokens <= budget
        assert not assembly.messages or assembly.messages[0]["role"] in ("user", "system")
        assert_exchanges_complete(assembly.messages)


def test_the_invariants_hold_afterwards(stored: tuple[Engine, dict[str, Path]]) -> None:
    engine, _ = stored
    failed = [check for check in lcm_fast.doctor(engine).checks if not check.ok]
    assert failed == []


def test_the_same_sessions_give_the_same_context(corpus: Path, tmp_path: Path) -> None:
    path = corpus / "openclaw-v3-long" / "gpt55_hil_c7.jsonl"
    digests = set()
    for name in ("one.db", "two.db"):
        with make_engine(tmp_path / name) as engine:
            engine.bootstrap(path)
            engine.compact(session_key=path.stem, token_budget=32_000)
            messages = engine.assemble(session_key=path.stem, token_budget=32_000).messages
            digests.add(hashlib.sha256(shapes.encode_face(messages)).hexdigest())
    assert len(digests) == 1


def assert_exchanges_complete(messages: list[dict[str, Any]]) -> None:
    """Each call is answered once, by a result that follows it with nothing but results between."""
    open_calls: Counter[str] = Counter()
    seen: set[str] = set()
    for message in messages:
        answers = shapes.tool_answers(message)
        if not answers:
            assert not +open_calls, f"unanswered: {open_calls}"
        open_calls.subtract(answers)
        assert not -open_calls, f"answers without a call: {answers}"
        calls = [call.call_id for call in shapes.tool_calls(message)]
        assert seen.isdisjoint(calls)
        seen.update(calls)
        open_calls.update(calls)
    assert not +open_calls
