"""What was learned of conversations, the least used forgotten first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["RecentlyUsed"]

T = TypeVar("T")


class RecentlyUsed(Generic[T]):
    """Keeps the `limit` values that were put last, by conversation or another key.

    Threading: safe to share.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, /) -> T | None:
        """Return what is kept under a key."""
        with self._lock:
            return self._values.get(key)

    def take(self, key: Hashable, /) -> T | None:
        """Return what is kept under a key, and keep it no longer."""
        with self._lock:
            return self._values.pop(key, None)

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value in the place of the one before."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
