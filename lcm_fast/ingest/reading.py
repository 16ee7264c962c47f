"""A transcript being read: its messages, batch by batch, each a transaction with its cursor.

Memory does not grow with the transcript. Must not decide where to read from: `session_file` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..errors import SessionFileError
from ..store import ABANDONED_BRANCH, Address, Batch, CarriedEntry, Cursor, Source
from ..transcripts import AnyTranscript, body_of
from ..types import Message, SessionEntry
from .forks import BEFORE_FORK, NO_FORK, Fork
from .heartbeats import without_heartbeats
from .likeness import is_delivery_mirror
from .mirrors import without_mirrors
from .normalise import digest, message_from_entry, revision_of, storable
from .results import BootstrapResult
from .services import Services

__all__ = ["Reading", "Start"]

_BATCH_MESSAGES = 2000
_BATCH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Start:
    """Where and how a transcript is read.

    Attributes
    ----------
    source, after, before, in_transcript
        As in `store.Batch`.
    offset, last_entry_id, messages
        Where the entries before were read to, the last of them, and how many messages they hold.
    is_unanchored
        Nothing is known yet of how the transcript fits what is stored.
    fork
        Where a forked session begins to show.
    """

    path: str
    source: Source = "transcript"
    offset: int = 0
    last_entry_id: str | None = None
    messages: int = 0
    after: int | None = None
    before: int | None = None
    is_unanchored: bool = False
    in_transcript: Callable[[str], bool] = lambda entry_id: False
    fork: Fork = NO_FORK


@dataclass(slots=True)
class Reading:
    """The batch under way, and the sums so far."""

    services: Services
    transcript: AnyTranscript
    address: Address
    start: Start
    messages: list[Message] = field(default_factory=list)
    carried: list[CarriedEntry] = field(default_factory=list)
    seen: Counter[bytes] = field(default_factory=Counter)
    batch_bytes: int = 0
    end: int = 0
    last_entry_id: str | None = None
    last_row: int | None = None
    last_body: dict[str, Any] | None = None
    flushes: int = 0
    is_complete: bool = False
    is_past_fork: bool = False
    conversation_id: int | None = None
    read: int = 0
    ingested: int = 0
    duplicates: int = 0
    revised: int = 0
    abandoned: int = 0
    carried_count: int = 0
    tokens: int = 0
    is_over_threshold: bool = False

    def __post_init__(self) -> None:
        self.end = self.start.offset
        self.last_entry_id = self.start.last_entry_id
        self.last_row = self.start.after
        self.is_past_fork = self.start.messages >= self.start.fork.hidden

    def is_full(self, entry: SessionEntry) -> bool:
        """Tell whether to store the batch before an entry is taken: where a turn begins, if one
        does soon."""
        count = len(self.messages)
        if count < _BATCH_MESSAGES and self.batch_bytes < _BATCH_BYTES:
            return False
        begins_turn = entry.message is not None and entry.message.get("role") == "user"
        return begins_turn or count >= 2 * _BATCH_MESSAGES or self.batch_bytes >= 2 * _BATCH_BYTES

    def take(self, entry: SessionEntry) -> None:
        """Add an entry to the batch."""
        message = message_from_entry(entry, self.services.count_tokens, self.services.show)
        self.batch_bytes += len(entry.raw)
        self.end = self.transcript.position
        if entry.type != "session":
            self.last_entry_id = entry.entry_id and storable(entry.entry_id)
        if message is None:
            self._carry(entry)
            return
        self.abandoned += message.excluded == ABANDONED_BRANCH
        if self._is_before_fork(message) and message.excluded is None:
            message = msgspec.structs.replace(message, excluded=BEFORE_FORK)
        self.read += 1
        self.messages.append(message)

    def flush(self) -> int:
        """Store the batch under way; return the offset up to which all is stored.

        Raises
        ------
        SessionFileError
            Up to here the transcript shows no sign of being a session.
        """
        is_session = self.transcript.header is not None or self.transcript.report.messages
        if self.start.source == "transcript" and not is_session:
            raise _no_session(self.transcript)
        messages = without_mirrors(self.messages, self._body_before())
        if self.services.prunes_heartbeats:
            messages = without_heartbeats(messages)
        packed = [self.services.store.pack(one.raw, one.content) for one in messages]
        outcome = self.services.store.append(self.address, self._batch(messages), packed)
        self.conversation_id = outcome.conversation_id
        self.last_row = outcome.last
        self.ingested += len(outcome.message_ids)
        self.duplicates += outcome.duplicates
        self.revised += outcome.revised
        self.tokens += outcome.tokens
        self.is_over_threshold = outcome.is_in_debt
        self.flushes += 1
        self.last_body = self.messages[-1].body if self.messages else self.last_body
        self.messages, self.carried = [], []
        self.batch_bytes = 0
        return self.end

    def finish(self) -> None:
        """Store what is left; the cursor stands behind all that could be read."""
        self.end = self.transcript.position
        self.is_complete = True
        self.flush()

    def result(self, duration_ms: float, reason: str | None) -> BootstrapResult:
        """Return what the reading did."""
        report = self.transcript.report
        return BootstrapResult(
            session_key=self.address.session_key,
            session_id=self.address.session_id,
            conversation_id=self.conversation_id,
            format=self.transcript.format,
            ingested=self.ingested,
            duplicates=self.start.messages + self.duplicates,
            revised=self.revised,
            abandoned=self.abandoned,
            carried=self.carried_count,
            tokens=self.tokens,
            unreadable=report.unreadable_count,
            unreadable_spans=list(report.unreadable),
            pending_bytes=report.pending_bytes,
            bytes_read=report.bytes_read,
            reason=reason,
            is_over_threshold=self.is_over_threshold,
            duration_ms=duration_ms,
        )

    def _body_before(self) -> dict[str, Any] | None:
        """Return the message before the batch, read where only a mirror asks for it."""
        asks = self.messages and is_delivery_mirror(self.messages[0].body)
        if self.last_body is None and asks and self.start.after is not None:
            (row,) = self.services.store.messages([self.start.after])
            return body_of(row.raw)
        return self.last_body

    def _is_before_fork(self, message: Message) -> bool:
        fork = self.start.fork
        position = self.start.messages + self.read
        if fork.first_shown_id is None:
            self.is_past_fork = self.is_past_fork or position >= fork.hidden
        elif message.entry_id == fork.first_shown_id:
            self.is_past_fork = True
        return not self.is_past_fork

    def _batch(self, messages: list[Message]) -> Batch:
        start = self.start
        return Batch(
            messages=messages,
            received_at=self.services.now(),
            source=start.source,
            carried=self.carried,
            cursor=Cursor(
                path=start.path,
                header_id=_storable(self.transcript.session_id),
                # Until all is read, the file looks grown.
                size=self.transcript.size if self.is_complete else self.end,
                mtime_ns=self.transcript.mtime_ns,
                offset=self.end,
                last_entry_id=self.last_entry_id,
                fingerprint=self.transcript.fingerprint(self.end),
                messages=self.start.messages + self.read,
                shown_from=self.start.fork.hidden,
                shown_from_id=self.start.fork.first_shown_id,
            ),
            after=self.last_row,
            before=start.before if not self.flushes else None,
            in_transcript=start.in_transcript,
            revision_of=revision_of,
            debt=self.services.debt if self.is_complete else None,
        )

    def _carry(self, entry: SessionEntry) -> None:
        identity = digest(entry.raw)
        self.carried_count += 1
        self.carried.append(
            CarriedEntry(
                type=storable(entry.type),
                raw=entry.raw,
                identity=identity,
                after=len(self.messages),
                offset=entry.offset,
                entry_id=_storable(entry.entry_id),
                parent_id=_storable(entry.parent_id),
                occurrence=self.seen[identity],
            )
        )
        self.seen[identity] += 1


def _storable(text: str | None) -> str | None:
    return text and storable(text)


def _no_session(transcript: AnyTranscript) -> SessionFileError:
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
