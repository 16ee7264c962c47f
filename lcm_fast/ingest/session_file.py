"""Read a session file into a conversation, batch by batch, each a transaction with its cursor.

Memory does not grow with the file, apart from one small table of identities for files whose
messages have no ids. What was stored before is recognised by the store (design: architecture,
section 3; decision 13).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SessionFileError
from ..store import ABANDONED_BRANCH, Address, Batch, CarriedEntry, Cursor, Store
from ..transcripts import Transcript
from ..types import Message, SessionEntry
from .normalise import CountTokens, digest, message_from_entry, storable
from .results import BootstrapResult

__all__ = ["address_of", "ingest_transcript"]

_BATCH_MESSAGES = 2000
_BATCH_BYTES = 16 * 1024 * 1024


def address_of(
    store: Store, transcript: Transcript, session_key: str | None, session_id: str | None
) -> Address:
    """Return which conversation a session file belongs to.

    Without a key given it is the file's name; two files of one name with different session ids are
    kept apart.
    """
    name = Path(transcript.path).name
    stem = storable(name.split(".json", 1)[0] or name)
    session_id = session_id or _storable(transcript.session_id)
    if session_key is not None:
        return Address(session_key, session_id or stem)
    there = store.find_conversation(Address(stem))
    if there and session_id and there.session_id not in (session_id, stem):
        return Address(f"{stem}#{session_id}", session_id)
    return Address(stem, session_id or (there.session_id if there else stem))


def ingest_transcript(
    store: Store,
    transcript: Transcript,
    address: Address,
    *,
    count_tokens: CountTokens,
    now: Callable[[], str],
    progress: Callable[[int, int], None],
) -> BootstrapResult:
    """Store what is new of a session file.

    Parameters
    ----------
    now
        Gives the time of receipt, ISO 8601 UTC.
    progress
        Called after each batch with bytes read and bytes in all.

    Raises
    ------
    SessionFileError
        The file is no session: no header and no message can be read in it; nothing is stored.
    """
    started = time.perf_counter()
    stat = Path(transcript.path).stat()
    reading = _Reading(store, transcript, address, stat.st_size, stat.st_mtime_ns, now)
    for entry in transcript:
        reading.take(entry, count_tokens)
        if reading.full:
            reading.flush(entry.offset + len(entry.raw))
            progress(entry.offset + len(entry.raw), stat.st_size)
    reading.flush(transcript.report.bytes_read - transcript.report.pending_bytes)
    progress(stat.st_size, stat.st_size)
    return reading.result((time.perf_counter() - started) * 1000)


@dataclass(slots=True)
class _Reading:
    """A session file being read: the batch under way and the sums so far."""

    store: Store
    transcript: Transcript
    address: Address
    size: int
    mtime_ns: int
    now: Callable[[], str]
    messages: list[Message] = field(default_factory=list)
    occurrences: list[int] = field(default_factory=list)
    carried: list[CarriedEntry] = field(default_factory=list)
    packed: list[tuple[int, bytes]] = field(default_factory=list)
    seen: Counter[bytes] = field(default_factory=Counter)
    batch_bytes: int = 0
    last_entry_id: str | None = None
    conversation_id: int = 0
    ingested: int = 0
    duplicates: int = 0
    abandoned: int = 0
    carried_count: int = 0
    tokens: int = 0

    @property
    def full(self) -> bool:
        return len(self.messages) >= _BATCH_MESSAGES or self.batch_bytes >= _BATCH_BYTES

    def take(self, entry: SessionEntry, count_tokens: CountTokens) -> None:
        message = message_from_entry(entry, count_tokens)
        self.batch_bytes += len(entry.raw)
        self.last_entry_id = entry.entry_id or self.last_entry_id
        if message is None:
            self._carry(entry)
            return
        self.abandoned += message.excluded == ABANDONED_BRANCH
        self.messages.append(message)
        self.occurrences.append(self._occurrence(message.identity, message.entry_id))
        self.packed.append(self.store.pack(message.raw, message.content))

    def _carry(self, entry: SessionEntry) -> None:
        identity = digest(entry.raw)
        self.carried_count += 1
        self.carried.append(
            CarriedEntry(
                type=storable(entry.type),
                raw=entry.raw,
                identity=identity,
                after=len(self.messages),
                entry_id=_storable(entry.entry_id),
                parent_id=_storable(entry.parent_id),
                occurrence=self._occurrence(identity, None),
            )
        )

    def _occurrence(self, identity: bytes, entry_id: str | None) -> int:
        if entry_id is not None:
            return 0  # the id alone tells; a table of them would grow with the file
        self.seen[identity] += 1
        return self.seen[identity] - 1

    def flush(self, offset: int) -> None:
        """Store the batch under way.

        Raises
        ------
        SessionFileError
            Up to here the file shows no sign of being a session.
        """
        if self.transcript.header is None and not self.transcript.report.messages:
            raise _no_session(self.transcript)
        batch = Batch(
            messages=self.messages,
            received_at=self.now(),
            occurrences=self.occurrences,
            carried=self.carried,
            cursor=Cursor(
                path=storable(str(Path(self.transcript.path).absolute())),
                header_id=_storable(self.transcript.session_id),
                size=self.size,
                mtime_ns=self.mtime_ns,
                offset=offset,
                last_entry_id=_storable(self.last_entry_id),
            ),
        )
        outcome = self.store.append(self.address, batch, self.packed)
        self.conversation_id = outcome.conversation_id
        self.ingested += len(outcome.message_ids)
        self.duplicates += outcome.duplicates
        self.tokens += outcome.tokens
        self.messages, self.occurrences, self.carried, self.packed = [], [], [], []
        self.batch_bytes = 0

    def result(self, duration_ms: float) -> BootstrapResult:
        report = self.transcript.report
        return BootstrapResult(
            session_key=self.address.session_key,
            session_id=self.address.session_id,
            conversation_id=self.conversation_id,
            format=self.transcript.format,
            ingested=self.ingested,
            duplicates=self.duplicates,
            abandoned=self.abandoned,
            carried=self.carried_count,
            tokens=self.tokens,
            unreadable=report.unreadable_count,
            unreadable_spans=list(report.unreadable),
            pending_bytes=report.pending_bytes,
            bytes_read=report.bytes_read,
            duration_ms=duration_ms,
        )


def _storable(text: str | None) -> str | None:
    return text and storable(text)


def _no_session(transcript: Transcript) -> SessionFileError:
    report = transcript.report
    found = f"{report.entries} entries of other kinds" if report.entries else "it is empty"
    if report.unreadable:
        first = report.unreadable[0]
        place = f"the first at byte {first.offset}: {first.reason}"
        found = f"{report.unreadable_count} unreadable, {place}"
    return SessionFileError(
        f"{transcript.path}: no message can be read in it ({found}); nothing was stored",
        code="empty_file" if found == "it is empty" else None,
        hint="a session is JSON lines of OpenClaw or pi, or messages as a JSON array or JSON lines",
    )
