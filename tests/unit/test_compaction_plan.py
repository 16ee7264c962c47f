"""What a compaction would do, told beforehand (issue: planning as pure functions, dry run)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from conftest import violations
from hypothesis import given, settings
from hypothesis import strategies as st
from upkeep import Scripted, memory, turns

from lcm_fast.errors import NotFoundError
from lcm_fast.summarize import SummaryRequest


def as_long_as_asked(request: SummaryRequest) -> str:
    return "¤" * request.target_tokens


def test_nothing_is_asked_and_nothing_is_written(database: Path) -> None:
    summarise = Scripted()
    with memory(database, summarise) as engine:
        engine.ingest(turns(20), token_budget=10_000)
        before = engine.conversation()
        engine.plan_compaction(token_budget=1000)
        assert (engine.conversation(), engine.summaries()) == (before, [])
    assert summarise.calls == 0


def test_it_names_what_would_be_read_and_for_how_many_tokens(database: Path) -> None:
    with memory(database, Scripted(), leaf_chunk_tokens=1000) as engine:
        engine.ingest(turns(22), token_budget=10_000)
        plan = engine.plan_compaction(token_budget=2000)
    assert [(one.depth, one.items, one.input_tokens, one.output_tokens) for one in plan.passes] == [
        (0, 10, 1000, 350),
        (0, 10, 1000, 350),
    ]
    assert (plan.tokens_before, plan.tokens_after, plan.input_tokens) == (2200, 900, 2000)


def test_under_the_threshold_it_is_empty(database: Path) -> None:
    with memory(database, Scripted()) as engine:
        engine.ingest(turns(4))
        assert engine.plan_compaction(token_budget=1000).passes == ()


def test_of_no_conversation_there_is_none(database: Path) -> None:
    with memory(database, Scripted()) as engine, pytest.raises(NotFoundError):
        engine.plan_compaction(session_key="nobody", token_budget=1000)


def test_summaries_are_planned_to_be_condensed_as_they_will_be(database: Path) -> None:
    config = {"leaf_min_fanout": 2, "condensed_target_tokens": 512, "leaf_chunk_tokens": 4000}
    with memory(database, as_long_as_asked, **config, summary_prefix_target_tokens=2000) as engine:
        engine.ingest(turns(42, tokens=400), token_budget=100_000)
        plan = engine.plan_compaction(token_budget=4000)
        result = engine.compact(token_budget=4000)
    assert [one.depth for one in plan.passes] == [0, 0, 0, 0, 1, 1]
    assert (len(plan.passes), plan.tokens_after) == (result.passes, result.tokens_after)


@given(
    st.lists(st.integers(300, 600), min_size=1, max_size=40),
    st.sampled_from((600, 2000, 20_000)),
    st.integers(1, 12),
)
@settings(max_examples=40, deadline=None)
def test_a_summariser_that_writes_what_it_is_asked_for_does_as_planned(
    sizes: list[int], chunk_tokens: int, passes: int
) -> None:
    config = {"leaf_chunk_tokens": chunk_tokens, "max_sweep_iterations": passes}
    with (
        tempfile.TemporaryDirectory() as folder,
        memory(Path(folder, "m.db"), as_long_as_asked, **config) as engine,
    ):
        engine.ingest([turns(1, tokens, n)[0] for n, tokens in enumerate(sizes)])
        plan = engine.plan_compaction(force=True)
        result = engine.compact(force=True)
        assert violations(engine.store) == []
    assert (len(plan.passes), plan.tokens_after) == (result.passes, result.tokens_after)
