"""The map operator: one prompt over many items, driven by the engine and not by the agent.

Items are leased one by one, results kept as they come; a batch that was stopped or killed goes on
where it was, and what is finished is not asked again (case 379). Nothing is held across a call.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ..errors import (
    LcmError,
    NotFoundError,
    SummarizerAuthError,
    SummarizerContentError,
    SummarizerError,
    SummarizerOutageError,
    SummarizerPausedError,
    SummarizerRateLimitError,
)
from ..store import MapItem, NewJob, Store
from ..summarize.calls import call_within, metered_call
from ..summarize.metering import CallGate, CallOutcome, CallRecord
from ..summarize.models import LanguageModel, ModelAnswer, ModelCall
from .answers import check_schema, read_answer
from .prompts import item_prompt
from .results import MappedItem, MapResult, MapStatus

__all__ = ["Batch", "run_batch"]

_LOG = logging.getLogger(__name__)

# A failure of these kinds is the model's, not the item's: the batch stops and can be taken up.
_STOPPING = (
    SummarizerPausedError,
    SummarizerAuthError,
    SummarizerOutageError,
    SummarizerRateLimitError,
)


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be done, and with what.

    Attributes
    ----------
    models
        Asked in order until one answers.
    text_of
        Gives the text of an item; raises `NotFoundError` for one that is not there.
    store_calls
        Stores the calls that the gate has counted, after each item.
    lease_until
        Gives the end of a lease that begins now.
    """

    store: Store
    job: NewJob
    schema: Mapping[str, Any] | None
    models: Sequence[LanguageModel]
    gate: CallGate
    store_calls: Callable[[], None]
    text_of: Callable[[str], str]
    concurrency: int
    max_attempts: int
    max_tokens: int
    timeout_s: float
    owner: str
    now: Callable[[], str]
    lease_until: Callable[[], str]
    monotonic: Callable[[], float]
    is_cancelled: Callable[[], bool] = lambda: False


def run_batch(batch: Batch) -> MapResult:
    """Work through a batch, up to `concurrency` items at a time; return all results in order.

    Raises
    ------
    ConfigError
        The schema is none, or cannot be checked.
    JobConflictError
        The job's id was used for other work.
    """
    check_schema(batch.schema)
    started = batch.monotonic()
    batch.store.open_job(batch.job, batch.now())
    run = _Run(batch)
    with ThreadPoolExecutor(batch.concurrency, thread_name_prefix="lcm-fast-map") as pool:
        for worker in [pool.submit(run.work) for _ in range(batch.concurrency)]:
            worker.result()
    items = batch.store.job_items(batch.job.job_id)
    status, reason = run.verdict(items)
    if status != "paused":
        state = "done" if status == "done" else "failed"
        batch.store.set_job_state(batch.job.job_id, state, batch.now())
    return MapResult(
        job_id=batch.job.job_id,
        status=status,
        reason=reason,
        items=[_shown(item, batch.schema) for item in items],
        calls=run.calls,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        duration_ms=(batch.monotonic() - started) * 1000,
    )


def _shown(item: MapItem, schema: Mapping[str, Any] | None) -> MappedItem:
    result: Any = item.result
    if schema is not None and result is not None:
        result = json.loads(result)
    return MappedItem(item.ordinal, item.ref, item.state, result, item.error, item.attempts)


@dataclass(slots=True)
class _Run:
    """A batch under way, in several threads."""

    batch: Batch
    stopped: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self) -> None:
        """Lease one item after the other until there is none, or the batch is stopped."""
        batch = self.batch
        job_id = batch.job.job_id
        while not self.stopped and not batch.is_cancelled():
            item = batch.store.lease_item(
                job_id, batch.owner, now=batch.now(), until=batch.lease_until()
            )
            if item is None:
                return
            try:
                self._end(item)
            except BaseException:
                batch.store.release_item(
                    job_id, item.ordinal, batch.owner, "interrupted", counts=False
                )
                raise
            finally:
                batch.store_calls()

    def verdict(self, items: Sequence[MapItem]) -> tuple[MapStatus, str]:
        """Return how the batch stands, and why."""
        left = sum(item.state in ("waiting", "leased") for item in items)
        failed = sum(item.state == "failed" for item in items)
        if left:
            return "paused", self.stopped or f"{left} items are left"
        if failed:
            return "partial", f"{failed} of {len(items)} items failed"
        return "done", ""

    def _end(self, item: MapItem) -> None:
        batch = self.batch
        job_id, ordinal, owner = batch.job.job_id, item.ordinal, batch.owner
        try:
            result = self._ask(item)
        except _STOPPING as error:
            self.stopped = self.stopped or error.detail
            batch.store.release_item(job_id, ordinal, owner, error.detail, counts=False)
        except LcmError as error:
            _LOG.info("job %s, item %d: %s", job_id, ordinal, error.detail)
            is_final = isinstance(error, NotFoundError) or item.attempts >= batch.max_attempts
            if is_final:
                batch.store.finish_item(job_id, ordinal, owner, error=error.detail)
            else:
                batch.store.release_item(job_id, ordinal, owner, error.detail, counts=True)
        else:
            batch.store.finish_item(job_id, ordinal, owner, result=result)

    def _ask(self, item: MapItem) -> str:
        batch = self.batch
        prompt = item_prompt(batch.job.prompt, batch.text_of(item.ref), batch.schema, item.error)
        call = ModelCall(
            prompt.system,
            prompt.user,
            batch.max_tokens,
            batch.timeout_s,
            json_schema=batch.schema,
        )
        return read_answer(self._complete(call).text, batch.schema)

    def _complete(self, call: ModelCall) -> ModelAnswer:
        """Ask one model after the other; raise what the last one failed by."""
        *earlier, last = self.batch.models
        for model in earlier:
            try:
                return self._call(model, call)
            except SummarizerError as error:
                if error.code == "spend_limit":
                    raise
        return self._call(last, call)

    def _call(self, model: LanguageModel, call: ModelCall) -> ModelAnswer:
        def report(answer: ModelAnswer, duration_ms: int) -> CallRecord:
            self._count(answer)
            outcome: CallOutcome = "truncated" if answer.is_incomplete else "ok"
            counts = answer.input_tokens, answer.output_tokens
            return CallRecord(model.name, outcome, duration_ms, *counts)

        answer = metered_call(
            lambda: call_within(lambda: model.complete(call), call.timeout_s, model.name),
            report,
            name=model.name,
            gate=self.batch.gate,
            monotonic=self.batch.monotonic,
        )
        if answer.is_incomplete:
            raise SummarizerContentError(
                f"{model.name}: the answer was cut off at {call.max_tokens} tokens"
            )
        return answer

    def _count(self, answer: ModelAnswer) -> None:
        with self._lock:
            self.calls += 1
            self.input_tokens += answer.input_tokens or 0
            self.output_tokens += answer.output_tokens or 0
