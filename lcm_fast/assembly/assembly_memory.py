"""What the last assembly of each conversation looked like, the least used forgotten first.

Digests only: they tell how much of the next assembly a provider's prompt cache has seen (spec U10).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

__all__ = ["AssemblyMemory"]

_CONVERSATIONS = 100


class AssemblyMemory:
    """Keeps the digests of messages by conversation.

    Threading: safe to share.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._digests: OrderedDict[int, Sequence[int]] = OrderedDict()

    def get(self, conversation_id: int) -> Sequence[int]:
        """Return the digests of a conversation's last assembly; none when it is not known."""
        with self._lock:
            return self._digests.get(conversation_id, ())

    def put(self, conversation_id: int, digests: Sequence[int]) -> None:
        """Remember an assembly in the place of the one before."""
        with self._lock:
            self._digests[conversation_id] = digests
            self._digests.move_to_end(conversation_id)
            while len(self._digests) > _CONVERSATIONS:
                self._digests.popitem(last=False)
