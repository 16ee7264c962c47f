"""Tell which messages of a batch the record already holds; reads only, under the write lock.

By entry id with content, else by content and how often it stands there (decision 11). Ambiguity may
store a message twice; it never leaves one out that is new. The number of statements depends on
neither the batch nor the conversation.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw

from ..types import Message
from .rows import Batch, Conversation

__all__ = ["Known", "extend_digest", "find_known"]


class _Stored(NamedTuple):
    seq: int
    entry_id: str | None
    excluded: str | None
    created_at: str


@dataclass(slots=True)
class Known:
    """What of a batch is stored.

    Attributes
    ----------
    seqs
        Position in the batch -> seq of the row it is.
    excluded
        Seq -> why the row is out of the view, of the rows recognised by their entry id.
    adopted
        Seq -> the entry id a row that was stored without one gets now.
    counts
        Identity -> how many rows have it.
    """

    seqs: dict[int, int] = field(default_factory=dict)
    excluded: dict[int, str | None] = field(default_factory=dict)
    adopted: dict[int, str] = field(default_factory=dict)
    counts: dict[bytes, int] = field(default_factory=dict)


def find_known(db: apsw.Connection, conversation: Conversation, batch: Batch) -> Known:
    """Return what of a batch is stored already."""
    known = Known()
    if not conversation.message_count:
        return known
    by_entry = _stored_by_entry(db, conversation.conversation_id, batch.messages)
    by_identity = _stored_by_identity(db, conversation.conversation_id, batch.messages)
    known.counts = {identity: len(rows) for identity, rows in by_identity.items()}
    resent = _resent_history(conversation, batch)
    seen: Counter[tuple[bytes, str | None]] = Counter()
    for position, message in enumerate(batch.messages):
        same_content = by_identity.get(message.identity, [])
        if message.entry_id is None:
            if batch.occurrences is not None:
                row = _nth(same_content, batch.occurrences[position])
            else:
                row = _met_live(message, same_content, seen, is_resent=position < resent)
        else:
            row = by_entry.get((message.entry_id, message.identity))
            row = row or _adopt(known, message.entry_id, same_content)
            if row is not None:
                known.excluded[row.seq] = row.excluded
        if row is not None:
            known.seqs[position] = row.seq
    return known


def extend_digest(start: bytes, identities: Iterable[bytes]) -> bytes:
    """Return the digest of a history that goes on with these identities."""
    digest = start
    for identity in identities:
        digest = hashlib.blake2b(digest + identity, digest_size=16).digest()
    return digest


def _met_live(
    message: Message,
    same_content: list[_Stored],
    seen: Counter[tuple[bytes, str | None]],
    *,
    is_resent: bool,
) -> _Stored | None:
    """Return the row of a message without an id in a live batch.

    Without a time it is a new one, unless the whole history comes again.
    """
    if not is_resent:
        if message.created_at is None:
            return None
        same_content = [row for row in same_content if row.created_at == message.created_at]
    seen[message.identity, message.created_at] += 1
    return _nth(same_content, seen[message.identity, message.created_at] - 1)


def _nth(rows: list[_Stored], occurrence: int) -> _Stored | None:
    return rows[occurrence] if occurrence < len(rows) else None


def _adopt(known: Known, entry_id: str, same_content: list[_Stored]) -> _Stored | None:
    """Return the earliest row with this content, met without an id, that no other entry took."""
    for row in same_content:
        if row.entry_id is None and row.seq not in known.adopted:
            known.adopted[row.seq] = entry_id
            return row
    return None


def _stored_by_entry(
    db: apsw.Connection, conversation_id: int, messages: list[Message]
) -> dict[tuple[str, bytes], _Stored]:
    ids = [message.entry_id for message in messages if message.entry_id]
    if not ids:
        return {}
    rows = db.execute(
        "SELECT identity_hash, seq, transcript_entry_id, excluded, created_at FROM json_each(?)"
        " CROSS JOIN messages ON conversation_id = ? AND transcript_entry_id = value",
        (json.dumps(ids), conversation_id),
    )
    return {(row[1], identity): _Stored(*row) for identity, *row in rows}


def _stored_by_identity(
    db: apsw.Connection, conversation_id: int, messages: list[Message]
) -> dict[bytes, list[_Stored]]:
    """Return the rows of each identity, by occurrence."""
    wanted = {message.identity.hex() for message in messages}
    rows = db.execute(
        "SELECT identity_hash, seq, transcript_entry_id, excluded, created_at FROM json_each(?)"
        " CROSS JOIN messages ON conversation_id = ? AND identity_hash = unhex(value)"
        " ORDER BY occurrence",
        (json.dumps(list(wanted)), conversation_id),
    )
    found: dict[bytes, list[_Stored]] = {}
    for identity, *row in rows:
        found.setdefault(identity, []).append(_Stored(*row))
    return found


def _resent_history(conversation: Conversation, batch: Batch) -> int:
    """Return how many messages at the head of a live batch are the whole record, sent again.

    Agents that send their full list each turn give neither ids nor times. One message alone is no
    evidence: a user may say "ok" twice.
    """
    count = conversation.message_count
    if batch.occurrences is not None or count > len(batch.messages) or len(batch.messages) == 1:
        return 0
    head = extend_digest(b"", (message.identity for message in batch.messages[:count]))
    return count if head == conversation.history_digest else 0
