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
    debt,
    known_rows,
    large_files,
    map_jobs,
    quarantine,
    record,
    redo,
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
from .debt import CallFacts, Debt, Settlement
from .frontier import Frontier, KnownFrontiers
from .map_jobs import MapItem, NewJob
from .migrations import DEFAULT_DICTIONARY_ID, migrate, schema_version
from .readers import Readers
from .recognise import find_known
from .rows import (
    Address,
    AppendOutcome,
    Batch,
    Conversation,
    Cursor,
    NewSummary,
    QuarantinedBatch,
    StoredFile,
    StoredMessage,
    StoredSummary,
)
from .schema import SCHEMA_VERSION
from .spending import Guard, ModelUsage, SummarizerCall
from .writer import Writer, WriterStats

__all__ = ["Store"]

T = TypeVar("T")


class Store:
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

    def conversations_to_redo(self, conversation_id: int | None, now: str) -> list[int]:
        """Return the conversations, or the one, that have fallback summaries to be redone."""
        with self._readers.snapshot() as db:
            return redo.conversations_due(db, conversation_id, now)

    def fallbacks_due(self, conversation_id: int, now: str, limit: int) -> list[StoredSummary]:
        """Return fallback summaries to be redone, sources before what is made of them."""
        with self._readers.snapshot() as db:
            return redo.due(db, conversation_id, now, limit)

    def message_ids_of(self, summary_id: str) -> list[int]:
        """Return the messages a leaf was made of, in order."""
        with self._readers.snapshot() as db:
            return redo.message_ids_of(db, summary_id)

    def note_redo_attempt(self, summary_id: str, redo_after: str) -> None:
        """Count an attempt to redo a summary that gave nothing better."""
        self._write(lambda db: redo.note_attempt(db, summary_id, redo_after))

    def replace_fallback(self, old_id: str, new: StoredSummary, wire_tokens: int) -> None:
        """Put a proper summary in the place of a fallback.

        Raises
        ------
        PlanStaleError
            The old one is no fallback any more; nothing is changed.
        """
        self._write(lambda db: redo.replace(db, old_id, new, wire_tokens))

    def record_calls(self, conversation_id: int | None, calls: Sequence[SummarizerCall]) -> None:
        """Keep summariser calls that led to no summary."""
        self._write(lambda db: spending.record(db, conversation_id, calls))

    def count_calls(self, conversation_id: int | None, since: str) -> int:
        """Return how many paid summariser calls a conversation made after a time."""
        with self._readers.snapshot() as db:
            return spending.count_calls(db, conversation_id, since)

    def model_usage(self) -> list[ModelUsage]:
        """Return what each model was asked and used, the one asked last first."""
        with self._readers.snapshot() as db:
            return spending.usage(db)

    def guards(self) -> dict[str, Guard]:
        """Return what pauses summariser calls, by scope."""
        with self._readers.snapshot() as db:
            return spending.guards(db)

    def set_guard(self, guard: Guard, now: str) -> None:
        """Keep a guard as it is now."""
        self._write(lambda db: spending.set_guard(db, guard, now))

    def debt(self, conversation_id: int) -> Debt | None:
        """Return a conversation's compaction debt, settled or not."""
        with self._readers.snapshot() as db:
            return debt.load(db, conversation_id)

    def debts(self, *, limit: int = 50) -> list[Debt]:
        """Return compaction debts that are open, the oldest first."""
        with self._readers.snapshot() as db:
            return debt.page(db, limit=limit)

    def due_debts(self, now: str, conversation_id: int | None = None) -> list[Debt]:
        """Return the debts, or that of one conversation, that are open and need not wait."""
        with self._readers.snapshot() as db:
            return debt.due(db, now, conversation_id)

    def open_debts(self, conversation_id: int | None = None) -> tuple[int, str | None]:
        """Return how many debts are open, and when the first of those that wait may be tried."""
        with self._readers.snapshot() as db:
            return debt.count_open(db, conversation_id)

    def claim_debt(
        self,
        conversation_id: int,
        owner: str,
        *,
        now: str,
        lease_until: str,
        ignores_wait: bool = False,
    ) -> Debt | None:
        """Take a debt to drain it; None when there is none, it must wait, or another one has it."""
        return self._write(
            lambda db: debt.claim(
                db,
                conversation_id,
                owner,
                now=now,
                lease_until=lease_until,
                ignores_wait=ignores_wait,
            )
        )

    def settle_debt(self, conversation_id: int, owner: str, end: Settlement, now: str) -> None:
        """Give a claimed debt back."""
        self._write(lambda db: debt.settle(db, conversation_id, owner, end, now))

    def resolve_debt_if_under(
        self, conversation_id: int, resolution: str, now: str, *, is_exhausted: bool = False
    ) -> None:
        """Settle a debt nobody drains, if its conversation is under the threshold or exhausted."""
        self._write(
            lambda db: debt.resolve_if_under(
                db, conversation_id, resolution, now, is_exhausted=is_exhausted
            )
        )

    def open_job(self, job: NewJob, now: str) -> None:
        """Make a batch job, or take up the one that is the same.

        Raises
        ------
        JobConflictError
            The id is another job's; nothing is changed.
        """
        self._write(lambda db: map_jobs.open_job(db, job, now))

    def lease_item(self, job_id: str, owner: str, *, now: str, until: str) -> MapItem | None:
        """Lease the next item of a job that waits, or whose owner is gone."""
        return self._write(lambda db: map_jobs.lease(db, job_id, owner, now=now, until=until))

    def finish_item(
        self,
        job_id: str,
        ordinal: int,
        owner: str,
        *,
        result: str | None = None,
        error: str | None = None,
    ) -> bool:
        """End a leased item; tell whether it was still the owner's."""
        return self._write(
            lambda db: map_jobs.finish(db, job_id, ordinal, owner, result=result, error=error)
        )

    def release_item(
        self, job_id: str, ordinal: int, owner: str, error: str, *, counts: bool
    ) -> None:
        """Give a leased item back to be tried again."""
        self._write(lambda db: map_jobs.release(db, job_id, ordinal, owner, error, counts=counts))

    def keep_result(
        self, job_id: str, conversation_id: int, ordinal: int, ref: str, result: str, now: str
    ) -> None:
        """Keep a result that is not used yet, under a job of its own."""
        self._write(
            lambda db: map_jobs.keep(db, job_id, conversation_id, ordinal, ref, result, now)
        )

    def drop_item(self, job_id: str, ordinal: int) -> None:
        """Forget an item of a batch job."""
        self._write(lambda db: map_jobs.drop_item(db, job_id, ordinal))

    def set_job_state(self, job_id: str, state: str, now: str) -> None:
        """Note how a batch job stands."""
        self._write(lambda db: map_jobs.set_state(db, job_id, state, now))

    def job_items(self, job_id: str) -> list[MapItem]:
        """Return the items of a batch job with their results, in order."""
        with self._readers.snapshot() as db:
            return map_jobs.items(db, job_id)

    def delete_job(self, job_id: str) -> None:
        """Delete a batch job with its results.

        Raises
        ------
        NotFoundError
            There is none.
        """
        self._write(lambda db: map_jobs.delete(db, job_id))

    def call_facts(self, conversation_id: int) -> CallFacts:
        """Return what the host told of a conversation's model calls."""
        with self._readers.snapshot() as db:
            return debt.facts_of(db, conversation_id)

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

    def messages_page(
        self, conversation_id: int, *, after_seq: int = 0, limit: int = 50
    ) -> list[StoredMessage]:
        """Return a page of a conversation's messages in order."""
        with self._readers.snapshot() as db:
            return record.messages_page(
                db, self._codec, conversation_id, after_seq=after_seq, limit=limit
            )

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
