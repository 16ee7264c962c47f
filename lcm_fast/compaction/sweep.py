"""One sweep: leaf passes until no message is left outside the fresh tail, then condensation.

Bounded in passes and in time; progress is kept pass by pass (spec H). A backlog of more chunks than
are summarised side by side is caught up with in parallel; of a shorter one each summary is made
knowing the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .passes import Passes
from .planner import Plan, summary_prefix_tokens

__all__ = ["Sweep"]


@dataclass(slots=True)
class Sweep:
    """One sweep over the work.

    Attributes
    ----------
    target_tokens
        What the frontier is to take.
    prefix_target_tokens
        What the summaries before the fresh tail are to take.
    deadline
        Of the injected clock, in seconds; no pass begins after it.
    limit_reached
        Which limit ended the sweep with work left; empty when none did.
    """

    work: Passes
    target_tokens: int
    prefix_target_tokens: int
    deadline: float
    limit_reached: str = ""
    _passes: int = 0

    def run(self) -> None:
        """Summarise messages, then summaries as far as there is pressure, gently before hard."""
        self._catch_up()
        self._repeat(self.work.next_leaf)
        self._repeat(lambda: self._condensation(hard=False))
        self._repeat(lambda: self._condensation(hard=True))

    def _catch_up(self) -> None:
        concurrency = self.work.services.concurrency
        if concurrency > 1 and self.work.backlog_exceeds(concurrency):
            self.work.attempt_side_by_side(self._leaves(), concurrency)

    def _leaves(self) -> Iterator[Plan]:
        """Yield the leaf plans of the frontier as it is now, as long as another may begin."""
        plan = self.work.next_leaf()
        while plan is not None and not self.work.stopped and self._may_begin():
            yield plan
            plan = self.work.next_leaf(plan.last_ordinal)

    def _repeat(self, next_plan: Callable[[], Plan | None]) -> None:
        while not self.work.stopped and not self.limit_reached:
            plan = next_plan()
            if plan is None:
                return
            if self._may_begin():
                self.work.attempt(plan)

    def _condensation(self, *, hard: bool) -> Plan | None:
        return self.work.next_condensation(hard=hard) if self._is_under_pressure() else None

    def _is_under_pressure(self) -> bool:
        """Tell whether summaries take too much, or only condensing them can reach the target."""
        work = self.work
        if summary_prefix_tokens(work.frontier, work.services.config) > self.prefix_target_tokens:
            return True
        return work.tokens > self.target_tokens and work.next_leaf() is None

    def _may_begin(self) -> bool:
        """Count a pass that is about to begin, or name the limit that forbids it."""
        services = self.work.services
        most = services.config.max_sweep_iterations
        if self._passes >= most:
            self.limit_reached = f"stopped after {most} passes (maxSweepIterations)"
        elif services.monotonic() >= self.deadline:
            limits = "sweepDeadlineMs, compactUntilUnderDeadlineMs"
            self.limit_reached = f"stopped at the deadline ({limits})"
        else:
            self._passes += 1
            return True
        return False
