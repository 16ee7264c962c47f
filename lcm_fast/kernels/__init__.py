"""The kernels, compiled where their binaries are present: the one place that chooses.

`LCM_FAST_IMPLEMENTATION` = ``compiled`` (the default) or ``reference``. A missing binary selects
the pure-Python twins for all kernels and warns once; a binary that is present and does not load
is an error (architecture, section 6).
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from ..errors import ConfigError, KernelError

__all__ = [
    "IMPLEMENTATION",
    "MISSING",
    "TokenCounter",
    "align",
    "analyse_terms",
    "count_terms",
    "estimate_tokens",
    "estimate_tokens_calibrated",
    "estimate_tokens_many",
    "find_floods",
    "plan_condensation",
    "plan_leaf_chunks",
    "score_items",
    "select_context",
    "select_fresh_tail",
    "truncate_tokens",
]

KERNELS = ("tokens", "frontier", "chunking", "text", "relevance", "replay", "bpe")
VARIABLE = "LCM_FAST_IMPLEMENTATION"
BUILD_COMMAND = "python setup.py build_ext --inplace"


def _find_missing() -> tuple[str, ...]:
    """Return the names of the kernels that have no binary."""
    return tuple(name for name in KERNELS if find_spec(f"{__name__}._{name}") is None)


def _choose(missing: tuple[str, ...]) -> Literal["compiled", "reference"]:
    """Return the implementation the environment asks for, as far as its binaries are there."""
    asked = os.environ.get(VARIABLE, "compiled")
    if asked not in ("compiled", "reference"):
        raise ConfigError(
            f"{VARIABLE} is {asked!r}, from the environment; allowed: 'compiled', 'reference'"
        )
    if asked == "reference":
        return "reference"
    if missing:
        warnings.warn(
            f"lcm_fast uses its slow reference kernels, for want of a binary of "
            f"{', '.join(missing)}; build with: {BUILD_COMMAND}",
            RuntimeWarning,
            stacklevel=2,
        )
        return "reference"
    return "compiled"


def _load_compiled() -> None:
    """Load every binary, so that one that is present and broken is reported by name."""
    for name in KERNELS:
        try:
            import_module(f"{__name__}._{name}")
        except ImportError as error:
            raise KernelError(
                f"the compiled kernel '{name}' does not load: {error}",
                hint=f"rebuild with: {BUILD_COMMAND}",
            ) from error


MISSING: tuple[str, ...] = _find_missing()
IMPLEMENTATION: Literal["compiled", "reference"] = _choose(MISSING)

if IMPLEMENTATION == "compiled":
    _load_compiled()

if TYPE_CHECKING or IMPLEMENTATION == "compiled":
    from ._bpe import TokenCounter
    from ._chunking import plan_condensation, plan_leaf_chunks
    from ._frontier import select_context, select_fresh_tail
    from ._relevance import score_items
    from ._replay import align, find_floods
    from ._text import analyse_terms, count_terms
    from ._tokens import (
        estimate_tokens,
        estimate_tokens_calibrated,
        estimate_tokens_many,
        truncate_tokens,
    )
else:
    from .reference.bpe import TokenCounter
    from .reference.chunking import plan_condensation, plan_leaf_chunks
    from .reference.frontier import select_context, select_fresh_tail
    from .reference.relevance import score_items
    from .reference.replay import align, find_floods
    from .reference.text import analyse_terms, count_terms
    from .reference.tokens import (
        estimate_tokens,
        estimate_tokens_calibrated,
        estimate_tokens_many,
        truncate_tokens,
    )
