"""Rank the items of a frontier by what they have to do with a prompt (decision 3).

An index of terms is kept for each conversation in use; only new items are read and analysed. Must
not choose items.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..store import Frontier, Store
from .selection import Ranking
from .term_index import TermIndex

__all__ = ["Relevance", "spread_scores"]

# What stands next to a hit, and next to that, gets so much of its score: questions and answers.
_NEIGHBOUR_SHARES = (0.5, 0.25)
# A large item must score more to be worth its room.
_SIZE_EXPONENT = 0.4

_REMEMBERED_TERMS = 8 * 1024 * 1024
_TEXTS_AT_A_TIME = 2000

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Known:
    """The index of a conversation, and where in it the items of its last frontier are."""

    index: TermIndex = field(default_factory=TermIndex)
    revision: int = -1
    rows: Int64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    lock: threading.Lock = field(default_factory=threading.Lock)


class Relevance:
    """Ranks frontiers.

    Threading: safe to share; calls for one conversation wait for one another.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._known: OrderedDict[int, _Known] = OrderedDict()

    def rank(
        self,
        conversation_id: int,
        frontier: Frontier,
        prompt: str | None,
        shown_ordinals: Sequence[int],
    ) -> Ranking:
        """Return how much each item of a frontier has to do with a prompt.

        Parameters
        ----------
        prompt
            None: what the user said last.
        shown_ordinals
            Of the items that the assembly before showed.

        Complexity: reads and analyses the items that are not indexed yet; beyond that linear in
        the terms of all items.
        """
        known = self._of(conversation_id)
        with known.lock:
            rows = self._rows(known, frontier)
            if prompt is None:
                prompt = self._newest_prompt(frontier)
            scores = known.index.scores(prompt, rows)
        self._forget_beyond_bound()
        return Ranking(
            scores=spread_scores(scores, frontier.tokens),
            shown=np.isin(frontier.ordinals, np.asarray(shown_ordinals, dtype=np.int64)),
        )

    def _newest_prompt(self, frontier: Frontier) -> str:
        index = frontier.newest_user_index
        if index is None:
            return ""
        message_id = int(frontier.message_ids[index])
        return self._store.texts([message_id]).get(message_id, "")

    def _of(self, conversation_id: int) -> _Known:
        with self._lock:
            known = self._known.setdefault(conversation_id, _Known())
            self._known.move_to_end(conversation_id)
            return known

    def _forget_beyond_bound(self) -> None:
        """Drop the indexes used longest ago, but for the last one."""
        with self._lock:
            total = sum(known.index.term_count for known in self._known.values())
            while total > _REMEMBERED_TERMS and len(self._known) > 1:
                _, oldest = self._known.popitem(last=False)
                total -= oldest.index.term_count

    def _rows(self, known: _Known, frontier: Frontier) -> Int64:
        """Return the index's row of each item; a frontier that has only grown is looked up from
        where it ended."""
        if known.revision != frontier.revision or len(known.rows) > len(frontier):
            known.rows = np.empty(0, dtype=np.int64)
            known.revision = frontier.revision
        begin = len(known.rows)
        messages = frontier.message_ids[begin:].tolist()
        names = frontier.summary_ids[begin:]
        keys = [name or message for name, message in zip(names, messages, strict=True)]
        self._index(known.index, [key for key in keys if key not in known.index])
        known.rows = np.concatenate((known.rows, known.index.rows(keys)))
        return known.rows

    def _index(self, index: TermIndex, keys: list[str | int]) -> None:
        for begin in range(0, len(keys), _TEXTS_AT_A_TIME):
            some = keys[begin : begin + _TEXTS_AT_A_TIME]
            texts: dict[str | int, str] = {}
            said = self._store.texts([key for key in some if isinstance(key, int)])
            texts.update(said.items())
            names = [key for key in some if isinstance(key, str)]
            texts.update((one.summary_id, one.content) for one in self._store.summaries(names))
            index.add(some, [texts.get(key, "") for key in some])


def spread_scores(scores: Float64, tokens: Int64) -> Float64:
    """Return scores with the neighbours' shares, over a power of the items' sizes.

    Parameters
    ----------
    scores : float64[n]
        In the order of the conversation.
    tokens : int64[n]
    """
    spread = scores.copy()
    for distance, share in enumerate(_NEIGHBOUR_SHARES, 1):
        spread[distance:] += share * scores[:-distance]
        spread[:-distance] += share * scores[distance:]
    return spread / np.maximum(tokens, 1) ** _SIZE_EXPONENT
