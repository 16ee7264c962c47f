"""What a summariser can do wrong, and what the memory keeps all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conformance.frontiers import Recorder, depths_of, frontier_of, ingest_turns, open_engine
from conftest import chain, entry, said, violations, write_session

import lcm_fast
from lcm_fast.compaction import CompactionResult
from lcm_fast.engine import Engine
from lcm_fast.errors import SourceTooLongError
from lcm_fast.summarize import SummaryRequest

CONFIG: dict[str, Any] = {
    "fresh_tail_count": 2,
    "leaf_chunk_tokens": 200,
    "summary_concurrency": 1,
    "summary_max_calls_per_window": 1000,
}


def loaded(database: Path, summarise: Callable[[SummaryRequest], str]) -> Engine:
    """An engine with nine leaves to make."""
    engine = open_engine(database, summarise, **CONFIG)
    ingest_turns(engine, 20, 100)
    return engine


def failing_at(call: int, error: BaseException) -> Callable[[SummaryRequest], str]:
    """A summariser whose n-th call raises."""
    recorder = Recorder(tokens=5)

    def summarise(request: SummaryRequest) -> str:
        answer = recorder(request)
        if len(recorder.requests) == call:
            raise error
        return answer

    return summarise


def test_a_failure_is_a_status_with_its_cause(database: Path) -> None:
    with loaded(database, failing_at(1, ConnectionError("no route"))) as engine:
        result = engine.compact(token_budget=256)
    assert result.status == "failed"
    assert "ConnectionError: no route" in result.reason


def test_what_was_published_before_a_failure_stays(database: Path) -> None:
    with loaded(database, failing_at(4, ConnectionError("no route"))) as engine:
        result = engine.compact(token_budget=256)
        assert depths_of(engine)[:4] == [0, 0, 0, -1]
        assert violations(engine.store) == []
    assert (result.summaries_created, result.passes) == (3, 4)


def test_the_run_after_a_failure_goes_on_where_it_stopped(database: Path) -> None:
    with loaded(database, failing_at(4, ConnectionError("no route"))) as engine:
        engine.compact(token_budget=400)
        result = engine.compact(token_budget=400)
    assert (result.status, result.summaries_created) == ("done", 6)


def test_an_interrupt_passes_and_leaves_the_view_whole(database: Path) -> None:
    with loaded(database, failing_at(3, KeyboardInterrupt())) as engine:
        with pytest.raises(KeyboardInterrupt):
            engine.compact(token_budget=256)
        assert violations(engine.store) == []
        assert engine.conversation().leaf_count == 2


@pytest.mark.parametrize("answer", [None, 42, b"bytes", ["text"]])
def test_an_answer_that_is_no_text_is_a_failure(database: Path, answer: Any) -> None:
    with loaded(database, lambda request: answer) as engine:
        result = engine.compact(token_budget=256)
    assert result.status == "failed"
    assert type(answer).__name__ in result.reason


def test_messages_stored_during_calls_are_counted_and_kept(database: Path) -> None:
    engines: list[Engine] = []
    recorder = Recorder(tokens=1)

    def summarise(request: SummaryRequest) -> str:
        answer = recorder(request)
        turn = {"role": "user", "content": f"meanwhile {len(recorder.requests)} ¤"}
        engines[0].ingest([turn])
        return answer

    with loaded(database, summarise) as engine:
        engines.append(engine)
        result = engine.compact(token_budget=256)
        assert engine.conversation().message_count == 20 + len(recorder.requests)
        assert engine.conversation().frontier_tokens == result.tokens_after


def test_another_thread_stores_while_the_summariser_is_at_work(database: Path) -> None:
    engines: list[Engine] = []

    def summarise(request: SummaryRequest) -> str:
        turn = {"role": "user", "content": f"meanwhile {id(request)}"}
        other = threading.Thread(target=lambda: engines[0].ingest([turn]))
        other.start()
        other.join(timeout=30)
        assert not other.is_alive()
        return "¤"

    with loaded(database, summarise) as engine:
        engines.append(engine)
        assert engine.compact(token_budget=256).status == "done"


def test_a_plan_that_another_process_carried_out_is_given_up(database: Path) -> None:
    def summarise(request: SummaryRequest) -> str:
        with open_engine(database, lambda request: "¤", **CONFIG) as another:
            another.compact(token_budget=400)
        return "¤"

    with loaded(database, summarise) as engine:
        result = engine.compact(token_budget=400)
        assert violations(engine.store) == []
    assert (result.status, result.summaries_created, result.passes) == ("nothing", 0, 1)


def test_plans_that_always_go_stale_end_at_the_passes_of_a_sweep(database: Path) -> None:
    """Another process is always one chunk ahead."""
    config = {**CONFIG, "max_sweep_iterations": 1}

    def summarise(request: SummaryRequest) -> str:
        with open_engine(database, lambda request: "¤", **config) as another:
            another.compact(token_budget=256, force=True)
        return "¤"

    with open_engine(database, summarise, **config) as engine:
        ingest_turns(engine, 200, 100)
        result = engine.compact(token_budget=256, force=True)
        assert violations(engine.store) == []
    assert result.summaries_created == 0


def test_one_engine_compacts_a_conversation_once_at_a_time(database: Path) -> None:
    engines: list[Engine] = []
    inner: list[CompactionResult] = []

    def summarise(request: SummaryRequest) -> str:
        inner.append(engines[0].compact(token_budget=400))
        return "¤"

    with loaded(database, summarise) as engine:
        engines.append(engine)
        assert engine.compact(token_budget=400).status == "done"
    assert {(one.status, one.passes) for one in inner} == {("deferred", 0)}


def test_one_that_never_answers_is_given_up(database: Path) -> None:
    may_go_on = threading.Event()

    def sleeps(request: SummaryRequest) -> str:
        may_go_on.wait(30)
        return "too late"

    with open_engine(database, sleeps, **CONFIG, summary_timeout_ms=20) as engine:
        ingest_turns(engine, 20, 100)
        result = engine.compact(token_budget=256)
        may_go_on.set()
        assert (result.status, result.failure_code) == ("failed", "summarizer_outage")
        assert engine.summaries() == []


def test_a_source_too_long_for_the_model_is_summarised_in_smaller_pieces(database: Path) -> None:
    taken: list[int] = []

    def takes_600(request: SummaryRequest) -> str:
        tokens = request.text.count("¤")
        if tokens > 600:
            raise SourceTooLongError(f"{tokens} tokens, 600 at most")
        taken.append(len(request.items))
        return "¤"

    config = {**CONFIG, "leaf_chunk_tokens": 2000}
    with open_engine(database, takes_600, **config) as engine:
        ingest_turns(engine, 22, 100)
        result = engine.compact(token_budget=400)
        assert violations(engine.store) == []
    assert (result.status, taken) == ("done", [5, 5, 5, 5])


def test_a_message_too_long_for_the_model_is_shortened_as_a_whole(database: Path) -> None:
    def takes_600(request: SummaryRequest) -> str:
        if len(request.text) > 6000:
            raise SourceTooLongError("too long")
        assert "shortened from" in request.text
        return "in brief"

    words = " ".join(f"Step {n} moved module_{n}.py to the archive." for n in range(1500))
    config = {"fresh_tail_count": 1, "leaf_chunk_tokens": 4000, "timezone": "UTC"}
    with lcm_fast.open(database, config=config, summarizer=takes_600) as engine:
        engine.ingest([{"role": "user", "content": words}, {"role": "assistant", "content": "ok"}])
        engine.ingest([{"role": "user", "content": "and now?"}])
        assert engine.compact(token_budget=1000).status == "done"


def test_messages_that_leave_the_view_during_a_call_are_not_covered(
    database: Path, tmp_path: Path
) -> None:
    """A branch is left while its messages are being summarised."""
    trunk = chain(*(said(f"{n} " + "¤" * 20) for n in range(12)))
    fork = [*trunk, entry("f1", "e5", said("another way")), entry("f2", "f1", said("on it"))]
    engines: list[Engine] = []

    def summarise(request: SummaryRequest) -> str:
        if engines:
            path = write_session(tmp_path / "session.jsonl", fork)
            engines.pop().bootstrap(path, session_key="default")
        return "¤"

    with open_engine(database, summarise, **CONFIG) as engine:
        engine.bootstrap(write_session(tmp_path / "session.jsonl", trunk), session_key="default")
        engines.append(engine)
        engine.compact(token_budget=256, force=True)
        assert violations(engine.store) == []
        assert not set(range(7, 13)) & set(frontier_of(engine).ordinals.tolist())
