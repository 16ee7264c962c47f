"""Tell which messages of a host's live list the record holds; reads only.

A list may be the whole history, its end, or what is left of it after a compaction of the host's.
Ambiguity takes a message for new: it is then shown twice, never left out (spec T; decision 11).
"""

from __future__ import annotations

import apsw
import numpy as np

from ..kernels import align
from ..types import OWN_TIME, Message
from . import known_rows
from .codec import RecordCodec
from .known_rows import KnownRow
from .recognise import find_known
from .rows import Batch, Conversation

__all__ = ["rows_of_live"]

# How many more rows than live messages are looked at.
_SLACK = 64


def rows_of_live(
    db: apsw.Connection, conversation: Conversation, batch: Batch, codec: RecordCodec
) -> dict[int, int]:
    """Return the message id of the row that each live message is, by its position.

    Complexity: as `find_known`; without ids and times, linear in the list and as many newest rows.
    """
    found = find_known(db, conversation, batch, codec).rows
    if found:
        return {position: row.message_id for position, row in found.items()}
    limit = len(batch.messages) + _SLACK
    rows = known_rows.newest(db, conversation.conversation_id, limit)
    places = align(
        _digests([row.identity for row in rows]),
        _digests([message.identity for message in batch.messages]),
    ).tolist()
    if places and batch.messages[-1].role == "user" and _is_answered(rows, places[-1]):
        places[-1] = -1
    return {
        position: rows[place].message_id
        for position, place in enumerate(places)
        if place >= 0 and not _is_at_another_time(rows[place], batch.messages[position])
    }


def _is_answered(rows: list[KnownRow], place: int) -> bool:
    """Tell whether the record has an answer to a user's message: who says the same once more is
    not answered yet."""
    return place >= 0 and any(row.role == "assistant" for row in rows[place + 1 :])


def _is_at_another_time(row: KnownRow, message: Message) -> bool:
    times = (row.timed, message.timed)
    return times == (OWN_TIME, OWN_TIME) and row.created_at != message.created_at


def _digests(identities: list[bytes]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    heads = b"".join(identity[:8] for identity in identities)
    return np.frombuffer(heads, dtype=np.int64)
