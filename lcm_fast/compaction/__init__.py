"""Condense old messages into summaries, and old summaries into deeper ones."""

from .chain import Goal, compact, rehearse
from .rehearsal import CompactionPlan, PlannedPass
from .results import CompactionResult
from .services import GatedSummarizer, Services

__all__ = [
    "CompactionPlan",
    "CompactionResult",
    "GatedSummarizer",
    "Goal",
    "PlannedPass",
    "Services",
    "compact",
    "rehearse",
]
