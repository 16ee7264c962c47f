"""Read a session that is kept as numbered events, as OpenClaw's database keeps it.

An event holds what a line of a session file holds, so an entry read here equals the one read from
a file, but for its offset: the event's number. Must not know how events are stored: a source gives
them (spec: session formats 6, storage 3.1 and 3.2; decision 13).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from ..types import SessionEntry, UnreadableSpan
from .envelope import entry_of, links_of
from .jsonl import FoundObject, Piece, parse_objects
from .leaf_path import Link, goes_on, is_linear, leaf_offsets
from .reader import Format, ReadReport

__all__ = ["EventRow", "EventSource", "EventTranscript"]

EMPTY = "an empty event"

# Objects of an event need offsets of their own, in order over all events, to be told apart on the
# leaf's path: the number of the event, then as many bits as any position in one takes.
_POSITION_BITS = 30

_NS_PER_MS = 1_000_000


class EventRow(Protocol):
    """An event: its number, its bytes (None: `unreadable` tells why) and how many, its time."""

    @property
    def seq(self) -> int: ...
    @property
    def data(self) -> bytes | None: ...
    @property
    def length(self) -> int: ...
    @property
    def created_at_ms(self) -> int | None: ...
    @property
    def unreadable(self) -> str: ...


class EventSource(Protocol):
    """Where sessions are kept as events, numbered from 0 with gaps allowed."""

    @property
    def path(self) -> Path: ...
    def last_seq(self, session_id: str) -> int: ...
    def rows(self, session_id: str, after_seq: int | None = None) -> Iterator[EventRow]: ...


class EventTranscript:
    """A session of a source, with the surface of `reader.Transcript`; iterate to read its entries.

    Offsets count events: an entry's is the number of its event, an offset to read on from the
    number of the first event not read yet. Events appended after opening wait for the next opening.

    Parameters
    ----------
    source
        Gives the events; is read anew by every iteration.
    session_id
        One of the source's sessions; what the source raises for any other passes through.

    Attributes
    ----------
    path
        Names the session: the source's path, then the session id as a file name. No file is there.
    size, mtime_ns
        The offset behind the newest event, and that event's time, when it was opened.
    position
        The offset behind all that the latest iteration has yielded, or passed as unreadable.
    format
        ``"openclaw"``.
    header
        The session header, when the first object is one.
    report
        Of the latest iteration; bytes are those of the events it went through.
    """

    format: Format = "openclaw"

    def __init__(self, source: EventSource, session_id: str) -> None:
        self.session_id = session_id
        self._source = source
        self.size = source.last_seq(session_id) + 1
        self.path = source.path / quote(session_id, safe=":@")
        newest = next(self._rows(self.size - 1), None)
        self.mtime_ns = _NS_PER_MS * ((newest and newest.created_at_ms) or 0)
        self._begin: int | None = None
        self.position = 0
        self.report = ReadReport()
        first = self._first_object()
        self.header = first if first and first.get("type") == "session" else None

    def goes_on_from(self, offset: int, last_entry_id: str | None) -> bool:
        """Tell whether all behind an offset continues the entry that stands before it."""
        if not 0 <= offset <= self.size:
            return False
        return goes_on(self._links(offset), last_entry_id)

    def read_on_from(self, offset: int) -> None:
        """Let iteration begin at an offset that an earlier reading ended at."""
        self._begin = self.position = offset

    def entry_ids(self) -> Iterator[str]:
        """Yield the ids of all records, in order."""
        return (link.entry_id for link in self._links(self._begin) if link.entry_id is not None)

    def fingerprint(self, offset: int) -> bytes:
        """Return a digest of the first event and the one before an offset.

        An append leaves it as it was; a session written anew has another.
        """
        digest = hashlib.blake2b(digest_size=16)
        for begin in (None, offset - 1):
            for row in itertools.islice(self._rows(begin), 1):
                digest.update(b"%d:%d:%b" % (row.seq, row.length, row.data or b""))
        return digest.digest()

    def __iter__(self) -> Iterator[SessionEntry]:
        self.report = report = ReadReport()
        self.position = self._begin or 0
        on_path = self._leaf_offsets()
        for row in self._rows(self._begin):
            report.bytes_read += row.length
            found, rest = _objects_of(row)
            for left, one in enumerate(found, 1 - len(found)):
                entry = msgspec.structs.replace(entry_of(one, on_path), offset=row.seq)
                report.entries += 1
                report.messages += entry.message is not None
                self.position = row.seq + (left == 0)
                yield entry
            self.position = row.seq + 1
            if rest:
                report.add_span(UnreadableSpan(row.seq, rest.length, rest.reason))

    def _rows(self, begin: int | None) -> Iterator[EventRow]:
        after = None if begin is None else begin - 1
        rows = self._source.rows(self.session_id, after)
        return itertools.takewhile(lambda row: row.seq < self.size, rows)

    def _first_object(self) -> dict[str, Any] | None:
        """Return the first object, if it stands in one of the first two events."""
        for row in itertools.islice(self._rows(None), 2):
            found, _ = _objects_of(row)
            if found:
                return found[0].value
        return None

    def _leaf_offsets(self) -> frozenset[int] | None:
        if is_linear(self._links(self._begin)):
            return None
        return leaf_offsets(self._links(self._begin))

    def _links(self, begin: int | None) -> Iterator[Link]:
        for row in self._rows(begin):
            yield from links_of(Piece(row.seq << _POSITION_BITS, row.length, row.data, True))


def _objects_of(row: EventRow) -> tuple[list[FoundObject], UnreadableSpan | None]:
    """Return the objects in an event, and what of it cannot be read."""
    if row.data is None:
        return [], UnreadableSpan(row.seq, row.length, row.unreadable)
    found, rest = parse_objects(row.data, row.seq << _POSITION_BITS)
    if not found and rest is None:
        rest = UnreadableSpan(row.seq, row.length, EMPTY)
    return found, rest
