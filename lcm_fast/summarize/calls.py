"""One call to a summariser: given up in time, allowed beforehand, reported afterwards.

Knows neither prompts nor providers (spec P3, Z5). Whoever waits is never kept longer than the
timeout, whatever the one who is asked does.
"""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from ..errors import SummarizerError, SummarizerOutageError
from .metering import CallGate, CallRecord
from .models.answers import UnusableAnswerError
from .models.failures import as_summarizer_error, outcome_of
from .protocol import SummaryResponse

__all__ = ["as_response", "call_within", "metered_call", "no_answer"]

T = TypeVar("T")


def call_within(work: Callable[[], T], timeout_s: float, name: str) -> T:
    """Return what `work` returns, or raise what it raises.

    It runs on a daemon thread of its own, with the caller's context variables. One that is given up
    may go on; what it returns then is dropped.

    Raises
    ------
    SummarizerOutageError
        It did not end within the timeout.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # an interrupt, too, is raised where it is waited for
            future.set_exception(error)

    thread = threading.Thread(
        target=contextvars.copy_context().run,
        args=(run,),
        name=f"lcm-fast-summarizer-{name}",
        daemon=True,
    )
    thread.start()
    ended, _ = wait([future], min(timeout_s, threading.TIMEOUT_MAX))
    if not ended:
        raise no_answer(name, timeout_s)
    return future.result()


def no_answer(name: str, timeout_s: float) -> SummarizerOutageError:
    """Return the error of a summariser that did not answer in time."""
    return SummarizerOutageError(
        f"{name}: gave no answer in {timeout_s:g} s",
        hint="compaction tries again later; summaryTimeoutMs sets how long a call may take",
    )


def metered_call(
    ask: Callable[[], T],
    report: Callable[[T, int], CallRecord],
    *,
    name: str,
    gate: CallGate,
    monotonic: Callable[[], float],
) -> T:
    """Return what `ask` returns; the gate allows it first, and learns how it ended.

    Parameters
    ----------
    report
        Makes the record of an answer from it and the milliseconds it took.

    Raises
    ------
    SummarizerPausedError
        The gate is closed; nothing was asked.
    SummarizerError
        Whatever was raised, as the state it stands for.
    """
    gate.check(name)
    started = monotonic()
    try:
        answer = ask()
    except Exception as cause:
        error = as_summarizer_error(cause, name)
        gate.record(_record_of_failure(error, name, _ms_since(started, monotonic)))
        if error is cause:
            raise
        raise error from cause
    gate.record(report(answer, _ms_since(started, monotonic)))
    return answer


def as_response(answer: object, name: str) -> SummaryResponse:
    """Return what a summariser returned as a response that names a model.

    Raises
    ------
    SummarizerError
        It is neither text nor a `SummaryResponse`.
    """
    if isinstance(answer, str):
        return SummaryResponse(answer, name)
    if isinstance(answer, SummaryResponse) and isinstance(answer.text, str):
        return answer if answer.model else SummaryResponse(answer.text, name, answer.usage)
    if inspect.iscoroutine(answer):
        answer.close()
    raise SummarizerError(
        f"summarizer {name}: returned {type(answer).__name__}, not text",
        hint="return str or SummaryResponse",
    )


def _record_of_failure(error: SummarizerError, name: str, duration_ms: int) -> CallRecord:
    outcome = outcome_of(error)
    if isinstance(error, UnusableAnswerError):
        return CallRecord(name, outcome, duration_ms, error.input_tokens, error.output_tokens)
    return CallRecord(name, outcome, duration_ms)


def _ms_since(started: float, monotonic: Callable[[], float]) -> int:
    return round((monotonic() - started) * 1000)
