"""What was learned of conversations, the least used forgotten first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["RecentlyUsed"]

T = TypeVar("T")


class RecentlyUsed(Generic[T]):
    """Keeps a value for each of the `limit` conversations that were put last.

    Threading: safe to share.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._values: OrderedDict[int, T] = OrderedDict()

    def get(self, conversation_id: int, /) -> T | None:
        """Return what is kept for a conversation."""
        with self._lock:
            return self._values.get(conversation_id)

    def put(self, conversation_id: int, value: T) -> None:
        """Keep a value in the place of the one before."""
        with self._lock:
            self._values[conversation_id] = value
            self._values.move_to_end(conversation_id)
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
