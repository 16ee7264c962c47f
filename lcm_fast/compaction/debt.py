"""When a debt of compaction is tried again, and what a compaction's end says of it.

Pure: `store.debt` holds the rows, the engine's upkeep runs the compactions (spec O6, O9; case 90).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ..errors import SummarizerAuthError
from ..store import Debt, Settlement
from .results import CompactionResult

__all__ = ["backoff_ms", "seconds_between", "settlement", "time_after"]

_FIRST_BACKOFF_MS = 5 * 60_000
_LONGEST_BACKOFF_MS = 30 * 60_000


def backoff_ms(attempts: int) -> int:
    """Return how long to wait after so many failures in a row.

    >>> [backoff_ms(attempts) // 60_000 for attempts in (1, 2, 3, 4, 5, 60)]
    [5, 10, 20, 30, 30, 30]
    """
    doubled = _FIRST_BACKOFF_MS << min(max(attempts, 1) - 1, 8)
    return min(doubled, _LONGEST_BACKOFF_MS)


def time_after(moment: str, milliseconds: float) -> str:
    """Return a UTC time so many milliseconds after another, in the form the store keeps.

    >>> time_after("2026-03-01T10:00:00.000Z", 300_000)
    '2026-03-01T10:05:00.000Z'
    """
    later = datetime.fromisoformat(moment) + timedelta(milliseconds=milliseconds)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_between(moment: str, later: str | None) -> float | None:
    """Return the seconds from one UTC time to another; None without the other.

    >>> seconds_between("2026-03-01T10:00:00.000Z", "2026-03-01T10:00:30.000Z")
    30.0
    """
    if later is None:
        return None
    return (datetime.fromisoformat(later) - datetime.fromisoformat(moment)).total_seconds()


def settlement(debt: Debt, result: CompactionResult, now: str) -> Settlement:
    """Return how a debt stands after a compaction.

    What is done, or cannot be done, is settled. A limit that ended a compaction which made progress
    costs no waiting; neither do refused credentials, which the circuit breaker counts. Any other
    failure waits 5, 10, 20, then 30 minutes, or as long as the summariser says.
    """
    if result.status in ("done", "nothing", "exhausted"):
        return Settlement(keep_pending=False, resolution=f"{result.status}: {result.reason}")
    is_paused = result.status == "deferred" and result.retry_at is not None
    if result.failure_code == SummarizerAuthError.code or result.can_go_on or is_paused:
        return Settlement(True, failure=result.reason, next_attempt_after=result.retry_at)
    attempts = debt.retry_attempts + 1
    later = time_after(now, backoff_ms(attempts))
    return Settlement(
        True,
        failure=result.reason,
        attempts=attempts,
        next_attempt_after=max(later, result.retry_at or later),
    )
