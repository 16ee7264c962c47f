"""What the twins accept: the checks on arrays and counts, and the text of their errors.

The compiled kernels make the same checks in the same order (`csrc/lcm_types.pxd`).
"""

from __future__ import annotations

from operator import index

import numpy as np
import numpy.typing as npt

__all__ = [
    "Int64Array",
    "UInt8Array",
    "check_array",
    "check_flags",
    "check_indexes",
    "check_kinds",
    "check_ordinals",
    "check_tokens",
    "to_count",
    "to_limit",
    "to_position",
]

Int64Array = npt.NDArray[np.int64]
UInt8Array = npt.NDArray[np.uint8]

LARGEST_COUNT = 2**63 - 1


def check_array(name: str, array: object, dtype: str, length: int = -1) -> None:
    """Reject what is not a C-contiguous vector of `dtype` with `length` items (any when < 0)."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a numpy array, not {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"{name} must be an array of {dtype}, not {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must have 1 dimension, not {array.ndim}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous")
    if length >= 0 and len(array) != length:
        raise ValueError(f"{name} has {len(array)} items, expected {length}")


def check_ordinals(ordinals: Int64Array) -> None:
    """Reject ordinals that do not increase from item to item."""
    check_array("ordinals", ordinals, "int64")
    values = ordinals.tolist()
    for i in range(1, len(values)):
        if values[i] <= values[i - 1]:
            raise ValueError(f"ordinals[{i}] is {values[i]}, not above {values[i - 1]} before it")


def check_kinds(kinds: UInt8Array, length: int = -1) -> None:
    """Reject kinds other than 0 (message) and 1 (summary)."""
    check_array("kinds", kinds, "uint8", length)
    for i, kind in enumerate(kinds.tolist()):
        if kind > 1:
            raise ValueError(f"kinds[{i}] is {kind}, expected 0 (message) or 1 (summary)")


def check_tokens(tokens: Int64Array, length: int) -> None:
    """Reject negative token counts, and counts whose sum a 64-bit integer cannot hold."""
    check_array("tokens", tokens, "int64", length)
    total = 0
    for i, count in enumerate(tokens.tolist()):
        if count < 0:
            raise ValueError(f"tokens[{i}] is {count}, expected 0 or more")
        total += count
        if total > LARGEST_COUNT:
            raise ValueError(f"tokens add up to more than {LARGEST_COUNT} at tokens[{i}]")


def check_indexes(name: str, indexes: Int64Array, length: int) -> None:
    """Reject indexes outside 0 to `length` - 1."""
    check_array(name, indexes, "int64")
    for i, value in enumerate(indexes.tolist()):
        if not 0 <= value < length:
            raise ValueError(f"{name}[{i}] is {value}, expected 0 to {length - 1}")


def check_flags(name: str, flags: UInt8Array, length: int) -> None:
    """Reject flags that are not a uint8 vector of `length` items; every value but 0 means yes."""
    check_array(name, flags, "uint8", length)


def to_count(name: str, value: int) -> int:
    """Return `value` as an int that fits 64 bits; any sign."""
    count = index(value)
    if not -LARGEST_COUNT - 1 <= count <= LARGEST_COUNT:
        raise ValueError(f"{name} is {count}, outside the range of a 64-bit count")
    return count


def to_limit(name: str, value: int) -> int:
    """Return `value` as a count of 0 or more."""
    count = to_count(name, value)
    if count < 0:
        raise ValueError(f"{name} is {count}, expected 0 or more")
    return count


def to_position(name: str, value: int, length: int) -> int:
    """Return `value` as an index between items: 0 to `length`, both included."""
    position = to_count(name, value)
    if not 0 <= position <= length:
        raise ValueError(f"{name} is {position}, expected 0 to {length}")
    return position
