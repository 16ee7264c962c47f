"""Twin of the `tokens` kernel: the documented and the calibrated estimate, by code points.

A code point costs 1/4 token, one of a CJK range 3/2, any other above U+FFFF 2; the sum is rounded
up once. Counted in quarters the arithmetic is exact (compaction spec, section B). The calibrated
estimate adds up what each character costs after the one before it (design, benchmarks 4).
"""

from __future__ import annotations

import numpy as np

from ..calibration import AFTER, CHARACTERS, IN_RUN, OTHER, RANGES, RUN, SCALE, START
from .checks import Int64Array, to_count

__all__ = [
    "estimate_tokens",
    "estimate_tokens_calibrated",
    "estimate_tokens_many",
    "truncate_tokens",
]

CJK_RANGES = (
    (0x3000, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),
    (0xFF00, 0xFFEF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2EBEF),
)


def _quarters(code_point: int) -> int:
    for first, last in CJK_RANGES:
        if first <= code_point <= last:
            return 6
    return 8 if code_point > 0xFFFF else 1


def estimate_tokens(text: str) -> int:
    """See `lcm_fast.kernels.estimate_tokens`."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    quarters = 0
    for character in text:
        quarters += _quarters(ord(character))
    return (quarters + 3) // 4


def estimate_tokens_many(texts: list[str]) -> Int64Array:
    """See `lcm_fast.kernels.estimate_tokens_many`."""
    if not isinstance(texts, list):
        raise TypeError(f"texts must be a list, not {type(texts).__name__}")
    estimates = []
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{i}] must be a str, not {type(text).__name__}")
        estimates.append(estimate_tokens(text))
    return np.array(estimates, dtype=np.int64)


def _class_of(character: str) -> int:
    for number, characters in enumerate(CHARACTERS, OTHER + 1):
        if character in characters:
            return number
    for first, last, number in reversed(RANGES):
        if first <= ord(character) <= last:
            return number
    return OTHER


def estimate_tokens_calibrated(text: str) -> int:
    """See `lcm_fast.kernels.estimate_tokens_calibrated`."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    if not text:
        return 0
    before, place, parts = START, 0, 0
    for character in text:
        after = _class_of(character)
        place = min(place + 1, RUN - 1) if after == before else 0
        parts += AFTER[before][after] + IN_RUN[after][place]
        before = after
    return max(1, -(-parts // SCALE))


def truncate_tokens(text: str, max_tokens: int) -> str:
    """See `lcm_fast.kernels.truncate_tokens`."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    room = 4 * to_count("max_tokens", max_tokens)
    for i, character in enumerate(text):
        room -= _quarters(ord(character))
        if room < 0:
            return text[:i]
    return text
