"""Durable writes of many callers at once: turns of four messages, each thread or task its own
conversation.

`LCM_FAST_BENCH_MESSAGES` sets the messages of a run (default 10,000). Every case first asserts what
it is about to time. `extra_info` has the writes that one commit served, on average, and the waits.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from generate import messages
from pytest_benchmark.fixture import BenchmarkFixture

import lcm_fast
from lcm_fast import Engine, aio
from lcm_fast.store.writer import Writer

SIZE = int(os.environ.get("LCM_FAST_BENCH_MESSAGES", "10000"))
SEED = 20_260_319
TURN = 4

Turns = list[list[dict[str, Any]]]


@pytest.fixture(scope="module")
def turns() -> Turns:
    conversation = list(messages(SIZE, SEED))
    return [conversation[start : start + TURN] for start in range(0, SIZE, TURN)]


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Path]:
    return (tmp_path / f"{number}.db" for number in itertools.count())


def check_and_note(benchmark: BenchmarkFixture, engine: Engine) -> None:
    assert lcm_fast.status(engine).totals["messages"] == SIZE
    writer = engine.store._writer
    assert isinstance(writer, Writer)
    stats = writer.stats()
    benchmark.extra_info["writes per commit"] = round(stats.entries / stats.commits, 1)
    benchmark.extra_info["mean wait ms"] = round(stats.total_wait_ms / stats.entries, 2)
    benchmark.extra_info["longest wait ms"] = round(stats.longest_wait_ms, 1)


@pytest.mark.parametrize("threads", [1, 8, 64])
def test_ingest_by_threads(
    benchmark: BenchmarkFixture, paths: Iterator[Path], turns: Turns, threads: int
) -> None:
    def write(engine: Engine, number: int) -> None:
        for turn in turns[number::threads]:
            engine.ingest(turn, session_key=f"thread {number}")

    def write_all(path: Path, *, check: bool) -> None:
        with lcm_fast.open(path) as engine:
            started = [
                threading.Thread(target=write, args=(engine, number)) for number in range(threads)
            ]
            for thread in started:
                thread.start()
            for thread in started:
                thread.join()
            if check:
                check_and_note(benchmark, engine)

    write_all(next(paths), check=True)
    benchmark.group = f"ingest {SIZE} messages by {TURN}"
    benchmark.pedantic(lambda: write_all(next(paths), check=False), rounds=7)


@pytest.mark.parametrize("tasks", [1, 64])
def test_ingest_by_tasks(
    benchmark: BenchmarkFixture, paths: Iterator[Path], turns: Turns, tasks: int
) -> None:
    async def write(engine: aio.AsyncEngine, number: int) -> None:
        for turn in turns[number::tasks]:
            await engine.ingest(turn, session_key=f"task {number}")

    async def write_all(path: Path, *, check: bool) -> None:
        async with aio.open(path) as engine:
            await asyncio.gather(*(write(engine, number) for number in range(tasks)))
            if check:
                await engine.run(lambda sync: check_and_note(benchmark, sync))

    asyncio.run(write_all(next(paths), check=True))
    benchmark.group = f"ingest {SIZE} messages by {TURN}"
    benchmark.pedantic(lambda: asyncio.run(write_all(next(paths), check=False)), rounds=7)
