"""Configuration: one table of keys, strict values, environment over file over defaults."""

from __future__ import annotations

from .globs import matches
from .overrides import ThresholdRule
from .resolve import load_config
from .schema import EFFECTIVE_KEYS, KEYS, Key
from .settings import Config, Note, state_directory
from .system_zone import system_zone

__all__ = [
    "EFFECTIVE_KEYS",
    "KEYS",
    "Config",
    "Key",
    "Note",
    "ThresholdRule",
    "load_config",
    "matches",
    "state_directory",
    "system_zone",
]
