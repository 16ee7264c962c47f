"""Find the rows of the record that a message may be: one statement each, whatever the batch.

Reads only; which candidate a message is, if any, is `recognise`'s to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import apsw

__all__ = [
    "KnownRow",
    "after",
    "before",
    "by_entry_id",
    "by_event_key",
    "by_id",
    "by_identity",
    "by_identity_and_time",
    "by_revision",
    "in_view",
    "last_shown_seq",
    "newest",
    "oldest_times",
    "raw_of",
    "seq_of",
]


class KnownRow(NamedTuple):
    """What of a stored message tells whether another message is it."""

    message_id: int
    seq: int
    entry_id: str | None
    identity: bytes
    created_at: str
    timed: int
    claimed: int
    excluded: str | None
    role: str
    transcript_id: int | None


_COLUMNS = (
    "m.message_id, m.seq, m.transcript_entry_id, m.identity_hash, m.created_at, m.timed,"
    " m.claimed, m.excluded, m.role, m.transcript_id"
)


def by_entry_id(
    db: apsw.Connection, conversation_id: int, entry_ids: Iterable[str]
) -> list[KnownRow]:
    """Return the rows with these entry ids; a surrogate-free id is one JSON string."""
    return _rows(
        db,
        f"SELECT {_COLUMNS} FROM json_each(?) CROSS JOIN messages m"
        " ON m.conversation_id = ? AND m.transcript_entry_id = value",
        (_json(entry_ids), conversation_id),
    )


def by_event_key(
    db: apsw.Connection, conversation_id: int, keys: Iterable[str]
) -> dict[str, KnownRow]:
    """Return the row of each event key that is stored."""
    rows = db.execute(
        f"SELECT value, {_COLUMNS} FROM json_each(?) CROSS JOIN messages m"
        " ON m.conversation_id = ? AND m.stable_event_key = value",
        (_json(keys), conversation_id),
    )
    return {key: KnownRow(*row) for key, *row in rows}


def by_identity_and_time(
    db: apsw.Connection, conversation_id: int, wanted: Iterable[tuple[bytes, str]]
) -> list[KnownRow]:
    """Return the rows that say the same at the same time, in order."""
    pairs = [[identity.hex(), time] for identity, time in wanted]
    return _rows(
        db,
        f"SELECT {_COLUMNS} FROM json_each(?) CROSS JOIN messages m"
        " ON m.conversation_id = ? AND m.identity_hash = unhex(value ->> 0)"
        " AND m.claimed IN (0, 1) AND m.created_at = value ->> 1 ORDER BY m.seq",
        (json.dumps(pairs), conversation_id),
    )


def by_identity(
    db: apsw.Connection,
    conversation_id: int,
    identities: Iterable[bytes],
    *,
    unclaimed_only: bool = False,
) -> list[KnownRow]:
    """Return the rows that say the same, in order."""
    claimed = "(0)" if unclaimed_only else "(0, 1)"
    return _rows(
        db,
        f"SELECT {_COLUMNS} FROM json_each(?) CROSS JOIN messages m"
        f" ON m.conversation_id = ? AND m.identity_hash = unhex(value)"
        f" AND m.claimed IN {claimed} ORDER BY m.seq",
        (_hex(identities), conversation_id),
    )


def by_revision(
    db: apsw.Connection, conversation_id: int, identities: Iterable[bytes]
) -> list[tuple[bytes, KnownRow]]:
    """Return the rows that came in another form before, with that form's identity, in order."""
    rows = db.execute(
        f"SELECT r.identity_hash, {_COLUMNS} FROM json_each(?)"
        " CROSS JOIN message_revisions r"
        " ON r.conversation_id = ? AND r.identity_hash = unhex(value)"
        " CROSS JOIN messages m ON m.message_id = r.message_id ORDER BY m.seq",
        (_hex(identities), conversation_id),
    )
    return [(identity, KnownRow(*row)) for identity, *row in rows]


def newest(db: apsw.Connection, conversation_id: int, limit: int) -> list[KnownRow]:
    """Return the newest rows, oldest of them first."""
    return before(db, conversation_id, None, limit)


def before(
    db: apsw.Connection, conversation_id: int, seq: int | None, limit: int
) -> list[KnownRow]:
    """Return up to `limit` rows that stand before a seq (None: the end), oldest first."""
    end = "" if seq is None else " AND m.seq < :seq"
    rows = _rows(
        db,
        f"SELECT {_COLUMNS} FROM messages m WHERE m.conversation_id = :conversation{end}"
        " ORDER BY m.seq DESC LIMIT :limit",
        {"conversation": conversation_id, "seq": seq, "limit": limit},
    )
    return rows[::-1]


def after(db: apsw.Connection, conversation_id: int, seq: int, limit: int) -> list[KnownRow]:
    """Return up to `limit` rows that stand after a seq, in order."""
    return _rows(
        db,
        f"SELECT {_COLUMNS} FROM messages m WHERE m.conversation_id = ? AND m.seq > ?"
        " ORDER BY m.seq LIMIT ?",
        (conversation_id, seq, limit),
    )


def oldest_times(
    db: apsw.Connection, conversation_id: int, identities: Iterable[bytes]
) -> dict[bytes, str]:
    """Return the time of the oldest row of each identity that has any."""
    oldest = (
        "(SELECT min(created_at) FROM messages WHERE conversation_id = :conversation"
        " AND identity_hash = unhex(value) AND claimed = {})"
    )
    rows = db.execute(
        f"SELECT unhex(value), {oldest.format(0)}, {oldest.format(1)} FROM json_each(:identities)",
        {"conversation": conversation_id, "identities": _hex(identities)},
    )
    found = {identity: [time for time in times if time] for identity, *times in rows}
    return {identity: min(times) for identity, times in found.items() if times}


def in_view(db: apsw.Connection, message_ids: Iterable[int]) -> set[int]:
    """Return those of these messages that stand in the view themselves, under no summary."""
    rows = db.execute(
        "SELECT message_id FROM json_each(?) CROSS JOIN context_items ON message_id = value",
        (json.dumps(list(message_ids)),),
    )
    return {int(message_id) for (message_id,) in rows}


def last_shown_seq(db: apsw.Connection, conversation_id: int) -> int:
    """Return where the newest row stands that a transcript has shown, 0 for none."""
    rows = db.execute(
        "SELECT seq FROM messages WHERE conversation_id = ? AND transcript_id IS NOT NULL"
        " ORDER BY seq DESC LIMIT 1",
        (conversation_id,),
    )
    return next((int(seq) for (seq,) in rows), 0)


def raw_of(db: apsw.Connection, message_id: int) -> tuple[str, int, bytes]:
    """Return a row's content and its packed bytes: (content, flags, blob)."""
    rows = db.execute(
        "SELECT content, raw_codec, raw FROM messages WHERE message_id = ?", (message_id,)
    )
    content, flags, blob = next(iter(rows))
    return content, flags, blob


def by_id(db: apsw.Connection, message_id: int | None) -> KnownRow | None:
    """Return the row of a message id, None for none."""
    if message_id is None:
        return None
    query = f"SELECT {_COLUMNS} FROM messages m WHERE m.message_id = ?"
    return next(iter(_rows(db, query, (message_id,))), None)


def seq_of(db: apsw.Connection, message_id: int | None) -> int | None:
    """Return where a message stands, None for none."""
    row = by_id(db, message_id)
    return None if row is None else row.seq


def _rows(db: apsw.Connection, query: str, parameters: Any) -> list[KnownRow]:
    return [KnownRow(*row) for row in db.execute(query, parameters)]


def _json(texts: Iterable[str]) -> str:
    return json.dumps(list(dict.fromkeys(texts)))


def _hex(identities: Iterable[bytes]) -> str:
    return json.dumps(list({identity.hex() for identity in identities}))
