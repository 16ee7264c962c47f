"""One pass for real: summarise a plan, publish it, follow the view.

The summariser is called without any lock or transaction, so turns go on meanwhile; publishing
re-checks the plan in one short transaction (design: architecture, section 5).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field

from ..errors import PlanStaleError, SourceTooLongError, SummarizerError
from ..mapping import in_order
from ..store import Frontier, NewSummary
from .kept_results import KeptResults
from .passes import Passes
from .planner import Plan

__all__ = ["Work"]

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Work(Passes):
    """One compaction under way.

    Attributes
    ----------
    levels
        How the published summaries came about.
    error
        Why the summariser failed; None while it has not.
    """

    levels: dict[str, int] = field(
        default_factory=lambda: {"normal": 0, "aggressive": 0, "fallback": 0}
    )
    error: SummarizerError | None = None

    @property
    def stopped(self) -> bool:
        """Whether no further pass can succeed, or the caller wants none."""
        return self.error is not None or self.services.is_cancelled()

    def attempt(self, plan: Plan) -> None:
        """Summarise what a plan names and publish it, if that makes the frontier smaller."""
        self._take_in(plan, self._make(plan, self.frontier))

    def attempt_side_by_side(self, plans: Iterable[Plan], concurrency: int) -> None:
        """Attempt plans several at a time; publish in their order.

        What was made beside one that failed is published all the same: it is paid for.
        """
        kept = KeptResults(self.services.store, self.conversation_id, self.services.now())
        planned = ((plan, self.frontier) for plan in plans)
        made = in_order(
            lambda pair: (pair[0], self._make(*pair, kept)), planned, concurrency=concurrency
        )
        with closing(made):
            for plan, new in made:
                self._take_in(plan, new)
        if self.error is None:
            kept.clear()

    def _make(
        self, plan: Plan, frontier: Frontier, kept: KeptResults | None = None
    ) -> NewSummary | SummarizerError:
        maker = self.maker(plan, frontier)
        try:
            if kept is None:
                return maker.make()
            return maker.make(kept.of(plan), lambda summary: kept.keep(plan, summary))
        except SummarizerError as error:
            return error

    def _take_in(self, plan: Plan, new: NewSummary | SummarizerError) -> None:
        self.passes += 1
        if isinstance(new, SummarizerError):
            self._note_failure(new)
        elif new.wire_tokens < plan.tokens:
            self._publish(plan, new)
        else:
            self.refuse(plan)
        self.services.summarizer.gate.store_calls()
        self._follow()

    def _note_failure(self, error: SummarizerError) -> None:
        if isinstance(error, SourceTooLongError) and self.shrink_chunks():
            _LOG.info("%s: going on with chunks of %d tokens", error.detail, self.chunk_tokens)
        elif self.error is None:
            self.error = error
            _LOG.warning("conversation %d: %s", self.conversation_id, error.detail)

    def _publish(self, plan: Plan, new: NewSummary) -> None:
        calls = self.services.summarizer.gate.take()
        store, number = self.services.store, self.conversation_id
        try:
            _, revision = store.publish_summary(number, new, calls)
        except PlanStaleError:
            if calls:
                store.record_calls(number, calls)
            return  # what has changed is seen when the view is followed
        summary = new.summary
        self.levels[summary.level] += 1
        self.published += 1
        _LOG.info(
            "conversation %d: %s %s of %d tokens in the place of %d (%s)",
            number,
            summary.kind,
            summary.summary_id,
            new.wire_tokens,
            plan.tokens,
            summary.level,
        )
        if revision == self.frontier.revision + 1:
            self.frontier = plan.replaced_by(
                self.frontier,
                summary_id=summary.summary_id,
                tokens=new.wire_tokens,
                revision=revision,
            )

    def _follow(self) -> None:
        """Look at the view again: turns, branches and other compactions may have changed it."""
        loaded = self.services.store.frontier_of(self.conversation_id, self.frontier)
        if loaded is not None:
            self.frontier = loaded[1]
