"""The frontier under compaction and what can be done to it next, whether really or in rehearsal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..store import Frontier
from .making import SummaryMaker
from .planner import Plan, count_leaf_chunks, next_condensation, next_leaf
from .services import Services

__all__ = ["Passes"]

_LEAST_CHUNK_TOKENS = 500


@dataclass(slots=True)
class Passes(ABC):
    """A compaction under way.

    Attributes
    ----------
    frontier
        As it was when last looked at: after every pass.
    passes
        Summaries attempted.
    published
        Summaries put in the place of their sources.
    chunk_tokens
        Most tokens of a leaf's sources: as configured, until a summariser says it is too much.
    """

    services: Services
    conversation_id: int
    frontier: Frontier
    instructions: str
    passes: int = 0
    published: int = 0
    chunk_tokens: int = 0
    _refused_leaves: set[tuple[int, int]] = field(default_factory=set)
    _refused_sources: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.chunk_tokens = self.services.config.leaf_chunk_tokens

    @property
    def tokens(self) -> int:
        """Tokens of the frontier."""
        return int(self.frontier.tokens.sum())

    @property
    @abstractmethod
    def stopped(self) -> bool:
        """Whether no further pass can succeed."""

    @abstractmethod
    def attempt(self, plan: Plan) -> None:
        """Summarise what a plan names and publish it, if that makes the frontier smaller."""

    @abstractmethod
    def attempt_side_by_side(self, plans: Iterable[Plan], concurrency: int) -> None:
        """Attempt plans several at a time; publish in their order."""

    def backlog_exceeds(self, chunks: int) -> bool:
        """Tell whether more leaf chunks than this wait to be summarised."""
        frontier, config = self.frontier, self.services.config
        return count_leaf_chunks(frontier, config, self.chunk_tokens, chunks + 1) > chunks

    def next_leaf(self, after_ordinal: int = 0) -> Plan | None:
        """Return the oldest chunk of messages after an ordinal that is worth a summary."""
        config = self.services.config
        while plan := next_leaf(self.frontier, config, self.chunk_tokens, after_ordinal):
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

    def maker(self, plan: Plan, frontier: Frontier | None = None) -> SummaryMaker:
        """Return what makes the summary of a plan on the frontier it was planned on; default the
        one as it is now."""
        return SummaryMaker(
            self.services,
            self.conversation_id,
            self.frontier if frontier is None else frontier,
            plan,
            self.instructions,
            self.chunk_tokens,
        )

    def shrink_chunks(self) -> bool:
        """Halve what is given to the summariser at once; tell whether that was possible."""
        if self.chunk_tokens // 2 < _LEAST_CHUNK_TOKENS:
            return False
        self.chunk_tokens //= 2
        return True

    def refuse(self, plan: Plan) -> None:
        """Remember for this compaction what was no smaller summarised, so as not to ask again."""
        self._refused_sources.update(plan.source_ids)
        if not plan.source_ids:
            self._refused_leaves.add((plan.first_ordinal, plan.last_ordinal))

    def _is_worth_it(self, plan: Plan) -> bool:
        """Tell, before the summariser is asked, whether any summary can be smaller."""
        if self.maker(plan).room_tokens() > 0:
            return True
        self.refuse(plan)
        return False
