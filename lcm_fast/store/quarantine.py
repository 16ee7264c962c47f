"""Messages the flood guard refused: set aside with the reason until someone admits or drops them.

What is resolved stays, marked, so that the record never loses a byte it was given. Runs in the
caller's transaction (decision 12).
"""

from __future__ import annotations

from typing import Any

import apsw

from ..errors import NotFoundError
from ..types import Message
from .codec import RecordCodec
from .rows import QuarantinedBatch

__all__ = ["batches", "messages_of", "resolve", "set_aside"]

_OPEN = (
    "SELECT batch_id, q.conversation_id, session_key, reason, min(received_at), count(*),"
    " min(quarantine_id) FROM quarantine q JOIN conversations USING (conversation_id)"
    " WHERE resolved_at IS NULL"
)


def set_aside(
    db: apsw.Connection,
    conversation_id: int,
    messages: list[Message],
    packed: list[tuple[int, bytes]],
    reason: str,
    now: str,
) -> str:
    """Keep refused messages; return the id of their batch."""
    (next_id,) = next(
        iter(db.execute("SELECT coalesce(max(quarantine_id), 0) + 1 FROM quarantine"))
    )
    batch_id = f"q{next_id}"
    db.executemany(
        "INSERT INTO quarantine (conversation_id, batch_id, role, content, reason, received_at,"
        " raw_codec, raw) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (conversation_id, batch_id, message.role, message.content, reason, now, *blob)
            for message, blob in zip(messages, packed, strict=True)
        ],
    )
    _count(db, conversation_id, len(messages))
    return batch_id


def batches(
    db: apsw.Connection, conversation_id: int | None, *, limit: int
) -> list[QuarantinedBatch]:
    """Return the batches that wait, oldest first."""
    rows = db.execute(
        f"{_OPEN} AND coalesce(?1, q.conversation_id) = q.conversation_id"
        " GROUP BY batch_id ORDER BY min(quarantine_id) LIMIT ?2",
        (conversation_id, limit),
    )
    return [QuarantinedBatch(*row[:-1]) for row in rows]


def messages_of(db: apsw.Connection, codec: RecordCodec, batch_id: str) -> tuple[int, list[bytes]]:
    """Return a waiting batch's conversation and the bytes of its messages, in order.

    Raises
    ------
    NotFoundError
        No batch of this id waits.
    """
    rows: list[tuple[Any, ...]] = db.execute(
        "SELECT conversation_id, content, raw_codec, raw FROM quarantine"
        " WHERE batch_id = ? AND resolved_at IS NULL ORDER BY quarantine_id",
        (batch_id,),
    ).fetchall()
    if not rows:
        raise _not_waiting(batch_id)
    return rows[0][0], [codec.unpack(flags, raw, content) for _, content, flags, raw in rows]


def resolve(db: apsw.Connection, batch_id: str, resolution: str, now: str) -> int:
    """Mark a waiting batch as admitted or dropped; return how many messages it held.

    Raises
    ------
    NotFoundError
        No batch of this id waits.
    """
    rows: list[tuple[Any, ...]] = db.execute(
        "UPDATE quarantine SET resolved_at = ?, resolution = ?"
        " WHERE batch_id = ? AND resolved_at IS NULL RETURNING conversation_id",
        (now, resolution, batch_id),
    ).fetchall()
    if not rows:
        raise _not_waiting(batch_id)
    _count(db, rows[0][0], -len(rows))
    return len(rows)


def _count(db: apsw.Connection, conversation_id: int, change: int) -> None:
    db.execute(
        "UPDATE conversations SET quarantined_count = quarantined_count + ?"
        " WHERE conversation_id = ?",
        (change, conversation_id),
    )


def _not_waiting(batch_id: str) -> NotFoundError:
    return NotFoundError(
        f"no quarantined batch {batch_id!r} waits", hint="`lcm-fast quarantine list` names them"
    )
