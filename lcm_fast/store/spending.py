"""What summariser calls were made, what they cost, and what pauses them.

Every metered call is a row, counted per model in the same transaction; guards are few rows that
outlive a process, so that a restart neither forgets a refused key nor spends a window twice. Only
SQL: `compaction.guards` decides (spec P, Q).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

__all__ = [
    "Guard",
    "ModelUsage",
    "SummarizerCall",
    "count_calls",
    "guards",
    "record",
    "set_guard",
    "usage",
]


class SummarizerCall(msgspec.Struct, frozen=True):
    """One call to a summariser; the fields are its columns."""

    model: str
    outcome: str
    duration_ms: int
    called_at: str
    input_tokens: int | None = None
    output_tokens: int | None = None


class Guard(msgspec.Struct, frozen=True):
    """What pauses calls.

    Attributes
    ----------
    scope
        ``model:NAME`` for a circuit breaker, ``spend:CONVERSATION`` for a spend guard.
    failures
        Refusals in a row, of a circuit breaker.
    open_until
        No call before this time; None while closed.
    """

    scope: str
    failures: int = 0
    open_until: str | None = None
    reason: str = ""


class ModelUsage(msgspec.Struct, frozen=True):
    """What a model was asked and what it used, over all conversations."""

    model: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    last_called_at: str
    last_failure: str | None


def record(
    db: apsw.Connection,
    conversation_id: int | None,
    calls: Sequence[SummarizerCall],
    summary_id: str | None = None,
) -> None:
    """Keep calls that were made, for a conversation or none, and the summary they led to if any."""
    db.executemany(
        "INSERT INTO summarizer_calls (conversation_id, summary_id, model, outcome, input_tokens,"
        " output_tokens, duration_ms, called_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                conversation_id,
                summary_id,
                call.model,
                call.outcome,
                call.input_tokens,
                call.output_tokens,
                call.duration_ms,
                call.called_at,
            )
            for call in calls
        ],
    )
    db.executemany(
        "INSERT INTO summarizer_usage VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6)"
        " ON CONFLICT (model) DO UPDATE SET calls = calls + 1, failed = failed + ?2,"
        " input_tokens = input_tokens + ?3, output_tokens = output_tokens + ?4,"
        " last_called_at = max(last_called_at, ?5), last_failure = coalesce(?6, last_failure)",
        [_usage_of(call) for call in calls],
    )


def _usage_of(call: SummarizerCall) -> tuple[Any, ...]:
    has_failed = call.outcome != "ok"
    return (
        call.model,
        int(has_failed),
        call.input_tokens or 0,
        call.output_tokens or 0,
        call.called_at,
        f"{call.outcome} at {call.called_at}" if has_failed else None,
    )


def count_calls(db: apsw.Connection, conversation_id: int | None, since: str) -> int:
    """Return how many calls a conversation, or none, made after a time; refused credentials cost
    nothing."""
    rows = db.execute(
        "SELECT count(*) FROM summarizer_calls"
        " WHERE conversation_id IS ? AND called_at > ? AND outcome <> 'auth'",
        (conversation_id, since),
    )
    return int(next(rows)[0])


def guards(db: apsw.Connection) -> dict[str, Guard]:
    """Return every guard by its scope."""
    rows = db.execute("SELECT scope, failures, open_until, reason FROM summarizer_guards")
    return {str(row[0]): Guard(*row) for row in rows}


def set_guard(db: apsw.Connection, guard: Guard, now: str) -> None:
    """Keep a guard as it is now; one that is closed and has no failures is forgotten."""
    if guard.failures or guard.open_until:
        db.execute(
            "INSERT OR REPLACE INTO summarizer_guards VALUES (?, ?, ?, ?, ?)",
            (guard.scope, guard.failures, guard.open_until, guard.reason, now),
        )
    else:
        db.execute("DELETE FROM summarizer_guards WHERE scope = ?", (guard.scope,))


def usage(db: apsw.Connection) -> list[ModelUsage]:
    """Return what each model was asked and used."""
    rows = db.execute("SELECT * FROM summarizer_usage ORDER BY last_called_at DESC, model")
    return [ModelUsage(*row) for row in rows]
