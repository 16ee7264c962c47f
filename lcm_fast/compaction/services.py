"""What a compaction works with; all of it is given to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..config import Config
from ..store import Store, StoredSummary
from ..summarize import Summarizer

__all__ = ["Services"]


@dataclass(frozen=True, slots=True)
class Services:
    """What a compaction works with.

    Attributes
    ----------
    wire_tokens
        Tokens of a summary as a model is sent it.
    now, monotonic
        UTC time as ISO 8601, and seconds of a clock that never goes back.
    progress
        Called after each sweep with a line for people.
    """

    store: Store
    config: Config
    timezone: str
    summarizer: Summarizer
    count_tokens: Callable[[str], int]
    wire_tokens: Callable[[StoredSummary], int]
    now: Callable[[], str]
    monotonic: Callable[[], float]
    progress: Callable[[str], None]
