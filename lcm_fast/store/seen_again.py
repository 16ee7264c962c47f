"""What changes on a stored message when it is seen again: its entry's id and bytes, its forms.

A live message that a transcript shows takes the entry's id and bytes. Another form of a message
(redacted, pruned, decorated, spaced otherwise) is kept beside it; the first text stays the text.
Runs in the caller's transaction.
"""

from __future__ import annotations

import apsw

from ..types import Message
from . import known_rows
from .codec import RecordCodec
from .known_rows import KnownRow
from .recognise import Known
from .rows import Batch

__all__ = ["LIVE_FORM", "note_forms"]

# The bytes in which a host gave a message whose entry has more fields.
LIVE_FORM = "live"


def note_forms(
    db: apsw.Connection,
    conversation_id: int,
    batch: Batch,
    packed: list[tuple[int, bytes]],
    known: Known,
    codec: RecordCodec,
    transcript_id: int | None,
) -> int:
    """Note what the batch adds to the rows it shows again; return how many new forms that is."""
    forms = 0
    for position, row in known.rows.items():
        message = batch.messages[position]
        kind = known.revisions.get(position)
        if position in known.twins:
            continue
        is_from_transcript = batch.source != "live"
        is_first_showing = is_from_transcript and row.transcript_id is None
        is_claimed_now = is_first_showing or (not row.claimed and message.entry_id is not None)
        if kind is not None:
            forms += _add_form(db, conversation_id, row, message, kind, batch.received_at, codec)
        elif is_claimed_now:
            forms += _take_bytes(db, conversation_id, row, batch, position, packed, codec)
        if is_claimed_now or (message.entry_id not in (None, row.entry_id)):
            _claim(db, row, message, transcript_id)
    return forms


def _claim(db: apsw.Connection, row: KnownRow, message: Message, transcript_id: int | None) -> None:
    db.execute(
        "UPDATE messages SET claimed = 1, transcript_id = coalesce(:transcript, transcript_id),"
        " transcript_entry_id = coalesce(:entry_id, transcript_entry_id),"
        " parent_entry_id = CASE WHEN :entry_id IS NULL THEN parent_entry_id ELSE :parent_id END,"
        " created_at = CASE WHEN timed = 0 THEN coalesce(:time, created_at) ELSE created_at END,"
        " timed = max(timed, :timed) WHERE message_id = :id",
        {
            "transcript": transcript_id,
            "entry_id": message.entry_id,
            "parent_id": message.parent_id,
            "time": message.created_at,
            "timed": message.timed,
            "id": row.message_id,
        },
    )


def _take_bytes(
    db: apsw.Connection,
    conversation_id: int,
    row: KnownRow,
    batch: Batch,
    position: int,
    packed: list[tuple[int, bytes]],
    codec: RecordCodec,
) -> int:
    """Give a live message the bytes of its entry; return how many forms were kept beside it."""
    message = batch.messages[position]
    content, flags, blob = known_rows.raw_of(db, row.message_id)
    live = codec.unpack(flags, blob, content)
    kind = batch.revision_of(live, message)
    if kind and content != message.content:
        return _add_form(db, conversation_id, row, message, kind, batch.received_at, codec)
    if content != message.content:
        return 0
    db.execute(
        "UPDATE messages SET raw_codec = ?, raw = ? WHERE message_id = ?",
        (*packed[position], row.message_id),
    )
    if not kind:
        return 0
    return _insert_form(
        db, conversation_id, row, row.identity, LIVE_FORM, batch.received_at, live, codec
    )


def _add_form(
    db: apsw.Connection,
    conversation_id: int,
    row: KnownRow,
    message: Message,
    kind: str,
    now: str,
    codec: RecordCodec,
) -> int:
    return _insert_form(db, conversation_id, row, message.identity, kind, now, message.raw, codec)


def _insert_form(
    db: apsw.Connection,
    conversation_id: int,
    row: KnownRow,
    identity: bytes,
    kind: str,
    now: str,
    raw: bytes,
    codec: RecordCodec,
) -> int:
    db.execute(
        "INSERT INTO message_revisions (conversation_id, message_id, kind, identity_hash,"
        " received_at, raw_codec, raw) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (conversation_id, row.message_id, kind, identity, now, *codec.pack(raw, "")),
    )
    return db.changes()
