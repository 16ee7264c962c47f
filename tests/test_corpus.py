"""The main job on real conversations: stored, at once or in pieces, compacted, assembled, reread.

One database for each folder, filled once; every test then looks at all its sessions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import violations
from properties.conversations import broken_exchanges

import lcm_fast
from lcm_fast.assembly import Assembly
from lcm_fast.engine import Engine
from lcm_fast.transcripts import open_transcript
from lcm_fast.types import SessionEntry

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


@dataclass
class Arrival:
    """A folder's sessions in two memories: read once, and arrived piece by piece."""

    once: Engine
    pieces: Engine
    sessions: dict[str, list[Path]]
    folder: Path


def session_files(corpus: Path, folder: str) -> dict[str, list[Path]]:
    """Return the files of each session of a folder, those with its later increments last."""
    found: dict[str, list[Path]] = {}
    files = (corpus / folder).rglob("*.jsonl")
    for path in sorted(files, key=lambda path: ("updates" in path.parts, path)):
        found.setdefault(f"{folder}/{path.stem}", []).append(path)
    return found


def arrive_in_pieces(engine: Engine, key: str, source: Path, copy: Path, draw: Random) -> None:
    """Let a file grow from moment to moment, and live batches overlap what it shows by then."""
    data = source.read_bytes()
    entries = [entry for entry in open_transcript(source) if may_be_sent(entry)]
    moments = [draw.randrange(data.index(b"\n") + 1, len(data)) for _ in range(4)]
    for end in (*sorted(moments), len(data)):
        copy.write_bytes(data[:end])
        engine.bootstrap(copy, session_key=key)
        written = sum(entry.offset < end for entry in entries)
        first = max(0, written - draw.randrange(6))
        live = entries[first : written + draw.randrange(6)]
        engine.ingest([as_live(entry, draw) for entry in live], session_key=key)


def may_be_sent(entry: SessionEntry) -> bool:
    """Tell whether a host sends an entry's message to a model as it is."""
    roles = {"user", "assistant", "toolResult"}
    return entry.message is not None and entry.message.get("role") in roles


def as_live(entry: SessionEntry, draw: Random) -> Any:
    """Return an entry as a host may send it: whole, or its message when that has a time."""
    assert entry.message is not None
    if "timestamp" in entry.message and draw.random() < 0.5:
        return entry.message
    return json.loads(entry.raw)


@pytest.fixture(scope="module", params=FOLDERS)
def arrival(
    request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Arrival]:
    folder = tmp_path_factory.mktemp("arrival")
    sessions = session_files(corpus, request.param)
    with (
        lcm_fast.open(folder / "once.db", durability="normal") as once,
        lcm_fast.open(folder / "pieces.db", durability="normal") as pieces,
    ):
        for key, files in sessions.items():
            for n, file in enumerate(files):
                once.bootstrap(file, session_key=key)
                copy = folder / f"{file.stem}-{n}.jsonl"
                arrive_in_pieces(pieces, key, file, copy, Random(f"{key} {n}"))
        yield Arrival(once, pieces, sessions, folder)


def rows(engine: Engine, key: str) -> list[tuple[object, ...]]:
    return [
        (row.entry_id, row.role, row.excluded, row.created_at, row.token_count, row.content)
        for row in engine.messages(session_key=key, limit=100_000)
    ]


def test_sessions_that_arrive_in_pieces_are_stored_as_if_read_once(arrival: Arrival) -> None:
    different = [
        key for key in arrival.sessions if rows(arrival.pieces, key) != rows(arrival.once, key)
    ]
    assert different == []


def test_sessions_that_arrive_in_pieces_come_back_entry_by_entry(arrival: Arrival) -> None:
    different = [
        key
        for key, files in arrival.sessions.items()
        if list(arrival.pieces.export_entries(session_key=key))
        != [entry.raw for file in files for entry in open_transcript(file)]
    ]
    assert different == []


def test_sessions_that_arrived_in_pieces_add_nothing_when_they_are_read_whole(
    arrival: Arrival,
) -> None:
    before = {key: rows(arrival.pieces, key) for key in arrival.sessions}
    added = {
        str(file): result.ingested
        for key, files in arrival.sessions.items()
        for file in files
        if (result := arrival.pieces.bootstrap(file, session_key=key)).ingested
    }
    after = {key: rows(arrival.pieces, key) for key in arrival.sessions}
    assert (added, [key for key in before if before[key] != after[key]]) == ({}, [])


def test_sessions_that_arrived_in_pieces_keep_every_invariant(arrival: Arrival) -> None:
    assert violations(arrival.pieces.store) == []
