"""Sweep after sweep until the target is met, nothing is left, or a limit is reached (spec N7)."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SummarizerPausedError, SummarizerRateLimitError
from .debt import time_after
from .passes import Passes
from .planner import tail_start
from .rehearsal import CompactionPlan, Rehearsal
from .results import CompactionResult, CompactionStatus
from .services import Services
from .sweep import Sweep
from .work import Work

__all__ = ["Goal", "compact", "rehearse"]

_UNDER = "already under target"


@dataclass(frozen=True, slots=True)
class Goal:
    """What a compaction is to reach.

    Attributes
    ----------
    target_tokens
        The frontier is to take no more.
    prefix_target_tokens
        Above this the summaries before the fresh tail are condensed.
    force
        Do one sweep even when under the target.
    overhead_tokens
        What the host's prompts hold beyond the frontier; told in the result.
    beyond_us
        Why no compaction can bring the host's prompts under the threshold; empty when one can.
    """

    target_tokens: int
    prefix_target_tokens: int
    force: bool = False
    overhead_tokens: int = 0
    beyond_us: str = ""


def compact(
    services: Services, conversation_id: int, goal: Goal, *, instructions: str
) -> CompactionResult:
    """Compact a conversation until its frontier takes at most the goal's target.

    Complexity: each pass reads the items it replaces, and goes over the frontier's arrays.
    """
    loaded = services.store.frontier_of(conversation_id, services.frontiers.get(conversation_id))
    if loaded is None:
        return CompactionResult("nothing", "no such conversation", 0, 0, goal.target_tokens)
    work = Work(services, conversation_id, loaded[1], instructions)
    chain = _Chain(work, goal)
    started = services.monotonic()
    before = work.tokens
    chain.run(started)
    services.frontiers.put(conversation_id, work.frontier)
    status, reason = _verdict(work, goal, chain)
    error = work.error
    return CompactionResult(
        status=status,
        reason=reason,
        tokens_before=before,
        tokens_after=work.tokens,
        target_tokens=goal.target_tokens,
        passes=work.passes,
        summaries_created=work.published,
        levels=work.levels,
        overhead_tokens=goal.overhead_tokens,
        failure_code=error.code if error is not None else None,
        retry_at=_retry_at(services, error),
        duration_ms=(services.monotonic() - started) * 1000,
    )


def rehearse(services: Services, conversation_id: int, goal: Goal) -> CompactionPlan:
    """Return what `compact` would do, with summaries of the length that is asked for.

    Complexity: as `compact`, without reading an item and without calling the summariser.
    """
    loaded = services.store.frontier_of(conversation_id, services.frontiers.get(conversation_id))
    if loaded is None:
        return CompactionPlan(0, 0, goal.target_tokens, ())
    work = Rehearsal(services, conversation_id, loaded[1], "")
    before = work.tokens
    _Chain(work, goal).run(services.monotonic())
    return CompactionPlan(before, work.tokens, goal.target_tokens, tuple(work.planned))


@dataclass(slots=True)
class _Chain:
    """Sweeps one after the other."""

    work: Passes
    goal: Goal
    limit_reached: str = ""
    was_needed: bool = True

    def run(self, started: float) -> None:
        """Sweep again as long as the target is not met and each sweep leaves fewer tokens."""
        work, config, target = self.work, self.work.services.config, self.goal.target_tokens
        if work.tokens <= target and not self.goal.force:
            self.was_needed = False
            return
        end = started + config.compact_until_under_deadline_ms / 1000
        while True:
            tokens = work.tokens
            now = work.services.monotonic()
            deadline = min(now + config.sweep_deadline_ms / 1000, end)
            sweep = Sweep(work, target, self.goal.prefix_target_tokens, deadline)
            sweep.run()
            self.limit_reached = sweep.limit_reached
            work.services.progress(f"{work.tokens:,} of {target:,} tokens")
            if work.stopped or not target < work.tokens < tokens:
                return
            if not self.limit_reached or work.services.monotonic() >= end:
                return


def _verdict(work: Work, goal: Goal, chain: _Chain) -> tuple[CompactionStatus, str]:
    if not chain.was_needed:
        return ("exhausted", goal.beyond_us) if goal.beyond_us else ("nothing", _UNDER)
    if work.error is not None:
        is_paused = isinstance(work.error, SummarizerPausedError)
        return "deferred" if is_paused else "failed", work.error.detail
    is_under = work.tokens <= goal.target_tokens
    limit = "cancelled" if work.services.is_cancelled() else chain.limit_reached
    if limit and (goal.force or not is_under):
        return "deferred", f"{limit}; the rest is left for the next run"
    if not is_under or goal.beyond_us:
        return "exhausted", goal.beyond_us or _why_exhausted(work, goal.target_tokens)
    return _ending(work.published)


def _ending(published: int) -> tuple[CompactionStatus, str]:
    if not published:
        return "nothing", "under target, and nothing outside the fresh tail to summarise"
    summaries = "summary" if published == 1 else "summaries"
    return "done", f"{published} new {summaries} in the place of what was summarised"


def _why_exhausted(work: Work, target: int) -> str:
    frontier = work.frontier
    newest = int(frontier.tokens[-1])
    if newest > target:
        return (
            f"the newest message alone takes {newest:,} tokens, more than the target of"
            f" {target:,}, and it always stays"
        )
    tail = int(frontier.tokens[tail_start(frontier, work.services.config) :].sum())
    if tail > target:
        return (
            f"the fresh tail alone takes {tail:,} tokens, more than the target of {target:,};"
            " lower freshTailCount or set freshTailMaxTokens"
        )
    return (
        f"nothing more can be summarised: {work.tokens:,} tokens, {tail:,} of them in the"
        f" fresh tail, for a target of {target:,}"
    )


def _retry_at(services: Services, error: Exception | None) -> str | None:
    """Return when the summariser may be asked again, where its failure says so."""
    if isinstance(error, SummarizerPausedError):
        return error.open_until
    if isinstance(error, SummarizerRateLimitError) and error.retry_after_s is not None:
        return time_after(services.now(), error.retry_after_s * 1000)
    return None
