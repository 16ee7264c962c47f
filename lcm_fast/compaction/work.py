"""The frontier under compaction, and one pass on it: summarise a plan, publish it, follow the view.

The summariser is called without any lock or transaction, so turns go on meanwhile; publishing
re-checks the plan in one short transaction (design: architecture, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import PlanStaleError, SummarizerError
from ..store import Address, Frontier, NewSummary
from .making import SummaryMaker
from .planner import Plan, next_condensation, next_leaf
from .services import Services

__all__ = ["Work"]


@dataclass(slots=True)
class Work:
    """One compaction under way.

    Attributes
    ----------
    frontier
        As it was when last looked at: after every pass.
    passes
        Summaries attempted.
    levels
        How the published ones came about.
    failure
        Why the summariser failed; empty while it has not.
    replaced
        The session has got another conversation meanwhile.
    """

    services: Services
    address: Address
    conversation_id: int
    frontier: Frontier
    instructions: str
    passes: int = 0
    levels: dict[str, int] = field(
        default_factory=lambda: {"normal": 0, "aggressive": 0, "fallback": 0}
    )
    failure: str = ""
    replaced: bool = False
    _refused_leaves: set[tuple[int, int]] = field(default_factory=set)
    _refused_sources: set[str] = field(default_factory=set)

    @property
    def tokens(self) -> int:
        """Tokens of the frontier."""
        return int(self.frontier.tokens.sum())

    @property
    def published(self) -> int:
        """Summaries published so far."""
        return sum(self.levels.values())

    @property
    def stopped(self) -> bool:
        """No further pass can succeed."""
        return bool(self.failure) or self.replaced

    def next_leaf(self) -> Plan | None:
        """Return the oldest chunk of messages that is worth a summary."""
        after_ordinal = 0
        while plan := next_leaf(self.frontier, self.services.config, after_ordinal):
            known = (plan.first_ordinal, plan.last_ordinal) in self._refused_leaves
            if not known and self._is_worth_it(plan):
                return plan
            after_ordinal = plan.last_ordinal
        return None

    def next_condensation(self, *, hard: bool) -> Plan | None:
        """Return the oldest run of summaries that is worth a deeper one."""
        config, refused = self.services.config, self._refused_sources
        while plan := next_condensation(self.frontier, config, hard=hard, refused=refused):
            if self._is_worth_it(plan):
                return plan
        return None

    def attempt(self, plan: Plan) -> None:
        """Summarise what a plan names and publish it, if that makes the frontier smaller."""
        self.passes += 1
        try:
            new = self._maker(plan).make()
        except SummarizerError as error:
            self.failure = error.detail
        else:
            if new.wire_tokens < plan.tokens:
                self._publish(plan, new)
            else:
                self._refuse(plan)
        self._follow()

    def _maker(self, plan: Plan) -> SummaryMaker:
        return SummaryMaker(
            self.services, self.conversation_id, self.frontier, plan, self.instructions
        )

    def _is_worth_it(self, plan: Plan) -> bool:
        """Tell, before the summariser is asked, whether any summary can be smaller."""
        if self._maker(plan).least_wire_tokens() < plan.tokens:
            return True
        self._refuse(plan)
        return False

    def _refuse(self, plan: Plan) -> None:
        """Remember for this compaction what was no smaller summarised, so as not to ask again."""
        self._refused_sources.update(plan.source_ids)
        if not plan.source_ids:
            self._refused_leaves.add((plan.first_ordinal, plan.last_ordinal))

    def _publish(self, plan: Plan, new: NewSummary) -> None:
        try:
            _, revision = self.services.store.publish_summary(self.conversation_id, new)
        except PlanStaleError:
            return  # what has changed is seen when the view is followed
        self.levels[new.summary.level] += 1
        if revision == self.frontier.revision + 1:
            self.frontier = self.frontier.with_summary(
                plan.begin,
                plan.end,
                summary_id=new.summary.summary_id,
                depth=new.summary.depth,
                tokens=new.wire_tokens,
                revision=revision,
            )

    def _follow(self) -> None:
        """Look at the view again: turns, branches and other compactions may have changed it."""
        loaded = self.services.store.frontier(self.address, {self.conversation_id: self.frontier})
        if loaded is None or loaded[0].conversation_id != self.conversation_id:
            self.replaced = True
        else:
            self.frontier = loaded[1]
