"""How a connection to the database is opened, set up and refused.

One small function per setting. SQLite's result codes become this package's errors in one table.
Never reads the database file other than through SQLite: closing a plain file descriptor would drop
the locks of every connection this process has on it (design: architecture, sections 4 and 5).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import apsw

from ..errors import (
    ConfigError,
    DatabaseError,
    ForeignDatabaseError,
    LcmError,
    NotFoundError,
    StoreBusyError,
    StoreFullError,
    StoreReadOnlyError,
)
from .schema import APPLICATION_ID, FIRST_VERSION, SCHEMA_VERSION

__all__ = [
    "BUSY_TIMEOUT_MS",
    "Durability",
    "as_store_errors",
    "check_ownership",
    "closed_error",
    "open_reader",
    "open_writer",
    "usable_name",
]

Durability = Literal["full", "normal"]

BUSY_TIMEOUT_MS = 30_000
_WRITER_CACHE_KIB = 16_384
_READER_CACHE_KIB = 8_192
_WAL_KEPT_BYTES = 64 * 1024 * 1024

_DAMAGED = "run `lcm-fast doctor`; restore a backup if it finds damage"

# SQLite error -> (our error, code, what the reader can do)
_ERRORS: tuple[tuple[type[apsw.Error], type[DatabaseError], str, str], ...] = (
    (
        apsw.BusyError,
        StoreBusyError,
        "store_busy",
        "another process is writing; try again, or end the one that holds the lock",
    ),
    (
        apsw.LockedError,
        StoreBusyError,
        "store_busy",
        "another connection is writing; try again",
    ),
    (apsw.FullError, StoreFullError, "store_full", "free space on the disk; nothing was lost"),
    (apsw.TooBigError, StoreFullError, "too_big", "a message may have 1,000,000,000 bytes at most"),
    (
        apsw.ReadOnlyError,
        StoreReadOnlyError,
        "store_read_only",
        "make the file and its folder writable for this user, or choose another with --db",
    ),
    (
        apsw.PermissionsError,
        StoreReadOnlyError,
        "store_read_only",
        "make the file and its folder readable and writable for this user",
    ),
    (
        apsw.CantOpenError,
        DatabaseError,
        "cannot_open",
        "check that the folder exists and is writable for this user",
    ),
    (
        apsw.NotADBError,
        ForeignDatabaseError,
        "not_a_database",
        "the file is not an SQLite database; choose another with --db",
    ),
    (
        apsw.CorruptError,
        DatabaseError,
        "damaged",
        _DAMAGED,
    ),
    (apsw.IOError, DatabaseError, "io_error", "check the disk; the record is as it was before"),
)


@contextmanager
def as_store_errors(path: str, doing: str) -> Iterator[None]:
    """Turn SQLite's errors inside the block into ours, naming the file and the operation."""
    try:
        yield
    except apsw.Error as error:
        raise _translated(error, path, doing) from error
    except UnicodeDecodeError as error:
        raise DatabaseError(
            f"{path}: a text in it is not UTF-8, while {doing}", code="damaged", hint=_DAMAGED
        ) from error
    except UnicodeEncodeError as error:
        raise DatabaseError(
            f"{path}: {error} while {doing}", hint="names may hold no lone surrogates"
        ) from error


def closed_error(path: str) -> DatabaseError:
    """Return the error of a call on a store that was closed."""
    return DatabaseError(
        f"{path}: the memory was closed before this call", code="closed", hint="open it again"
    )


def _translated(error: apsw.Error, path: str, doing: str) -> LcmError:
    for kind, ours, code, hint in _ERRORS:
        if isinstance(error, kind):
            return ours(f"{path}: {error} while {doing}", code=code, hint=hint)
    return DatabaseError(
        f"{path}: {type(error).__name__}: {error} while {doing}",
        hint="run `lcm-fast doctor`; nothing of this operation was stored",
    )


class _Header(NamedTuple):
    application_id: int
    version: int
    tables: set[str]


def usable_name(path: str | os.PathLike[str]) -> str:
    """Return the path of a database as text.

    Raises
    ------
    ConfigError
        It names no file, or one SQLite has no name for.
    """
    name = os.fspath(path)
    if name == ":memory:" or name.startswith("file:"):
        raise ConfigError(
            f"databasePath {name!r}: a database in memory would forget",
            hint="name a file; a temporary one will do",
        )
    try:
        usable = b"\0" not in name.encode()
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise ConfigError(f"databasePath {name!r} is not UTF-8 text", hint="choose another name")
    return name


def check_ownership(path: str) -> int:
    """Return the schema version of our database at `path`, 0 when there is none yet.

    Raises
    ------
    ForeignDatabaseError
        The file belongs to another program or is no database. It is read without locks and never
        altered.
    StoreReadOnlyError
        There can be no file at this path, or it may not be looked at.
    DatabaseError
        The schema is of a newer version of this package.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise ForeignDatabaseError(
                f"{path} is a directory", code="is_directory", hint="name a database file"
            )
        if not file.exists() or file.stat().st_size == 0:
            return 0
    except OSError as error:
        raise _cannot_create(file, error.strerror or str(error)) from error
    with as_store_errors(path, "reading its header"):
        found = _read_header(file)
    if not any(found):
        return 0  # another process is about to make it
    if found.application_id != APPLICATION_ID:
        raise _foreign(path, found.tables)
    if 0 < found.version < FIRST_VERSION:
        raise DatabaseError(
            f"{path} has schema version {found.version}, which was never in a release",
            code="unreleased_schema",
            hint="ingest its session files into a new database; this one is not touched",
        )
    if found.version > SCHEMA_VERSION:
        raise DatabaseError(
            f"{path} has schema version {found.version}; this package knows up to {SCHEMA_VERSION}",
            code="newer_schema",
            hint="upgrade lcm-fast",
        )
    return found.version


def _read_header(file: Path) -> _Header:
    """Read a header without a lock or a side file while nobody else has the database open."""
    quiet = _quiet_since(file)
    if quiet is not None:
        with suppress(apsw.Error):
            header = _header_at(f"{file.absolute().as_uri()}?mode=ro&immutable=1")
            if _quiet_since(file) == quiet:
                return header
    return _header_at(f"{file.absolute().as_uri()}?mode=ro")


def _quiet_since(file: Path) -> tuple[int, int] | None:
    """Return size and time of a file whose log or index is missing, so that nobody writes to it."""
    log, index = (file.with_name(file.name + suffix) for suffix in ("-wal", "-shm"))
    if index.exists() and log.exists() and log.stat().st_size:
        return None
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _header_at(uri: str) -> _Header:
    db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        db.execute("BEGIN")  # all three from one state: another process may be making it now
        return _Header(
            application_id=int(db.pragma("application_id")),
            version=int(db.pragma("user_version")),
            tables={str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema")},
        )
    finally:
        db.close()


def _foreign(path: str, tables: set[str]) -> ForeignDatabaseError:
    if {"conversations", "message_parts", "lcm_migration_state"} <= tables:
        return ForeignDatabaseError(
            f"{path} is a lossless-claw database; it was not changed",
            code="lossless_claw_database",
            hint="choose another file with --db; "
            "`lcm-fast ingest` takes the session files it was made from",
        )
    return ForeignDatabaseError(
        f"{path} is a database of another program; it was not changed",
        hint="choose another file with --db",
    )


def open_writer(path: str, *, durability: Durability, busy_timeout_ms: int) -> apsw.Connection:
    """Open the one connection that writes, creating a private file where there is none."""
    _create_private(Path(path))
    with as_store_errors(path, "opening it"):
        db = apsw.Connection(
            path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, statementcachesize=200
        )
        try:
            db.set_busy_timeout(busy_timeout_ms)
            _use_write_ahead_log(db)
            _set_durability(db, durability)
            _keep_log_small(db)
            _enforce_foreign_keys(db)
            _set_cache(db, _WRITER_CACHE_KIB)
        except BaseException:
            db.close()
            raise
    return db


def open_reader(path: str, *, busy_timeout_ms: int) -> apsw.Connection:
    """Open a connection that only reads, for one thread at a time.

    SQLite does not lock each call to it: a fifth of the time of reading rows.

    Raises
    ------
    NotFoundError
        There is no such file.
    """
    if not Path(path).exists():
        raise NotFoundError(
            f"{path}: no such database",
            hint="`lcm-fast ingest SESSION` makes one, or name it with --db",
        )
    with as_store_errors(path, "opening it to read"):
        db = apsw.Connection(
            path,
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOMUTEX,
            statementcachesize=100,
        )
        try:
            db.set_busy_timeout(busy_timeout_ms)
            _set_cache(db, _READER_CACHE_KIB)
        except BaseException:
            db.close()
            raise
    return db


def _create_private(file: Path) -> None:
    """Make the folder 0700 and the file 0600; SQLite gives its side files the database's mode."""
    try:
        _make_private_folder(file.parent)
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError as error:
        raise _cannot_create(file, f"{error.filename} is a file") from error
    except OSError as error:
        raise _cannot_create(file, error.strerror or str(error)) from error


def _make_private_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _cannot_create(file: Path, reason: str) -> StoreReadOnlyError:
    return StoreReadOnlyError(
        f"{file}: cannot create the database: {reason}",
        hint="choose a writable place with --db or databasePath",
    )


def _use_write_ahead_log(db: apsw.Connection) -> None:
    db.pragma("journal_mode", "wal")


def _set_durability(db: apsw.Connection, durability: Durability) -> None:
    db.pragma("synchronous", "FULL" if durability == "full" else "NORMAL")


def _keep_log_small(db: apsw.Connection) -> None:
    db.pragma("journal_size_limit", _WAL_KEPT_BYTES)


def _enforce_foreign_keys(db: apsw.Connection) -> None:
    db.pragma("foreign_keys", 1)


def _set_cache(db: apsw.Connection, kib: int) -> None:
    db.pragma("cache_size", -kib)
