"""The user's own summarisers: given up in time, whatever they are made of."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from summarize_server import CountingGate, a_request

from lcm_fast.errors import (
    SourceTooLongError,
    SummarizerAuthError,
    SummarizerError,
    SummarizerOutageError,
    SummarizerPausedError,
    SummarizerRateLimitError,
)
from lcm_fast.summarize import SummaryRequest, SummaryResponse
from lcm_fast.summarize.backends import as_backend
from lcm_fast.summarize.functions import FunctionBackend

REQUEST = a_request()


def backend(
    function: Callable[[SummaryRequest], Any],
    timeout_s: float = 5.0,
    loop: asyncio.AbstractEventLoop | None = None,
) -> FunctionBackend:
    return FunctionBackend(function, "mine", timeout_s=timeout_s, loop=loop)


def answer_of(function: Callable[[SummaryRequest], Any], **options: Any) -> SummaryResponse:
    return backend(function, **options).answer(REQUEST, CountingGate())


async def later(request: SummaryRequest) -> str:
    await asyncio.sleep(0)
    return "S"


def handed_on(request: SummaryRequest) -> Awaitable[str]:
    return later(request)


class LaterObject:
    async def __call__(self, request: SummaryRequest) -> str:
        return await later(request)


class LaterSummarizer:
    name = "later"

    async def summarize(self, request: SummaryRequest) -> SummaryResponse:
        return SummaryResponse(await later(request), "real", {"prompt_tokens": 3})


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs on a thread of its own."""
    running = asyncio.new_event_loop()
    thread = threading.Thread(target=running.run_forever)
    thread.start()
    yield running
    running.call_soon_threadsafe(running.stop)
    thread.join()
    running.close()


class TestKinds:
    @pytest.mark.parametrize(
        "function",
        [lambda request: "S", later, LaterObject(), handed_on],
        ids=["blocking", "asynchronous", "asynchronous object", "returns an awaitable"],
    )
    @pytest.mark.parametrize("has_loop", [False, True])
    def test_a_function_is_asked(
        self, function: Any, has_loop: bool, loop: asyncio.AbstractEventLoop
    ) -> None:
        response = answer_of(function, loop=loop if has_loop else None)
        assert response == SummaryResponse("S", "mine")

    @pytest.mark.parametrize(
        ("candidate", "name"),
        [
            (later, "later"),
            (LaterObject(), "LaterObject"),
            (LaterSummarizer(), "later"),
            (functools.partial(later), "partial"),
        ],
    )
    def test_an_asynchronous_one_is_a_backend_with_a_name(
        self, candidate: object, name: str
    ) -> None:
        made = as_backend(candidate, timeout_s=5)
        assert made.name == name
        assert made.answer(REQUEST, CountingGate()).text == "S"

    def test_a_response_keeps_its_model_and_its_cost(self) -> None:
        gate = CountingGate()
        response = as_backend(LaterSummarizer(), timeout_s=5).answer(REQUEST, gate)
        assert response == SummaryResponse("S", "real", {"prompt_tokens": 3})
        assert [(call.model, call.input_tokens) for call in gate.calls] == [("later", 3)]

    def test_a_response_without_a_model_is_of_the_function(self) -> None:
        assert answer_of(lambda request: SummaryResponse("S", "")).model == "mine"

    @pytest.mark.parametrize("value", [None, 7, b"text", ["text"]])
    def test_an_answer_that_is_no_text_is_an_error(self, value: object) -> None:
        with pytest.raises(SummarizerError, match=f"returned {type(value).__name__}, not text"):
            answer_of(lambda request: value)

    def test_an_asynchronous_one_runs_on_the_loop_that_was_given(
        self, loop: asyncio.AbstractEventLoop
    ) -> None:
        seen: list[asyncio.AbstractEventLoop] = []

        async def ask(request: SummaryRequest) -> str:
            seen.append(asyncio.get_running_loop())
            return "S"

        answer_of(ask, loop=loop)
        assert seen == [loop]

    def test_the_context_of_the_caller_is_seen(self) -> None:
        variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
        variable.set("of the caller")
        assert answer_of(lambda request: variable.get()).text == "of the caller"


class TestTimeouts:
    def test_one_that_sleeps_for_ever_is_given_up(self) -> None:
        asleep = threading.Event()
        with pytest.raises(SummarizerOutageError, match=r"mine: gave no answer in 0\.2 s"):
            answer_of(lambda request: asleep.wait() and "S", timeout_s=0.2)
        (thread,) = (one for one in threading.enumerate() if one.name.endswith("summarizer-mine"))
        assert thread.daemon
        asleep.set()
        thread.join()

    @pytest.mark.parametrize("has_loop", [False, True])
    def test_an_asynchronous_one_is_cancelled(
        self, has_loop: bool, loop: asyncio.AbstractEventLoop
    ) -> None:
        cancelled = threading.Event()

        async def sleep(request: SummaryRequest) -> str:
            try:
                await asyncio.sleep(60)
            finally:
                cancelled.set()
            return "S"

        with pytest.raises(SummarizerOutageError, match="gave no answer"):
            answer_of(sleep, timeout_s=0.2, loop=loop if has_loop else None)
        assert cancelled.wait(5)

    def test_the_time_of_the_request_counts_when_it_is_shorter(self) -> None:
        request = a_request(timeout_s=0.2)
        with pytest.raises(SummarizerOutageError, match=r"0\.2 s"):
            backend(lambda request: time.sleep(1) or "S").answer(request, CountingGate())

    def test_a_late_answer_is_dropped(self) -> None:
        release, ended = threading.Event(), threading.Event()

        def slow_then_quick(request: SummaryRequest) -> str:
            if release.is_set():
                return "second"
            release.wait()
            ended.set()
            return "first"

        made, gate = backend(slow_then_quick, timeout_s=0.2), CountingGate()
        with pytest.raises(SummarizerOutageError):
            made.answer(REQUEST, gate)
        release.set()
        assert ended.wait(5)
        assert made.answer(REQUEST, gate).text == "second"
        assert gate.outcomes == [("mine", "outage"), ("mine", "ok")]


class TestFailures:
    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (ConnectionError("no route"), SummarizerOutageError),
            (TimeoutError("30 s"), SummarizerOutageError),
            (PermissionError("denied"), SummarizerAuthError),
            (RuntimeError("HTTP 401"), SummarizerAuthError),
            (RuntimeError("Unauthorized: missing scope"), SummarizerAuthError),
            (RuntimeError("too many requests"), SummarizerRateLimitError),
            (ValueError("maximum context length is 8192"), SourceTooLongError),
            (RuntimeError("boom after 401 items"), SummarizerError),
        ],
    )
    def test_what_it_raises_is_told_as_a_state_with_its_cause(
        self, error: Exception, kind: type[Exception]
    ) -> None:
        with pytest.raises(kind, match=f"mine: {type(error).__name__}: ") as caught:
            answer_of(raising(error))
        assert type(caught.value) is kind
        assert caught.value.__cause__ is error

    @pytest.mark.parametrize(
        ("attributes", "kind"),
        [
            ({"status_code": 401}, SummarizerAuthError),
            ({"status": 503}, SummarizerOutageError),
            ({"response": type("R", (), {"status_code": 429})()}, SummarizerRateLimitError),
            ({"status_code": "401"}, SummarizerError),
        ],
    )
    def test_a_status_on_any_exception_counts(
        self, attributes: dict[str, object], kind: type[Exception]
    ) -> None:
        error = Exception("refused")
        vars(error).update(attributes)
        with pytest.raises(kind) as caught:
            answer_of(raising(error))
        assert type(caught.value) is kind

    def test_the_state_of_a_cause_counts(self) -> None:
        error = RuntimeError("the client failed")
        error.__cause__ = ConnectionResetError("by peer")
        with pytest.raises(SummarizerOutageError, match="the client failed"):
            answer_of(raising(error))

    @pytest.mark.parametrize(
        ("value", "seconds"), [("12", 12.0), ("-3", 0.0), ("inf", 86400.0), ("soon", None)]
    )
    def test_the_wait_asked_for_is_bounded(self, value: str, seconds: float | None) -> None:
        error = Exception("slow down")
        vars(error).update(status_code=429, headers={"Retry-After": value})
        with pytest.raises(SummarizerRateLimitError) as caught:
            answer_of(raising(error))
        assert caught.value.retry_after_s == seconds

    def test_its_own_summarizer_error_passes_unchanged(self) -> None:
        error = SummarizerError("mine", code="mine")
        with pytest.raises(SummarizerError) as caught:
            answer_of(raising(error))
        assert caught.value is error

    @pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(3)])
    def test_an_interrupt_passes(self, interrupt: BaseException) -> None:
        with pytest.raises(type(interrupt)):
            answer_of(raising(interrupt))

    @pytest.mark.parametrize("has_loop", [False, True])
    def test_a_task_that_is_cancelled_from_elsewhere_is_a_failure(
        self, has_loop: bool, loop: asyncio.AbstractEventLoop
    ) -> None:
        async def cancelled(request: SummaryRequest) -> str:
            raise asyncio.CancelledError

        with pytest.raises(SummarizerError, match="cancelled"):
            answer_of(cancelled, loop=loop if has_loop else None)

    def test_a_loop_that_is_closed_is_a_failure(self) -> None:
        closed = asyncio.new_event_loop()
        closed.close()
        with pytest.raises(SummarizerError, match="closed"):
            answer_of(later, loop=closed)

    def test_what_looks_like_a_key_is_taken_out(self) -> None:
        error = RuntimeError("key sk-proj-abcdefgh12345 and Bearer abc.def.ghi refused")
        with pytest.raises(SummarizerError) as caught:
            answer_of(raising(error))
        assert caught.value.detail == "mine: RuntimeError: key *** and Bearer *** refused"


class TestGate:
    def test_a_closed_gate_is_not_passed(self) -> None:
        paused = SummarizerPausedError("open", code="spend_limit", open_until="2026")
        gate = CountingGate({"mine": paused})
        with pytest.raises(SummarizerPausedError):
            backend(raising(AssertionError("was called"))).answer(REQUEST, gate)
        assert gate.calls == []

    @pytest.mark.parametrize(("text", "outcome"), [("S", "ok"), (" ", "empty")])
    def test_a_call_is_reported(self, text: str, outcome: str) -> None:
        gate = CountingGate()
        backend(lambda request: text).answer(REQUEST, gate)
        assert gate.outcomes == [("mine", outcome)]


def raising(error: BaseException) -> Callable[[SummaryRequest], str]:
    def summarise(request: SummaryRequest) -> str:
        raise error

    return summarise
