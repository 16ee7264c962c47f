"""The circuit breaker and the spend guard (spec P, AB34 to AB36; cases 367, 368, 372, 377, 378,
380)."""

from __future__ import annotations

from pathlib import Path

import pytest
from upkeep import Clock, Scripted, memory, turns

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import SummarizerAuthError

OUTAGE = ConnectionError("no route")
REFUSED = SummarizerAuthError("the key was refused")


def compact(engine: Engine, rounds: int = 1) -> list[str | None]:
    """Compact so many times; return the code of each failure."""
    return [engine.compact(token_budget=1000).failure_code for _ in range(rounds)]


class TestSpendGuard:
    def test_ab34_the_call_after_the_last_allowed_one_is_not_made(self, database: Path) -> None:
        summarise = Scripted()
        with memory(database, summarise, summary_max_calls_per_window=1) as engine:
            engine.ingest(turns(9), token_budget=10_000)
            result = engine.compact(token_budget=1000)
        assert (result.status, result.failure_code) == ("deferred", "spend_limit")
        assert (summarise.calls, result.summaries_created) == (1, 1)
        assert result.retry_at == "2026-03-01T12:30:00.000Z"

    def test_a_debt_waits_until_the_guard_closes(self, database: Path) -> None:
        clock = Clock()
        with memory(database, Scripted(), clock, summary_max_calls_per_window=1) as engine:
            engine.after_turn(turns(20), token_budget=1000)
            assert engine.maintain().wait_s == 1800
            clock.advance(minutes=30)
            assert [one.compaction.summaries_created for one in engine.maintain().drained] == [1]

    def test_one_that_never_shrinks_costs_no_more_than_the_window(self, database: Path) -> None:
        summarise = Scripted("¤" * 500)
        with memory(database, summarise, summary_max_calls_per_window=5) as engine:
            for turn in range(50):
                engine.after_turn(turns(2, first=2 * turn), token_budget=1000)
                engine.maintain()
        assert summarise.calls == 5

    def test_the_window_slides(self, database: Path) -> None:
        clock = Clock()
        summarise = Scripted(OUTAGE)
        with memory(database, summarise, clock, summary_max_calls_per_window=2) as engine:
            engine.ingest(turns(9), token_budget=10_000)
            for _ in range(3):
                compact(engine)
                clock.advance(minutes=6)
        assert summarise.calls == 3

    def test_another_conversation_is_not_held_back(self, database: Path) -> None:
        with memory(database, Scripted(), summary_max_calls_per_window=1) as engine:
            for key in ("a", "b"):
                engine.ingest(turns(9), session_key=key, token_budget=10_000)
                result = engine.compact(session_key=key, token_budget=1000)
                assert result.summaries_created == 1

    def test_ab36_a_compaction_that_is_asked_for_with_force_runs(self, database: Path) -> None:
        with memory(database, Scripted(), summary_max_calls_per_window=2) as engine:
            engine.ingest(turns(20), token_budget=10_000)
            assert compact(engine, 2) == ["spend_limit", "spend_limit"]
            made = [engine.compact(token_budget=10**6, force=True) for _ in range(2)]
        assert [one.summaries_created for one in made] == [2, 2]

    def test_a_restart_does_not_open_a_new_window(self, database: Path) -> None:
        clock = Clock()
        for made in (2, 0):
            with memory(database, Scripted(), clock, summary_max_calls_per_window=2) as engine:
                engine.ingest(turns(20), token_budget=10_000)
                assert engine.compact(token_budget=1000).summaries_created == made

    def test_the_offline_summariser_costs_nothing(self, database: Path) -> None:
        config = {
            "fresh_tail_count": 2,
            "leaf_chunk_tokens": 200,
            "summary_max_calls_per_window": 1,
        }
        with lcm_fast.open(database, config=config) as engine:
            text = "we keep the port at 8443 and the host at home " * 20
            engine.ingest([{"role": "user", "content": f"{n} {text}"} for n in range(20)])
            result = engine.compact(token_budget=1000)
        assert result.summaries_created > 1


class TestCircuitBreaker:
    def test_ab35_it_opens_after_so_many_refusals_and_closes_again(self, database: Path) -> None:
        clock = Clock()
        summarise = Scripted(REFUSED)
        with memory(database, summarise, clock, circuit_breaker_threshold=3) as engine:
            engine.ingest(turns(9), token_budget=10_000)
            assert compact(engine, 4) == [*["summarizer_auth"] * 3, "circuit_open"]
            assert summarise.calls == 3
            summarise.answers = ["¤"]
            clock.advance(minutes=30)
            assert compact(engine) == [None]

    def test_ab35_a_success_between_refusals_starts_the_count_anew(self, database: Path) -> None:
        answers = [REFUSED, REFUSED, "¤", REFUSED, REFUSED, "¤"]
        with memory(database, Scripted(*answers), circuit_breaker_threshold=3) as engine:
            engine.ingest(turns(20), token_budget=10_000)
            codes = compact(engine, 5)
        assert codes == ["summarizer_auth"] * 4 + [None]

    def test_ab35_refusals_do_not_count_as_spent(self, database: Path) -> None:
        with memory(database, Scripted(REFUSED), summary_max_calls_per_window=1) as engine:
            engine.ingest(turns(9), token_budget=10_000)
            assert compact(engine, 3) == ["summarizer_auth"] * 3

    @pytest.mark.parametrize("answer", [OUTAGE, "", "401 unauthorized ¤"])
    def test_nothing_else_opens_it(self, database: Path, answer: str | Exception) -> None:
        with memory(database, Scripted(answer), circuit_breaker_threshold=1) as engine:
            engine.ingest(turns(9), token_budget=10_000)
            compact(engine, 3)
            assert engine.store.guards() == {}

    def test_it_outlives_a_restart(self, database: Path) -> None:
        clock = Clock()
        for codes in (["summarizer_auth"], ["circuit_open"]):
            summarise = Scripted(REFUSED)
            with memory(database, summarise, clock, circuit_breaker_threshold=1) as engine:
                engine.ingest(turns(9), token_budget=10_000)
                assert compact(engine) == codes


class TestSeen:
    def test_status_tells_calls_failures_and_what_is_paused(self, database: Path) -> None:
        config = {"circuit_breaker_threshold": 1}
        with memory(database, Scripted("¤", REFUSED), **config) as engine:
            engine.ingest(turns(9), token_budget=10_000)
            compact(engine)
            found = lcm_fast.status(engine)
        (usage,) = found.summarizer["usage"]
        (paused,) = found.summarizer["paused"]
        assert (found.summarizer["name"], usage["calls"], usage["failed"]) == ("Scripted", 2, 1)
        assert paused["scope"] == "model:Scripted"
        assert [p["code"] for p in found.problems] == ["summarizer_paused"]
