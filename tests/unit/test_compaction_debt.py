"""Compaction debt: written with the turn, drained by maintenance (spec O, AB37 to AB41; cases 90,
94, 100, 112)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from conftest import violations
from upkeep import Clock, Scripted, memory, statuses, turns

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import MessageError, SummarizerAuthError, SummarizerRateLimitError
from lcm_fast.store import Debt, Store, owner_name

OUTAGE = ConnectionError("no route")


def debt_of(engine: Engine) -> Debt:
    found = engine.store.debt(1)
    assert found is not None
    return found


def is_open(engine: Engine) -> bool:
    found = engine.store.debt(1)
    return found is not None and (found.pending or found.running)


class TestWritten:
    def test_a_turn_above_the_threshold_leaves_a_debt(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            result = engine.after_turn(turns(9), token_budget=1000)
            debt = debt_of(engine)
        assert result.batch.is_over_threshold
        assert (debt.pending, debt.reason, debt.token_budget) == (True, "threshold", 1000)
        assert (debt.current_token_count, debt.context_threshold) == (900, 0.75)

    def test_at_the_threshold_there_is_none(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            assert not engine.after_turn(turns(9), token_budget=1200).batch.is_over_threshold
            assert engine.after_turn(turns(9), token_budget=1199).batch.is_over_threshold

    def test_the_provider_s_count_decides_where_it_is_more(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            usage = {"prompt_tokens": 751, "completion_tokens": 9000}
            assert engine.after_turn(turns(1), token_budget=1000, usage=usage).batch.ingested == 1
            debt = debt_of(engine)
        assert (debt.current_token_count, debt.projected_token_count) == (100, 751)

    def test_what_the_model_wrote_does_not_count(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            usage = {"prompt_tokens": 600, "completion_tokens": 9000}
            turn = engine.after_turn(turns(1), token_budget=1000, usage=usage)
        assert not turn.batch.is_over_threshold

    def test_a_turn_that_was_stored_before_is_weighed_all_the_same(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            engine.ingest(turns(9), token_budget=10_000)
            again = engine.after_turn([], token_budget=1000)
        assert again.batch.is_over_threshold

    def test_a_turn_that_is_refused_leaves_none(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            with pytest.raises(MessageError):
                engine.after_turn([*turns(9), {"role": "wizard"}], token_budget=1000)
            assert engine.store.debts() == []

    def test_later_turns_keep_one_debt_and_its_age(self, database: Path) -> None:
        clock = Clock()
        with memory(database, Scripted(), clock) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            asked = debt_of(engine).requested_at
            clock.advance(minutes=3)
            engine.after_turn(turns(2, first=9), token_budget=1000)
            assert (debt_of(engine).requested_at, debt_of(engine).current_token_count) == (
                asked,
                1100,
            )
            assert len(engine.store.debts()) == 1

    def test_a_turn_without_a_budget_takes_the_last_one_known(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            assert not engine.ingest(turns(5)).is_over_threshold
            engine.assemble(token_budget=600)
            assert engine.ingest(turns(1, first=5)).is_over_threshold

    def test_without_any_budget_one_is_assumed_and_said_once(
        self, database: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with memory(database, Scripted()) as engine:
            turn = engine.after_turn(turns(10, tokens=9_601))
            engine.after_turn(turns(1, first=10))
        assert turn.batch.is_over_threshold
        assert [r.message for r in caplog.records if "token_budget" in r.message] == [
            "turn without token_budget: 128000 is assumed"
        ]

    def test_an_imported_session_is_in_debt_too(self, database: Path, tmp_path: Path) -> None:
        path = tmp_path / "session.jsonl"
        path.write_text(
            "\n".join(f'{{"role":"user","content":"{n} {"¤" * 100}"}}' for n in range(9))
        )
        with memory(database, Scripted()) as engine:
            assert engine.bootstrap(path, token_budget=1000).is_over_threshold


class TestDrained:
    def test_maintenance_compacts_and_settles(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            result = engine.maintain()
            assert violations(engine.store) == []
            debt = debt_of(engine)
        assert [one.compaction.status for one in result.drained] == ["done"]
        assert (result.pending, debt.pending, debt.running) == (0, False, False)
        assert debt.resolution_reason is not None

    def test_nothing_is_drained_twice(self, database: Path) -> None:
        summarise = Scripted()
        with memory(database, summarise) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            engine.maintain()
            calls = summarise.calls
            assert engine.maintain().drained == []
        assert summarise.calls == calls

    def test_what_the_tail_alone_exceeds_is_settled_without_a_call(self, database: Path) -> None:
        summarise = Scripted()
        with memory(database, summarise, fresh_tail_count=64) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            assert statuses(engine, range(10)) == ["exhausted"]
            assert not is_open(engine)
            assert engine.after_turn(turns(70, first=9), token_budget=1000).batch.is_over_threshold
            engine.maintain()
        assert summarise.calls > 0

    def test_a_compaction_that_is_asked_for_settles_the_debt(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            engine.compact(token_budget=1000)
            assert not is_open(engine)

    def test_the_budget_of_the_debt_is_capped_by_the_caller_s(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            engine.after_turn(turns(20), token_budget=2000)
            (one,) = engine.maintain(token_budget=1000).drained
        assert one.compaction.target_tokens == 750

    def test_one_conversation_alone_can_be_maintained(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            for key in ("a", "b"):
                engine.after_turn(turns(9), session_key=key, token_budget=1000)
            assert [one.session_key for one in engine.maintain(session_key="b").drained] == ["b"]
            assert [one.session_key for one in engine.maintain().drained] == ["a"]

    def test_a_deadline_leaves_the_rest_for_later(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            result = engine.maintain(deadline_ms=0)
        assert (result.drained, result.pending) == ([], 1)
        assert "deadline" in result.stopped

    def test_inline_a_turn_is_compacted_before_it_returns(self, database: Path) -> None:
        inline = {"proactive_threshold_compaction_mode": "inline"}
        with memory(database, Scripted(), **inline) as engine:
            turn = engine.after_turn(turns(9), token_budget=1000)
            assert turn.compaction is not None
            assert turn.compaction.status == "done"
            assert not is_open(engine)

    def test_inline_a_failure_leaves_the_debt(self, database: Path) -> None:
        inline = {"proactive_threshold_compaction_mode": "inline"}
        with memory(database, Scripted(OUTAGE), **inline) as engine:
            turn = engine.after_turn(turns(9), token_budget=1000)
            assert turn.compaction is not None
            assert turn.compaction.status == "failed"
            assert is_open(engine)


class TestFailures:
    def test_ab37_waiting_grows_from_5_to_30_minutes(self, database: Path) -> None:
        clock = Clock()
        waits = []
        with memory(database, Scripted(OUTAGE), clock) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            for _ in range(8):
                result = engine.maintain()
                assert result.wait_s is not None
                waits.append(result.wait_s / 60)
                clock.advance(minutes=result.wait_s / 60)
        assert waits == [5, 10, 20, 30, 30, 30, 30, 30]

    def test_a_debt_that_waits_is_left_alone(self, database: Path) -> None:
        summarise = Scripted(OUTAGE)
        with memory(database, summarise) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            engine.maintain()
            result = engine.maintain()
        assert (result.drained, result.pending, summarise.calls) == ([], 1, 1)

    def test_a_new_turn_does_not_shorten_the_wait(self, database: Path) -> None:
        with memory(database, Scripted(OUTAGE)) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            engine.maintain()
            engine.after_turn(turns(2, first=9), token_budget=1000)
            assert (engine.maintain().drained, debt_of(engine).retry_attempts) == ([], 1)

    def test_success_forgets_the_failures(self, database: Path) -> None:
        clock = Clock()
        with memory(database, Scripted(OUTAGE, "¤"), clock) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            engine.maintain()
            clock.advance(minutes=5)
            assert statuses(engine, range(1)) == ["done"]
            debt = debt_of(engine)
        assert (debt.retry_attempts, debt.next_attempt_after, debt.last_failure_summary) == (
            0,
            None,
            None,
        )

    def test_ab37_refused_credentials_cost_no_waiting(self, database: Path) -> None:
        with memory(database, Scripted(SummarizerAuthError("401"))) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            engine.maintain()
            debt = debt_of(engine)
        assert (debt.pending, debt.retry_attempts, debt.next_attempt_after) == (True, 0, None)

    def test_a_rate_limit_is_waited_for_as_long_as_it_says(self, database: Path) -> None:
        limit = SummarizerRateLimitError("429", retry_after_s=3600)
        with memory(database, Scripted(limit)) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            assert engine.maintain().wait_s == 3600

    @pytest.mark.parametrize("error", [OUTAGE, SummarizerAuthError("401")])
    def test_a_summariser_that_is_out_is_not_asked_for_every_conversation(
        self, database: Path, error: Exception
    ) -> None:
        summarise = Scripted(error)
        with memory(database, summarise) as engine:
            for key in ("a", "b", "c"):
                engine.after_turn(turns(9), session_key=key, token_budget=1000)
            result = engine.maintain()
        assert (summarise.calls, len(result.drained), result.pending) == (1, 1, 3)
        assert result.stopped == result.drained[0].compaction.reason

    def test_a_failure_keeps_what_was_published_before_it(self, database: Path) -> None:
        clock = Clock()
        with memory(database, Scripted("¤", "¤", OUTAGE, "¤"), clock) as engine:
            engine.after_turn(turns(20), token_budget=1000)
            engine.maintain()
            assert engine.conversation().leaf_count == 2
            clock.advance(minutes=5)
            engine.maintain()
            assert violations(engine.store) == []


class TestLeases:
    def test_a_debt_that_a_live_owner_drains_is_left_to_it(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            now, later = "2026-03-01T12:00:00.000Z", "2026-03-01T12:10:00.000Z"
            assert engine.store.claim_debt(1, owner_name(), now=now, lease_until=later)
            assert engine.maintain().drained == []

    @pytest.mark.parametrize(
        ("owner", "minutes"),
        [("elsewhere:1:1", 11), ("{host}:999999999:1", 0)],
        ids=["its lease ran out", "its process is gone"],
    )
    def test_a_debt_of_a_dead_owner_is_taken_up(
        self, database: Path, owner: str, minutes: float
    ) -> None:
        clock = Clock()
        host = owner_name().rsplit(":", 2)[0]
        with memory(database, Scripted(), clock) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            later = "2026-03-01T12:10:00.000Z"
            name = owner.format(host=host)
            assert engine.store.claim_debt(1, name, now=clock.now(), lease_until=later)
            clock.advance(minutes=minutes)
            assert statuses(engine, range(1)) == ["done"]

    def test_a_debt_asked_for_during_a_drain_stays_open_after_it(self, database: Path) -> None:
        engines: list[Engine] = []

        def summarise(request: object) -> str:
            engines[0].after_turn(turns(40, first=100), token_budget=1000)
            return "¤"

        with memory(database, summarise, max_sweep_iterations=1) as engine:
            engines.append(engine)
            engine.after_turn(turns(9), token_budget=1000)
            engine.maintain()
            assert is_open(engine)


class TestAssembly:
    def test_one_that_does_not_fit_drains_its_debt_first(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            engine.after_turn(turns(20), token_budget=1000)
            assembly = engine.assemble(token_budget=1000)
        assert assembly.stats.summaries > 0

    def test_one_that_fits_leaves_the_debt_alone(self, database: Path) -> None:
        summarise = Scripted()
        with memory(database, summarise) as engine:
            engine.after_turn(turns(9), token_budget=1000)
            engine.assemble(token_budget=1000)
            assert is_open(engine)
        assert summarise.calls == 0

    def test_one_that_only_looks_drains_nothing(
        self, database: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with memory(database, Scripted()) as engine:
            engine.after_turn(turns(20), token_budget=1000)
        looking = Engine(Store.open_read_only(database), lcm_fast.Config(), Scripted(), len)
        with looking:
            assert looking.assemble(token_budget=5000).messages
        assert caplog.records == []

    def test_after_the_deadline_what_fits_is_returned(self, database: Path) -> None:
        may_go_on = threading.Event()

        def summarise(request: object) -> str:
            may_go_on.wait(30)
            return "¤"

        with memory(database, summarise) as engine:
            engine.after_turn(turns(20), token_budget=1000)
            assembly = engine.assemble(token_budget=1000, deadline_ms=20)
            may_go_on.set()
            assert 0 < assembly.estimated_tokens <= 1000
            assert assembly.stats.summaries == 0

    @pytest.mark.parametrize(("failures", "calls"), [(2, 1), (3, 0)])
    def test_ab39_waiting_is_ignored_for_the_first_failures(
        self, database: Path, failures: int, calls: int
    ) -> None:
        clock = Clock()
        summarise = Scripted(OUTAGE)
        with memory(database, summarise, clock) as engine:
            engine.after_turn(turns(20), token_budget=1000)
            for _ in range(failures):
                wait_s = engine.maintain().wait_s
                clock.advance(minutes=(wait_s or 0) / 60)
            clock.advance(minutes=-1)
            before = summarise.calls
            engine.assemble(token_budget=1000)
        assert summarise.calls - before == calls
