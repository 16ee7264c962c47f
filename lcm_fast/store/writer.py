"""The one writer of a process: group commit.

Callers queue a prepared write and ask for the lock; whoever gets it applies all that is queued in
one transaction, a savepoint each, commits once and wakes the others. An entry that fails rolls back
to its savepoint and raises for its caller alone. Must not know what is written (design:
architecture, section 5).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import apsw

from ..errors import DatabaseError
from .connection import as_store_errors, closed_error

__all__ = ["Writer"]

T = TypeVar("T")
_GROUP_LIMIT = 256


class _Entry(Generic[T]):
    __slots__ = ("apply", "done", "error", "result")

    def __init__(self, apply: Callable[[apsw.Connection], T]) -> None:
        self.apply = apply
        self.done = False
        self.result: T | None = None
        self.error: Exception | None = None


class Writer:
    """Serialises writes on one connection.

    Threading: `submit` may be called from any thread. An entry's function runs on the thread that
    holds the lock, which need not be its caller's; it must touch nothing but its arguments and may
    run again when the group it was in is lost to another entry's failure.
    """

    def __init__(self, db: apsw.Connection, path: str) -> None:
        self._db = db
        self._path = path
        self._lock = threading.Lock()
        self._closed = False
        self._queue: deque[_Entry[Any]] = deque()

    def submit(self, apply: Callable[[apsw.Connection], T]) -> T:
        """Apply a write and return its result once it is committed.

        Raises
        ------
        StoreBusyError
            Another process held the lock longer than the busy timeout.
        StoreFullError, StoreReadOnlyError, DatabaseError
            As the store found it; nothing of this write is stored.
        """
        entry = _Entry(apply)
        self._queue.append(entry)
        with self._lock:
            if self._closed:
                raise closed_error(self._path)
            while not entry.done:
                self._commit_group()
        if entry.error is not None:
            raise entry.error
        return entry.result  # type: ignore[return-value]

    def close(self) -> None:
        """Close the connection once no write is under way."""
        with self._lock:
            self._closed = True
            self._db.close()

    def _commit_group(self) -> None:
        """Commit the oldest entries queued; each of them is done afterwards, whatever happens."""
        group: list[_Entry[Any]] = []
        while self._queue and len(group) < _GROUP_LIMIT:
            group.append(self._queue.popleft())
        remaining = group
        try:
            while remaining:
                remaining = self._attempt(remaining)
        finally:
            self._roll_back()
            for entry in group:
                if not entry.done:  # interrupted: its caller waits on another thread
                    _fail([entry], _interrupted(self._path))

    def _attempt(self, group: list[_Entry[Any]]) -> list[_Entry[Any]]:
        """Run one transaction; return what must run again as another entry's failure ended it."""
        try:
            with as_store_errors(self._path, "starting a write"):
                self._db.execute("BEGIN IMMEDIATE")
        except Exception as error:
            return _fail(group, error)
        applied: list[_Entry[Any]] = []
        for position, entry in enumerate(group):
            if self._apply(entry, alone=len(group) == 1):
                applied.append(entry)
            elif not self._db.in_transaction:
                return applied + group[position + 1 :]
        try:
            with as_store_errors(self._path, "committing a write"):
                self._db.execute("COMMIT")
        except Exception as error:
            self._roll_back()
            return _fail(applied, error)
        for entry in applied:
            entry.done = True
        return []

    def _apply(self, entry: _Entry[Any], *, alone: bool) -> bool:
        try:
            with as_store_errors(self._path, "writing"):
                if alone:
                    entry.result = entry.apply(self._db)
                else:
                    self._db.execute("SAVEPOINT entry")
                    entry.result = entry.apply(self._db)
                    self._db.execute("RELEASE entry")
        except Exception as error:  # raised again by the entry's caller, maybe another thread
            entry.error, entry.done = error, True
            if self._db.in_transaction:
                self._db.execute("ROLLBACK" if alone else "ROLLBACK TO entry; RELEASE entry")
            return False
        return True

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _interrupted(path: str) -> DatabaseError:
    return DatabaseError(f"{path}: the write was interrupted", hint="try again")


def _fail(group: list[_Entry[Any]], error: Exception) -> list[_Entry[Any]]:
    for entry in group:
        entry.error, entry.done = error, True
    return []
