"""Random frontiers: summaries in between, interleaved and broken-off exchanges, odd openers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st


class Frontier(NamedTuple):
    """The parallel arrays the kernels take."""

    kinds: npt.NDArray[np.uint8]
    ordinals: npt.NDArray[np.int64]
    openers: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    flags: npt.NDArray[np.uint8]


ITEMS = st.lists(
    st.tuples(
        st.sampled_from((0, 0, 0, 1)),
        st.integers(1, 3),
        st.integers(-3, 5),
        st.one_of(st.integers(0, 60), st.just(0)),
        st.sampled_from((0, 0, 1)),
    ),
    max_size=24,
)


def build(items: list[tuple[int, int, int, int, int]]) -> Frontier:
    """Build arrays from (kind, ordinal gap, steps back to the opener, tokens, flag) per item.

    Steps back below 0 name an ordinal between two items or after this one.
    """
    kinds, gaps, steps, tokens, flags = zip(*items, strict=True) if items else ((),) * 5
    ordinals = np.cumsum(np.array(gaps, dtype=np.int64), dtype=np.int64)
    openers = [
        int(ordinals[max(0, i - step)]) if step >= 0 else int(ordinals[i]) + step + 2
        for i, step in enumerate(steps)
    ]
    return Frontier(
        np.array(kinds, dtype=np.uint8),
        ordinals,
        np.array(openers, dtype=np.int64),
        np.array(tokens, dtype=np.int64),
        np.array(flags, dtype=np.uint8),
    )


frontiers = ITEMS.map(build)


WAYS_TO_BREAK: dict[str, Callable[[npt.NDArray[Any]], object]] = {
    "list": lambda array: array.tolist(),
    "other type": lambda array: array.astype(np.float64),
    "other width": lambda array: array.astype(np.int32),
    "other byte order": lambda array: array.astype(">i8"),
    "two dimensions": lambda array: np.stack([array, array]),
    "strided": lambda array: np.repeat(array, 2)[::2],
    "longer": lambda array: np.append(array, array[-1:]),
    "shorter": lambda array: array[:-1],
    "falling": lambda array: array[::-1].copy(),
}


def break_array(array: npt.NDArray[Any], how: str) -> object:
    """Return the array made malformed in one way."""
    return WAYS_TO_BREAK[how](array)


odd_counts = st.sampled_from((-5, -1, 2**63, -(2**63) - 1, 10**30, 1.5, "4", None, True))
