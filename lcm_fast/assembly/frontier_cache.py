"""Frontiers read before, one a conversation, the least used dropped first.

Whether one is still valid is told by its revision when it is next used, so that writes of other
threads and processes need no notice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from ..store import Address, Conversation, Frontier, Store

__all__ = ["FrontierCache"]

_CONVERSATIONS = 64


class FrontierCache:
    """Reads frontiers through a store, keeping what was read.

    Threading: safe to share.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._frontiers: OrderedDict[int, Frontier] = OrderedDict()

    def read(self, address: Address) -> tuple[Conversation, Frontier] | None:
        """Return a conversation and its frontier as they are now.

        Reads only what is new since the last call.
        """
        with self._lock:
            known = dict(self._frontiers)
        found = self._store.frontier(address, known)
        if found is None:
            return None
        conversation, frontier = found
        with self._lock:
            self._frontiers[conversation.conversation_id] = frontier
            self._frontiers.move_to_end(conversation.conversation_id)
            while len(self._frontiers) > _CONVERSATIONS:
                self._frontiers.popitem(last=False)
        return conversation, frontier
