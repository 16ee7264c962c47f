"""Summarisers that are the user's own code: functions and objects, blocking or asynchronous.

Each call runs on a thread of its own, so that one that never returns costs its timeout and no more.
Judges no answer: `escalation` does.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import time
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from typing import Any

from ..errors import SummarizerError
from .calls import as_response, call_within, metered_call, no_answer
from .metering import CallGate, CallRecord
from .protocol import SummaryRequest, SummaryResponse

__all__ = ["FunctionBackend"]

_INPUT_KEYS = ("input_tokens", "prompt_tokens")
_OUTPUT_KEYS = ("output_tokens", "completion_tokens")


class FunctionBackend:
    """A user's function, behind the gate and within a timeout.

    Parameters
    ----------
    function
        Takes a `SummaryRequest`; returns text, a `SummaryResponse`, or an awaitable of either.
    name
        What is recorded as the model when the response does not name one.
    timeout_s
        Seconds after which a call is given up, as far as the request allows (see
        `SummaryRequest.call_timeout_s`). An asynchronous one is
        cancelled then; a blocking one goes on, and its answer is dropped.
    loop
        Where awaitables run; default an event loop of their own for each call.
    monotonic
        A clock in seconds.

    Threading: the function is called from several threads at once.
    """

    is_metered = True
    max_concurrency: int | None = None

    def __init__(
        self,
        function: Callable[[SummaryRequest], Any],
        name: str,
        *,
        timeout_s: float,
        loop: AbstractEventLoop | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._function = function
        self._timeout_s = timeout_s
        self._loop = loop
        self._monotonic = monotonic

    def answer(self, request: SummaryRequest, gate: CallGate) -> SummaryResponse:
        """Return the function's answer; blocking, ends within the timeout.

        Raises
        ------
        SummarizerPausedError
            The gate is closed; the function was not called.
        SummarizerOutageError
            It gave no answer in time.
        SummarizerError
            It raised, as the state that stands for, or returned something else than text.
        """
        timeout_s = request.call_timeout_s(self._timeout_s)
        return metered_call(
            lambda: call_within(lambda: self._ask(request, timeout_s), timeout_s, self.name),
            self._report,
            name=self.name,
            gate=gate,
            monotonic=self._monotonic,
        )

    def _ask(self, request: SummaryRequest, timeout_s: float) -> SummaryResponse:
        answer = self._function(request)
        if inspect.isawaitable(answer):
            answer = self._awaited(answer, timeout_s)
        return as_response(answer, self.name)

    def _awaited(self, awaitable: Awaitable[Any], timeout_s: float) -> Any:
        bounded = self._within(awaitable, timeout_s)
        try:
            if self._loop is None:
                return asyncio.run(bounded)
            return asyncio.run_coroutine_threadsafe(bounded, self._loop).result()
        except (asyncio.CancelledError, concurrent.futures.CancelledError) as cancelled:
            raise SummarizerError(f"{self.name}: its task was cancelled") from cancelled
        finally:
            # A loop that is closed already has started neither.
            bounded.close()
            if inspect.iscoroutine(awaitable):
                awaitable.close()

    async def _within(self, awaitable: Awaitable[Any], timeout_s: float) -> Any:
        scope = asyncio.timeout(timeout_s)
        try:
            async with scope:
                return await awaitable
        except TimeoutError:
            if scope.expired():
                raise no_answer(self.name, timeout_s) from None
            raise

    def _report(self, answer: SummaryResponse, duration_ms: int) -> CallRecord:
        return CallRecord(
            self.name,
            "ok" if answer.text.strip() else "empty",
            duration_ms,
            _count(answer, _INPUT_KEYS),
            _count(answer, _OUTPUT_KEYS),
        )


def _count(answer: SummaryResponse, keys: tuple[str, ...]) -> int | None:
    usage = answer.usage or {}
    return next((usage[key] for key in keys if key in usage), None)
