"""Append a batch to the record and to the view, in the caller's transaction.

What is already stored is recognised here, under the write lock, by unique indexes; nothing of a message that
is new is ever dropped (decision 11). The number of statements depends on the batch alone, never on the length
of the conversation.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from ..types import Message
from . import conversations
from .codec import RecordCodec
from .rows import Address, AppendOutcome, Batch, Conversation

__all__ = ["append"]

ABANDONED = "abandoned-branch"


def append(
    db: apsw.Connection, address: Address, batch: Batch, packed: list[tuple[int, bytes]], codec: RecordCodec
) -> AppendOutcome:
    """Store what is new of a batch; `packed` holds the packed raw bytes of its messages."""
    conversation = conversations.resolve(db, address, batch.received_at)
    known = _find_known(db, conversation, batch)
    rows = _Rows(db, conversation, batch, packed, known)
    rows.build()
    _insert(db, rows)
    _stamp(db, conversation.conversation_id, known.adopted)
    moved = _follow_branches(db, conversation.conversation_id, batch, known)
    _carry_entries(db, conversation, batch, rows.seqs, codec)
    if rows.messages:
        _count(db, conversation, batch, rows)
    if batch.cursor is not None:
        _move_cursor(db, conversation.conversation_id, batch)
    return AppendOutcome(
        conversation_id=conversation.conversation_id,
        message_ids=[row[0] for row in rows.messages],
        duplicates=len(batch.messages) - len(rows.messages),
        tokens=sum(row[5] for row in rows.messages),
        moved=moved,
    )


@dataclass(slots=True)
class _Known:
    """What of a batch is stored: by position, the seq it has; and how often each identity is stored."""

    seqs: dict[int, int]
    excluded: dict[int, str | None]
    adopted: dict[int, str]  # seq -> the entry id it is given now
    stored_ids: set[str]
    stored_counts: dict[bytes, int]


def _find_known(db: apsw.Connection, conversation: Conversation, batch: Batch) -> _Known:
    conversation_id = conversation.conversation_id
    by_id = _stored_by_entry_id(db, conversation_id, batch.messages)
    by_identity = _stored_by_identity(db, conversation_id, batch.messages)
    counts = {identity: len(rows) for identity, rows in by_identity.items()}
    known = _Known({}, {}, {}, set(by_id), counts)
    resent = _resent_history(conversation, batch)
    seen: Counter[bytes] = Counter()
    for position, message in enumerate(batch.messages):
        stored = by_identity.get(message.identity, [])
        entry = by_id.get(message.entry_id) if message.entry_id else None
        if entry is not None and entry[0] == message.identity:
            known.seqs[position], known.excluded[position] = entry[1], entry[2]
        elif message.entry_id and entry is None:
            _adopt(known, position, message.entry_id, stored)
        else:
            occurrence = _occurrence(batch, position, seen)
            timed = message.created_at is not None
            repeats = batch.occurrences is not None or timed or position < resent
            if repeats and occurrence < len(stored):
                known.seqs[position] = stored[occurrence][0]
    return known


def _adopt(
    known: _Known, position: int, entry_id: str, stored: list[tuple[int, str | None]]
) -> None:
    """Recognise a message first met without an id: the earliest such row that no other entry has taken."""
    for seq, stored_id in stored:
        if stored_id is None and seq not in known.adopted:
            known.seqs[position] = seq
            known.adopted[seq] = entry_id
            return


def _occurrence(batch: Batch, position: int, seen: Counter[bytes]) -> int:
    if batch.occurrences is not None:
        return batch.occurrences[position]
    identity = batch.messages[position].identity
    seen[identity] += 1
    return seen[identity] - 1


def _stored_by_entry_id(
    db: apsw.Connection, conversation_id: int, messages: list[Message]
) -> dict[str, tuple[bytes, int, str | None]]:
    ids = [message.entry_id for message in messages if message.entry_id]
    if not ids:
        return {}
    rows = db.execute(
        "SELECT transcript_entry_id, identity_hash, seq, excluded FROM json_each(?) CROSS JOIN messages"
        " ON conversation_id = ? AND transcript_entry_id = value",
        (json.dumps(ids), conversation_id),
    )
    return {entry_id: (identity, seq, excluded) for entry_id, identity, seq, excluded in rows}


def _stored_by_identity(
    db: apsw.Connection, conversation_id: int, messages: list[Message]
) -> dict[bytes, list[tuple[int, str | None]]]:
    """Return (seq, entry id) of the rows of each identity, by occurrence."""
    wanted = {message.identity for message in messages}
    rows = db.execute(
        "SELECT identity_hash, seq, transcript_entry_id FROM json_each(?) CROSS JOIN messages"
        " ON conversation_id = ? AND identity_hash = unhex(value) ORDER BY occurrence",
        (json.dumps([identity.hex() for identity in wanted]), conversation_id),
    )
    found: dict[bytes, list[tuple[int, str | None]]] = {}
    for identity, seq, entry_id in rows:
        found.setdefault(identity, []).append((seq, entry_id))
    return found


def _resent_history(conversation: Conversation, batch: Batch) -> int:
    """Return how many messages at the head of a live batch are the whole stored history, sent again.

    Agents that send their full list each turn give neither ids nor times. One message alone is no evidence:
    a user may say "ok" twice.
    """
    count = conversation.message_count
    if batch.occurrences is not None or not 0 < count <= len(batch.messages):
        return 0
    if count == 1 and len(batch.messages) == 1:
        return 0
    head = batch.messages[:count]
    if _digest(b"", (message.identity for message in head)) != conversation.history_digest:
        return 0
    return count


def _digest(start: bytes, identities: Iterable[bytes]) -> bytes:
    digest = start
    for identity in identities:
        digest = hashlib.blake2b(digest + identity, digest_size=16).digest()
    return digest


class _Rows:
    """The rows of a batch's new messages, built before any is inserted."""

    def __init__(
        self,
        db: apsw.Connection,
        conversation: Conversation,
        batch: Batch,
        packed: list[tuple[int, bytes]],
        known: _Known,
    ) -> None:
        self._db = db
        self._conversation_id = conversation.conversation_id
        self._batch = batch
        self._packed = packed
        self._known = known
        self._next_seq = conversation.last_seq + 1
        self._next_id = _last_message_id(db) + 1
        self._open: dict[str, int] = {}
        self._ids: set[str] = set(known.stored_ids)
        self.seqs: list[int] = []  # of every message of the batch, stored before or now
        self.messages: list[tuple[object, ...]] = []
        self.items: list[tuple[object, ...]] = []
        self.calls: dict[tuple[str, int], list[object]] = {}
        self.answered: list[tuple[int, int, str, int]] = []
        self.identities: list[bytes] = []

    def build(self) -> None:
        counts: Counter[bytes] = Counter(self._known.stored_counts)
        placed: dict[str, tuple[bytes, int]] = {}
        for position, message in enumerate(self._batch.messages):
            seq = self._known.seqs.get(position)
            if seq is None and message.entry_id in placed:
                identity, first = placed[message.entry_id]
                seq = first if identity == message.identity else None
            if seq is None:
                seq = self._add(position, message, counts)
                if message.entry_id:
                    placed.setdefault(message.entry_id, (message.identity, seq))
            self.seqs.append(seq)

    def _add(self, position: int, message: Message, counts: Counter[bytes]) -> int:
        seq, self._next_seq = self._next_seq, self._next_seq + 1
        message_id, self._next_id = self._next_id, self._next_id + 1
        opener = self._link(message, seq)
        codec, raw = self._packed[position]
        entry_id = message.entry_id if message.entry_id not in self._ids else None
        if entry_id:
            self._ids.add(entry_id)
        self.messages.append(
            (
                message_id,
                self._conversation_id,
                seq,
                message.role,
                message.content,
                message.token_count,
                message.created_at or self._batch.received_at,
                message.identity,
                counts[message.identity],
                entry_id,
                message.parent_id,
                message.excluded,
                message.wire_tokens,
                opener,
                codec,
                raw,
            )
        )
        counts[message.identity] += 1
        self.identities.append(message.identity)
        if message.excluded is None:
            self.items.append(
                (self._conversation_id, seq, message_id, message.role, message.wire_tokens, opener)
            )
        return seq

    def _link(self, message: Message, seq: int) -> int:
        """Return the seq of the message that opened the tool exchange this one belongs to."""
        for call in message.calls:
            self._open[call.call_id] = seq
            self.calls.setdefault(
                (call.call_id, seq), [self._conversation_id, call.call_id, seq, call.name, None]
            )
        opener = seq
        for call_id in message.answers:
            call_seq = self._open.get(call_id)
            if call_seq is None:
                call_seq = _last_call(self._db, self._conversation_id, call_id)
            if call_seq is None or call_seq >= seq:
                continue
            opener = min(opener, call_seq)
            made_here = self.calls.get((call_id, call_seq))
            if made_here is not None:
                made_here[4] = made_here[4] or seq
            else:
                self.answered.append((seq, self._conversation_id, call_id, call_seq))
        return opener


def _last_message_id(db: apsw.Connection) -> int:
    rows = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'")
    return next((int(seq) for (seq,) in rows), 0)


def _last_call(db: apsw.Connection, conversation_id: int, call_id: str) -> int | None:
    rows = db.execute(
        "SELECT call_seq FROM tool_calls WHERE conversation_id = ? AND call_id = ?"
        " ORDER BY call_seq DESC LIMIT 1",
        (conversation_id, call_id),
    )
    return next((int(seq) for (seq,) in rows), None)


def _insert(db: apsw.Connection, rows: _Rows) -> None:
    db.executemany(
        "INSERT INTO messages (message_id, conversation_id, seq, role, content, token_count, created_at,"
        " identity_hash, occurrence, transcript_entry_id, parent_entry_id, excluded, wire_tokens, opener_seq,"
        " raw_codec, raw) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows.messages,
    )
    db.executemany(
        "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, role, depth,"
        " wire_tokens, opener) VALUES (?, ?, 'message', ?, ?, -1, ?, ?)",
        rows.items,
    )
    db.executemany("INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?)", rows.calls.values())
    db.executemany(
        "UPDATE tool_calls SET result_seq = coalesce(result_seq, ?)"
        " WHERE conversation_id = ? AND call_id = ? AND call_seq = ?",
        rows.answered,
    )


def _stamp(db: apsw.Connection, conversation_id: int, adopted: dict[int, str]) -> None:
    db.executemany(
        "UPDATE messages SET transcript_entry_id = ? WHERE conversation_id = ? AND seq = ?",
        [(entry_id, conversation_id, seq) for seq, entry_id in adopted.items()],
    )


def _follow_branches(
    db: apsw.Connection, conversation_id: int, batch: Batch, known: _Known
) -> int:
    """Move stored messages out of the view, or back, whose branch was left or taken up again."""
    moved = 0
    for position, was in known.excluded.items():
        now = batch.messages[position].excluded
        if was == now or ABANDONED not in (was, now):
            continue
        seq = known.seqs[position]
        if now == ABANDONED:
            moved += _leave(db, conversation_id, seq)
        elif now is None:
            moved += _return(db, conversation_id, seq)
    return moved


def _leave(db: apsw.Connection, conversation_id: int, seq: int) -> int:
    """Take a message out of the view; one a summary already covers stays covered."""
    rows = db.execute(
        "DELETE FROM context_items WHERE conversation_id = ? AND ordinal = ? AND item_type = 'message'"
        " RETURNING wire_tokens",
        (conversation_id, seq),
    ).fetchall()
    for (tokens,) in rows:
        _mark(db, conversation_id, seq, ABANDONED, items=-1, tokens=-tokens)
    return len(rows)


def _return(db: apsw.Connection, conversation_id: int, seq: int) -> int:
    rows = db.execute(
        "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, role, depth,"
        " wire_tokens, opener) SELECT conversation_id, seq, 'message', message_id, role, -1, wire_tokens,"
        " opener_seq FROM messages WHERE conversation_id = ? AND seq = ? RETURNING wire_tokens",
        (conversation_id, seq),
    ).fetchall()
    for (tokens,) in rows:
        _mark(db, conversation_id, seq, None, items=1, tokens=tokens)
    return len(rows)


def _mark(
    db: apsw.Connection, conversation_id: int, seq: int, excluded: str | None, *, items: int, tokens: int
) -> None:
    db.execute(
        "UPDATE messages SET excluded = ? WHERE conversation_id = ? AND seq = ?",
        (excluded, conversation_id, seq),
    )
    db.execute(
        "UPDATE conversations SET frontier_items = frontier_items + ?, frontier_tokens = frontier_tokens + ?,"
        " excluded_count = excluded_count - ?, view_revision = view_revision + 1 WHERE conversation_id = ?",
        (items, tokens, items, conversation_id),
    )


def _carry_entries(
    db: apsw.Connection,
    conversation: Conversation,
    batch: Batch,
    seqs: list[int],
    codec: RecordCodec,
) -> None:
    rows = []
    for entry in batch.carried:
        after = seqs[entry.after - 1] if entry.after else conversation.last_seq
        flags, raw = codec.pack(entry.raw, "")
        rows.append(
            (
                conversation.conversation_id,
                after,
                entry.type,
                entry.entry_id,
                entry.parent_id,
                entry.identity,
                entry.occurrence,
                flags,
                raw,
            )
        )
    db.executemany(
        "INSERT INTO transcript_entries (conversation_id, after_seq, entry_type, entry_id, parent_entry_id,"
        " identity_hash, occurrence, raw_codec, raw) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        rows,
    )


def _count(db: apsw.Connection, conversation: Conversation, batch: Batch, rows: _Rows) -> None:
    db.execute(
        "UPDATE conversations SET last_seq = last_seq + :n, message_count = message_count + :n,"
        " message_tokens = message_tokens + :tokens, excluded_count = excluded_count + :excluded,"
        " frontier_items = frontier_items + :items, frontier_tokens = frontier_tokens + :wire,"
        " history_digest = :digest, last_ingest_at = :now, updated_at = :now WHERE conversation_id = :id",
        {
            "n": len(rows.messages),
            "tokens": sum(row[5] for row in rows.messages),  # type: ignore[misc]
            "excluded": len(rows.messages) - len(rows.items),
            "items": len(rows.items),
            "wire": sum(row[4] for row in rows.items),  # type: ignore[misc]
            "digest": _digest(conversation.history_digest, rows.identities),
            "now": batch.received_at,
            "id": conversation.conversation_id,
        },
    )


def _move_cursor(db: apsw.Connection, conversation_id: int, batch: Batch) -> None:
    cursor = batch.cursor
    assert cursor is not None
    db.execute(
        "INSERT INTO transcript_cursors (conversation_id, session_file_path, session_header_id, last_seen_size,"
        " last_seen_mtime_ns, last_processed_offset, last_processed_entry_id, updated_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET session_header_id = excluded.session_header_id,"
        " last_seen_size = excluded.last_seen_size, last_seen_mtime_ns = excluded.last_seen_mtime_ns,"
        " last_processed_offset = excluded.last_processed_offset,"
        " last_processed_entry_id = excluded.last_processed_entry_id, updated_at = excluded.updated_at",
        (
            conversation_id,
            cursor.path,
            cursor.header_id,
            cursor.size,
            cursor.mtime_ns,
            cursor.offset,
            cursor.last_entry_id,
            batch.received_at,
        ),
    )
