"""What holds of every compaction, whatever the conversation and the summariser."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from conftest import ticking_clock, violations
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.conversations import HISTORIES, History

import lcm_fast
from lcm_fast.compaction import CompactionResult
from lcm_fast.engine import Engine
from lcm_fast.kernels import estimate_tokens
from lcm_fast.store import MESSAGE, SUMMARY, Address, Frontier, Store
from lcm_fast.summarize import SummaryRequest, as_summarizer

Summarise = Callable[[SummaryRequest], str]
ADDRESS = Address(session_key=lcm_fast.engine.DEFAULT_SESSION_KEY)
CONFIGS = st.fixed_dictionaries(
    {
        "fresh_tail_count": st.integers(1, 6),
        "fresh_tail_max_tokens": st.sampled_from((None, 0, 200)),
        "leaf_chunk_tokens": st.sampled_from((1, 100, 600, 20_000)),
        "leaf_min_fanout": st.integers(2, 4),
        "condensed_min_fanout": st.integers(2, 4),
        "condensed_target_tokens": st.sampled_from((1, 50, 2000)),
        "summary_prefix_target_tokens": st.sampled_from((None, 1, 300)),
        "sweep_max_depth": st.integers(-1, 2),
        "max_sweep_iterations": st.integers(1, 12),
    }
)
BUDGETS = st.sampled_from((256, 400, 1500, 20_000))


def returns_its_input(request: SummaryRequest) -> str:
    return request.text


def grows_its_input(request: SummaryRequest) -> str:
    return request.text * 2 + "and more"


def says_nothing(request: SummaryRequest) -> str:
    return ""


def says_little(request: SummaryRequest) -> str:
    return "notes"


def leaves_a_word_out(request: SummaryRequest) -> str:
    return request.text[: -max(5, len(request.text) // 20)]


def raises(request: SummaryRequest) -> str:
    raise ConnectionError("no route to the model")


SUMMARISERS = (
    returns_its_input,
    grows_its_input,
    says_nothing,
    says_little,
    leaves_a_word_out,
    raises,
)


def failing_every(period: int) -> Summarise:
    """A summariser that fails in every n-th call."""
    calls = itertools.count(1)

    def summarise(request: SummaryRequest) -> str:
        if next(calls) % period == 0:
            raise ConnectionError("no route to the model")
        return "notes"

    return summarise


@contextmanager
def engine_with(history: History, summarise: Summarise, config: dict[str, Any]) -> Iterator[Engine]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine(
            Store.open(Path(folder, "memory.db"), durability="normal"),
            lcm_fast.Config(timezone="UTC", **config),
            as_summarizer(summarise),
            estimate_tokens,
            now=ticking_clock(),
            monotonic=itertools.count().__next__,
        ) as engine,
    ):
        engine.ingest(history.messages)
        yield engine


def frontier_of(engine: Engine) -> Frontier:
    loaded = engine.store.frontier(ADDRESS, {})
    assert loaded is not None
    return loaded[1]


def raw_seqs(frontier: Frontier) -> set[int]:
    return set(frontier.ordinals[frontier.kinds == MESSAGE].tolist())


def settled(engine: Engine, budget: int) -> list[CompactionResult]:
    """Compact until nothing changes any more."""
    results = [engine.compact(token_budget=budget)]
    while results[-1].status == "deferred" and results[-1].tokens_after < results[-1].tokens_before:
        results.append(engine.compact(token_budget=budget))
    return results


@given(HISTORIES, st.sampled_from(SUMMARISERS), CONFIGS, BUDGETS, st.booleans())
@settings(max_examples=80, deadline=None)
def test_each_message_stays_in_the_view_or_under_one_summary(
    history: History, summarise: Summarise, config: dict[str, Any], budget: int, force: bool
) -> None:
    with engine_with(history, summarise, config) as engine:
        engine.compact(token_budget=budget, force=force)
        assert violations(engine.store) == []


@given(HISTORIES, st.sampled_from(SUMMARISERS), CONFIGS, BUDGETS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_frontier_never_grows_and_is_counted_right(
    history: History, summarise: Summarise, config: dict[str, Any], budget: int, force: bool
) -> None:
    with engine_with(history, summarise, config) as engine:
        result = engine.compact(token_budget=budget, force=force)
        conversation = engine.conversation()
        assert conversation.frontier_tokens == result.tokens_after <= result.tokens_before
        assert int(frontier_of(engine).tokens.sum()) == result.tokens_after


@given(HISTORIES, CONFIGS, BUDGETS)
@settings(max_examples=60, deadline=None)
def test_the_newest_user_message_and_the_fresh_tail_stay_raw(
    history: History, config: dict[str, Any], budget: int
) -> None:
    with engine_with(history, says_little, config) as engine:
        before = frontier_of(engine)
        engine.compact(token_budget=budget, force=True)
        after = raw_seqs(frontier_of(engine))
    start = before.fresh_tail_start(config["fresh_tail_count"], config["fresh_tail_max_tokens"])
    kept = set(before.ordinals[start:].tolist())
    if before.newest_user_index is not None:
        kept.add(int(before.ordinals[before.newest_user_index]))
    assert kept <= after


@given(HISTORIES, CONFIGS, BUDGETS)
@settings(max_examples=100, deadline=None)
def test_a_tool_exchange_is_never_half_in_a_summary(
    history: History, config: dict[str, Any], budget: int
) -> None:
    with engine_with(history, says_little, config) as engine:
        before = frontier_of(engine)
        engine.compact(token_budget=budget, force=True)
        after = frontier_of(engine)
    places = _places(before, after)
    tied = np.isin(before.openers, before.ordinals)
    for seq, opener in zip(before.ordinals[tied], before.openers[tied], strict=True):
        assert places[int(seq)] == places[int(opener)]


def _places(before: Frontier, after: Frontier) -> dict[int, int]:
    """Where each message is now: at 0 when raw, else at the ordinal of the item that covers it."""
    raw = raw_seqs(after)
    summaries = after.ordinals[after.kinds == SUMMARY]
    return {
        int(seq): 0 if int(seq) in raw else int(summaries[summaries <= seq].max())
        for seq in before.ordinals
    }


@given(HISTORIES, st.sampled_from(SUMMARISERS), CONFIGS, BUDGETS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_status_agrees_with_the_tokens_before_and_after(
    history: History, summarise: Summarise, config: dict[str, Any], budget: int, force: bool
) -> None:
    with engine_with(history, summarise, config) as engine:
        result = engine.compact(token_budget=budget, force=force)
    is_under = result.tokens_after <= result.target_tokens
    allowed = {
        "done": is_under and result.summaries_created > 0,
        "nothing": is_under and result.summaries_created == 0,
        "exhausted": not is_under,
        "deferred": force or not is_under,
        "failed": summarise is raises,
    }
    assert allowed[result.status]


@given(HISTORIES, st.sampled_from(SUMMARISERS), CONFIGS, BUDGETS)
@settings(max_examples=40, deadline=None)
def test_the_counts_of_a_result_agree_with_one_another(
    history: History, summarise: Summarise, config: dict[str, Any], budget: int
) -> None:
    with engine_with(history, summarise, config) as engine:
        result = engine.compact(token_budget=budget, force=True)
    assert result.summaries_created == sum(result.levels.values()) <= result.passes
    assert (result.tokens_after < result.tokens_before) == (result.summaries_created > 0)


@given(HISTORIES, CONFIGS, BUDGETS)
@settings(max_examples=40, deadline=None)
def test_runs_after_runs_come_to_an_end_that_another_run_does_not_move(
    history: History, config: dict[str, Any], budget: int
) -> None:
    with engine_with(history, says_little, config) as engine:
        last = settled(engine, budget)[-1]
        again = engine.compact(token_budget=budget)
    assert again.tokens_after == last.tokens_after
    assert again.summaries_created == 0


@given(HISTORIES, CONFIGS, BUDGETS, st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_a_summariser_that_fails_now_and_then_costs_nothing_that_was_published(
    history: History, config: dict[str, Any], budget: int, period: int
) -> None:
    with engine_with(history, failing_every(period), config) as engine:
        result = engine.compact(token_budget=budget, force=True)
        assert violations(engine.store) == []
        assert engine.conversation().leaf_count <= result.passes
        assert result.status != "failed" or "no route to the model" in result.reason


@given(HISTORIES, CONFIGS, st.sampled_from(("compact", "ingest", "both")))
@settings(max_examples=50, deadline=None)
def test_turns_and_compactions_inside_a_summariser_call_lose_nothing_and_end(
    history: History, config: dict[str, Any], inside: str
) -> None:
    engines: list[Engine] = []
    turns = itertools.count()
    inner_calls = itertools.count()

    def summarise(request: SummaryRequest) -> str:
        engine = engines[0]
        if inside != "compact":
            engine.ingest([{"role": "user", "content": f"meanwhile {next(turns)} " + "word " * 9}])
        if inside != "ingest" and next(inner_calls) == 0:
            engine.compact(token_budget=300, force=True)
        return "notes"

    with engine_with(history, summarise, config) as engine:
        engines.append(engine)
        result = engine.compact(token_budget=300, force=True)
        assert violations(engine.store) == []
        assert engine.conversation().message_count >= len(history.messages)
        assert engine.conversation().frontier_tokens == result.tokens_after
