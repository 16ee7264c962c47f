"""Append a batch to the record and to the view, in the caller's transaction.

Rows are built first, then inserted together. The number of statements depends on the batch alone,
never on the length of the conversation (design: architecture, sections 3 and 4).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import apsw

from ..types import Message
from . import branches, conversations
from .codec import RecordCodec
from .recognise import Known, extend_digest, find_known
from .rows import Address, AppendOutcome, Batch, Conversation

__all__ = ["append"]


def append(
    db: apsw.Connection,
    address: Address,
    batch: Batch,
    packed: list[tuple[int, bytes]],
    codec: RecordCodec,
) -> AppendOutcome:
    """Store what is new of a batch; `packed` holds the packed raw bytes of its messages."""
    conversation = conversations.resolve(db, address, batch.received_at)
    number = conversation.conversation_id
    known = find_known(db, conversation, batch)
    rows = _Rows(db, conversation, batch, packed, known)
    rows.build()
    _insert(db, rows)
    _stamp(db, number, known.adopted)
    moved = branches.follow(db, number, rows.was_excluded, rows.now_excluded)
    _carry_entries(db, conversation, batch, rows.seqs, codec)
    if rows.messages:
        _count(db, conversation, batch, rows)
    if batch.cursor is not None:
        _move_cursor(db, number, batch)
    return AppendOutcome(
        conversation_id=number,
        message_ids=rows.message_ids,
        duplicates=len(batch.messages) - len(rows.messages),
        tokens=rows.tokens,
        moved=moved,
    )


class _Rows:
    """The rows of a batch's new messages, built before any is inserted."""

    def __init__(
        self,
        db: apsw.Connection,
        conversation: Conversation,
        batch: Batch,
        packed: list[tuple[int, bytes]],
        known: Known,
    ) -> None:
        self._db = db
        self._conversation_id = conversation.conversation_id
        self._batch = batch
        self._packed = packed
        self._known = known
        self._next_seq = conversation.last_seq + 1
        self._next_id = _last_message_id(db) + 1
        self._counts: Counter[bytes] = Counter(known.counts)
        self._open: dict[str, int] = {}  # call id -> seq of the newest call of this batch
        self.seqs: list[int] = []  # of every message of the batch, stored before or now
        self.messages: list[tuple[Any, ...]] = []
        self.items: list[tuple[Any, ...]] = []
        self.calls: dict[tuple[str, int], list[Any]] = {}
        self.answered: list[tuple[int, int, str, int]] = []
        self.identities: list[bytes] = []
        self.message_ids: list[int] = []
        self.tokens = self.shown_tokens = 0
        self.was_excluded: dict[int, str | None] = {}
        self.now_excluded: dict[int, str | None] = {}

    def build(self) -> None:
        """Place every message: where it stands already, or on a new row."""
        placed: dict[tuple[str, bytes], tuple[int, str | None]] = {}
        for position, message in enumerate(self._batch.messages):
            seq = self._known.seqs.get(position)
            if message.entry_id is None:
                seq = seq or self._add(position, message)
            elif seq is not None:
                self._see_again(seq, self._known.excluded[seq], message.excluded)
            elif (entry := (message.entry_id, message.identity)) in placed:
                seq, was_excluded = placed[entry]
                self._see_again(seq, was_excluded, message.excluded)
            else:
                seq = self._add(position, message)
                placed[entry] = seq, message.excluded
            self.seqs.append(seq)

    def _see_again(self, seq: int, was: str | None, now: str | None) -> None:
        """Note what a file says of a stored entry; of one written twice the last copy counts."""
        self.was_excluded[seq] = was
        self.now_excluded[seq] = now

    def _add(self, position: int, message: Message) -> int:
        seq, self._next_seq = self._next_seq, self._next_seq + 1
        message_id, self._next_id = self._next_id, self._next_id + 1
        identity, wire_tokens = message.identity, message.wire_tokens
        opener = self._link(message, seq) if message.calls or message.answers else seq
        occurrence = self._counts[identity]
        self._counts[identity] = occurrence + 1
        self.messages.append(
            (
                message_id,
                self._conversation_id,
                seq,
                message.role,
                message.content,
                message.token_count,
                message.created_at or self._batch.received_at,
                identity,
                occurrence,
                message.entry_id,
                message.parent_id,
                message.excluded,
                wire_tokens,
                opener,
                *self._packed[position],
            )
        )
        self.message_ids.append(message_id)
        self.identities.append(identity)
        self.tokens += message.token_count
        if message.excluded is None:
            self.items.append(
                (self._conversation_id, seq, message_id, message.role, wire_tokens, opener)
            )
            self.shown_tokens += wire_tokens
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
        "INSERT INTO messages (message_id, conversation_id, seq, role, content, token_count,"
        " created_at, identity_hash, occurrence, transcript_entry_id, parent_entry_id, excluded,"
        " wire_tokens, opener_seq, raw_codec, raw)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        rows.append(
            (
                conversation.conversation_id,
                after,
                entry.type,
                entry.entry_id,
                entry.parent_id,
                entry.identity,
                entry.occurrence,
                *codec.pack(entry.raw, ""),
            )
        )
    db.executemany(
        "INSERT INTO transcript_entries (conversation_id, after_seq, entry_type, entry_id,"
        " parent_entry_id, identity_hash, occurrence, raw_codec, raw)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        rows,
    )


def _count(db: apsw.Connection, conversation: Conversation, batch: Batch, rows: _Rows) -> None:
    db.execute(
        "UPDATE conversations SET last_seq = last_seq + :n, message_count = message_count + :n,"
        " message_tokens = message_tokens + :tokens, excluded_count = excluded_count + :excluded,"
        " frontier_items = frontier_items + :items, frontier_tokens = frontier_tokens + :shown,"
        " history_digest = :digest, last_ingest_at = :now, updated_at = :now"
        " WHERE conversation_id = :id",
        {
            "n": len(rows.messages),
            "tokens": rows.tokens,
            "excluded": len(rows.messages) - len(rows.items),
            "items": len(rows.items),
            "shown": rows.shown_tokens,
            "digest": extend_digest(conversation.history_digest, rows.identities),
            "now": batch.received_at,
            "id": conversation.conversation_id,
        },
    )


def _move_cursor(db: apsw.Connection, conversation_id: int, batch: Batch) -> None:
    cursor = batch.cursor
    assert cursor is not None
    db.execute(
        "INSERT INTO transcript_cursors (conversation_id, session_file_path, session_header_id,"
        " last_seen_size, last_seen_mtime_ns, last_processed_offset, last_processed_entry_id,"
        " updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET session_header_id = excluded.session_header_id,"
        " last_seen_size = excluded.last_seen_size,"
        " last_seen_mtime_ns = excluded.last_seen_mtime_ns,"
        " last_processed_offset = excluded.last_processed_offset,"
        " last_processed_entry_id = excluded.last_processed_entry_id,"
        " updated_at = excluded.updated_at",
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
