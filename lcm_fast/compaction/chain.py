"""Sweep after sweep until the target is met, nothing is left, or a limit is reached (spec N7)."""

from __future__ import annotations

from dataclasses import dataclass

from ..store import Address
from .planner import tail_start
from .results import CompactionResult, CompactionStatus
from .services import Services
from .sweep import Sweep
from .work import Work

__all__ = ["compact"]


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
        Do one sweep even when under the target.

    Complexity: each pass reads the items it replaces, and goes over the frontier's arrays.
    """
    loaded = services.store.frontier(address, {})
    if loaded is None:
        return CompactionResult("nothing", "no such conversation", 0, 0, target_tokens)
    conversation, frontier = loaded
    work = Work(services, address, conversation.conversation_id, frontier, instructions)
    return _Chain(work, target_tokens, prefix_target_tokens, force).run()


@dataclass(slots=True)
class _Chain:
    work: Work
    target_tokens: int
    prefix_target_tokens: int
    force: bool
    limit_reached: str = ""

    def run(self) -> CompactionResult:
        started = self.work.services.monotonic()
        before = self.work.tokens
        if before <= self.target_tokens and not self.force:
            return CompactionResult(
                "nothing", "already under target", before, before, self.target_tokens
            )
        self._sweep_until_under(started)
        status, reason = self._verdict()
        return CompactionResult(
            status=status,
            reason=reason,
            tokens_before=before,
            tokens_after=self.work.tokens,
            target_tokens=self.target_tokens,
            passes=self.work.passes,
            summaries_created=self.work.published,
            levels=self.work.levels,
            duration_ms=(self.work.services.monotonic() - started) * 1000,
        )

    def _sweep_until_under(self, started: float) -> None:
        """Sweep again as long as the target is not met and each sweep leaves fewer tokens."""
        work, config = self.work, self.work.services.config
        end = started + config.compact_until_under_deadline_ms / 1000
        while True:
            tokens = work.tokens
            now = work.services.monotonic()
            deadline = min(now + config.sweep_deadline_ms / 1000, end)
            sweep = Sweep(work, self.target_tokens, self.prefix_target_tokens, deadline)
            sweep.run()
            self.limit_reached = sweep.limit_reached
            work.services.progress(f"{work.tokens:,} of {self.target_tokens:,} tokens")
            if work.stopped or not self.target_tokens < work.tokens < tokens:
                return
            if not self.limit_reached or work.services.monotonic() >= end:
                return

    def _verdict(self) -> tuple[CompactionStatus, str]:
        work = self.work
        if work.failure:
            return "failed", work.failure
        if work.replaced:
            return "deferred", "the session has got another conversation meanwhile"
        is_under = work.tokens <= self.target_tokens
        if self.limit_reached and (self.force or not is_under):
            return "deferred", f"{self.limit_reached}; the rest is left for the next run"
        if not is_under:
            return "exhausted", self._why_exhausted()
        if work.published:
            summaries = "summary" if work.published == 1 else "summaries"
            return "done", f"{work.published} new {summaries} in the place of what was summarised"
        return "nothing", "under target, and nothing outside the fresh tail to summarise"

    def _why_exhausted(self) -> str:
        frontier, target = self.work.frontier, self.target_tokens
        tail = int(frontier.tokens[tail_start(frontier, self.work.services.config) :].sum())
        if tail > target:
            return (
                f"the fresh tail alone takes {tail:,} tokens, more than the target of {target:,};"
                " lower freshTailCount or set freshTailMaxTokens"
            )
        return (
            f"nothing more can be summarised: {self.work.tokens:,} tokens, {tail:,} of them in the"
            f" fresh tail, for a target of {target:,}"
        )
