"""A bounded pool of read connections; each use is one snapshot.

A thread borrows a connection for one operation, so threads that end leave nothing open behind them.
Readers never wait for the writer (design: architecture, section 5).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from .connection import as_store_errors, closed_error, open_reader

__all__ = ["Readers"]

_IDLE_LIMIT = 8


class Readers:
    """Lends read connections to any thread."""

    def __init__(self, path: str, *, busy_timeout_ms: int) -> None:
        self._path = path
        self._busy_timeout_ms = busy_timeout_ms
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._closed = False

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """Lend a connection inside a read transaction: all reads in the block see one state."""
        db = self._borrow()
        try:
            with as_store_errors(self._path, "reading"):
                db.execute("BEGIN")
                yield db
                db.execute("COMMIT")
        except BaseException:
            db.close(True)  # what an error left behind in it is not lent to anyone else
            raise
        self._give_back(db)

    def close(self) -> None:
        """Close the idle connections; one that is lent is closed when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    def _borrow(self) -> apsw.Connection:
        with self._lock:
            if self._closed:
                raise closed_error(self._path)
            if self._idle:
                return self._idle.pop()
        return open_reader(self._path, busy_timeout_ms=self._busy_timeout_ms)

    def _give_back(self, db: apsw.Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE_LIMIT:
                self._idle.append(db)
                return
        db.close()
