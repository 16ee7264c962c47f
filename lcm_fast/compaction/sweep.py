"""Summarise pass by pass until the target is met, nothing is left, or a limit is reached.

Each pass plans on the frontier, calls the summariser without any lock or transaction, and publishes in one short
transaction that re-checks the plan; so progress is kept pass by pass and turns go on meanwhile (spec H, N7; design:
architecture, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..errors import PlanStaleError, SummarizerError
from ..store import Address, Frontier
from .passes import Services, summarise
from .planner import Plan, next_condensation, next_leaf, summary_prefix_tokens
from .results import CompactionResult, CompactionStatus

__all__ = ["Compaction", "compact"]

PassOutcome = Literal["published", "skipped", "stale"]



def compact(
    services: Services,
    address: Address,
    *,
    target_tokens: int,
    prefix_target_tokens: int,
    force: bool,
    instructions: str,
) -> CompactionResult:
    """Compact a conversation until its frontier takes at most `target_tokens`.

    Parameters
    ----------
    prefix_target_tokens
        Above this the summaries before the fresh tail are condensed.
    force
        Summarise what can be summarised even when under the target.

    Complexity: each pass touches the items it replaces.
    """
    loaded = services.store.frontier(address, {})
    if loaded is None:
        return CompactionResult("nothing", "no such conversation", 0, 0, target_tokens)
    conversation, frontier = loaded
    work = Compaction(
        services, address, conversation.conversation_id, frontier, target_tokens, prefix_target_tokens, instructions
    )
    return work.run(force=force)


@dataclass(slots=True)
class Compaction:
    """One compaction under way: the frontier as it is now, the limits, what was done."""

    services: Services
    address: Address
    conversation_id: int
    frontier: Frontier
    target_tokens: int
    prefix_target_tokens: int
    instructions: str
    passes: int = 0
    sweep_passes: int = 0
    sweep_deadline: float = 0.0
    limit_reached: str = ""
    failure: str = ""
    levels: dict[str, int] = field(
        default_factory=lambda: {"normal": 0, "aggressive": 0, "fallback": 0}
    )

    @property
    def tokens(self) -> int:
        return int(self.frontier.tokens.sum())

    def run(self, *, force: bool) -> CompactionResult:
        """Sweep until under the target, without progress, or at the overall deadline."""
        started = self.services.monotonic()
        before = self.tokens
        if before <= self.target_tokens and not force:
            return self._result("nothing", "already under target", before, started)
        deadline = started + self.services.config.compact_until_under_deadline_ms / 1000
        while True:
            tokens = self.tokens
            self._sweep(deadline)
            self.services.progress(f"{self.tokens:,} of {self.target_tokens:,} tokens")
            more = self.tokens > self.target_tokens and self.tokens < tokens
            if self.failure or not more or self.services.monotonic() >= deadline:
                break
        return self._result(*self._verdict(before), before, started)

    def _verdict(self, before: int) -> tuple[CompactionStatus, str]:
        published = sum(self.levels.values())
        if self.failure:
            return "failed", self.failure
        if self.tokens <= self.target_tokens:
            if published:
                return "done", f"{published} summaries took the place of what they cover"
            return "nothing", "under target, and nothing outside the fresh tail to summarise"
        if self.limit_reached:
            return "deferred", f"{self.limit_reached}; the rest is left for the next run"
        return "exhausted", self._why_exhausted()

    def _why_exhausted(self) -> str:
        config = self.services.config
        start = self.frontier.fresh_tail_start(config.fresh_tail_count, config.fresh_tail_max_tokens)
        tail = int(self.frontier.tokens[start:].sum())
        if tail > self.target_tokens:
            return (
                f"the fresh tail alone takes {tail:,} tokens, more than the target of"
                f" {self.target_tokens:,}; lower freshTailCount or set freshTailMaxTokens"
            )
        return (
            f"nothing more can be summarised: {self.tokens:,} tokens, {tail:,} of them in the fresh tail,"
            f" for a target of {self.target_tokens:,}"
        )

    def _result(
        self, status: CompactionStatus, reason: str, before: int, started: float
    ) -> CompactionResult:
        return CompactionResult(
            status=status,
            reason=reason,
            tokens_before=before,
            tokens_after=self.tokens,
            target_tokens=self.target_tokens,
            passes=self.passes,
            summaries_created=sum(self.levels.values()),
            levels=self.levels,
            duration_ms=(self.services.monotonic() - started) * 1000,
        )

    def _sweep(self, operation_deadline: float) -> None:
        """Leaf passes until no message is left outside the tail, then condensation under prefix pressure."""
        sweep = self.services.config.sweep_deadline_ms / 1000
        self.sweep_deadline = min(self.services.monotonic() + sweep, operation_deadline)
        self.sweep_passes, self.limit_reached = 0, ""
        self._leaf_passes()
        self._condensed_passes(hard=False)
        self._condensed_passes(hard=True)

    def _leaf_passes(self) -> None:
        begin = 0
        while not self._stopped():
            plan = next_leaf(self.frontier, self.services.config, begin)
            if plan is None or self._at_limit():
                return
            outcome = self._attempt(plan)
            # What was not worth a summary is looked at again when more stands beside it, in a later sweep.
            begin = plan.end if outcome == "skipped" else begin

    def _condensed_passes(self, *, hard: bool) -> None:
        while not self._stopped() and self._under_pressure():
            plan = next_condensation(self.frontier, self.services.config, hard=hard)
            if plan is None or self._at_limit():
                return
            if self._attempt(plan) == "skipped":
                return

    def _under_pressure(self) -> bool:
        """Tell whether the summaries take too much, or nothing but condensing them can reach the target."""
        if summary_prefix_tokens(self.frontier, self.services.config) > self.prefix_target_tokens:
            return True
        leaf_left = next_leaf(self.frontier, self.services.config, 0)
        return self.tokens > self.target_tokens and leaf_left is None

    def _stopped(self) -> bool:
        return bool(self.failure or self.limit_reached)

    def _at_limit(self) -> bool:
        """Tell, before a pass, whether the sweep has used up its passes or its time."""
        limit = self.services.config.max_sweep_iterations
        if self.sweep_passes >= limit:
            self.limit_reached = f"stopped after {limit} passes (maxSweepIterations)"
        elif self.services.monotonic() >= self.sweep_deadline:
            self.limit_reached = "stopped at the deadline (sweepDeadlineMs, compactUntilUnderDeadlineMs)"
        return bool(self.limit_reached)

    def _attempt(self, plan: Plan) -> PassOutcome:
        """Summarise what a plan names and publish it, if that makes the frontier smaller."""
        self.passes += 1
        self.sweep_passes += 1
        try:
            new = summarise(self.services, self.conversation_id, self.frontier, plan, self.instructions)
        except SummarizerError as error:
            self.failure = error.detail
            return "skipped"
        if new.wire_tokens >= plan.tokens:
            return "skipped"
        try:
            _, revision = self.services.store.publish_summary(self.conversation_id, new)
        except PlanStaleError:
            self._reload()
            return "stale"
        self.levels[new.summary.level] += 1
        if revision != self.frontier.revision + 1:
            self._reload()
            return "published"
        self.frontier = self.frontier.with_summary(
            plan.begin,
            plan.end,
            summary_id=new.summary.summary_id,
            depth=new.summary.depth,
            tokens=new.wire_tokens,
            revision=revision,
        )
        return "published"

    def _reload(self) -> None:
        loaded = self.services.store.frontier(self.address, {})
        assert loaded is not None
        self.frontier = loaded[1]
