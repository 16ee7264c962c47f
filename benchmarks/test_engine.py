"""The engine on the generated conversation: ingest, first and repeated assembly, compaction.

`LCM_FAST_BENCH_MESSAGES` sets the size (default 10,000). Every case first asserts what it is about
to time.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from generate import messages
from pytest_benchmark.fixture import BenchmarkFixture

import lcm_fast
from lcm_fast import Engine
from lcm_fast.summarize import SummaryRequest

SIZE = int(os.environ.get("LCM_FAST_BENCH_MESSAGES", "10000"))
SEED = 20_260_319
BUDGET = 100_000
PROMPT = "which index did the migration drop, and what did the test of the parser say?"


@pytest.fixture(scope="module")
def conversation() -> list[dict[str, Any]]:
    return list(messages(SIZE, SEED))


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Path]:
    return (tmp_path / f"{number}.db" for number in itertools.count())


def stored(path: Path, conversation: list[dict[str, Any]], **options: Any) -> Engine:
    """Return a memory of the conversation, in no debt: an assembly would drain it."""
    config = lcm_fast.Config(timezone="UTC", summary_max_calls_per_window=10**6)
    engine = lcm_fast.open(path, config=config, **options)
    engine.ingest(conversation, token_budget=10**9)
    return engine


@pytest.mark.parametrize("batch", [4, 100, SIZE], ids=["by 4", "by 100", "in one batch"])
def test_ingest_durable(
    benchmark: BenchmarkFixture,
    paths: Iterator[Path],
    conversation: list[dict[str, Any]],
    batch: int,
) -> None:
    batches = [conversation[start : start + batch] for start in range(0, SIZE, batch)]

    def ingest(engine: Engine) -> int:
        with engine:
            return sum(engine.ingest(part).ingested for part in batches)

    assert ingest(lcm_fast.open(next(paths))) == SIZE
    benchmark.group = f"ingest {SIZE} messages"
    benchmark.pedantic(ingest, setup=lambda: ((lcm_fast.open(next(paths)),), {}), rounds=7)


def test_first_assembly(
    benchmark: BenchmarkFixture, tmp_path: Path, conversation: list[dict[str, Any]]
) -> None:
    path = tmp_path / "memory.db"
    stored(path, conversation).close()

    def assemble(engine: Engine) -> int:
        return engine.assemble(token_budget=BUDGET).estimated_tokens

    with lcm_fast.open(path) as engine:
        assert 0.9 * BUDGET < assemble(engine) <= BUDGET or SIZE < 10_000
    benchmark.group = f"assemble {BUDGET} of {SIZE} messages"
    benchmark.pedantic(assemble, setup=lambda: ((lcm_fast.open(path),), {}), rounds=7)


def test_repeated_assembly(
    benchmark: BenchmarkFixture, tmp_path: Path, conversation: list[dict[str, Any]]
) -> None:
    with stored(tmp_path / "memory.db", conversation) as engine:
        first = engine.assemble(token_budget=BUDGET)
        again = engine.assemble(token_budget=BUDGET)
        assert first.messages == again.messages
        assert again.prefix.stable_tokens == again.estimated_tokens
        benchmark.group = f"assemble {BUDGET} of {SIZE} messages"
        benchmark(lambda: engine.assemble(token_budget=BUDGET))


@pytest.mark.parametrize("times", ["first", "repeated"])
def test_prompt_aware_assembly(
    benchmark: BenchmarkFixture, tmp_path: Path, conversation: list[dict[str, Any]], times: str
) -> None:
    path = tmp_path / "memory.db"
    stored(path, conversation).close()
    config = lcm_fast.Config(timezone="UTC", prompt_aware_eviction=True)

    def assemble(engine: Engine) -> lcm_fast.assembly.Assembly:
        return engine.assemble(token_budget=BUDGET, prompt=PROMPT)

    engine = lcm_fast.open(path, config=config)
    assert assemble(engine).stats.selection != "chronological"
    benchmark.group = f"assemble {BUDGET} of {SIZE} messages"
    if times == "repeated":
        benchmark(assemble, engine)
    else:
        fresh = lambda: ((lcm_fast.open(path, config=config),), {})  # noqa: E731
        benchmark.pedantic(assemble, setup=fresh, rounds=7)


def test_one_leaf_pass_with_an_instant_summariser(
    benchmark: BenchmarkFixture, tmp_path: Path, conversation: list[dict[str, Any]]
) -> None:
    config = lcm_fast.Config(
        timezone="UTC",
        max_sweep_iterations=1,
        summary_concurrency=1,
        summary_max_calls_per_window=10**6,
    )
    with lcm_fast.open(
        tmp_path / "memory.db", config=config, summarizer=lambda request: "in brief " * 20
    ) as engine:
        engine.ingest(conversation, token_budget=10**9)
        assert engine.compact(token_budget=10**9, force=True).passes == 1
        benchmark.group = f"one leaf pass on {SIZE} messages"
        benchmark.pedantic(
            lambda: engine.compact(token_budget=10**9, force=True), rounds=min(15, SIZE // 200)
        )


def test_compaction_with_an_instant_summariser(
    benchmark: BenchmarkFixture, paths: Iterator[Path], conversation: list[dict[str, Any]]
) -> None:
    def instant(request: SummaryRequest) -> str:
        return f"{len(request.items)} items"

    def compact(engine: Engine) -> int:
        with engine:
            return engine.compact(token_budget=BUDGET).summaries_created

    def fresh() -> Engine:
        return stored(next(paths), conversation, summarizer=instant)

    created = compact(fresh())
    assert created > 0
    benchmark.group = f"compact {SIZE} messages"
    benchmark.extra_info["summaries"] = created
    benchmark.pedantic(compact, setup=lambda: ((fresh(),), {}), rounds=3)


def test_compaction_with_the_offline_summariser(
    benchmark: BenchmarkFixture, paths: Iterator[Path], conversation: list[dict[str, Any]]
) -> None:
    def compact(engine: Engine) -> str:
        with engine:
            return engine.compact(token_budget=BUDGET).status

    assert compact(stored(next(paths), conversation)) == "done"
    benchmark.group = f"compact {SIZE} messages"
    benchmark.pedantic(compact, setup=lambda: ((stored(next(paths), conversation),), {}), rounds=3)
