"""How far each transcript has been read, and which cannot be read on.

A cursor moves in the transaction that stores what it stands behind. A frozen one names since when
and why; it is an error in `status`, and thaws when its transcript can be read on (decision 11).
"""

from __future__ import annotations

import apsw

from .rows import Cursor

__all__ = ["freeze", "frozen", "load", "move", "number_of", "of_session", "seen"]

_COLUMNS = (
    "session_file_path, session_header_id, last_seen_size, last_seen_mtime_ns,"
    " last_processed_offset, last_processed_entry_id, prefix_fingerprint, message_count,"
    " shown_from, shown_from_entry_id, last_message_id, frozen_since, frozen_reason"
)


def load(db: apsw.Connection, conversation_id: int, path: str) -> Cursor | None:
    """Return the cursor of a transcript."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM transcript_cursors"
        " WHERE conversation_id = ? AND session_file_path = ?",
        (conversation_id, path),
    )
    return next((Cursor(*row) for row in rows), None)


def of_session(
    db: apsw.Connection, conversation_id: int, path: str, header_id: str | None
) -> list[int]:
    """Return the numbers of the transcripts that are this one, or other states of its session."""
    rows = db.execute(
        "SELECT transcript_id FROM transcript_cursors WHERE conversation_id = ?1"
        " AND (session_header_id = ?3"
        " OR session_file_path = ?2 AND (session_header_id IS NULL OR ?3 IS NULL))",
        (conversation_id, path, header_id),
    )
    return [int(number) for (number,) in rows]


def number_of(db: apsw.Connection, conversation_id: int, cursor: Cursor, now: str) -> int:
    """Return a transcript's number, given one when it is met for the first time."""
    rows = db.execute(
        "INSERT INTO transcript_cursors (conversation_id, session_file_path, session_header_id,"
        " last_seen_size, last_seen_mtime_ns, last_processed_offset, updated_at)"
        " VALUES (?, ?, ?, 0, 0, 0, ?)"
        " ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at RETURNING transcript_id",
        (conversation_id, cursor.path, cursor.header_id, now),
    )
    return int(next(iter(rows))[0])


def move(db: apsw.Connection, number: int, cursor: Cursor, now: str) -> None:
    """Put a cursor where its transcript has been read to; it is not frozen afterwards."""
    db.execute(
        "UPDATE transcript_cursors SET session_header_id = ?, last_seen_size = ?,"
        " last_seen_mtime_ns = ?, last_processed_offset = ?, last_processed_entry_id = ?,"
        " prefix_fingerprint = ?, message_count = ?, shown_from = ?,"
        " shown_from_entry_id = ?, last_message_id = ?, frozen_since = NULL,"
        " frozen_reason = NULL, updated_at = ? WHERE transcript_id = ?",
        (
            cursor.header_id,
            cursor.size,
            cursor.mtime_ns,
            cursor.offset,
            cursor.last_entry_id,
            cursor.fingerprint,
            cursor.messages,
            cursor.shown_from,
            cursor.shown_from_id,
            cursor.last_message_id,
            now,
            number,
        ),
    )


def freeze(
    db: apsw.Connection, conversation_id: int, cursor: Cursor, reason: str, now: str
) -> None:
    """Note that a transcript cannot be read on; one that is frozen keeps its age."""
    db.execute(
        "INSERT INTO transcript_cursors (conversation_id, session_file_path, session_header_id,"
        " last_seen_size, last_seen_mtime_ns, last_processed_offset, frozen_since, frozen_reason,"
        " updated_at) VALUES (:conversation, :path, :header, :size, :mtime, 0, :now, :reason, :now)"
        " ON CONFLICT DO UPDATE SET frozen_since = coalesce(frozen_since, :now),"
        " frozen_reason = :reason, last_seen_size = :size, last_seen_mtime_ns = :mtime,"
        " updated_at = :now",
        {
            "conversation": conversation_id,
            "path": cursor.path,
            "header": cursor.header_id,
            "size": cursor.size,
            "mtime": cursor.mtime_ns,
            "reason": reason,
            "now": now,
        },
    )


def seen(db: apsw.Connection, limit: int) -> list[tuple[str | None, str, int]]:
    """Return (session key, path, size when read) of the transcripts that were read last."""
    rows = db.execute(
        "SELECT session_key, session_file_path, last_seen_size"
        " FROM transcript_cursors JOIN conversations USING (conversation_id)"
        " WHERE frozen_since IS NULL ORDER BY transcript_cursors.updated_at DESC LIMIT ?",
        (limit,),
    )
    return [(key, str(path), int(size)) for key, path, size in rows]


def frozen(db: apsw.Connection, limit: int) -> list[tuple[str | None, str, str, str]]:
    """Return (session key, path, since when, why) of the transcripts that are held back."""
    rows = db.execute(
        "SELECT session_key, session_file_path, frozen_since, frozen_reason"
        " FROM transcript_cursors JOIN conversations USING (conversation_id)"
        " WHERE frozen_since IS NOT NULL ORDER BY frozen_since LIMIT ?",
        (limit,),
    )
    return [(key, str(path), str(since), str(reason)) for key, path, since, reason in rows]
