"""Condense old messages into summaries, and old summaries into deeper ones."""

from .chain import compact
from .results import CompactionResult
from .services import Services

__all__ = ["CompactionResult", "Services", "compact"]
