"""Condense old messages into summaries, and old summaries into deeper ones."""

from .passes import Services
from .results import CompactionResult
from .sweep import compact

__all__ = ["CompactionResult", "Services", "compact"]
