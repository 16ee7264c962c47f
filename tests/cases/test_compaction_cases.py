"""What users reported of compaction that stalls, loops, overshoots or spends: kinds "compaction
loop/stall", "summary corruption" and "cost/spend" of the public cases, by number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import violations
from upkeep import Clock, Scripted, memory, turns

import lcm_fast
from lcm_fast.errors import SummarizerRateLimitError
from lcm_fast.summarize import SummaryRequest

AMPLE = 10**9


def test_91_forcing_what_cannot_be_compacted_says_that_nothing_was_done(database: Path) -> None:
    summarise = Scripted()
    loop = [{"role": "user", "content": "go on ¤"}, *turns(4, first=1)]
    with memory(database, summarise, fresh_tail_count=64) as engine:
        engine.ingest(loop, token_budget=AMPLE)
        result = engine.compact(token_budget=AMPLE, force=True)
    assert (result.status, result.made_progress, summarise.calls) == ("nothing", False, 0)
    assert result.tokens_before == result.tokens_after


def test_93_a_summariser_that_often_times_out_costs_a_bounded_number_of_passes(
    database: Path,
) -> None:
    answers: list[str | Exception] = ["¤", "¤", TimeoutError("too slow")] * 400
    summarise = Scripted(*answers)
    with memory(database, summarise, Clock()) as engine:
        engine.after_turn(turns(1000), token_budget=2000)
        for _ in range(20):
            engine.maintain()
            assert engine.assemble(token_budget=2000).estimated_tokens <= 2000
        assert violations(engine.store) == []
    assert summarise.calls <= 24


def test_99_messages_that_say_the_same_are_each_covered_once(database: Path) -> None:
    same = {"role": "assistant", "content": "the same output " + "¤" * 100}
    with memory(database, Scripted(), leaf_chunk_tokens=1000) as engine:
        engine.ingest([{"role": "user", "content": "repeat ¤"}, *[same] * 30, *turns(3)])
        engine.compact(token_budget=AMPLE, force=True)
        assert violations(engine.store) == []
        assert engine.conversation().message_count == 34


def test_103_one_that_never_shrinks_anything_ends_after_a_restart_as_well(database: Path) -> None:
    def echoes(request: SummaryRequest) -> str:
        return request.text

    clock, calls = Clock(), []
    for _ in range(3):
        with memory(database, echoes, clock) as engine:
            engine.after_turn(turns(20), token_budget=1000)
            engine.maintain()
            calls.append(len(engine.store.model_usage()) and engine.store.model_usage()[0].calls)
            assert engine.assemble(token_budget=1000).messages
            assert violations(engine.store) == []
    assert calls[-1] <= 24


def test_104_rate_limits_and_restarts_lead_to_no_early_roll_up(database: Path) -> None:
    clock = Clock()
    config: dict[str, Any] = {"sweep_max_depth": -1, "leaf_chunk_tokens": 400}
    for n in range(5):
        limit = SummarizerRateLimitError("slow down", retry_after_s=60)
        with memory(database, Scripted("¤" * 20, limit), clock, **config) as engine:
            engine.after_turn(turns(8, first=8 * n), token_budget=1000)
            engine.maintain()
            clock.advance(minutes=30)
            depths = {row.depth for row in engine.summaries()}
    assert depths == {0}


def test_105_leaves_do_not_pile_up_without_end(database: Path) -> None:
    config = {"summary_prefix_target_tokens": 300, "condensed_target_tokens": 1}
    with memory(database, Scripted("¤" * 50), summary_max_calls_per_window=AMPLE, **config) as one:
        for n in range(40):
            one.after_turn(turns(4, first=4 * n), token_budget=1000)
            one.maintain()
        loaded = one.store.frontier_of(1, None)
    assert loaded is not None
    summaries = loaded[1].tokens[loaded[1].kinds == 1]
    assert int(summaries.sum()) <= 300 + 8 * 50


def test_106_condensing_stops_once_the_summaries_fit(database: Path) -> None:
    """Ten leaves of 60: two of them condensed bring them under 500."""
    config = {
        "leaf_min_fanout": 2,
        "condensed_target_tokens": 1,
        "summary_prefix_target_tokens": 500,
        "leaf_chunk_tokens": 200,
        "max_sweep_iterations": 100,
    }
    with memory(database, Scripted("¤" * 60), **config) as engine:
        engine.ingest(turns(22), token_budget=AMPLE)
        engine.compact(token_budget=AMPLE, force=True)
        loaded = engine.store.frontier_of(1, None)
    assert loaded is not None
    tokens = int(loaded[1].tokens[loaded[1].kinds == 1].sum())
    assert 500 - 3 * 60 <= tokens <= 500


def test_116_a_deadline_is_a_status_and_no_exception(database: Path) -> None:
    ticks = iter(range(10**6))
    engine = lcm_fast.Engine(
        lcm_fast.store.Store.open(database),
        lcm_fast.Config(fresh_tail_count=2, leaf_chunk_tokens=200, sweep_deadline_ms=1),
        Scripted(),
        lambda text: text.count("¤"),
        monotonic=lambda: float(next(ticks)),
    )
    with engine:
        engine.ingest(turns(20), token_budget=AMPLE)
        result = engine.compact(token_budget=1000)
    assert (result.status, result.passes) == ("deferred", 0)
    assert "deadline" in result.reason


def test_132_no_summary_of_any_depth_outgrows_its_limit(database: Path) -> None:
    def shortens_by_a_twentieth(request: SummaryRequest) -> str:
        return request.text[: len(request.text) * 19 // 20]

    config = {
        "leaf_chunk_tokens": 4000,
        "leaf_min_fanout": 2,
        "leaf_target_tokens": 400,
        "condensed_target_tokens": 600,
        "summary_prefix_target_tokens": 1000,
        "summary_max_calls_per_window": AMPLE,
    }
    with memory(database, shortens_by_a_twentieth, **config) as engine:
        engine.ingest(turns(200), token_budget=AMPLE)
        engine.compact(token_budget=1000, force=True)
        rows = engine.summaries(limit=200)
    assert max(row.depth for row in rows) > 0
    assert all(row.token_count <= 3 * (600 if row.depth else 400) for row in rows)


@pytest.mark.parametrize("times", [1, 3])
def test_127_an_assembly_that_comes_back_as_input_makes_no_summary_of_nothing(
    database: Path, times: int
) -> None:
    with memory(database, Scripted()) as engine:
        engine.ingest(turns(20), token_budget=AMPLE)
        engine.compact(token_budget=1000)
        for _ in range(times):
            engine.ingest(engine.assemble(token_budget=AMPLE).messages, token_budget=AMPLE)
            engine.compact(token_budget=1000)
            assert violations(engine.store) == []
