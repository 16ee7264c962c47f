"""What counts tokens: exactly by a vocabulary found offline, or by an estimate.

Must not download anything, nor know messages, stores or engines (design, benchmarks 3 and 4).
"""

from __future__ import annotations

from .counters import Counter, choose_counter, given_counter
from .vocabulary import find_vocabularies, read_vocabulary

__all__ = [
    "Counter",
    "choose_counter",
    "find_vocabularies",
    "given_counter",
    "read_vocabulary",
]
