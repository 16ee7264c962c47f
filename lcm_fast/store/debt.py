"""Compaction debt: one row a conversation says that it is over its threshold and since when.

Written in the transaction of the turn that crossed the threshold; claimed, prolonged and settled by
whoever drains it. Decides nothing about when or how: `compaction.debt` does (spec O3 to O9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw
import msgspec

from .leases import is_gone
from .model_calls import NO_FACTS, CallFacts, in_model_tokens

__all__ = [
    "Debt",
    "DebtTerms",
    "Settlement",
    "claim",
    "count_open",
    "due",
    "load",
    "page",
    "request",
    "resolve_if_under",
    "settle",
]

_TABLE = "conversation_compaction_maintenance"


@dataclass(frozen=True, slots=True)
class DebtTerms:
    """When a turn leaves its conversation in debt, and what the debt is to say, in tokens of the
    model.

    Attributes
    ----------
    threshold_tokens
        Debt begins above it, strictly.
    counter
        Counted what is stored; None: its counts stand for the model's.
    facts
        Of the model call that the turn belongs to.
    fresh_tail_count, leaf_chunk_tokens
        Of the override that set the threshold; None without.
    """

    threshold_tokens: int
    token_budget: int
    context_threshold: float
    threshold_source: str
    counter: str | None = None
    fresh_tail_count: int | None = None
    leaf_chunk_tokens: int | None = None
    facts: CallFacts = NO_FACTS


class Debt(msgspec.Struct, frozen=True, kw_only=True):
    """A row of compaction debt, settled or not; the fields are its columns."""

    conversation_id: int
    pending: bool
    running: bool
    reason: str | None
    requested_at: str | None
    last_started_at: str | None
    last_finished_at: str | None
    last_failure_summary: str | None
    token_budget: int | None
    current_token_count: int | None
    projected_token_count: int | None
    context_threshold: float | None
    context_threshold_source: str | None
    context_fresh_tail_count: int | None
    context_leaf_chunk_tokens: int | None
    retry_attempts: int
    next_attempt_after: str | None
    resolution_reason: str | None
    lease_owner: str | None
    lease_until: str | None
    session_key: str | None
    session_id: str


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a drain ended.

    Attributes
    ----------
    keep_pending
        There is more to do, at `next_attempt_after` at the earliest.
    failure
        Why it did not come to its end; None when it did.
    resolution
        What settled it.
    """

    keep_pending: bool
    failure: str | None = None
    attempts: int = 0
    next_attempt_after: str | None = None
    resolution: str | None = None


_COLUMNS = ", ".join(
    f"c.{name}" if name in {"session_key", "session_id"} else f"d.{name}"
    for name in Debt.__struct_fields__
)


def request(
    db: apsw.Connection,
    conversation_id: int,
    frontier_tokens: int,
    ratio: float,
    terms: DebtTerms,
    now: str,
) -> bool:
    """Put a conversation in debt when it is over its threshold; tell whether it is.

    An open debt keeps its age, its attempts and a waiting time that is running.

    Parameters
    ----------
    frontier_tokens
        As stored.
    ratio
        Tokens of the model in one that is stored.
    """
    stored = in_model_tokens(frontier_tokens, ratio)
    current = max(stored, terms.facts.observed_tokens or 0)
    if current <= terms.threshold_tokens:
        return False
    db.execute(
        f"INSERT INTO {_TABLE} (conversation_id, pending, reason, requested_at, token_budget,"
        " current_token_count, projected_token_count, context_threshold, context_threshold_source,"
        " context_fresh_tail_count, context_leaf_chunk_tokens, updated_at)"
        " VALUES (:id, 1, 'threshold', :now, :budget, :stored, :current, :threshold, :source,"
        " :tail, :chunk, :now)"
        " ON CONFLICT (conversation_id) DO UPDATE SET pending = 1, reason = excluded.reason,"
        " requested_at = CASE WHEN pending OR running THEN requested_at ELSE :now END,"
        " token_budget = :budget, current_token_count = :stored, projected_token_count = :current,"
        " context_threshold = :threshold, context_threshold_source = :source,"
        " context_fresh_tail_count = :tail, context_leaf_chunk_tokens = :chunk,"
        " resolution_reason = NULL, resolved_at = NULL,"
        " maintenance_revision = maintenance_revision + 1, updated_at = :now",
        {
            "id": conversation_id,
            "now": now,
            "budget": terms.token_budget,
            "stored": stored,
            "current": current,
            "threshold": terms.context_threshold,
            "source": terms.threshold_source,
            "tail": terms.fresh_tail_count,
            "chunk": terms.leaf_chunk_tokens,
        },
    )
    return True


def load(db: apsw.Connection, conversation_id: int) -> Debt | None:
    """Return a conversation's debt, settled or not."""
    return next(_select(db, "d.conversation_id = ?", (conversation_id,)), None)


def page(db: apsw.Connection, *, limit: int) -> list[Debt]:
    """Return debts that are open, the oldest first."""
    where = "d.pending OR d.running ORDER BY d.requested_at, d.conversation_id LIMIT ?"
    return list(_select(db, where, (limit,)))


def due(db: apsw.Connection, now: str, conversation_id: int | None) -> list[Debt]:
    """Return the debts, or that of one conversation, that are open and need not wait, the oldest
    first."""
    where = (
        "(d.pending OR d.running) AND coalesce(d.next_attempt_after, '') <= ?"
        " AND ? IN (d.conversation_id, 0) ORDER BY d.requested_at, d.conversation_id"
    )
    return list(_select(db, where, (now, conversation_id or 0)))


def count_open(db: apsw.Connection, conversation_id: int | None) -> tuple[int, str | None]:
    """Return how many debts are open, and when the first of those that wait may be tried."""
    rows = db.execute(
        f"SELECT count(*), min(next_attempt_after) FROM {_TABLE}"
        " WHERE (pending OR running) AND ? IN (conversation_id, 0)",
        (conversation_id or 0,),
    )
    count, earliest = next(rows)
    return int(count), earliest


def claim(
    db: apsw.Connection,
    conversation_id: int,
    owner: str,
    *,
    now: str,
    lease_until: str,
    ignores_wait: bool,
) -> Debt | None:
    """Take a debt to drain it; None when there is none, it must wait, or another one has it."""
    debt = load(db, conversation_id)
    if debt is None or not (debt.pending or debt.running):
        return None
    if not ignores_wait and debt.next_attempt_after is not None and debt.next_attempt_after > now:
        return None
    is_alive = (
        debt.running and (debt.lease_until or "") > now and not is_gone(debt.lease_owner or "")
    )
    if is_alive:
        return None
    db.execute(
        f"UPDATE {_TABLE} SET pending = 0, running = 1, last_started_at = :now,"
        " lease_owner = :owner, lease_until = :until,"
        " maintenance_revision = maintenance_revision + 1, updated_at = :now"
        " WHERE conversation_id = :id",
        {"now": now, "owner": owner, "until": lease_until, "id": conversation_id},
    )
    return debt


def settle(
    db: apsw.Connection, conversation_id: int, owner: str, end: Settlement, now: str
) -> None:
    """Give a claimed debt back; what was asked for meanwhile stays pending."""
    db.execute(
        f"UPDATE {_TABLE} SET running = 0, lease_owner = NULL, lease_until = NULL,"
        " pending = max(pending, :keep), last_finished_at = :now,"
        " last_failure_summary = :failure, retry_attempts = :attempts,"
        " next_attempt_after = :next, resolution_reason = :resolution,"
        " resolved_at = CASE WHEN max(pending, :keep) THEN NULL ELSE :now END,"
        " maintenance_revision = maintenance_revision + 1, updated_at = :now"
        " WHERE conversation_id = :id AND lease_owner = :owner",
        {
            "keep": int(end.keep_pending),
            "now": now,
            "failure": end.failure,
            "attempts": end.attempts,
            "next": end.next_attempt_after,
            "resolution": end.resolution,
            "id": conversation_id,
            "owner": owner,
        },
    )


def resolve_if_under(
    db: apsw.Connection,
    conversation_id: int,
    resolution: str,
    now: str,
    *,
    ratio: float,
    is_exhausted: bool,
) -> None:
    """Settle a debt that nobody drains when its conversation is under the threshold now, or when
    nothing more can be done for it.

    Parameters
    ----------
    ratio
        Tokens of the model in one that is stored.
    """
    db.execute(
        f"UPDATE {_TABLE} SET pending = 0, last_finished_at = :now, last_failure_summary = NULL,"
        " retry_attempts = 0, next_attempt_after = NULL, resolution_reason = :resolution,"
        " resolved_at = :now, maintenance_revision = maintenance_revision + 1, updated_at = :now"
        " WHERE conversation_id = :id AND pending = 1 AND running = 0 AND (:exhausted OR"
        " (SELECT frontier_tokens FROM conversations WHERE conversation_id = :id) * :ratio"
        " <= CAST(token_budget * context_threshold AS INTEGER))",
        {
            "now": now,
            "resolution": resolution,
            "id": conversation_id,
            "ratio": ratio,
            "exhausted": int(is_exhausted),
        },
    )


def _select(db: apsw.Connection, where: str, parameters: tuple[Any, ...]) -> Any:
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM {_TABLE} d JOIN conversations c USING (conversation_id)"
        f" WHERE {where}",
        parameters,
    )
    for row in rows:
        fields = dict(zip(Debt.__struct_fields__, row, strict=True))
        fields["pending"], fields["running"] = bool(fields["pending"]), bool(fields["running"])
        yield Debt(**fields)
