"""The store as the rest of the package sees it: plain methods, no SQL, no SQLite type.

One writer connection with group commit, a pool of snapshot readers, one codec (design:
architecture, sections 4, 5 and 8).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ..errors import DatabaseError, StoreReadOnlyError
from . import append as appending
from . import (
    audit,
    conversations,
    cursors,
    known_rows,
    large_files,
    links,
    quarantine,
    record,
    spending,
    summaries,
)
from . import frontier as frontiers
from .audit import Finding
from .codec import RecordCodec
from .connection import (
    BUSY_TIMEOUT_MS,
    Durability,
    as_store_errors,
    check_ownership,
    open_reader,
    open_writer,
    usable_name,
)
from .frontier import Frontier, KnownFrontiers
from .live_rows import rows_of_live
from .migrations import DEFAULT_DICTIONARY_ID, migrate, schema_version
from .readers import Readers
from .recognise import find_known
from .rows import (
    Address,
    AppendOutcome,
    Batch,
    Conversation,
    Cursor,
    Mention,
    NewSummary,
    QuarantinedBatch,
    StoredFile,
    StoredMessage,
    StoredSummary,
)
from .schema import SCHEMA_VERSION
from .spending import SummarizerCall
from .upkeep import UpkeepStore
from .writer import Writer, WriterStats

__all__ = ["Store"]

T = TypeVar("T")


class Store(UpkeepStore):
    """One database file.

    Threading: every method may be called from any thread; writes are grouped, reads see one
    snapshot each.
    """

    def __init__(
        self, path: str, writer: Writer | None, readers: Readers, codec: RecordCodec
    ) -> None:
        self.path = path
        self._writer = writer
        self._readers = readers
        self._codec = codec

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "full",
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> Store:
        """Open a database to read and write, made and brought to the current schema where needed.

        Raises
        ------
        ForeignDatabaseError
            The file is another program's; it is not touched.
        StoreReadOnlyError, StoreBusyError, DatabaseError
            As found.
        """
        name = usable_name(path)
        check_ownership(name)
        db = open_writer(name, durability=durability, busy_timeout_ms=busy_timeout_ms)
        try:
            migrate(db, name)
            codec = _load_codec(db, name)
        except BaseException:
            db.close()
            raise
        return cls(name, Writer(db, name), Readers(name, busy_timeout_ms=busy_timeout_ms), codec)

    @classmethod
    def open_read_only(
        cls, path: str | os.PathLike[str], *, busy_timeout_ms: int = BUSY_TIMEOUT_MS
    ) -> Store:
        """Open a database to look at it; nothing is written, no schema is changed.

        Raises
        ------
        NotFoundError
            There is no such file.
        DatabaseError
            Its schema is older than this package's; opening it to write brings it up to date.
        """
        name = usable_name(path)
        check_ownership(name)
        db = open_reader(name, busy_timeout_ms=busy_timeout_ms)
        try:
            version = schema_version(db, name)
            if version != SCHEMA_VERSION:
                raise _older_schema(name, version)
            codec = _load_codec(db, name)
        finally:
            db.close()
        return cls(name, None, Readers(name, busy_timeout_ms=busy_timeout_ms), codec)

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        self._readers.close()
        if self._writer is not None:
            self._writer.close()

    @property
    def is_read_only(self) -> bool:
        """Whether it was opened to be looked at only."""
        return self._writer is None

    @property
    def size_bytes(self) -> tuple[int, int]:
        """Bytes of the database file and of its write-ahead log."""
        log = Path(self.path + "-wal")
        return Path(self.path).stat().st_size, log.stat().st_size if log.exists() else 0

    def writer_stats(self) -> WriterStats:
        """Return what the writer has done since the store was opened, and how many wait for it."""
        return WriterStats() if self._writer is None else self._writer.stats()

    def pack(self, raw: bytes, content: str) -> tuple[int, bytes]:
        """Pack a message's bytes for `append`; done on the caller's thread, outside any lock."""
        return self._codec.pack(raw, content)

    def append(
        self, address: Address, batch: Batch, packed: list[tuple[int, bytes]]
    ) -> AppendOutcome:
        """Store what is new of a batch, in one transaction."""
        return self._write(lambda db: appending.append(db, address, batch, packed, self._codec))

    def cursor(self, conversation_id: int, path: str) -> Cursor | None:
        """Return how far a transcript has been read into a conversation."""
        with self._readers.snapshot() as db:
            return cursors.load(db, conversation_id, path)

    def recent_cursors(self, limit: int) -> list[tuple[str | None, str, int]]:
        """Return (session key, path, size when read) of the transcripts that were read last."""
        with self._readers.snapshot() as db:
            return cursors.seen(db, limit)

    def frozen(self, limit: int) -> list[tuple[str | None, str, str, str]]:
        """Return (session key, path, since when, why) of the transcripts that are held back."""
        with self._readers.snapshot() as db:
            return cursors.frozen(db, limit)

    def freeze(self, conversation_id: int, cursor: Cursor, reason: str, now: str) -> None:
        """Note that a transcript cannot be read on, and why."""
        self._write(lambda db: cursors.freeze(db, conversation_id, cursor, reason, now))

    def first_known(self, conversation_id: int, entry_ids: Sequence[str]) -> int | None:
        """Return the message id of the first of these entries that is stored, None when none is."""
        with self._readers.snapshot() as db:
            rows = known_rows.by_entry_id(db, conversation_id, entry_ids)
        found = {row.entry_id: row.message_id for row in rows}
        return next((found[one] for one in entry_ids if one in found), None)

    def recognise(self, conversation_id: int, batch: Batch) -> tuple[int, int]:
        """Return how many messages of a batch are stored, and how many more say what a stored one
        says."""
        with self._readers.snapshot() as db:
            conversation = conversations.get(db, conversation_id)
            assert conversation is not None
            known = find_known(db, conversation, batch, self._codec)
            unknown = [m.identity for n, m in enumerate(batch.messages) if n not in known.rows]
            rows = known_rows.by_identity(db, conversation_id, unknown)
            taken = {row.message_id for row in known.rows.values()}
        left = Counter(row.identity for row in rows if row.message_id not in taken)
        return len(known.rows), (Counter(unknown) & left).total()

    def rows_of_live(self, conversation_id: int, batch: Batch) -> dict[int, int]:
        """Return the message id of the row that each message of a host's live list is, by its
        position; those that are not stored are left out."""
        with self._readers.snapshot() as db:
            conversation = conversations.get(db, conversation_id)
            assert conversation is not None
            return rows_of_live(db, conversation, batch, self._codec)

    def quarantined(
        self, conversation_id: int | None = None, *, limit: int = 50
    ) -> list[QuarantinedBatch]:
        """Return the batches that the flood guard refused and that wait, oldest first."""
        with self._readers.snapshot() as db:
            return quarantine.batches(db, conversation_id, limit=limit)

    def quarantined_messages(self, batch_id: str) -> tuple[Conversation, list[bytes]]:
        """Return a waiting batch's conversation and the bytes of its messages.

        Raises
        ------
        NotFoundError
            No batch of this id waits.
        """
        with self._readers.snapshot() as db:
            number, messages = quarantine.messages_of(db, self._codec, batch_id)
            conversation = conversations.get(db, number)
            assert conversation is not None
            return conversation, messages

    def admit(
        self, batch_id: str, address: Address, batch: Batch, packed: list[tuple[int, bytes]]
    ) -> AppendOutcome:
        """Store a quarantined batch after all, and mark it admitted.

        Raises
        ------
        NotFoundError
            No batch of this id waits; nothing is stored.
        """

        def apply(db: apsw.Connection) -> AppendOutcome:
            quarantine.resolve(db, batch_id, "admitted", batch.received_at)
            return appending.append(db, address, batch, packed, self._codec)

        return self._write(apply)

    def drop(self, batch_id: str, now: str) -> int:
        """Mark a quarantined batch as dropped; return how many messages it held.

        Raises
        ------
        NotFoundError
            No batch of this id waits.
        """
        return self._write(lambda db: quarantine.resolve(db, batch_id, "dropped", now))

    def publish_summary(
        self, conversation_id: int, new: NewSummary, calls: Sequence[SummarizerCall] = ()
    ) -> tuple[int, int]:
        """Put a summary in the place of its sources, and keep the calls it took; return (frontier
        tokens, view revision) afterwards.

        Raises
        ------
        PlanStaleError
            What it replaces has changed; nothing is stored.
        """

        def apply(db: apsw.Connection) -> tuple[int, int]:
            published = summaries.publish(db, conversation_id, new)
            spending.record(db, conversation_id, calls, new.summary.summary_id)
            return published

        return self._write(apply)

    def find_conversation(self, address: Address) -> Conversation | None:
        """Return the active conversation of an address."""
        with self._readers.snapshot() as db:
            return conversations.find(db, address)

    def conversation(self, conversation_id: int) -> Conversation | None:
        """Return a conversation by its number."""
        with self._readers.snapshot() as db:
            return conversations.get(db, conversation_id)

    def conversations_page(self, *, after_id: int = 0, limit: int = 50) -> list[Conversation]:
        """Return a page of conversations in the order they were made."""
        with self._readers.snapshot() as db:
            return conversations.list_page(db, after_id=after_id, limit=limit)

    def recent_conversations(self, *, limit: int, session_key: str | None) -> list[Conversation]:
        """Return the conversations that were stored into last, newest first."""
        with self._readers.snapshot() as db:
            return conversations.recent(db, limit=limit, session_key=session_key)

    def totals(self) -> dict[str, int]:
        """Return the sums of all conversations' counters."""
        with self._readers.snapshot() as db:
            return conversations.totals(db)

    def frontier(
        self, address: Address, known: KnownFrontiers
    ) -> tuple[Conversation, Frontier] | None:
        """Return an address's conversation and its frontier in one snapshot.

        Of a frontier in `known`, only what it lacks is read.
        """
        with self._readers.snapshot() as db:
            conversation = conversations.find(db, address)
            if conversation is None:
                return None
            number = conversation.conversation_id
            return conversation, frontiers.load(
                db, number, conversation.view_revision, known.get(number)
            )

    def frontier_of(
        self, conversation_id: int, known: Frontier | None
    ) -> tuple[Conversation, Frontier] | None:
        """Return a conversation and its frontier in one snapshot; of `known`, only what it lacks is
        read."""
        with self._readers.snapshot() as db:
            conversation = conversations.get(db, conversation_id)
            if conversation is None:
                return None
            revision = conversation.view_revision
            return conversation, frontiers.load(db, conversation_id, revision, known)

    def messages(self, message_ids: Sequence[int]) -> list[StoredMessage]:
        """Return messages by id, in the order of the ids."""
        with self._readers.snapshot() as db:
            return record.messages_by_id(db, self._codec, message_ids)

    def texts(self, message_ids: Sequence[int]) -> dict[int, str]:
        """Return what messages say, by id; their bytes are not unpacked."""
        with self._readers.snapshot() as db:
            return record.texts_by_id(db, message_ids)

    def mentions(
        self, conversation_id: int, name: str, before_id: int | None, *, limit: int = 32
    ) -> list[Mention]:
        """Return what users and assistants said before a message that holds a string, newest
        first."""
        with self._readers.snapshot() as db:
            return record.mentions(db, conversation_id, name, before_id, limit)

    def messages_page(
        self, conversation_id: int, *, after_seq: int = 0, limit: int = 50
    ) -> list[StoredMessage]:
        """Return a page of a conversation's messages in order."""
        with self._readers.snapshot() as db:
            return record.messages_page(
                db, self._codec, conversation_id, after_seq=after_seq, limit=limit
            )

    def unanswered_calls(
        self, conversation_id: int, first_seq: int, last_seq: int
    ) -> dict[int, list[tuple[str, str]]]:
        """Return, by seq, (tool name, call id) of the calls in a range that have no result yet."""
        with self._readers.snapshot() as db:
            return links.unanswered(db, conversation_id, first_seq, last_seq)

    def file_ids_of(self, message_ids: Sequence[int]) -> list[str]:
        """Return the ids of the large files that messages hold, in the order of the messages."""
        with self._readers.snapshot() as db:
            return large_files.file_ids_of(db, message_ids)

    def large_file(self, file_id: str) -> StoredFile | None:
        """Return a large payload and the messages that hold it."""
        with self._readers.snapshot() as db:
            return large_files.get(db, file_id)

    def summaries(self, summary_ids: Sequence[str]) -> list[StoredSummary]:
        """Return summaries by id, in the order of the ids."""
        with self._readers.snapshot() as db:
            return summaries.by_id(db, summary_ids)

    def summaries_page(
        self, conversation_id: int, *, after: tuple[str, str] = ("", ""), limit: int = 50
    ) -> list[StoredSummary]:
        """Return a page of a conversation's summaries, oldest first."""
        with self._readers.snapshot() as db:
            return summaries.page(db, conversation_id, after=after, limit=limit)

    def export(self, conversation_id: int) -> Iterator[bytes]:
        """Yield each entry's bytes as received, in order, from one snapshot."""
        with self._readers.snapshot() as db:
            yield from record.export(db, self._codec, conversation_id)

    def audit(self, question: str) -> Finding:
        """Return what violates an invariant; the questions are `store.audit`'s constants."""
        with self._readers.snapshot() as db:
            return audit.run(db, question)

    def work_state(self) -> dict[str, object]:
        """Return what is waiting, and when something was last stored."""
        with self._readers.snapshot() as db:
            return audit.work_state(db)

    def check_integrity(self) -> Finding:
        """Run SQLite's integrity check."""
        with self._readers.snapshot() as db:
            return audit.integrity(db)

    def check_foreign_keys(self) -> Finding:
        """Run SQLite's foreign-key check."""
        with self._readers.snapshot() as db:
            return audit.foreign_keys(db)

    def large_files(self) -> list[tuple[str, str, int]]:
        """Return (file id, place, bytes) of the payloads kept outside the database."""
        with self._readers.snapshot() as db:
            return large_files.listed(db)

    def _write(self, apply: Callable[[apsw.Connection], T]) -> T:
        if self._writer is None:
            raise StoreReadOnlyError(f"{self.path}: opened to read only")
        return self._writer.submit(apply)


def _load_codec(db: apsw.Connection, path: str) -> RecordCodec:
    with as_store_errors(path, "reading its dictionary"):
        rows: list[tuple[Any, ...]] = db.execute(
            "SELECT content FROM record_dictionaries WHERE dictionary_id = ?",
            (DEFAULT_DICTIONARY_ID,),
        ).fetchall()
    if not rows:
        raise DatabaseError(
            f"{path}: its record dictionary is missing",
            code="damaged",
            hint="restore a backup; messages cannot be read without it",
        )
    return RecordCodec(rows[0][0])


def _older_schema(path: str, version: int) -> DatabaseError:
    return DatabaseError(
        f"{path} has schema version {version}; this package reads version {SCHEMA_VERSION}",
        code="older_schema",
        hint="any command that writes, such as `lcm-fast ingest`, brings it up to date",
    )
