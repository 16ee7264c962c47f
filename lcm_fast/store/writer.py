"""The one writer of a process: group commit with a bounded queue.

Callers stand in one line. The caller at its head takes the lock, applies the oldest writes in one
transaction, a savepoint each, commits once, wakes those it served and then the new head. A write
that fails rolls back to its savepoint and raises for its caller alone. Must not know what is
written (design: architecture, section 5).

The first places of the line are the queue; a caller behind them waits for a place, for a bounded
time. An interrupt (`KeyboardInterrupt`) ends the call of the thread it arrives on and no other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import apsw

from ..errors import DatabaseError, LcmError, StoreBusyError
from .connection import BUSY_TIMEOUT_MS, as_store_errors, closed_error

__all__ = ["Writer", "WriterStats"]

T = TypeVar("T")

_QUEUE_LIMIT = 1024
_GROUP_LIMIT = 256
# An interrupt can swallow a wake-up; whoever waits looks for itself this often.
_LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class WriterStats:
    """What a writer has done since it was opened, and who waits for it.

    Attributes
    ----------
    commits
        Transactions committed, with one fsync each.
    entries
        Writes committed in them.
    largest_group
        Most writes that one commit served.
    waiting
        Callers whose write is not done yet, now.
    longest_wait_ms, total_wait_ms
        Time from a call to its outcome, over all calls that had one.
    refused
        Calls that found no place in the queue in time.
    failed
        Writes that raised, or that could not be committed.
    """

    commits: int = 0
    entries: int = 0
    largest_group: int = 0
    waiting: int = 0
    longest_wait_ms: float = 0.0
    total_wait_ms: float = 0.0
    refused: int = 0
    failed: int = 0


class _Entry(Generic[T]):
    __slots__ = ("apply", "arrived", "commit", "error", "result", "woken")

    def __init__(self, apply: Callable[[apsw.Connection], T], arrived: float) -> None:
        self.apply = apply
        self.arrived = arrived
        self.woken = threading.Event()
        self.result: T | None = None
        self.error: Exception | None = None
        # Shared by the entries of a transaction; not empty once it is committed.
        self.commit: Sequence[object] = ()

    @property
    def done(self) -> bool:
        return self.error is not None or bool(self.commit)


class Writer:
    """Serialises writes on one connection.

    Threading: `submit` may be called from any thread. An entry's function runs on the thread that
    holds the lock, which need not be its caller's; it must touch nothing but its arguments and may
    run again when the group it was in is lost to another entry's failure, or to an interrupt.

    Parameters
    ----------
    queue_limit
        Places in the queue, those of the writes under way included.
    queue_wait_ms
        How long a caller that finds no place waits for one.
    monotonic
        The clock of waits, in seconds.
    """

    def __init__(
        self,
        db: apsw.Connection,
        path: str,
        *,
        queue_limit: int = _QUEUE_LIMIT,
        queue_wait_ms: int = BUSY_TIMEOUT_MS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._path = path
        self._queue_limit = queue_limit
        self._queue_wait_s = queue_wait_ms / 1000
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._writing_thread: int | None = None
        self._closed = False
        self._line_lock = threading.Lock()  # guards the two below; never held across I/O
        self._line: list[_Entry[Any]] = []
        self._stats = WriterStats()

    def submit(self, apply: Callable[[apsw.Connection], T]) -> T:
        """Apply a write and return its result once it is committed.

        First come, first served: a caller waits for the groups before its own and for nothing else.

        Raises
        ------
        StoreBusyError
            Another process held the lock longer than the busy timeout, or the queue was full for
            longer than its bounded wait (code ``queue_full``).
        StoreFullError, StoreReadOnlyError, DatabaseError
            As the store found it; nothing of this write is stored.
        """
        self._refuse_reentry()
        entry = _Entry(apply, self._monotonic())
        try:
            with self._line_lock:
                self._line.append(entry)
            if self._is_to_write(entry):
                self._write_until_done(entry)
        except BaseException:
            self._leave(entry)
            raise
        if entry.error is not None:
            raise entry.error
        return entry.result  # type: ignore[return-value]

    def stats(self) -> WriterStats:
        """Return what was done so far, and how many wait now."""
        with self._line_lock:
            return replace(self._stats, waiting=len(self._line))

    def close(self) -> None:
        """Close the connection once no write is under way; writes that wait are refused."""
        self._refuse_reentry()
        with self._lock:
            self._closed = True
            self._db.close()

    def _refuse_reentry(self) -> None:
        """Raise where waiting for the lock would be waiting for oneself, as in a signal handler."""
        if self._lock.locked() and self._writing_thread == threading.get_ident():
            raise DatabaseError(
                f"{self._path}: called while this thread writes to it",
                code="nested_write",
                hint="call it after the write, not from inside it or from a signal handler",
            )

    def _is_to_write(self, entry: _Entry[Any]) -> bool:
        """Wait; return True when the caller has to write, False when its entry is done.

        The lock is released before the head of the line is woken, and an entry is in the line
        before the lock is looked at: one of the two sides always sees the other.
        """
        looked_in_vain = False
        while not entry.done:
            is_head = self._line[:1] == [entry]
            if (is_head or looked_in_vain) and not self._lock.locked():
                return True
            looked_in_vain = not entry.woken.wait(self._patience(entry))
            entry.woken.clear()
        return False

    def _patience(self, entry: _Entry[Any]) -> float:
        """Return how long to wait before looking again; raise when a place is overdue."""
        with self._line_lock:
            place = self._line.index(entry) if entry in self._line else 0
            if place < self._queue_limit:
                return _LOOK_EVERY_S
            waited = self._monotonic() - entry.arrived
            if waited < self._queue_wait_s:
                return min(_LOOK_EVERY_S, self._queue_wait_s - waited)
            self._line.remove(entry)  # at once, or a group could still take what is refused
            self._count_waits([waited])
            self._stats = replace(self._stats, refused=self._stats.refused + 1)
        raise StoreBusyError(
            f"{self._path}: {place} writes are ahead of this one, which waited"
            f" {waited * 1000:.0f} ms for one of {self._queue_limit} places in the queue",
            code="queue_full",
            hint="nothing of it was stored; try again, with fewer writers or larger batches",
        )

    def _write_until_done(self, entry: _Entry[Any]) -> None:
        try:
            with self._lock:
                if self._closed and not entry.done:
                    raise closed_error(self._path)
                self._writing_thread = threading.get_ident()
                try:
                    while not entry.done:
                        self._commit_group()
                finally:
                    self._writing_thread = None
        finally:
            self._wake_head()

    def _leave(self, entry: _Entry[Any]) -> None:
        """Take back an entry whose caller waits no longer; one that is under way is committed."""
        with self._line_lock:
            if entry in self._line:
                self._line.remove(entry)
        self._wake_head()

    def _wake_head(self) -> None:
        for head in self._line[:1]:
            head.woken.set()

    def _commit_group(self) -> None:
        """Commit the oldest entries; those that an interrupt kept from it stay where they are."""
        with self._line_lock:
            group = self._line[: min(_GROUP_LIMIT, self._queue_limit)]
        remaining = [entry for entry in group if not entry.done]
        try:
            while remaining:
                remaining = self._attempt(remaining)
        finally:
            self._roll_back()
            self._settle(group)

    def _settle(self, group: list[_Entry[Any]]) -> None:
        """Let the entries that are done go, and count them."""
        done = [entry for entry in group if entry.done]
        committed = sum(bool(entry.commit) for entry in done)
        now = self._monotonic()
        with self._line_lock:
            self._line = [entry for entry in self._line if not entry.done]
            self._count_waits([now - entry.arrived for entry in done])
            stats = self._stats
            self._stats = replace(
                stats,
                commits=stats.commits + bool(committed),
                entries=stats.entries + committed,
                largest_group=max(stats.largest_group, committed),
                failed=stats.failed + len(done) - committed,
            )
        for entry in done:
            entry.woken.set()

    def _count_waits(self, waits: list[float]) -> None:
        stats, waits_ms = self._stats, [1000 * wait for wait in waits]
        self._stats = replace(
            stats,
            longest_wait_ms=max([stats.longest_wait_ms, *waits_ms]),
            total_wait_ms=stats.total_wait_ms + sum(waits_ms),
        )

    def _attempt(self, group: list[_Entry[Any]]) -> list[_Entry[Any]]:
        """Run one transaction; return what must run again as another entry's failure ended it."""
        try:
            with as_store_errors(self._path, "starting a write"):
                self._db.execute("BEGIN IMMEDIATE")
        except LcmError as error:
            return _fail(group, error)
        commit: list[object] = []
        applied: list[_Entry[Any]] = []
        for position, entry in enumerate(group):
            if self._apply(entry, alone=len(group) == 1):
                entry.commit = commit
                applied.append(entry)
            elif not self._db.in_transaction:
                return applied + group[position + 1 :]
        try:
            with as_store_errors(self._path, "committing a write"):
                # One call: no interrupt falls between the commit and its being noted.
                commit.extend(map(self._db.execute, ("COMMIT",)))
        except LcmError as error:
            self._roll_back()
            return _fail(applied, error)
        return []

    def _apply(self, entry: _Entry[Any], *, alone: bool) -> bool:
        undo = "ROLLBACK"
        try:
            with as_store_errors(self._path, "writing"):
                if not alone:
                    self._db.execute("SAVEPOINT entry")
                    undo = "ROLLBACK TO entry; RELEASE entry"
                entry.result = entry.apply(self._db)
                if not alone:
                    self._db.execute("RELEASE entry")
        except Exception as error:  # raised again by the entry's caller, maybe another thread
            entry.error = error
            if self._db.in_transaction:
                self._db.execute(undo)
            return False
        return True

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _fail(group: list[_Entry[Any]], error: LcmError) -> list[_Entry[Any]]:
    """Give each entry an error of its own: every caller's thread adds its traceback."""
    for entry in group:
        entry.error = copy(error)
        entry.error.__cause__ = error.__cause__
    return []
