"""OpenClaw's own database of an agent's sessions, read and never written.

From OpenClaw 2026.8.1 on, what used to be a line of a session file is a row, as text or as a zstd
frame. Its owner may be writing meanwhile: no side file is made while nobody does, no wait is longer
than the timeout, no read transaction longer than a batch. Must not know what an event means:
`transcripts.events` does (spec: session formats 6; decisions 11 and 13).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import apsw
import zstandard

from ..errors import LcmError, NotFoundError, SessionFileError
from .schema import APPLICATION_ID

__all__ = ["AgentEvent", "AgentSession", "OpenClawAgentDatabase"]

MAX_EVENT_BYTES = 512 * 1024 * 1024
BUSY_TIMEOUT_MS = 5_000

NO_EVENT = "no event in this row"
TOO_LONG = f"longer than {MAX_EVENT_BYTES >> 20} MiB"
NOT_ZSTD = "not a zstd frame"
CUT_SHORT = "zstd frame cut short"

# A batch ends at either. Batches grow: who looks at the first events alone reads few others.
_FIRST_BATCH_ROWS = 8
_BATCH_ROWS = 512
_BATCH_BYTES = 16 * 1024 * 1024
_INFLATE_BYTES = 1024 * 1024
_LOWEST_SEQ = -(2**63)
_IDS_NAMED = 10

_TABLE = "transcript_events"
_WANTED = f"{_TABLE}(session_id, seq, event_json or event_zstd)"
_TIME = "CASE typeof(created_at) WHEN 'integer' THEN created_at END"
_LOSSLESS_CLAW_TABLES = {"conversations", "message_parts", "lcm_migration_state"}

_T = TypeVar("_T")

# SQLite errors -> code, what is the matter, what the reader can do
_ERRORS: tuple[tuple[tuple[type[apsw.Error], ...], str, str, str], ...] = (
    (
        (apsw.BusyError, apsw.LockedError),
        "session_file_busy",
        "another process holds it",
        "try again in a moment",
    ),
    (
        (apsw.NotADBError,),
        "not_a_database",
        f"it is no SQLite database; looked for one with {_WANTED}",
        "name an openclaw-agent.sqlite, or a session file",
    ),
    (
        (apsw.CorruptError,),
        "damaged",
        "it is damaged",
        "let `openclaw doctor` repair it, or read a backup of it",
    ),
    (
        (apsw.ReadOnlyError,),
        "needs_recovery",
        "its last writer left work that only a writer can finish",
        "start OpenClaw once, or copy it with its -wal or -journal file to a folder of yours",
    ),
    (
        (apsw.CantOpenError, apsw.PermissionsError),
        "permission_denied",
        "it may not be read",
        "give this user the right to read it, and to write to its folder while OpenClaw runs",
    ),
)


class AgentSession(NamedTuple):
    """A session of the database: how many events it has, and when the first and last were made.

    Times are ISO 8601 UTC, None where the database has none.
    """

    session_id: str
    events: int
    first_at: str | None
    last_at: str | None


class AgentEvent(NamedTuple):
    """A row: its number in the session, and the event's bytes or why there are none.

    `length` counts the bytes of the event, of its frame when that cannot be read.
    """

    seq: int
    data: bytes | None
    length: int
    created_at_ms: int | None
    unreadable: str = ""


class _Row(NamedTuple):
    seq: int
    length: int
    text: bytes | None
    frame: bytes | None
    created_at_ms: int | None


class OpenClawAgentDatabase:
    """An ``openclaw-agent.sqlite``; a context manager. Each call reads what is there by then.

    Parameters
    ----------
    path
        The database.
    busy_timeout_ms
        How long to wait for another process at most, in milliseconds.

    Raises
    ------
    NotFoundError
        There is no such file.
    SessionFileError
        It is no such database; its code tells a directory (``is_directory``), something that is no
        regular file (``not_a_file``), one without content (``empty_file``) or that is no database
        (``not_a_database``), lossless-claw's (``lossless_claw_database``), this package's
        (``own_database``), any other (``no_transcripts``). Or it cannot be read now: it is locked
        (``session_file_busy``), ``damaged``, to be recovered by its writer (``needs_recovery``), or
        may not be read (``permission_denied``). The last four may come from any later read too.

    Notes
    -----
    Threading: one thread at a time.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, busy_timeout_ms: int = BUSY_TIMEOUT_MS
    ) -> None:
        self.path = Path(path)
        self._file = _regular_file(self.path)
        self._busy_timeout_ms = busy_timeout_ms
        self._db: apsw.Connection | None = None
        self._db_at_rest: _AtRest | None = None
        try:
            self._read(self._columns)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next read opens another."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def sessions(self) -> list[AgentSession]:
        """Return all sessions, the one that began first first.

        Complexity: linear in the number of events, not in their size.
        """
        return self._read(_sessions)

    def last_seq(self, session_id: str) -> int:
        """Return the number of the newest event of a session; OpenClaw counts from 0.

        Raises
        ------
        NotFoundError
            There is no such session; names up to ten that are.
        """
        last = self._read(partial(_last_seq, session_id=session_id))
        if last is None:
            raise self._no_session(session_id)
        return last

    def rows(self, session_id: str, after_seq: int | None = None) -> Iterator[AgentEvent]:
        """Return an iterator over the events of a session, by number.

        Parameters
        ----------
        after_seq
            Number of the last event to leave out; None leaves out none.

        Raises
        ------
        NotFoundError
            As `last_seq`.

        Notes
        -----
        Events appended while it runs may be among those it yields. Memory of one batch: 512 rows,
        or the row that brings it to 16 MiB.
        """
        self.last_seq(session_id)
        return self._rows(session_id, _LOWEST_SEQ if after_seq is None else after_seq)

    def _rows(self, session_id: str, after: int) -> Iterator[AgentEvent]:
        limit = _FIRST_BATCH_ROWS
        decompressor = zstandard.ZstdDecompressor()
        while batch := self._read(
            partial(self._batch, session_id=session_id, after=after, limit=limit)
        ):
            for row in batch:
                yield _event_of(row, decompressor)
            after = batch[-1].seq
            limit = min(2 * limit, _BATCH_ROWS)

    def _read(self, look: Callable[[apsw.Connection], _T]) -> _T:
        """Look at one state of the database.

        At rest it is read as a file nobody writes to, without locks or side files; whatever was
        seen while that ceased to be so is looked at again, as one that is being written.
        """
        with _as_session_file_errors(self.path):
            at_rest = _at_rest(self._file)
            if at_rest is not None:
                with suppress(apsw.Error):
                    found = look(self._connection(at_rest))
                    if _at_rest(self._file) == at_rest:
                        return found
            return look(self._connection(None))

    def _connection(self, at_rest: _AtRest | None) -> apsw.Connection:
        if self._db is None or self._db_at_rest != at_rest:
            self.close()
            self._db = _open(self._file, at_rest is not None, self._busy_timeout_ms)
            self._db_at_rest = at_rest
        return self._db

    def _columns(self, db: apsw.Connection) -> frozenset[str]:
        """Return the columns of the table of events, which an upgrade of OpenClaw may change."""
        rows = db.execute("SELECT lower(name) FROM pragma_table_xinfo(?)", (_TABLE,))
        columns = frozenset(str(name) for (name,) in rows)
        if {"session_id", "seq"} <= columns and columns & {"event_json", "event_zstd"}:
            return columns
        raise _refusal(self.path, db, columns)

    def _batch(self, db: apsw.Connection, *, session_id: str, after: int, limit: int) -> list[_Row]:
        """Return the next rows; content that is too long is left where it is."""
        columns = self._columns(db)
        text, frame = _column("event_json", columns), _column("event_zstd", columns)
        encoding = str(db.pragma("encoding"))
        cursor = db.execute(
            f"SELECT seq, coalesce(octet_length({text}), octet_length({frame}), 0),"
            f" CASE WHEN octet_length({text}) <= :most THEN CAST({text} AS BLOB) END,"
            f" CASE WHEN {text} IS NULL AND octet_length({frame}) <= :most"
            f" THEN CAST({frame} AS BLOB) END, {_TIME}"
            f" FROM {_TABLE} WHERE session_id = :session AND seq > :after"
            " AND typeof(seq) = 'integer' ORDER BY seq LIMIT :limit",
            {"most": MAX_EVENT_BYTES, "session": session_id, "after": after, "limit": limit},
        )
        batch: list[_Row] = []
        held = 0
        with closing(cursor):
            for row in map(_Row._make, cursor):
                batch.append(row._replace(text=_as_utf8(row.text, encoding)))
                held += len(row.text or b"") + len(row.frame or b"")
                if held >= _BATCH_BYTES:
                    break
        return batch

    def _no_session(self, session_id: str) -> NotFoundError:
        ids = self._read(_some_ids)
        named = ", ".join(ids[:_IDS_NAMED]) or "no session"
        more = " and more" if len(ids) > _IDS_NAMED else ""
        return NotFoundError(
            f"{self.path}: there is no session {session_id!r} in it", hint=f"it has {named}{more}"
        )


@contextmanager
def _as_session_file_errors(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file inside the block into our errors, naming it."""
    try:
        yield
    except OSError as error:
        raise SessionFileError(
            f"{path} cannot be read: {error.strerror}", code="unreadable_file"
        ) from error
    except UnicodeDecodeError as error:
        raise SessionFileError(
            f"{path}: it is damaged: a session id is not UTF-8", code="damaged"
        ) from error
    except apsw.Error as error:
        raise _translated(error, path) from error


def _translated(error: apsw.Error, path: Path) -> LcmError:
    for kinds, code, matter, hint in _ERRORS:
        if isinstance(error, kinds):
            return SessionFileError(f"{path}: {matter} ({error})", code=code, hint=hint)
    return SessionFileError(f"{path} cannot be read: {error}", code="unreadable_file")


def _regular_file(path: Path) -> Path:
    """Return the file a path leads to, beside which SQLite keeps its log."""
    with _as_session_file_errors(path):
        if not path.exists():
            raise NotFoundError(f"no database at {path}", hint="check the path")
        if path.is_dir():
            raise SessionFileError(
                f"{path} is a directory", hint="name the database in it", code="is_directory"
            )
        if not path.is_file():
            raise SessionFileError(f"{path} is not a regular file", code="not_a_file")
        return path.resolve()


class _AtRest(NamedTuple):
    size: int
    mtime_ns: int


def _at_rest(file: Path) -> _AtRest | None:
    """Return size and time of a database all of which is in its one file, None when it is not."""
    for suffix in ("-wal", "-journal"):
        with suppress(FileNotFoundError):
            if file.with_name(file.name + suffix).stat().st_size:
                return None
    status = file.stat()
    return _AtRest(status.st_size, status.st_mtime_ns)


def _open(file: Path, immutable: bool, busy_timeout_ms: int) -> apsw.Connection:
    uri = f"{file.as_uri()}?mode=ro{'&immutable=1' if immutable else ''}"
    db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        db.set_busy_timeout(busy_timeout_ms)
        db.pragma("query_only", 1)
        db.pragma("trusted_schema", 0)
    except BaseException:
        db.close()
        raise
    return db


def _column(name: str, columns: frozenset[str]) -> str:
    return name if name in columns else "NULL"


def _sessions(db: apsw.Connection) -> list[AgentSession]:
    at = (
        f"(SELECT strftime('%FT%H:%M:%fZ', {_TIME} / 1000.0, 'unixepoch')"
        f" FROM {_TABLE} AS e WHERE e.session_id = held.session_id"
    )
    rows = db.execute(
        "WITH held AS (SELECT session_id, count(*) AS events, min(seq) AS first, max(seq) AS"
        f" last FROM {_TABLE} WHERE typeof(session_id) = 'text' GROUP BY session_id)"
        f" SELECT session_id, events, {at} AND e.seq = held.first), {at} AND e.seq = held.last)"
        " FROM held ORDER BY 3, 1"
    )
    return [AgentSession(*row) for row in rows]


def _last_seq(db: apsw.Connection, *, session_id: str) -> int | None:
    try:
        rows = db.execute(
            f"SELECT seq FROM {_TABLE} WHERE session_id = ? AND typeof(seq) = 'integer'"
            " ORDER BY seq DESC LIMIT 1",
            (session_id,),
        )
    except UnicodeEncodeError:
        return None  # an id with a lone surrogate is no text SQLite can hold
    return next((int(seq) for (seq,) in rows), None)


def _some_ids(db: apsw.Connection) -> list[str]:
    rows = db.execute(
        f"SELECT DISTINCT session_id FROM {_TABLE} WHERE typeof(session_id) = 'text' LIMIT ?",
        (_IDS_NAMED + 1,),
    )
    return [str(session_id) for (session_id,) in rows]


def _refusal(path: Path, db: apsw.Connection, columns: frozenset[str]) -> SessionFileError:
    """Return why a database without the wanted table or columns is not read."""
    names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    tables = {str(name) for (name,) in names}
    if db.pragma("application_id") == APPLICATION_ID:
        return SessionFileError(
            f"{path} is a memory of lcm-fast, not a transcript",
            code="own_database",
            hint="name it with --db, and a session to read",
        )
    if tables >= _LOSSLESS_CLAW_TABLES:
        return SessionFileError(
            f"{path} is a lossless-claw database, not a transcript",
            code="lossless_claw_database",
            hint="`lcm-fast ingest` takes the sessions it was made from",
        )
    if not tables:
        return SessionFileError(
            f"{path} is empty; looked for {_WANTED}", hint="nothing was read", code="empty_file"
        )
    found = f"its {_TABLE} has {', '.join(sorted(columns))}" if columns else f"it has no {_TABLE}"
    return SessionFileError(
        f"{path} is no database of an OpenClaw agent: {found}; looked for {_WANTED}",
        code="no_transcripts",
        hint="sessions are in ~/.openclaw/agents/<id>/agent/openclaw-agent.sqlite",
    )


def _as_utf8(text: bytes | None, encoding: str) -> bytes | None:
    """Return text as UTF-8; the bytes of any are in the encoding of its database."""
    if text is None or encoding == "UTF-8":
        return text
    return text.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")


class _UnreadableError(Exception):
    """Why an event cannot be had."""


def _event_of(row: _Row, decompressor: zstandard.ZstdDecompressor) -> AgentEvent:
    try:
        data = _content_of(row, decompressor)
    except _UnreadableError as reason:
        return AgentEvent(row.seq, None, row.length, row.created_at_ms, str(reason))
    return AgentEvent(row.seq, data, len(data), row.created_at_ms)


def _content_of(row: _Row, decompressor: zstandard.ZstdDecompressor) -> bytes:
    if row.text is not None:
        return row.text
    if row.frame is not None:
        return _inflate(row.frame, decompressor)
    raise _UnreadableError(TOO_LONG if row.length else NO_EVENT)


def _inflate(frame: bytes, decompressor: zstandard.ZstdDecompressor) -> bytes:
    """Return the event in a zstd frame, holding no more than the limit whatever the frame says."""
    try:
        parameters = zstandard.get_frame_parameters(frame)
    except zstandard.ZstdError as error:
        raise _UnreadableError(NOT_ZSTD) from error
    if parameters.dict_id:
        raise _UnreadableError(f"needs zstd dictionary {parameters.dict_id}, which is not here")
    size = parameters.content_size
    announced = 0 if size == zstandard.CONTENTSIZE_UNKNOWN else size
    data = bytearray()
    try:
        with decompressor.stream_reader(frame, read_across_frames=True) as stream:
            while max(len(data), announced) <= MAX_EVENT_BYTES:
                part = stream.read(_INFLATE_BYTES)
                if not part:
                    break
                data += part
            else:
                raise _UnreadableError(TOO_LONG)
    except zstandard.ZstdError as error:
        raise _UnreadableError(f"damaged zstd frame: {error}") from error
    if len(data) < announced:
        raise _UnreadableError(CUT_SHORT)
    return bytes(data)
