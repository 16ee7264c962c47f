"""What a call comes to, in a form to compare: its value, or its error's class and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def outcome(function: Callable[..., Any], *arguments: Any) -> object:
    """Return the plain value of a call, or the class and message of what it raised."""
    try:
        return _plain(function(*arguments))
    except Exception as error:
        return type(error), str(error)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tolist()
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    return value
