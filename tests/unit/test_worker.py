"""The worker: debt is drained in the background, by a thread or by a task of the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import violations
from upkeep import turns

import lcm_fast
from lcm_fast import aio
from lcm_fast.engine import Engine
from lcm_fast.errors import DatabaseError
from lcm_fast.summarize import SummaryRequest

CONFIG = {"fresh_tail_count": 2, "leaf_chunk_tokens": 600, "summary_concurrency": 1}


def spoken(count: int, first: int = 0) -> list[dict[str, str]]:
    return [
        {"role": m["role"], "content": m["content"][:9] + " word" * 300}
        for m in turns(count, 0, first)
    ]


def wait_until(is_so: Callable[[], bool]) -> bool:
    """Wait for what another thread does; the limit only ends a test that fails."""
    end = time.monotonic() + 30
    while not is_so() and time.monotonic() < end:
        time.sleep(0.005)
    return is_so()


def in_brief(request: SummaryRequest) -> str:
    return "in brief"


def owes_nothing(engine: Engine) -> bool:
    return engine.store.open_debts()[0] == 0


class TestThread:
    def test_it_compacts_what_a_turn_leaves_over_its_threshold(self, database: Path) -> None:
        with lcm_fast.open(database, config=CONFIG, summarizer=in_brief, worker=True) as engine:
            assert engine.after_turn(spoken(9), token_budget=1000).batch.is_over_threshold
            assert wait_until(lambda: owes_nothing(engine))
            assert engine.conversation().leaf_count > 0
            assert violations(engine.store) == []

    def test_it_takes_up_what_an_earlier_process_left(self, database: Path) -> None:
        with lcm_fast.open(database, config=CONFIG) as engine:
            engine.after_turn(spoken(9), token_budget=1000)
        with lcm_fast.open(database, config=CONFIG, summarizer=in_brief, worker=True) as engine:
            assert wait_until(lambda: owes_nothing(engine))

    def test_turns_do_not_wait_for_it(self, database: Path) -> None:
        called, may_go_on = threading.Event(), threading.Event()

        def slow(request: SummaryRequest) -> str:
            called.set()
            may_go_on.wait(30)
            return "in brief"

        with lcm_fast.open(database, config=CONFIG, summarizer=slow, worker=True) as engine:
            engine.after_turn(spoken(9), token_budget=1000)
            assert called.wait(30)
            assert engine.after_turn(spoken(2, first=9), token_budget=1000).batch.ingested == 2
            may_go_on.set()

    def test_closing_ends_it_after_the_call_under_way(self, database: Path) -> None:
        calls = []

        def count(request: SummaryRequest) -> str:
            calls.append(1)
            closing.set()
            may_go_on.wait(30)
            return "in brief"

        closing, may_go_on = threading.Event(), threading.Event()
        engine = lcm_fast.open(database, config=CONFIG, summarizer=count, worker=True)
        engine.after_turn(spoken(20), token_budget=1000)
        assert closing.wait(30)
        closer = threading.Thread(target=engine.close)
        closer.start()
        assert wait_until(lambda: engine._worker is None or engine._worker._stopped.is_set())
        may_go_on.set()
        closer.join(30)
        assert not closer.is_alive()
        assert len(calls) == 1
        with pytest.raises(DatabaseError):
            engine.maintain()

    def test_a_failure_is_tried_again_when_its_waiting_time_is_over(self, database: Path) -> None:
        with lcm_fast.open(database, config=CONFIG, summarizer=fails, worker=True) as engine:
            engine.after_turn(spoken(9), token_budget=1000)
            assert wait_until(
                lambda: (debt := engine.store.debt(1)) is not None and debt.retry_attempts == 1
            )
            assert engine.store.open_debts()[0] == 1


def fails(request: SummaryRequest) -> str:
    raise ConnectionError("no route")


class TestTask:
    def test_it_compacts_what_a_turn_leaves_over_its_threshold(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(
                database, config=CONFIG, summarizer=in_brief, worker=True
            ) as engine:
                await engine.after_turn(spoken(9), token_budget=1000)
                for _ in range(3000):
                    if await engine.run(owes_nothing):
                        break
                    await asyncio.sleep(0.01)
                assert (await engine.conversation()).leaf_count > 0

        asyncio.run(main())

    def test_an_asynchronous_summariser_runs_on_the_loop(self, database: Path) -> None:
        loops = []

        async def summarise(request: SummaryRequest) -> str:
            loops.append(asyncio.get_running_loop())
            await asyncio.sleep(0)
            return "in brief"

        async def main() -> asyncio.AbstractEventLoop:
            async with aio.open(database, config=CONFIG, summarizer=summarise) as engine:
                await engine.ingest(spoken(9), token_budget=100_000)
                assert (await engine.compact(token_budget=2000)).status == "done"
            return asyncio.get_running_loop()

        loop = asyncio.run(main())
        assert set(loops) == {loop}
