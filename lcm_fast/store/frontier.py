"""A conversation's frontier as typed arrays, and how it is read from context items.

What selection and planning need of each item stands in `context_items` itself, so no other table is
read. A frontier that was read before is extended by the items after its last ordinal; only a
changed view revision makes it start anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

import apsw
import numpy as np
import numpy.typing as npt

from ..kernels import select_fresh_tail

__all__ = ["BRIEF", "MESSAGE", "ROLE_CODES", "SUMMARY", "Frontier", "KnownFrontiers"]

MESSAGE, SUMMARY, BRIEF = 0, 1, 2
ROLE_CODES = {"system": 0, "user": 1, "assistant": 2, "tool": 3, "summary": 4}

_ROLE_CODE = " ".join(f"WHEN '{name}' THEN {code}" for name, code in ROLE_CODES.items())
# As few columns as will do: on a long frontier, taking values from the cursor is most of the time.
_COLUMNS = 5
_ITEMS = (
    f"SELECT ordinal, CASE role {_ROLE_CODE} END, wire_tokens, opener, coalesce(message_id, -1)"
    " FROM context_items WHERE conversation_id = ? AND ordinal > ? ORDER BY ordinal"
)
_SUMMARIES = (
    "SELECT summary_id, depth FROM context_items"
    " WHERE conversation_id = ? AND ordinal > ? AND item_type = 'summary' ORDER BY ordinal"
)

Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Frontier:
    """Context items, oldest first, as parallel arrays of length n.

    Attributes
    ----------
    revision
        The conversation's view revision these arrays belong to.
    ordinals, depths, tokens, openers, message_ids : int64[n]
        Depth is -1 and message id the row's for a message; message id is -1 for a summary. Tokens
        are those of the item as the model is sent it. An opener is the ordinal of the call a tool
        message belongs to.
    kinds, roles : uint8[n]
        `MESSAGE`, `SUMMARY`, or `BRIEF` for a focus brief that is laid over them; `ROLE_CODES`.
    summary_ids : list of n
        The summary's or brief's id, or None for a message.
    """

    revision: int
    ordinals: Int64
    kinds: UInt8
    roles: UInt8
    depths: Int64
    tokens: Int64
    openers: Int64
    message_ids: Int64
    summary_ids: list[str | None]

    def __len__(self) -> int:
        return len(self.ordinals)

    @property
    def last_ordinal(self) -> int:
        """Ordinal of the newest item, 0 when there is none."""
        return int(self.ordinals[-1]) if len(self) else 0

    @property
    def leading_system_count(self) -> int:
        """How many system messages stand at the head: a host's own prompt, never summarised nor
        dropped."""
        others = np.flatnonzero(self.roles != ROLE_CODES["system"])
        return int(others[0]) if len(others) else len(self)

    @property
    def newest_user_index(self) -> int | None:
        """Index of the newest user message: kept raw and in every assembly (decision 1)."""
        users = np.flatnonzero((self.roles == ROLE_CODES["user"]) & (self.kinds == MESSAGE))
        return int(users[-1]) if len(users) else None

    def fresh_tail_start(self, count: int, max_tokens: int | None) -> int:
        """Return the index where the fresh tail begins; the length when nothing is protected.

        Compaction, assembly and status share this one boundary (decision 1).
        """
        return select_fresh_tail(
            np.minimum(self.kinds, SUMMARY),  # a brief, like a summary, is no message
            self.ordinals,
            self.openers,
            self.tokens,
            count,
            -1 if max_tokens is None else max_tokens,
        )

    def with_summary(
        self, begin: int, end: int, *, summary_id: str, depth: int, tokens: int, revision: int
    ) -> Frontier:
        """Return the frontier with the items ``begin:end`` replaced by a summary at the first one's
        ordinal."""
        summary = Frontier._note(
            revision, self.ordinals[begin], SUMMARY, depth=depth, tokens=tokens, note_id=summary_id
        )
        head, tail = self._picked(slice(0, begin)), self._picked(slice(end, len(self)))
        return replace(head._extended(summary)._extended(tail), revision=revision)

    def with_brief(self, covered: Int64, *, brief_id: str, tokens: int) -> Frontier:
        """Return the frontier with a focus brief in the place of the summaries it covers.

        Parameters
        ----------
        covered : int64[m]
            Ordinals of the summaries, at least one of which is here.

        Complexity: linear in the frontier.
        """
        is_covered = np.isin(self.ordinals, covered) & (self.kinds == SUMMARY)
        first = int(np.flatnonzero(is_covered)[0])
        brief = Frontier._note(
            self.revision, self.ordinals[first], BRIEF, depth=0, tokens=tokens, note_id=brief_id
        )
        rest = self._picked(np.flatnonzero(~is_covered))
        before = int(np.count_nonzero(~is_covered[:first]))
        head, tail = rest._picked(slice(0, before)), rest._picked(slice(before, len(rest)))
        return head._extended(brief)._extended(tail)

    def _picked(self, indexes: slice | npt.NDArray[np.intp]) -> Frontier:
        """Return the frontier of some of the items, in the order they are given in."""
        if isinstance(indexes, slice):
            summary_ids = self.summary_ids[indexes]
        else:
            summary_ids = [self.summary_ids[index] for index in indexes.tolist()]
        return Frontier(
            revision=self.revision,
            ordinals=self.ordinals[indexes],
            kinds=self.kinds[indexes],
            roles=self.roles[indexes],
            depths=self.depths[indexes],
            tokens=self.tokens[indexes],
            openers=self.openers[indexes],
            message_ids=self.message_ids[indexes],
            summary_ids=summary_ids,
        )

    @staticmethod
    def empty(revision: int) -> Frontier:
        """Return a frontier of no items."""
        none = np.empty(0, np.int64)
        no_codes = np.empty(0, np.uint8)
        return Frontier(revision, none, no_codes, no_codes, none, none, none, none, [])

    @staticmethod
    def _note(
        revision: int, ordinal: np.int64, kind: int, *, depth: int, tokens: int, note_id: str
    ) -> Frontier:
        """Return a frontier of one summary or brief."""
        place = np.array([ordinal], np.int64)
        return Frontier(
            revision=revision,
            ordinals=place,
            kinds=np.array([kind], np.uint8),
            roles=np.array([ROLE_CODES["summary"]], np.uint8),
            depths=np.array([depth], np.int64),
            tokens=np.array([tokens], np.int64),
            openers=place,
            message_ids=np.array([-1], np.int64),
            summary_ids=[note_id],
        )

    def _extended(self, newer: Frontier) -> Frontier:
        if not len(newer):
            return self
        return Frontier(
            revision=newer.revision,
            ordinals=np.concatenate((self.ordinals, newer.ordinals)),
            kinds=np.concatenate((self.kinds, newer.kinds)),
            roles=np.concatenate((self.roles, newer.roles)),
            depths=np.concatenate((self.depths, newer.depths)),
            tokens=np.concatenate((self.tokens, newer.tokens)),
            openers=np.concatenate((self.openers, newer.openers)),
            message_ids=np.concatenate((self.message_ids, newer.message_ids)),
            summary_ids=self.summary_ids + newer.summary_ids,
        )


class KnownFrontiers(Protocol):
    """Frontiers read before, by conversation; a dict is one."""

    def get(self, conversation_id: int, /) -> Frontier | None:
        """Return the frontier of a conversation, if it was read before."""
        ...


def load(
    db: apsw.Connection, conversation_id: int, revision: int, known: Frontier | None
) -> Frontier:
    """Return the frontier at `revision`, reading only what `known` lacks."""
    if known is None or known.revision != revision:
        known = Frontier.empty(revision)
    after = (conversation_id, known.last_ordinal)
    # Integers go from the cursor into an array without a list of rows between: a third of the time.
    values = np.fromiter(chain.from_iterable(db.execute(_ITEMS, after)), dtype=np.int64)
    columns = np.ascontiguousarray(values.reshape(-1, _COLUMNS).T)
    ordinals, roles, tokens, openers, message_ids = columns
    is_summary = message_ids < 0
    depths = np.full(len(ordinals), -1, np.int64)
    summary_ids: list[str | None] = [None] * len(ordinals)
    places = np.flatnonzero(is_summary).tolist()
    if places:
        for place, (summary_id, depth) in zip(places, db.execute(_SUMMARIES, after), strict=True):
            summary_ids[place] = summary_id
            depths[place] = depth
    newer = Frontier(
        revision=revision,
        ordinals=ordinals,
        kinds=is_summary.astype(np.uint8),  # MESSAGE or SUMMARY
        roles=roles.astype(np.uint8),
        depths=depths,
        tokens=tokens,
        openers=openers,
        message_ids=message_ids,
        summary_ids=summary_ids,
    )
    return known._extended(newer)
