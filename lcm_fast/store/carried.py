"""Entries of a session file that are not messages of the view: kept, so that an export is exact.

Headers, model changes, custom entries and unknown types, and entries that show a stored message
once more under another id. Runs in the caller's transaction.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import apsw

from .codec import RecordCodec
from .rows import Batch, CarriedEntry

__all__ = ["keep", "keep_twins"]


def keep(
    db: apsw.Connection,
    conversation_id: int,
    batch: Batch,
    after_seqs: Sequence[int],
    codec: RecordCodec,
    *,
    follow: bool,
) -> None:
    """Keep the batch's carried entries, each behind the message before it.

    Known ones go there too when they `follow`; not when no message tells where that is.
    """
    if not batch.carried:
        return
    occurrences = [entry.occurrence for entry in batch.carried]
    if batch.source == "appended":
        occurrences = _appended_occurrences(db, conversation_id, batch.carried)
    _insert(
        db,
        [
            (
                conversation_id,
                after,
                entry.type,
                entry.entry_id,
                entry.parent_id,
                entry.identity,
                occurrence,
                entry.offset,
                *codec.pack(entry.raw, ""),
            )
            for entry, after, occurrence in zip(batch.carried, after_seqs, occurrences, strict=True)
        ],
        follow=follow,
    )


def keep_twins(
    db: apsw.Connection,
    conversation_id: int,
    batch: Batch,
    twins: Iterable[int],
    seq_before: Callable[[int], int],
    codec: RecordCodec,
) -> None:
    """Keep the entries that show a stored message once more under another id."""
    rows: list[tuple[Any, ...]] = []
    for position in sorted(twins):
        message = batch.messages[position]
        rows.append(
            (
                conversation_id,
                seq_before(position),
                "message",
                message.entry_id,
                message.parent_id,
                hashlib.blake2b(message.raw, digest_size=16).digest(),
                0,
                0,
                *codec.pack(message.raw, ""),
            )
        )
    _insert(db, rows, follow=True)


def _appended_occurrences(
    db: apsw.Connection, conversation_id: int, entries: Sequence[CarriedEntry]
) -> list[int]:
    """Return which of its equals each entry at the end of a transcript is.

    One with an id has no equal. One without is stored when an equal one stands at the same offset:
    a transcript that lost its end shows it again.
    """
    rows = db.execute(
        "SELECT identity_hash, file_offset, occurrence FROM json_each(?)"
        " CROSS JOIN transcript_entries ON conversation_id = ? AND identity_hash = unhex(value)",
        (json.dumps(list({entry.identity.hex() for entry in entries})), conversation_id),
    )
    stored: dict[bytes, dict[int, int]] = {}
    for identity, offset, occurrence in rows:
        stored.setdefault(identity, {})[offset] = occurrence
    found = []
    for entry in entries:
        equals = stored.setdefault(entry.identity, {})
        new = 0 if entry.entry_id is not None else len(equals)
        found.append(equals.setdefault(entry.offset, new))
    return found


def _insert(db: apsw.Connection, rows: list[tuple[Any, ...]], *, follow: bool) -> None:
    when_known = (
        "UPDATE SET after_seq = excluded.after_seq, file_offset = excluded.file_offset"
        " WHERE (after_seq, file_offset) <> (excluded.after_seq, excluded.file_offset)"
    )
    db.executemany(
        "INSERT INTO transcript_entries (conversation_id, after_seq, entry_type, entry_id,"
        " parent_entry_id, identity_hash, occurrence, file_offset, raw_codec, raw)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO "
        + (when_known if follow else "NOTHING"),
        rows,
    )
