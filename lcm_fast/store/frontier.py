"""A conversation's frontier as typed arrays, and how it is read from context items.

What selection and planning need of each item stands in `context_items` itself, so no other table is
read. A frontier that was read before is extended by the items after its last ordinal; only a
changed view revision makes it start anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import apsw
import numpy as np
import numpy.typing as npt

from ..kernels import select_fresh_tail

__all__ = ["MESSAGE", "ROLE_CODES", "SUMMARY", "Frontier"]

MESSAGE, SUMMARY = 0, 1
ROLE_CODES = {"system": 0, "user": 1, "assistant": 2, "tool": 3, "summary": 4}

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
        `MESSAGE` or `SUMMARY`; `ROLE_CODES`.
    summary_ids : list of n
        The summary's id, or None for a message.
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
            self.kinds,
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
        first = self.ordinals[begin]
        row = (int(first), SUMMARY, "summary", depth, tokens, int(first), -1, summary_id)
        summary = Frontier._from_rows(revision, [row])
        head, tail = self._sliced(0, begin), self._sliced(end, len(self))
        return replace(head._extended(summary)._extended(tail), revision=revision)

    def _sliced(self, begin: int, end: int) -> Frontier:
        return Frontier(
            revision=self.revision,
            ordinals=self.ordinals[begin:end],
            kinds=self.kinds[begin:end],
            roles=self.roles[begin:end],
            depths=self.depths[begin:end],
            tokens=self.tokens[begin:end],
            openers=self.openers[begin:end],
            message_ids=self.message_ids[begin:end],
            summary_ids=self.summary_ids[begin:end],
        )

    @staticmethod
    def empty(revision: int) -> Frontier:
        """Return a frontier of no items."""
        return Frontier._from_rows(revision, [])

    @staticmethod
    def _from_rows(revision: int, rows: list[tuple[object, ...]]) -> Frontier:
        columns: list[tuple[object, ...]] = list(zip(*rows, strict=True)) if rows else [()] * 8
        ordinal, kind, role, depth, tokens, opener, message, summary = columns
        return Frontier(
            revision=revision,
            ordinals=np.array(ordinal, dtype=np.int64),
            kinds=np.array(kind, dtype=np.uint8),
            roles=np.array([ROLE_CODES[str(name)] for name in role], dtype=np.uint8),
            depths=np.array(depth, dtype=np.int64),
            tokens=np.array(tokens, dtype=np.int64),
            openers=np.array(opener, dtype=np.int64),
            message_ids=np.array(message, dtype=np.int64),
            summary_ids=list(summary),  # type: ignore[arg-type]
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


def load(
    db: apsw.Connection, conversation_id: int, revision: int, known: Frontier | None
) -> Frontier:
    """Return the frontier at `revision`, reading only what `known` lacks."""
    if known is None or known.revision != revision:
        known = Frontier.empty(revision)
    rows = db.execute(
        "SELECT ordinal, item_type = 'summary', role, depth, wire_tokens, opener,"
        " coalesce(message_id, -1), summary_id FROM context_items"
        " WHERE conversation_id = ? AND ordinal > ? ORDER BY ordinal",
        (conversation_id, known.last_ordinal),
    ).fetchall()
    return known._extended(Frontier._from_rows(revision, rows))
