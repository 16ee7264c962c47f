"""The engine: what a host embeds (design: architecture, sections 2 and 3)."""

from ..ingest import DEFAULT_SESSION_KEY
from .engine import DEFAULT_TOKEN_BUDGET, Engine
from .opening import open_engine

__all__ = ["DEFAULT_SESSION_KEY", "DEFAULT_TOKEN_BUDGET", "Engine", "open_engine"]
