"""Many chunks are summarised side by side and published in order (issue: parallel catch-up)."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from conftest import power_fails, violations
from upkeep import Clock, Scripted, memory, turns

from lcm_fast.engine import Engine
from lcm_fast.summarize import SummaryRequest

SIDE_BY_SIDE = {"summary_concurrency": 3, "summary_prefix_target_tokens": 100_000}


def first_turn(request: SummaryRequest) -> int:
    return int(request.items[0].text.split()[1])


def leaves(engine: Engine) -> list[str]:
    """What the summaries of the frontier say, in the order of the conversation."""
    loaded = engine.store.frontier_of(1, None)
    assert loaded is not None
    rows = engine.store.summaries([name for name in loaded[1].summary_ids if name])
    return [row.content for row in rows]


def test_so_many_calls_run_at_once_and_no_more(database: Path) -> None:
    barrier = threading.Barrier(3, timeout=30)
    running: list[int] = []
    most: list[int] = []

    def summarise(request: SummaryRequest) -> str:
        running.append(1)
        most.append(len(running))
        barrier.wait()
        running.pop()
        return "¤"

    with memory(database, summarise, **SIDE_BY_SIDE) as engine:
        engine.ingest(turns(14), token_budget=10_000)
        result = engine.compact(token_budget=1000)
    assert (result.status, result.summaries_created) == ("done", 6)
    assert max(most) == 3


def test_leaves_stand_in_the_order_of_the_conversation(database: Path) -> None:
    """Later chunks are done first."""
    done = {n: threading.Event() for n in range(0, 12, 2)}

    def summarise(request: SummaryRequest) -> str:
        number = first_turn(request)
        later = done.get(number + 2)
        if later is not None and number % 6 < 4:
            later.wait(30)
        done[number].set()
        return f"leaf {number} ¤"

    with memory(database, summarise, **SIDE_BY_SIDE) as engine:
        engine.ingest(turns(14), token_budget=10_000)
        engine.compact(token_budget=1000)
        assert leaves(engine) == [f"leaf {n} ¤" for n in range(0, 12, 2)]
        assert violations(engine.store) == []


def test_what_was_made_beside_a_failure_is_published(database: Path) -> None:
    barrier = threading.Barrier(3, timeout=30)

    def summarise(request: SummaryRequest) -> str:
        if first_turn(request) < 6:
            barrier.wait()
        if first_turn(request) == 0:
            raise ConnectionError("no route")
        return f"leaf {first_turn(request)} ¤"

    with memory(database, summarise, **SIDE_BY_SIDE) as engine:
        engine.ingest(turns(14), token_budget=10_000)
        result = engine.compact(token_budget=1000)
        assert {"leaf 2 ¤", "leaf 4 ¤"} <= set(leaves(engine))
        assert violations(engine.store) == []
    assert result.status == "failed"


def test_a_short_backlog_is_summarised_one_after_the_other(database: Path) -> None:
    summarise = Scripted("first ¤", "second ¤", "third ¤")
    with memory(database, summarise, **SIDE_BY_SIDE) as engine:
        engine.ingest(turns(8), token_budget=10_000)
        engine.compact(token_budget=800)
    assert [request.previous_summary for request in summarise.requests] == [
        None,
        "first ¤",
        "first ¤\n\nsecond ¤",
    ]


def test_the_limits_of_a_sweep_hold_side_by_side(database: Path) -> None:
    summarise = Scripted()
    with memory(database, summarise, **SIDE_BY_SIDE, max_sweep_iterations=4) as engine:
        engine.ingest(turns(30), token_budget=10_000)
        result = engine.compact(token_budget=10_000, force=True)
    assert (result.status, result.passes, summarise.calls) == ("deferred", 4, 4)


def test_the_spend_guard_holds_side_by_side(database: Path) -> None:
    summarise = Scripted()
    config = {**SIDE_BY_SIDE, "summary_max_calls_per_window": 4}
    with memory(database, summarise, Clock(), **config) as engine:
        engine.ingest(turns(30), token_budget=10_000)
        result = engine.compact(token_budget=1000)
        assert violations(engine.store) == []
    assert (result.failure_code, summarise.calls, result.summaries_created) == ("spend_limit", 4, 4)


@pytest.mark.parametrize("turn", [0, 2, 4, 6])
def test_messages_stored_meanwhile_are_kept(database: Path, turn: int) -> None:
    engines: list[Engine] = []

    def summarise(request: SummaryRequest) -> str:
        if first_turn(request) == turn:
            engines[0].ingest(turns(3, first=100), token_budget=10_000)
        return "¤"

    with memory(database, summarise, **SIDE_BY_SIDE) as engine:
        engines.append(engine)
        engine.ingest(turns(14), token_budget=10_000)
        engine.compact(token_budget=1000)
        assert violations(engine.store) == []
        assert engine.conversation().message_count == 17


def test_a_write_that_fails_leaves_no_call_behind(database: Path) -> None:
    """The calls under way are waited for there and then, not by whoever collects garbage."""
    running: list[int] = []

    def summarise(request: SummaryRequest) -> str:
        running.append(1)
        time.sleep(0.02)
        running.pop()
        return "¤"

    with memory(database, summarise, **SIDE_BY_SIDE) as engine:
        engine.ingest(turns(14), token_budget=10_000)
        assert power_fails(engine, 12, lambda: engine.compact(token_budget=1000))
        assert running == []
        assert [one for one in threading.enumerate() if "side-by-side" in one.name] == []
