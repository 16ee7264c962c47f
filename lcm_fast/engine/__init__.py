"""The engine: what a host embeds (design: architecture, sections 2 and 3)."""

from ..ingest import DEFAULT_SESSION_KEY
from .engine import Engine
from .intake import DEFAULT_TOKEN_BUDGET
from .opening import open_engine
from .results import DrainedDebt, MaintenanceResult, TurnResult

__all__ = [
    "DEFAULT_SESSION_KEY",
    "DEFAULT_TOKEN_BUDGET",
    "DrainedDebt",
    "Engine",
    "MaintenanceResult",
    "TurnResult",
    "open_engine",
]
