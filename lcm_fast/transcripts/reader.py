"""Read a session file: its format, its header, its entries in file order, what could not be read.

Streams: a file of any size is read in the memory of its longest line. Must not know the database,
nor what a message's content means (design: architecture 3; spec: session formats, storage 3.1).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from ..errors import LcmError, NotFoundError, SessionFileError
from ..types import SessionEntry, UnreadableSpan
from .array import read_elements, starts_array
from .envelope import entry_of, links_of, message_of, text_at
from .jsonl import BLANK, BOM, MAX_PIECE_BYTES, FoundObject, Piece, parse_objects, read_lines
from .leaf_path import Link, goes_on, is_linear, leaf_offsets

__all__ = ["MAX_SPANS", "Format", "ReadReport", "Transcript", "open_transcript"]

Format = Literal["openclaw", "pi", "messages"]

MAX_SPANS = 1000
TOO_LONG = f"longer than {MAX_PIECE_BYTES >> 20} MiB"
BINARY = "binary data"

_HEAD_BYTES = 4096
_BUFFER_BYTES = 1024 * 1024


@dataclass(slots=True)
class ReadReport:
    """What one reading of a session file met; complete when the iteration has ended.

    Attributes
    ----------
    entries, messages
        Objects read, and those among them that carry a message.
    bytes_read
        Bytes of the file gone through, pending and unreadable ones included.
    unreadable
        The first `MAX_SPANS` places that could not be read, in file order.
    unreadable_count
        How many there were in all.
    pending_bytes
        Bytes of a last line that is not complete yet; the next read starts there.
    """

    entries: int = 0
    messages: int = 0
    bytes_read: int = 0
    unreadable: list[UnreadableSpan] = field(default_factory=list)
    unreadable_count: int = 0
    pending_bytes: int = 0

    def add_span(self, span: UnreadableSpan) -> None:
        """Count a place that could not be read, and keep it while there is room."""
        self.unreadable_count += 1
        if len(self.unreadable) < MAX_SPANS:
            self.unreadable.append(span)


class Transcript:
    """A session file. Iterate to read its entries; every iteration reads the same bytes anew.

    What a writer appends after the transcript was opened is left for the next `open_transcript`.

    Attributes
    ----------
    path, size, mtime_ns
        The file, and its bytes and time of change when it was opened.
    format
        ``"openclaw"`` (a header with a version, or entries with ids), ``"pi"`` (a header without
        version) or ``"messages"`` (no envelope, or one without ids).
    header
        The session header, when the first object is one.
    report
        Of the latest iteration; empty before the first.
    """

    def __init__(self, path: Path, size: int, mtime_ns: int) -> None:
        self.path = path
        self.size = size
        self.mtime_ns = mtime_ns
        self.report = ReadReport()
        self._begin, self._is_array, has_nul = _look_at_head(path, size)
        self._read_from = 0
        self.position = 0
        first = self._first_objects()
        self._is_binary = has_nul and not first
        self.header: dict[str, Any] | None = (
            first.pop(0) if first and first[0].get("type") == "session" else None
        )
        self.format: Format = _format_of(self.header, first)

    def goes_on_from(self, offset: int, last_entry_id: str | None) -> bool:
        """Tell whether all behind an offset continues the entry that stands before it.

        Where it does not (a branch taken up again, a list that is closed anew), the whole file has
        to be read to know what is shown.
        """
        if self._is_array or self._is_binary or not self._begin <= offset <= self.size:
            return False
        return goes_on(self._links(offset), last_entry_id)

    def read_on_from(self, offset: int) -> None:
        """Let iteration begin at an offset, the end of an entry that was read before."""
        self._begin = self._read_from = self.position = offset

    def entry_ids(self) -> Iterator[str]:
        """Yield the ids of all records, in file order."""
        return (link.entry_id for link in self._links(self._begin) if link.entry_id is not None)

    def fingerprint(self, offset: int) -> bytes:
        """Return a digest of the first and the last bytes before an offset.

        An append leaves it as it was; a file written anew has another.
        """
        try:
            with self.path.open("rb") as stream:
                head = stream.read(min(_HEAD_BYTES, offset))
                stream.seek(max(0, offset - _HEAD_BYTES))
                tail = stream.read(min(_HEAD_BYTES, offset))
        except OSError as error:
            raise _file_error(self.path, error) from error
        return hashlib.blake2b(head + tail, digest_size=16).digest()

    @property
    def session_id(self) -> str | None:
        """The session's own id, from the header."""
        return text_at(self.header, "id") if self.header else None

    def __iter__(self) -> Iterator[SessionEntry]:
        self.report = report = ReadReport()
        if self._is_binary:
            report.bytes_read = self.position = self.size
            report.add_span(UnreadableSpan(0, self.size, BINARY))
            return
        report.bytes_read = self._begin - self._read_from
        self.position = self._begin
        on_path = self._leaf_offsets()
        for found in self._objects(report):
            entry = entry_of(found, on_path)
            report.entries += 1
            report.messages += entry.message is not None
            self.position = found.offset + len(found.raw)
            yield entry
        self.position = self._read_from + report.bytes_read - report.pending_bytes

    def _objects(self, report: ReadReport) -> Iterator[FoundObject]:
        for piece in self._pieces(self._begin):
            report.bytes_read = piece.offset + piece.length - self._read_from
            if piece.data is None:
                report.add_span(UnreadableSpan(piece.offset, piece.length, TOO_LONG))
                continue
            found, rest = parse_objects(piece.data, piece.offset)
            if rest and not piece.terminated:
                report.pending_bytes = piece.length
                return
            yield from found
            if rest:
                report.add_span(rest)

    def _pieces(self, begin: int) -> Iterator[Piece]:
        read = read_elements if self._is_array else read_lines
        try:
            with self.path.open("rb", buffering=_BUFFER_BYTES) as stream:
                stream.seek(begin)
                yield from read(stream, self.size)
        except OSError as error:
            raise _file_error(self.path, error) from error

    def _first_objects(self) -> list[dict[str, Any]]:
        """Return the first two objects, as far as the first pieces hold them."""
        first: list[dict[str, Any]] = []
        for piece in itertools.islice(self._pieces(self._begin), 2):
            if piece.data is not None:
                first += (found.value for found in parse_objects(piece.data, piece.offset)[0])
        return first[:2]

    def _leaf_offsets(self) -> frozenset[int] | None:
        if self._is_array or is_linear(self._links(self._begin)):
            return None
        return leaf_offsets(self._links(self._begin))

    def _links(self, begin: int) -> Iterator[Link]:
        for piece in self._pieces(begin):
            if piece.data is not None:
                yield from links_of(piece)


def open_transcript(path: str | os.PathLike[str]) -> Transcript:
    """Open a session file and look at its first objects; its entries are read by iterating.

    Reads OpenClaw and pi sessions, parts of them without a header, and message lists as a JSON
    array or as JSON lines.

    Raises
    ------
    NotFoundError
        There is no such file.
    SessionFileError
        It is a directory (code ``is_directory``), not a regular file (``not_a_file``), holds
        nothing (``empty_file``), may not be read (``permission_denied``) or cannot be
        (``unreadable_file``).

    Notes
    -----
    A branched session is read twice, a linear one too, though the first time only for its links.
    Complexity: iterating is linear in the file; memory of the longest line, and for a branched
    session of a table of its ids.
    """
    file = Path(path)
    try:
        status = file.stat()
    except (OSError, ValueError) as error:
        raise _file_error(file, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise SessionFileError(
            f"{file} is a directory", hint="name a session file in it", code="is_directory"
        )
    if not stat.S_ISREG(status.st_mode):
        raise SessionFileError(
            f"{file} is not a regular file", hint="save it to a file first", code="not_a_file"
        )
    return Transcript(file, status.st_size, status.st_mtime_ns)


def _file_error(path: Path, error: OSError | ValueError) -> LcmError:
    match error:
        case PermissionError():
            return SessionFileError(
                f"{path} may not be read",
                hint="give this user the right to read it",
                code="permission_denied",
            )
        case FileNotFoundError() | NotADirectoryError() | ValueError():
            return NotFoundError(f"no session file at {path}", hint="check the path")
    return SessionFileError(f"{path} cannot be read: {error.strerror}", code="unreadable_file")


def _look_at_head(path: Path, size: int) -> tuple[int, bool, bool]:
    """Return where the first object stands, whether it is in an array, whether a NUL byte is
    near."""
    try:
        with path.open("rb") as stream:
            has_nul = b"\0" in stream.read(_HEAD_BYTES)
            begin = _first_byte(stream, size)
            stream.seek(begin)
            head = stream.read(_HEAD_BYTES)
    except OSError as error:
        raise _file_error(path, error) from error
    if begin >= size:
        raise SessionFileError(f"{path} is empty", hint="nothing was read", code="empty_file")
    return begin, starts_array(head), has_nul


def _first_byte(stream: BinaryIO, size: int) -> int:
    """Return the offset of the first byte that is neither a byte-order mark nor blank."""
    stream.seek(0)
    begin = len(BOM) if stream.read(len(BOM)) == BOM else 0
    stream.seek(begin)
    while begin < size and (block := stream.read(_HEAD_BYTES)):
        content = block.lstrip(BLANK)
        begin += len(block) - len(content)
        if content:
            break
    return begin


def _format_of(header: dict[str, Any] | None, entries: list[dict[str, Any]]) -> Format:
    if header and "version" in header:
        return "openclaw"
    if entries and message_of(entries[0]) is not entries[0] and text_at(entries[0], "id", "uuid"):
        return "openclaw"
    return "pi" if header else "messages"
