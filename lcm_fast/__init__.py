"""A memory that never forgets, for any AI agent: every message kept, the best context for a token budget."""

from . import errors
from ._version import __version__
from .config import Config
from .engine import Engine
from .engine import open_engine as open
from .surfaces import doctor, status

__all__ = ["Config", "Engine", "__version__", "doctor", "errors", "open", "status"]
