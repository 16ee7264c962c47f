"""The terms of a conversation's items, each analysed once.

Arrays that grow at their end; items that left the view stay until the index is dropped. Must not
read the store.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import count_terms, score_items

__all__ = ["TermIndex"]

# Tuned by benchmarks/evidence_retention.py; a plateau, on which a tenth more or less is the same.
_SATURATION = 1.2
_LENGTH_SHARE = 0.75


class TermIndex:
    """Hashed terms and their counts, by item.

    Not safe to share: the caller holds a lock.
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, int] = {}
        self._offsets = _Growing(np.int64)
        self._offsets.append(np.zeros(1, np.int64))
        self._lengths = _Growing(np.int64)
        self._terms = _Growing(np.uint32)
        self._counts = _Growing(np.uint32)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def term_count(self) -> int:
        """How many terms it holds; memory grows with them, 8 bytes each."""
        return len(self._terms.values)

    def add(self, keys: Sequence[Hashable], texts: Sequence[str]) -> None:
        """Add items that it does not have, with their texts.

        Complexity: linear in the texts.
        """
        offsets, terms, counts = count_terms(list(texts))
        totals = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        for row, key in enumerate(keys, len(self._rows)):
            self._rows[key] = row
        self._offsets.append(offsets[1:] + self.term_count)
        self._lengths.append(totals[offsets[1:]] - totals[offsets[:-1]])
        self._terms.append(terms)
        self._counts.append(counts)

    def rows(self, keys: Sequence[Hashable]) -> npt.NDArray[np.int64]:
        """Return the rows of items that it has."""
        return np.array([self._rows[key] for key in keys], dtype=np.int64)

    def scores(self, prompt: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return how much each row has to do with a prompt, 0 for nothing (see `score_items`).

        Complexity: linear in the terms of the rows.
        """
        _, terms, counts = count_terms([prompt])
        return score_items(
            terms,
            counts,
            self._offsets.values,
            self._terms.values,
            self._counts.values,
            self._lengths.values,
            rows,
            _SATURATION,
            _LENGTH_SHARE,
        )


class _Growing:
    """An array that doubles its room when it is full."""

    def __init__(self, dtype: type[np.integer[Any]]) -> None:
        self._room: npt.NDArray[Any] = np.empty(64, dtype=dtype)
        self._length = 0

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._room[: self._length]

    def append(self, values: npt.NDArray[Any]) -> None:
        length = self._length + len(values)
        if length > len(self._room):
            larger = np.empty(max(length, 2 * len(self._room)), dtype=self._room.dtype)
            larger[: self._length] = self.values
            self._room = larger
        self._room[self._length : length] = values
        self._length = length
