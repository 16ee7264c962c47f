"""A memory that never forgets, for any AI agent: every message kept, the best context for a token
budget.

Names are loaded when they are first used, so that the command line can report a broken kernel in
one line and answers ``--version`` at once.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import errors
from ._version import __version__

if TYPE_CHECKING:
    from . import aio
    from .config import Config
    from .engine import Engine
    from .engine import open_engine as open
    from .surfaces.doctor import doctor
    from .surfaces.status import status

__all__ = ["Config", "Engine", "__version__", "aio", "doctor", "errors", "open", "status"]

# What is logged under our name disturbs no program that does not listen.
logging.getLogger(__name__).addHandler(logging.NullHandler())

_PLACES = {
    "Config": (".config", "Config"),
    "Engine": (".engine", "Engine"),
    "doctor": (".surfaces", "doctor"),
    "open": (".engine", "open_engine"),
    "status": (".surfaces", "status"),
}


def __getattr__(name: str) -> Any:
    if name == "aio":
        return import_module(".aio", __name__)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES[name]
    value = getattr(import_module(module, __name__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
