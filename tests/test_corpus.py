"""The main job on real conversations: stored, compacted, assembled, and stored again.

One database for each folder, filled once; every test then looks at all its sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from properties.conversations import broken_exchanges

import lcm_fast
from lcm_fast.assembly import Assembly
from lcm_fast.engine import Engine

pytestmark = pytest.mark.corpus

FOLDERS = {
    "openclaw-v3": "*.jsonl",
    "openclaw-v3-long": "*.jsonl",
    "openclaw-v3-chats": "*/main_*.jsonl",
    "pi-sessions-v1": "*.jsonl",
}
BUDGETS = (8_000, 32_000, 100_000)


@dataclass
class Memory:
    """A folder's sessions, stored and compacted, and an assembly of each at each budget."""

    engine: Engine
    sessions: dict[str, Path]
    assemblies: list[tuple[str, int, Assembly]]


@pytest.fixture(scope="module", params=FOLDERS)
def memory(
    request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Memory]:
    database = tmp_path_factory.mktemp("corpus") / "memory.db"
    files = sorted((corpus / request.param).glob(FOLDERS[request.param]))
    sessions = {str(path.relative_to(corpus)): path for path in files}
    with lcm_fast.open(database, config={"timezone": "UTC"}, durability="normal") as engine:
        assemblies = []
        for key, path in sessions.items():
            engine.bootstrap(path, session_key=key)
            for budget in reversed(BUDGETS):
                engine.compact(session_key=key, token_budget=budget)
                assembly = engine.assemble(session_key=key, token_budget=budget)
                assemblies.append((key, budget, assembly))
        yield Memory(engine, sessions, assemblies)


def test_there_are_sessions(memory: Memory) -> None:
    assert memory.sessions


def test_every_assembly_is_within_its_budget(memory: Memory) -> None:
    over = [
        (key, budget, assembly.estimated_tokens)
        for key, budget, assembly in memory.assemblies
        if not 0 < assembly.estimated_tokens <= budget
    ]
    assert over == []


def test_every_call_has_its_result_and_every_result_its_call(memory: Memory) -> None:
    broken = [
        (key, budget, found)
        for key, budget, assembly in memory.assemblies
        if (found := broken_exchanges(assembly.messages))
    ]
    assert broken == []


def test_a_second_run_stores_nothing(memory: Memory) -> None:
    again = [
        memory.engine.bootstrap(path, session_key=key).ingested
        for key, path in memory.sessions.items()
    ]
    assert again == [0] * len(again)


def test_the_record_gives_back_the_bytes_of_every_file(memory: Memory) -> None:
    """Two objects may share a line, so the line feeds are left aside."""
    different = [
        key
        for key, path in memory.sessions.items()
        if b"".join(memory.engine.export_entries(session_key=key))
        != path.read_bytes().replace(b"\n", b"")
    ]
    assert different == []


def test_the_doctor_finds_every_invariant_kept(memory: Memory) -> None:
    checks = lcm_fast.doctor(memory.engine).checks
    assert [check for check in checks if not check.ok] == []
