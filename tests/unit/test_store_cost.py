"""What a turn reads and writes does not depend on how much is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from conftest import chain, make_engine, said
from upkeep import Scripted, memory, turns

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.store import Address, Store

SIZES = (10, 1_000, 5_000)
CALL = {"type": "toolCall", "id": "call_x", "name": "exec", "arguments": {}}


class Cost(NamedTuple):
    """Statements run, steps of SQLite's virtual machine, rows of tables gone through unindexed."""

    statements: int
    steps: int
    scanned: int


class Ledger:
    """Adds up what connections run."""

    def __init__(self) -> None:
        self._profiles: list[dict[str, Any]] = []

    def watch(self, db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._profiles.append)

    def total(self) -> Cost:
        status = [profile["stmt_status"] for profile in self._profiles]
        return Cost(
            len(status),
            sum(one["SQLITE_STMTSTATUS_VM_STEP"] for one in status),
            sum(one["SQLITE_STMTSTATUS_FULLSCAN_STEP"] for one in status),
        )


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Engine]]:
    """Engines whose default conversation holds so many messages."""
    folder = tmp_path_factory.mktemp("cost")
    engines = {size: make_engine(folder / f"{size}.db") for size in SIZES}
    for size, engine in engines.items():
        engine.ingest([said(f"message {n} of them", n) for n in range(size)])
    yield engines
    for engine in engines.values():
        engine.close()


def turn(at: int, *, timed: bool) -> list[dict[str, Any]]:
    messages = [
        said("a question"),
        {"role": "assistant", "content": [{"type": "text", "text": "looking"}, CALL]},
        {"role": "toolResult", "toolCallId": "call_x", "content": "found"},
        said("an answer", role="assistant"),
    ]
    times = {"timestamp": 1_800_000_000_000 + at} if timed else {}
    return [{**message, **times} for message in messages]


def cost_of_writing(engine: Engine, work: Callable[[], object]) -> Cost:
    ledger = Ledger()
    writer = engine.store._writer
    assert writer is not None
    ledger.watch(writer._db)
    work()
    writer._db.trace_v2(0, None)
    return ledger.total()


def cost_of_reading(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> Cost:
    ledger = Ledger()
    monkeypatch.setattr(apsw, "connection_hooks", [ledger.watch])
    work()
    return ledger.total()


def assert_flat(costs: list[Cost]) -> None:
    assert costs[0].statements > 0
    assert {cost.statements for cost in costs} == {costs[0].statements}
    assert {cost.scanned for cost in costs} == {costs[0].scanned}
    assert max(cost.steps for cost in costs) <= 1.5 * min(cost.steps for cost in costs)


@pytest.mark.parametrize("timed", [True, False], ids=["timed", "untimed"])
def test_a_turn_costs_the_same_on_any_history(memories: dict[int, Engine], timed: bool) -> None:
    assert_flat(
        [
            cost_of_writing(engine, lambda e=engine: e.ingest(turn(int(timed), timed=timed)))
            for engine in memories.values()
        ]
    )


def test_a_turn_that_is_known_costs_the_same_on_any_history(memories: dict[int, Engine]) -> None:
    costs = []
    for engine in memories.values():
        engine.ingest(turn(7, timed=True))
        costs.append(cost_of_writing(engine, lambda e=engine: e.ingest(turn(7, timed=True))))
    assert_flat(costs)


def test_entries_with_ids_cost_the_same_on_any_history(memories: dict[int, Engine]) -> None:
    entries = chain(*turn(0, timed=False))
    assert_flat(
        [
            cost_of_writing(engine, lambda e=engine: e.ingest(entries))
            for engine in memories.values()
        ]
    )


def test_a_turn_goes_through_no_table_without_an_index(memories: dict[int, Engine]) -> None:
    cost = cost_of_writing(memories[5_000], lambda: memories[5_000].ingest(turn(9, timed=True)))
    assert cost.scanned <= len(turn(9, timed=True))


def test_a_turn_runs_a_bounded_number_of_statements(memories: dict[int, Engine]) -> None:
    cost = cost_of_writing(memories[10], lambda: memories[10].ingest(turn(11, timed=True)))
    assert cost.statements <= 25


def test_a_frontier_read_before_is_extended_by_what_is_new_alone(
    memories: dict[int, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for engine in memories.values():
        known = frontier_of(engine.store, {})
        engine.ingest([said("one more", 1_000_000)])
        with closing(Store.open_read_only(engine.store.path)) as reader:
            costs.append(cost_of_reading(monkeypatch, lambda r=reader, k=known: frontier_of(r, k)))
    assert_flat(costs)


def frontier_of(store: Store, known: dict[int, Any]) -> dict[int, Any]:
    found = store.frontier(Address("default"), known)
    assert found is not None
    return {found[0].conversation_id: found[1]}


def test_status_costs_the_same_on_any_history(
    memories: dict[int, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = [
        cost_of_reading(monkeypatch, lambda p=path: lcm_fast.status(p))
        for path in (engine.store.path for engine in memories.values())
    ]
    assert_flat(costs)


@pytest.mark.parametrize("others", [0, 3_000])
def test_a_sweep_changes_rows_in_proportion_to_the_messages_it_replaces(
    database: Path, others: int
) -> None:
    """200 messages in 12 passes, whatever the rest of the conversation."""
    settings = {"leaf_chunk_tokens": 17 * 100, "fresh_tail_count": others or 2}
    with memory(database, Scripted(), **settings) as engine:
        engine.ingest(turns(204, tokens=100), token_budget=10**9)
        engine.ingest(turns(others or 2, tokens=1, first=204), token_budget=10**9)
        writer = engine.store._writer
        assert writer is not None
        before = writer._db.total_changes()
        cost = cost_of_writing(engine, lambda: engine.compact(token_budget=256, force=True))
        changed = writer._db.total_changes() - before
        result = engine.conversation()
    assert result.leaf_count == 12
    # A context item gone and an edge made for each message; a few rows for each pass.
    assert 2 * 204 <= changed <= 2 * 204 + 12 * 6
    assert cost.steps < 204 * 250


def test_a_pass_reads_what_it_replaces_whatever_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the frontier is known, a leaf pass reads the same on a history ten times as long."""
    costs = []
    for size in (300, 3_000):
        config = {"leaf_chunk_tokens": 1_000, "max_sweep_iterations": 1}
        with memory(tmp_path / f"{size}.db", Scripted(), **config) as engine:
            engine.ingest(turns(size, tokens=100), token_budget=10**9)
            engine.compact(token_budget=10**8, force=True)
            for reader in engine.store._readers._idle:
                reader.close()
            engine.store._readers._idle.clear()
            with monkeypatch.context() as patch:
                work = partial(engine.compact, token_budget=10**8, force=True)
                costs.append(cost_of_reading(patch, work))
    assert_flat(costs)
