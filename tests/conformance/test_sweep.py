"""Sweeps: spec F to H and N, cases AB17 to AB25 and AB63 to AB65, with decisions 6 to 8.

Where a case pins a quirk that a decision takes back, the test says what we do instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conformance.frontiers import Recorder, depths_of, frontier_of, ingest_turns, lay_out, publish
from conformance.frontiers import open_engine as engine_with
from conftest import violations

from lcm_fast.summarize import SummaryRequest

# Fanout 2 and no smallest size, so that runs of a few small summaries are condensed.
SMALL: dict[str, Any] = {
    "fresh_tail_count": 2,
    "leaf_chunk_tokens": 400,
    "leaf_min_fanout": 2,
    "condensed_min_fanout": 2,
    "condensed_target_tokens": 1,
}
AMPLE = 10_000


class Clock:
    """A clock that only moves when told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class TestLeafPasses:
    def test_ab17_leaves_are_made_until_only_the_tail_is_raw(self, database: Path) -> None:
        recorder = Recorder()
        settings = {**SMALL, "summary_prefix_target_tokens": AMPLE}
        with engine_with(database, recorder, **settings) as engine:
            ingest_turns(engine, 10, 200)
            engine.compact(token_budget=2500)
            assert len(recorder.requests) == 4
            assert depths_of(engine) == [0, 0, 0, 0, -1, -1]

    def test_an_unforced_run_under_the_target_does_nothing(self, database: Path) -> None:
        recorder = Recorder()
        with engine_with(database, recorder, **SMALL) as engine:
            ingest_turns(engine, 10, 200)
            result = engine.compact(token_budget=2667)
        assert (result.status, result.reason) == ("nothing", "already under target")
        assert recorder.requests == []

    def test_the_budget_as_target_is_compared_with_the_budget(self, database: Path) -> None:
        with engine_with(database, Recorder(), **SMALL) as engine:
            ingest_turns(engine, 10, 200)
            assert engine.compact(token_budget=2000, target="budget").status == "nothing"
            assert engine.compact(token_budget=1999, target="budget").status == "done"

    def test_ab63_messages_without_text_become_a_note_without_a_call(self, database: Path) -> None:
        recorder = Recorder()
        with engine_with(database, recorder, **SMALL) as engine:
            memories = "<relevant-memories>¤</relevant-memories>"
            engine.ingest([{"role": "user", "content": memories}] * 4)
            ingest_turns(engine, 2, 10)
            engine.compact(token_budget=AMPLE, force=True)
            (summary,) = engine.summaries()
        assert recorder.requests == []
        assert summary.content.startswith("4 messages without text")

    def test_ab64_a_leaf_is_told_the_two_summaries_before_it(self, database: Path) -> None:
        recorder = Recorder(tokens=1)
        settings = {**SMALL, "leaf_chunk_tokens": 120, "summary_prefix_target_tokens": AMPLE}
        with engine_with(database, recorder, **settings) as engine:
            lay_out(engine, [0], tokens=60, tail=0)
            ingest_turns(engine, 8, 60)
            engine.compact(token_budget=AMPLE, force=True)
            assert depths_of(engine) == [0, 0, 0, 0, -1, -1]
        prior = "leaf" + "¤" * 60
        told = [request.previous_summary for request in recorder.requests]
        assert told == [prior, f"{prior}\n\nS1¤", "S1¤\n\nS2¤"]


class TestCondensation:
    def test_ab18_without_pressure_leaves_stay(self, database: Path) -> None:
        settings = {**SMALL, "sweep_max_depth": 0, "summary_prefix_target_tokens": 200}
        with engine_with(database, Recorder(), **settings) as engine:
            lay_out(engine, [0, 0], tokens=60, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
            assert depths_of(engine) == [0, 0, -1, -1]

    def test_ab18_above_the_prefix_target_leaves_are_condensed(self, database: Path) -> None:
        settings = {**SMALL, "sweep_max_depth": 1, "summary_prefix_target_tokens": 100}
        with engine_with(database, Recorder(), **settings) as engine:
            lay_out(engine, [0, 0], tokens=60, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
            assert depths_of(engine) == [1, -1, -1]

    def test_ab19_pressure_goes_deeper_than_the_routine_limit(self, database: Path) -> None:
        settings = {
            **SMALL,
            "sweep_max_depth": 1,
            "condensed_min_fanout": 4,
            "summary_prefix_target_tokens": 100,
        }
        with engine_with(database, Recorder(), **settings) as engine:
            lay_out(engine, [1, 1], tokens=80, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
            assert depths_of(engine) == [2, -1, -1]

    def test_ab19_over_the_target_with_no_message_left_is_pressure(self, database: Path) -> None:
        settings = {
            **SMALL,
            "leaf_chunk_tokens": 1000,
            "condensed_min_fanout": 4,
            "summary_prefix_target_tokens": AMPLE,
        }
        with engine_with(database, Recorder(), **settings) as engine:
            lay_out(engine, [1, 1], tokens=400, tail=2)
            engine.compact(token_budget=1000)
            assert depths_of(engine) == [2, -1, -1]

    def test_ab20_a_run_ends_where_the_depth_changes(self, database: Path) -> None:
        recorder = Recorder()
        settings = {**SMALL, "summary_prefix_target_tokens": 200}
        with engine_with(database, recorder, **settings) as engine:
            first, second, *_ = lay_out(engine, [0, 0, 1, 0], tokens=60, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
        assert [item.id for item in recorder.requests[0].items] == [first, second]

    def test_ab20_the_shallowest_run_is_condensed_first(self, database: Path) -> None:
        recorder = Recorder()
        settings = {**SMALL, "summary_prefix_target_tokens": 200}
        with engine_with(database, recorder, **settings) as engine:
            *_, third, fourth = lay_out(engine, [1, 1, 0, 0], tokens=60, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
        request = recorder.requests[0]
        assert [item.id for item in request.items] == [third, fourth]
        assert request.text.startswith("[2026-01-01 00:00 UTC - 2026-01-01 00:10 UTC]\n")

    def test_ab21_leaves_that_say_nothing_are_left_out_of_the_text(self, database: Path) -> None:
        recorder = Recorder()
        settings = {**SMALL, "summary_prefix_target_tokens": 90}
        with engine_with(database, recorder, **settings) as engine:
            ingest_turns(engine, 6, 60)
            for at, said in enumerate(["<think>x</think>", "[thinking]", "A", "B"]):
                publish(engine, at, at + 1, depth=0, content=f"{said}" + "¤" * (50 * (at > 1)))
            engine.compact(token_budget=AMPLE, force=True)
            assert depths_of(engine) == [1, -1, -1]
        (request,) = recorder.requests
        bodies = [line for line in request.text.splitlines() if not line.startswith("[2026")]
        assert [body.strip("¤") for body in bodies if body] == ["A", "B"]

    def test_ab22_few_leaves_wait_for_more_without_pressure(self, database: Path) -> None:
        settings = {**SMALL, "leaf_min_fanout": 3, "summary_prefix_target_tokens": 1000}
        with engine_with(database, Recorder(), **settings) as engine:
            lay_out(engine, [0, 0], tokens=60, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
            assert depths_of(engine) == [0, 0, -1, -1]

    def test_ab22_few_leaves_are_condensed_under_pressure(self, database: Path) -> None:
        settings = {**SMALL, "leaf_min_fanout": 3, "summary_prefix_target_tokens": 100}
        with engine_with(database, Recorder(), **settings) as engine:
            lay_out(engine, [0, 0], tokens=60, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
            assert depths_of(engine) == [1, -1, -1]

    def test_ab65_a_short_run_hides_nothing_behind_it(self, database: Path) -> None:
        """Decision 7; upstream makes no call here."""
        recorder = Recorder()
        settings = {**SMALL, "summary_prefix_target_tokens": 300}
        with engine_with(database, recorder, **settings) as engine:
            ids = lay_out(engine, [0, 1, *[0] * 10], tokens=60, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
        assert [item.id for item in recorder.requests[0].items] == ids[2:8]

    def test_ab25_deeper_condensation_is_told_nothing_before_it(self, database: Path) -> None:
        recorder = Recorder()
        settings = {**SMALL, "sweep_max_depth": 2, "summary_prefix_target_tokens": 100}
        with engine_with(database, recorder, **settings) as engine:
            lay_out(engine, [1, 1], tokens=80, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
        (request,) = recorder.requests
        assert (request.depth, request.previous_summary) == (2, None)

    def test_ab25_condensed_leaves_are_told_the_leaf_before_them(self, database: Path) -> None:
        recorder = Recorder()
        settings = {**SMALL, "summary_prefix_target_tokens": 250}
        with engine_with(database, recorder, **settings) as engine:
            lay_out(engine, [0, 1, 0, 0], tokens=80, tail=2)
            engine.compact(token_budget=AMPLE, force=True)
        assert recorder.requests[0].previous_summary == "leaf" + "¤" * 80


class TestLimits:
    def test_ab23_a_sweep_ends_after_its_passes(self, database: Path) -> None:
        recorder = Recorder(tokens=5)
        settings = {**SMALL, "leaf_chunk_tokens": 60, "max_sweep_iterations": 3}
        with engine_with(database, recorder, **settings) as engine:
            ingest_turns(engine, 60, 12)
            result = engine.compact(token_budget=AMPLE, force=True)
            assert violations(engine.store) == []
        assert len(recorder.requests) == 3
        assert (result.status, result.summaries_created) == ("deferred", 3)

    def test_sweeps_follow_one_another_until_the_target_is_met(self, database: Path) -> None:
        settings = {**SMALL, "leaf_chunk_tokens": 60, "max_sweep_iterations": 3}
        with engine_with(database, Recorder(tokens=5), **settings) as engine:
            ingest_turns(engine, 60, 12)
            result = engine.compact(token_budget=500)
        assert (result.status, result.passes) == ("done", 9)

    def test_ab23_no_pass_begins_after_the_deadline(self, database: Path) -> None:
        clock = Clock()

        def takes_25_ms(request: SummaryRequest) -> str:
            clock.seconds += 0.025
            return "¤"

        settings = {**SMALL, "leaf_chunk_tokens": 60, "sweep_deadline_ms": 40}
        settings["summary_concurrency"] = 1
        with engine_with(database, takes_25_ms, monotonic=clock, **settings) as engine:
            ingest_turns(engine, 60, 12)
            result = engine.compact(token_budget=AMPLE, force=True)
        assert (result.status, result.passes) == ("deferred", 2)

    def test_ab23_planning_that_takes_all_the_time_leaves_no_pass(self, database: Path) -> None:
        recorder = Recorder()
        seconds = iter(range(100))
        settings = {**SMALL, "sweep_deadline_ms": 1}
        with engine_with(
            database, recorder, monotonic=lambda: float(next(seconds)), **settings
        ) as engine:
            ingest_turns(engine, 10, 200)
            result = engine.compact(token_budget=2500)
        assert recorder.requests == []
        assert result.status == "deferred"

    def test_ab24_the_deadline_of_the_run_ends_it_with_what_was_published(
        self, database: Path
    ) -> None:
        clock = Clock()

        def takes_25_ms(request: SummaryRequest) -> str:
            clock.seconds += 0.025
            return "¤"

        settings = {
            **SMALL,
            "leaf_chunk_tokens": 60,
            "max_sweep_iterations": 2,
            "compact_until_under_deadline_ms": 80,
        }
        with engine_with(database, takes_25_ms, monotonic=clock, **settings) as engine:
            ingest_turns(engine, 60, 12)
            result = engine.compact(token_budget=256, target="budget")
            assert result.tokens_after == engine.conversation().frontier_tokens
        assert (result.status, result.passes) == ("deferred", 4)

    def test_ab24_every_message_is_reachable_after_the_deepest_condensation(
        self, database: Path
    ) -> None:
        settings = {
            **SMALL,
            "leaf_chunk_tokens": 60,
            "sweep_max_depth": -1,
            "summary_prefix_target_tokens": 1,
        }
        with engine_with(database, Recorder(tokens=25), **settings) as engine:
            ingest_turns(engine, 60, 12)
            engine.compact(token_budget=256, force=True)
            assert violations(engine.store) == []
            assert depths_of(engine)[-2:] == [-1, -1]


class TestRefusedSummaries:
    def test_a_summary_no_smaller_than_its_source_gives_way_to_the_fallback(
        self, database: Path
    ) -> None:
        with engine_with(database, Recorder(tokens=9999), **SMALL) as engine:
            ingest_turns(engine, 10, 200)
            result = engine.compact(token_budget=2500)
        assert result.levels["fallback"] == result.summaries_created == 4

    def test_what_no_summary_can_make_smaller_is_not_sent_to_the_summariser(
        self, database: Path
    ) -> None:
        recorder = Recorder()
        with engine_with(database, recorder, **SMALL) as engine:
            ingest_turns(engine, 10, 0)
            result = engine.compact(token_budget=256, force=True)
        assert recorder.requests == []
        assert result.status == "nothing"


class TestExhaustion:
    def test_a_fresh_tail_above_the_target_is_named_as_the_reason(self, database: Path) -> None:
        with engine_with(database, Recorder(), **SMALL) as engine:
            ingest_turns(engine, 4, 200)
            result = engine.compact(token_budget=400)
        assert result.status == "exhausted"
        assert "fresh tail alone takes 400 tokens" in result.reason

    def test_a_conversation_that_is_not_there_has_nothing_to_compact(self, database: Path) -> None:
        with engine_with(database, Recorder(), **SMALL) as engine:
            result = engine.compact(session_key="nobody", token_budget=400)
        assert (result.status, result.reason) == ("nothing", "no such conversation")


def test_a_leading_system_message_is_never_summarised(database: Path) -> None:
    with engine_with(database, Recorder(), **SMALL) as engine:
        engine.ingest([{"role": "system", "content": "¤" * 300}])
        ingest_turns(engine, 10, 200)
        engine.compact(token_budget=2500)
        assert frontier_of(engine).roles[0] == 0


def test_the_newest_user_message_is_passed_over(database: Path) -> None:
    with engine_with(database, Recorder(), **SMALL) as engine:
        engine.ingest([{"role": "user", "content": "the task " + "¤" * 50}])
        engine.ingest([{"role": "assistant", "content": f"{n}" + "¤" * 200} for n in range(10)])
        engine.compact(token_budget=2500)
        assert depths_of(engine) == [-1, 0, 0, 0, 0, -1, -1]


@pytest.mark.parametrize("force", [False, True])
def test_a_second_run_finds_nothing_to_do(database: Path, force: bool) -> None:
    with engine_with(database, Recorder(), **SMALL) as engine:
        ingest_turns(engine, 10, 200)
        engine.compact(token_budget=2500)
        assert engine.compact(token_budget=2500, force=force).status == "nothing"
