"""Fallback summaries are written anew when a summariser has something better to say (decision 6;
cases 98, 120, 122, 133)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import violations
from upkeep import Clock, Scripted, memory, turns

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import PlanStaleError
from lcm_fast.store import StoredSummary
from lcm_fast.summarize import SummaryRequest

CONFIG = {"fallback_max_tokens": 64, "summary_max_calls_per_window": 1000}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def summarise() -> Scripted:
    """Says nothing, until it is given words."""
    return Scripted("")


@pytest.fixture
def engine(database: Path, summarise: Scripted, clock: Clock) -> Iterator[Engine]:
    """A memory with four fallback leaves."""
    with memory(database, summarise, clock, **CONFIG) as opened:
        opened.ingest(turns(10), token_budget=10**6)
        opened.compact(token_budget=10**6, force=True)
        assert levels(opened) == ["fallback"] * 4
        yield opened


def levels(engine: Engine) -> list[str]:
    return [row.level for row in engine.summaries()]


def old_rows(engine: Engine) -> list[StoredSummary]:
    return [row for row in engine.summaries() if row.level == "fallback"]


def test_maintenance_redoes_them_and_keeps_every_invariant(
    engine: Engine, summarise: Scripted
) -> None:
    before = old_rows(engine)
    summarise.answers = ["well put ¤"]
    assert engine.maintain().redone == 4
    assert (levels(engine), violations(engine.store)) == (["normal"] * 4, [])
    assert lcm_fast.status(engine).summary_health["fallback"] == 0
    replaced = engine.store.summaries([row.summary_id for row in before])
    live = {row.summary_id for row in engine.summaries()}
    assert {row.replaced_by for row in replaced} == live
    assert [row.content for row in replaced] == [row.content for row in before]


def test_they_stand_where_the_fallbacks_stood(engine: Engine, summarise: Scripted) -> None:
    loaded = engine.store.frontier_of(1, None)
    summarise.answers = ["one ¤", "two ¤", "three ¤", "four ¤"]
    engine.maintain()
    again = engine.store.frontier_of(1, None)
    assert loaded is not None
    assert again is not None
    assert loaded[1].ordinals.tolist() == again[1].ordinals.tolist()
    rows = engine.store.summaries([name for name in again[1].summary_ids if name])
    assert [row.content for row in rows] == ["one ¤", "two ¤", "three ¤", "four ¤"]


def test_the_summariser_is_given_the_messages_again(engine: Engine, summarise: Scripted) -> None:
    first = summarise.requests[0].items
    summarise.answers = ["well put ¤"]
    summarise.requests.clear()
    engine.maintain()
    assert summarise.requests[0].items == first


def test_what_is_no_better_is_not_stored_and_waits(
    engine: Engine, summarise: Scripted, clock: Clock
) -> None:
    ids = [row.summary_id for row in old_rows(engine)]
    waits = []
    for _ in range(6):
        calls = summarise.calls
        assert engine.maintain().redone == 0
        waits.append(summarise.calls - calls)
        assert engine.maintain().redone == 0
        clock.advance(minutes=30)
    assert waits == [8, 8, 8, 8, 8, 0]
    assert [row.summary_id for row in old_rows(engine)] == ids


def test_an_outage_counts_against_none_of_them(
    engine: Engine, summarise: Scripted, clock: Clock
) -> None:
    summarise.answers = [ConnectionError("no route")]
    calls = summarise.calls
    engine.maintain()
    assert summarise.calls == calls + 1
    assert [row.redo_attempts for row in old_rows(engine)] == [0] * 4
    summarise.answers = ["well put ¤"]
    clock.advance(minutes=5)
    assert engine.maintain().redone == 4


def test_summaries_made_of_them_count_what_they_take_now(database: Path, clock: Clock) -> None:
    config = {**CONFIG, "leaf_min_fanout": 2, "condensed_target_tokens": 1}
    summarise = Scripted("", "", "", "", "", "", "", "", "condensed ¤")
    with memory(database, summarise, clock, **config, summary_prefix_target_tokens=1) as engine:
        engine.ingest(turns(10), token_budget=10**6)
        engine.compact(token_budget=10**6, force=True)
        assert sorted(levels(engine)) == ["fallback"] * 4 + ["normal"]
        summarise.answers = ["a good deal longer than before ¤¤¤¤¤¤¤¤¤¤"]
        assert engine.maintain().redone == 4
        assert violations(engine.store) == []


def test_a_condensed_one_is_made_anew_of_what_its_sources_say_now(
    database: Path, clock: Clock
) -> None:
    config = {**CONFIG, "leaf_min_fanout": 2, "condensed_target_tokens": 1}
    summarise = Scripted("")
    with memory(database, summarise, clock, **config, summary_prefix_target_tokens=1) as engine:
        engine.ingest(turns(10), token_budget=10**6)
        engine.compact(token_budget=10**6, force=True)
        assert levels(engine) == ["fallback"] * 5
        summarise.answers = ["one ¤", "two ¤", "three ¤", "four ¤", "all of it ¤"]
        summarise.requests.clear()
        assert engine.maintain().redone == 5
        assert violations(engine.store) == []
    texts = [item.text for item in summarise.requests[-1].items]
    assert texts == ["one ¤", "two ¤", "three ¤"]


def test_a_summary_published_over_one_redone_meanwhile_counts_it_right(
    database: Path, clock: Clock
) -> None:
    """Leaves are redone by another process while what stands above them is condensed further."""
    config = {
        **CONFIG,
        "leaf_min_fanout": 2,
        "condensed_min_fanout": 2,
        "condensed_target_tokens": 1,
        "summary_prefix_target_tokens": 1,
    }
    redone: list[int] = []

    def summarise(request: SummaryRequest) -> str:
        if request.depth == 0:
            return ""
        if request.depth == 2 and not redone:
            with memory(database, Scripted("a longer text ¤¤¤"), clock, **config) as other:
                redone.append(other.maintain().redone)
        return "condensed " + "¤" * 15

    with memory(database, summarise, clock, **config) as engine:
        engine.ingest(turns(18), token_budget=10**6)
        engine.compact(token_budget=10**6, force=True)
        assert redone[0] > 0
        assert violations(engine.store) == []


def test_two_processes_may_redo_the_same(engine: Engine, database: Path, clock: Clock) -> None:
    """Another one redoes all of them while this one asks for the first."""
    others: list[int] = []

    def summarise(request: object) -> str:
        if not others:
            others.append(0)
            with memory(database, Scripted("theirs ¤"), clock, **CONFIG) as other:
                others[0] = other.maintain().redone
        return "ours ¤"

    with memory(database, summarise, clock, **CONFIG) as ours:
        assert ours.maintain().redone == 0
        assert others == [4]
        assert {row.content for row in ours.summaries()} == {"theirs ¤"}
        assert violations(ours.store) == []


def test_one_that_was_redone_meanwhile_is_left_alone(engine: Engine, summarise: Scripted) -> None:
    old = old_rows(engine)[0]
    summarise.answers = ["well put ¤"]
    engine.maintain()
    with pytest.raises(PlanStaleError):
        engine.store.replace_fallback(old.summary_id, old, 1)
    assert violations(engine.store) == []


def test_messages_without_any_text_are_no_fallback(database: Path) -> None:
    memories = "<relevant-memories>¤</relevant-memories>"
    with memory(database, Scripted(), **CONFIG) as engine:
        engine.ingest([{"role": "user", "content": memories}] * 4)
        engine.ingest(turns(2))
        engine.compact(token_budget=10**6, force=True)
        assert levels(engine) == ["normal"]
