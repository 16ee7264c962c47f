"""Twin of the `relevance` kernel: how much each of many items has to do with a prompt."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .checks import Int64Array, check_array

__all__ = ["score_items"]

UInt32Array = npt.NDArray[np.uint32]


def score_items(
    prompt_terms: UInt32Array,
    prompt_counts: UInt32Array,
    offsets: Int64Array,
    terms: UInt32Array,
    counts: UInt32Array,
    lengths: Int64Array,
    rows: Int64Array,
    saturation: float,
    length_share: float,
) -> npt.NDArray[np.float64]:
    """See `lcm_fast.kernels.score_items`."""
    check_array("prompt_terms", prompt_terms, "uint32")
    check_array("prompt_counts", prompt_counts, "uint32", len(prompt_terms))
    check_array("offsets", offsets, "int64")
    check_array("terms", terms, "uint32")
    check_array("counts", counts, "uint32", len(terms))
    check_array("lengths", lengths, "int64", max(0, len(offsets) - 1))
    check_array("rows", rows, "int64")
    saturation, length_share = float(saturation), float(length_share)
    if not saturation > 0:
        raise ValueError(f"saturation is {saturation}, expected more than 0")
    if not 0 <= length_share <= 1:
        raise ValueError(f"length_share is {length_share}, expected 0 to 1")
    _check_rows(rows.tolist(), offsets.tolist(), lengths.tolist(), len(terms))
    asked = dict(zip(prompt_terms.tolist(), prompt_counts.tolist(), strict=True))
    if len(asked) < len(prompt_terms):
        raise ValueError("prompt_terms repeats a term")
    items = [_shared(asked, offsets, terms, counts, row) for row in rows.tolist()]
    having = dict.fromkeys(asked, 0)
    for item in items:
        for term, _ in item:
            having[term] += 1
    average = float(np.mean(lengths[rows])) if len(rows) else 0.0
    scores = np.zeros(len(rows), dtype=np.float64)
    for place, (row, item) in enumerate(zip(rows.tolist(), items, strict=True)):
        relative = int(lengths[row]) / average if average > 0 else 1.0
        for term, count in item:
            weight = math.log((1 + len(items)) / (1 + having[term])) + 1
            norm = saturation * (1 - length_share + length_share * relative)
            worth = count if math.isinf(saturation) else count * (saturation + 1) / (count + norm)
            scores[place] += asked[term] * weight * weight * worth
    return scores


def _check_rows(rows: list[int], offsets: list[int], lengths: list[int], term_count: int) -> None:
    for i, row in enumerate(rows):
        if not 0 <= row < len(offsets) - 1:
            raise ValueError(f"rows[{i}] is {row}, expected 0 to {len(offsets) - 2}")
        if not 0 <= offsets[row] <= offsets[row + 1] <= term_count:
            raise ValueError(
                f"offsets[{row}] and the next are {offsets[row]} and {offsets[row + 1]},"
                f" expected to ascend from 0 to {term_count}"
            )
        if lengths[row] < 0:
            raise ValueError(f"lengths[{row}] is {lengths[row]}, expected 0 or more")


def _shared(
    asked: dict[int, int], offsets: Int64Array, terms: UInt32Array, counts: UInt32Array, row: int
) -> list[tuple[int, int]]:
    """Return (term, count) of the prompt's terms in one item."""
    begin, end = int(offsets[row]), int(offsets[row + 1])
    pairs = zip(terms[begin:end].tolist(), counts[begin:end].tolist(), strict=True)
    return [(term, count) for term, count in pairs if term in asked]
