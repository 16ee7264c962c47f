"""The half of the store that upkeep works with: debt, calls and guards, fallbacks, batches.

Thin methods over the modules that hold the SQL, as in `store`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

import apsw

from . import debt, focus, map_jobs, model_calls, redo, spending
from .debt import Debt, Settlement
from .focus import FocusBrief, FocusDelta, SummaryReach
from .map_jobs import MapItem, NewJob
from .model_calls import CallFacts, ModelCalibration
from .readers import Readers
from .rows import StoredSummary
from .spending import Guard, ModelUsage, SummarizerCall

__all__ = ["UpkeepStore"]

T = TypeVar("T")


class UpkeepStore(ABC):
    """What is waiting to be done, what was asked of summarisers, and what came of it."""

    _readers: Readers

    @abstractmethod
    def _write(self, apply: Callable[[apsw.Connection], T]) -> T:
        """Apply a change in a transaction."""

    def debt(self, conversation_id: int) -> Debt | None:
        """Return a conversation's compaction debt, settled or not."""
        with self._readers.snapshot() as db:
            return debt.load(db, conversation_id)

    def debts(self, *, limit: int = 50) -> list[Debt]:
        """Return compaction debts that are open, the oldest first."""
        with self._readers.snapshot() as db:
            return debt.page(db, limit=limit)

    def due_debts(self, now: str, conversation_id: int | None = None) -> list[Debt]:
        """Return the debts, or that of one conversation, that are open and need not wait."""
        with self._readers.snapshot() as db:
            return debt.due(db, now, conversation_id)

    def open_debts(self, conversation_id: int | None = None) -> tuple[int, str | None]:
        """Return how many debts are open, and when the first of those that wait may be tried."""
        with self._readers.snapshot() as db:
            return debt.count_open(db, conversation_id)

    def claim_debt(
        self,
        conversation_id: int,
        owner: str,
        *,
        now: str,
        lease_until: str,
        ignores_wait: bool = False,
    ) -> Debt | None:
        """Take a debt to drain it; None when there is none, it must wait, or another one has it."""
        return self._write(
            lambda db: debt.claim(
                db,
                conversation_id,
                owner,
                now=now,
                lease_until=lease_until,
                ignores_wait=ignores_wait,
            )
        )

    def settle_debt(self, conversation_id: int, owner: str, end: Settlement, now: str) -> None:
        """Give a claimed debt back."""
        self._write(lambda db: debt.settle(db, conversation_id, owner, end, now))

    def resolve_debt_if_under(
        self,
        conversation_id: int,
        resolution: str,
        now: str,
        *,
        ratio: float = 1.0,
        is_exhausted: bool = False,
    ) -> None:
        """Settle a debt nobody drains, if its conversation is under the threshold or exhausted."""
        self._write(
            lambda db: debt.resolve_if_under(
                db, conversation_id, resolution, now, ratio=ratio, is_exhausted=is_exhausted
            )
        )

    def call_facts(self, conversation_id: int) -> CallFacts:
        """Return what the host told of a conversation's model calls."""
        with self._readers.snapshot() as db:
            return model_calls.facts_of(db, conversation_id)

    def token_ratio(self, conversation_id: int, counter: str, model: str | None = None) -> float:
        """Return how many tokens a model, else that of the last call, makes of one of ours."""
        with self._readers.snapshot() as db:
            return model_calls.ratio_of(db, conversation_id, counter, model)

    def calibrations(self) -> list[ModelCalibration]:
        """Return what is known of each model's counts, the one learnt of last first."""
        with self._readers.snapshot() as db:
            return model_calls.calibrations(db)

    def active_brief(self, conversation_id: int) -> FocusBrief | None:
        """Return the focus brief that is shown."""
        with self._readers.snapshot() as db:
            return focus.active(db, conversation_id)

    def latest_brief(self, conversation_id: int) -> FocusBrief | None:
        """Return the focus brief that was begun last, whatever became of it."""
        with self._readers.snapshot() as db:
            return focus.latest(db, conversation_id)

    def briefs(self, *, limit: int = 50) -> list[FocusBrief]:
        """Return focus briefs that are shown, under way, or failed last; the newest first."""
        with self._readers.snapshot() as db:
            return focus.page(db, limit=limit)

    def brief_sources(self, brief_id: str) -> dict[str, list[str]]:
        """Return the ids of the summaries a focus brief was written from, by their role."""
        with self._readers.snapshot() as db:
            return focus.sources_of(db, brief_id)

    def reach_of_view(self, conversation_id: int) -> list[SummaryReach]:
        """Return the summaries of a conversation's view with how far they reach, in order."""
        with self._readers.snapshot() as db:
            return focus.reach_of_view(db, conversation_id)

    def brief_delta(self, brief: FocusBrief, covered: Sequence[SummaryReach]) -> FocusDelta:
        """Return what a conversation's view holds beyond a focus brief."""
        with self._readers.snapshot() as db:
            return focus.delta(db, brief, covered)

    def messages_below(self, summary_ids: Sequence[str]) -> list[tuple[str, int, int, str]]:
        """Return (summary id, message id, tokens, text) of the messages summaries stand for."""
        with self._readers.snapshot() as db:
            return focus.messages_below(db, summary_ids)

    def begin_brief(self, brief: FocusBrief, sources: dict[str, list[str]]) -> None:
        """Insert a focus brief that is about to be written."""
        self._write(lambda db: focus.begin(db, brief, sources))

    def publish_brief(self, brief: FocusBrief, now: str) -> None:
        """Show a focus brief that was written, instead of the one before."""
        self._write(lambda db: focus.publish(db, brief, now))

    def fail_brief(self, brief_id: str, error: str, now: str) -> None:
        """Note why a focus brief came to nothing."""
        self._write(lambda db: focus.fail(db, brief_id, error, now))

    def deactivate_brief(self, conversation_id: int, now: str) -> int:
        """Show no focus brief any more; return how many were shown."""
        return self._write(lambda db: focus.deactivate(db, conversation_id, now))

    def record_calls(self, conversation_id: int | None, calls: Sequence[SummarizerCall]) -> None:
        """Keep summariser calls that led to no summary."""
        self._write(lambda db: spending.record(db, conversation_id, calls))

    def count_calls(self, conversation_id: int | None, since: str) -> int:
        """Return how many paid summariser calls a conversation made after a time."""
        with self._readers.snapshot() as db:
            return spending.count_calls(db, conversation_id, since)

    def model_usage(self) -> list[ModelUsage]:
        """Return what each model was asked and used, the one asked last first."""
        with self._readers.snapshot() as db:
            return spending.usage(db)

    def guards(self) -> dict[str, Guard]:
        """Return what pauses summariser calls, by scope."""
        with self._readers.snapshot() as db:
            return spending.guards(db)

    def set_guard(self, guard: Guard, now: str) -> None:
        """Keep a guard as it is now."""
        self._write(lambda db: spending.set_guard(db, guard, now))

    def conversations_to_redo(self, conversation_id: int | None, now: str) -> list[int]:
        """Return the conversations, or the one, that have fallback summaries to be redone."""
        with self._readers.snapshot() as db:
            return redo.conversations_due(db, conversation_id, now)

    def fallbacks_due(self, conversation_id: int, now: str, limit: int) -> list[str]:
        """Return the ids of fallbacks to be redone, sources before what is made of them."""
        with self._readers.snapshot() as db:
            return redo.due(db, conversation_id, now, limit)

    def message_ids_of(self, summary_id: str) -> list[int]:
        """Return the messages a leaf was made of, in order."""
        with self._readers.snapshot() as db:
            return redo.message_ids_of(db, summary_id)

    def note_redo_attempt(self, summary_id: str, redo_after: str, *, counts: bool) -> None:
        """Have a fallback wait; count the attempt, if it was one."""
        self._write(lambda db: redo.note_attempt(db, summary_id, redo_after, counts=counts))

    def replace_fallback(self, old_id: str, new: StoredSummary, wire_tokens: int) -> None:
        """Put a proper summary in the place of a fallback.

        Raises
        ------
        PlanStaleError
            The old one is no fallback any more; nothing is changed.
        """
        self._write(lambda db: redo.replace(db, old_id, new, wire_tokens))

    def open_job(self, job: NewJob, now: str) -> None:
        """Make a batch job, or take up the one that is the same.

        Raises
        ------
        JobConflictError
            The id is another job's; nothing is changed.
        """
        self._write(lambda db: map_jobs.open_job(db, job, now))

    def lease_item(self, job_id: str, owner: str, *, now: str, until: str) -> MapItem | None:
        """Lease the next item of a job that waits, or whose owner is gone."""
        return self._write(lambda db: map_jobs.lease(db, job_id, owner, now=now, until=until))

    def finish_item(
        self,
        job_id: str,
        ordinal: int,
        owner: str,
        *,
        result: str | None = None,
        error: str | None = None,
    ) -> bool:
        """End a leased item; tell whether it was still the owner's."""
        return self._write(
            lambda db: map_jobs.finish(db, job_id, ordinal, owner, result=result, error=error)
        )

    def release_item(
        self, job_id: str, ordinal: int, owner: str, error: str, *, counts: bool
    ) -> None:
        """Give a leased item back to be tried again."""
        self._write(lambda db: map_jobs.release(db, job_id, ordinal, owner, error, counts=counts))

    def keep_result(
        self, job_id: str, conversation_id: int, ordinal: int, ref: str, result: str, now: str
    ) -> None:
        """Keep a result that is not used yet, under a job of its own."""
        self._write(
            lambda db: map_jobs.keep(db, job_id, conversation_id, ordinal, ref, result, now)
        )

    def drop_item(self, job_id: str, ordinal: int) -> None:
        """Forget an item of a batch job."""
        self._write(lambda db: map_jobs.drop_item(db, job_id, ordinal))

    def set_job_state(self, job_id: str, state: str, now: str) -> None:
        """Note how a batch job stands."""
        self._write(lambda db: map_jobs.set_state(db, job_id, state, now))

    def job_items(self, job_id: str) -> list[MapItem]:
        """Return the items of a batch job with their results, in order."""
        with self._readers.snapshot() as db:
            return map_jobs.items(db, job_id)

    def delete_job(self, job_id: str) -> None:
        """Delete a batch job with its results, if it is there."""
        self._write(lambda db: map_jobs.delete(db, job_id))
