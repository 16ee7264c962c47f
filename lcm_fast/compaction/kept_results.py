"""Summaries of a catch-up that were made and not published yet: kept, so that no kill costs them.

Side by side, a summary can be ready while one before it is still being made. Until its turn comes
it stands in the table of batch results, under what it is a summary of (case 379).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import msgspec

from ..store import Store
from ..summarize import Summary
from .planner import Plan

__all__ = ["KeptResults"]


@dataclass(slots=True)
class KeptResults:
    """The unpublished summaries of one conversation.

    Threading: `keep` may be called from several threads.
    """

    store: Store
    conversation_id: int
    now: str
    known: dict[str, Summary] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for item in self.store.job_items(self._job_id):
            if item.result is not None:
                self.known[item.ref] = msgspec.json.decode(item.result, type=Summary)

    def of(self, plan: Plan) -> Summary | None:
        """Return the summary of a plan's items that an earlier process has made."""
        return self.known.get(_reference(plan))

    def keep(self, plan: Plan, summary: Summary) -> None:
        """Keep a summary until it is published."""
        self.store.keep_result(
            self._job_id,
            self.conversation_id,
            plan.first_ordinal,
            _reference(plan),
            msgspec.json.encode(summary).decode(),
            self.now,
        )

    def clear(self) -> None:
        """Forget them all: they are published, or of no use any more."""
        if self.store.job_items(self._job_id):
            self.store.delete_job(self._job_id)

    @property
    def _job_id(self) -> str:
        return f"catch-up:{self.conversation_id}"


def _reference(plan: Plan) -> str:
    """Name what a plan covers: a chunk that has changed since has another name."""
    covered = ",".join(map(str, plan.message_ids))
    return (
        f"{plan.first_ordinal}-{plan.last_ordinal} {hashlib.sha256(covered.encode()).hexdigest()}"
    )
