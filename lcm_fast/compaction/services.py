"""What a compaction works with; all of it is given to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..config import Config
from ..store import Frontier, Store, StoredSummary
from ..store.frontier import KnownFrontiers
from ..summarize import SummaryRequest, SummaryResponse
from ..summarize.backends import Backend
from .guards import Gate

__all__ = ["Frontiers", "GatedSummarizer", "Services"]


class Frontiers(KnownFrontiers, Protocol):
    """Frontiers read before, shared with assembly."""

    def put(self, conversation_id: int, frontier: Frontier, /) -> None:
        """Remember a conversation's frontier as it is now."""
        ...


@dataclass(frozen=True, slots=True)
class GatedSummarizer:
    """A summariser behind the gate of one compaction."""

    backend: Backend
    gate: Gate

    @property
    def name(self) -> str:
        """Name of the summariser."""
        return self.backend.name

    def summarize(self, request: SummaryRequest) -> SummaryResponse:
        """Return the summary; blocking.

        Raises
        ------
        SummarizerError
            It could not be had, or the gate is closed.
        """
        return self.backend.answer(request, self.gate)


@dataclass(frozen=True, slots=True)
class Services:
    """What a compaction works with.

    Attributes
    ----------
    config
        With what an override of the threshold sets in it.
    wire_tokens
        Tokens of a summary as a model is sent it.
    now, monotonic
        UTC time as ISO 8601, and seconds of a clock that never goes back.
    progress
        Called after each sweep with a line for people.
    is_cancelled
        Whether the caller wants no further pass.
    """

    store: Store
    config: Config
    frontiers: Frontiers
    timezone: str
    summarizer: GatedSummarizer
    count_tokens: Callable[[str], int]
    wire_tokens: Callable[[StoredSummary], int]
    now: Callable[[], str]
    monotonic: Callable[[], float]
    progress: Callable[[str], None] = lambda line: None
    is_cancelled: Callable[[], bool] = lambda: False

    @property
    def concurrency(self) -> int:
        """How many summaries may be made side by side."""
        most = self.summarizer.backend.max_concurrency
        wanted = self.config.summary_concurrency
        return wanted if most is None else min(wanted, most)
