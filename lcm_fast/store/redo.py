"""Put a proper summary in the place of a fallback, wherever the fallback stands.

A summary's text never changes under its id: what was cited, cached or sent stays what it was. So
the new one has an id of its own, takes over the old one's edges and its place in the view, and the
old row stays without sources, pointing to it (decision 6).
"""

from __future__ import annotations

import json
from typing import Any

import apsw
import msgspec

from ..errors import PlanStaleError
from . import summaries
from .rows import StoredSummary

__all__ = ["conversations_due", "due", "message_ids_of", "note_attempt", "replace"]

MOST_ATTEMPTS = 5

_DUE = (
    "level = 'fallback' AND replaced_by IS NULL AND coalesce(redo_after, '') <= :now"
    f" AND redo_attempts < {MOST_ATTEMPTS}"
)


def conversations_due(db: apsw.Connection, conversation_id: int | None, now: str) -> list[int]:
    """Return the conversations, or the one, that have fallbacks to be redone."""
    rows = db.execute(
        f"SELECT DISTINCT conversation_id FROM summaries INDEXED BY summaries_unhealthy"
        f" WHERE (level = 'fallback' OR truncated = 1) AND {_DUE}"
        " AND :id IN (conversation_id, 0) ORDER BY conversation_id",
        {"now": now, "id": conversation_id or 0},
    )
    return [int(number) for (number,) in rows]


def due(db: apsw.Connection, conversation_id: int, now: str, limit: int) -> list[str]:
    """Return the ids of fallbacks to be redone: sources before what is made of them."""
    rows = db.execute(
        f"SELECT summary_id FROM summaries s WHERE conversation_id = :id AND {_DUE}"
        " ORDER BY depth, earliest_at, (SELECT min(seq) FROM summary_messages e"
        "  JOIN messages USING (message_id) WHERE e.summary_id = s.summary_id) LIMIT :limit",
        {"id": conversation_id, "now": now, "limit": limit},
    )
    return [str(summary_id) for (summary_id,) in rows]


def message_ids_of(db: apsw.Connection, summary_id: str) -> list[int]:
    """Return the messages a leaf was made of, in order."""
    rows = db.execute(
        "SELECT message_id FROM summary_messages WHERE summary_id = ? ORDER BY ordinal",
        (summary_id,),
    )
    return [int(message_id) for (message_id,) in rows]


def note_attempt(db: apsw.Connection, summary_id: str, redo_after: str, *, counts: bool) -> None:
    """Say when the next attempt may be made, and count the last one if it was one."""
    db.execute(
        "UPDATE summaries SET redo_attempts = redo_attempts + ?, redo_after = ?"
        " WHERE summary_id = ?",
        (int(counts), redo_after, summary_id),
    )


def replace(db: apsw.Connection, old_id: str, new: StoredSummary, wire_tokens: int) -> None:
    """Put `new` in the place of a fallback; what it counts of its descendants is the old one's, as
    it is now.

    Raises
    ------
    PlanStaleError
        The old one is no fallback any more; nothing is changed.
    """
    found = next(
        db.execute(
            "SELECT token_count, truncated, descendant_token_count FROM summaries"
            " WHERE summary_id = ? AND level = 'fallback' AND replaced_by IS NULL",
            (old_id,),
        ),
        None,
    )
    if found is None:
        raise PlanStaleError(
            f"summary {old_id} is no fallback any more", hint="nothing is left to do for it"
        )
    old_tokens, was_truncated, descendant_tokens = found
    summaries.insert(db, msgspec.structs.replace(new, descendant_token_count=descendant_tokens))
    for table, column in (
        ("summary_messages", "summary_id"),
        ("summary_parents", "summary_id"),
        ("summary_parents", "parent_summary_id"),
    ):
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new.summary_id, old_id))
    db.execute(
        "UPDATE summaries SET replaced_by = ? WHERE summary_id = ?", (new.summary_id, old_id)
    )
    _count_above(db, new.summary_id, new.token_count - old_tokens)
    _count(db, new, was_truncated, _take_place(db, old_id, new.summary_id, wire_tokens))


def _count_above(db: apsw.Connection, summary_id: str, difference: int) -> None:
    """Add what a summary has grown by to every summary above it."""
    above = [
        name
        for (name,) in db.execute(
            "WITH RECURSIVE above (summary_id) AS ("
            " SELECT summary_id FROM summary_parents WHERE parent_summary_id = ?"
            " UNION SELECT e.summary_id FROM summary_parents e"
            " JOIN above a ON e.parent_summary_id = a.summary_id) SELECT summary_id FROM above",
            (summary_id,),
        )
    ]
    db.execute(
        "UPDATE summaries SET descendant_token_count = descendant_token_count + ?"
        " WHERE summary_id IN (SELECT value FROM json_each(?))",
        (difference, json.dumps(above)),
    )


def _take_place(db: apsw.Connection, old_id: str, new_id: str, wire_tokens: int) -> int:
    """Put the new one into the old one's context item, if it has one; return the tokens gained."""
    rows: list[tuple[Any, ...]] = db.execute(
        "SELECT conversation_id, ordinal, wire_tokens FROM context_items WHERE summary_id = ?",
        (old_id,),
    ).fetchall()
    for conversation_id, ordinal, _ in rows:
        db.execute(
            "UPDATE context_items SET summary_id = ?, wire_tokens = ?"
            " WHERE conversation_id = ? AND ordinal = ?",
            (new_id, wire_tokens, conversation_id, ordinal),
        )
    return sum(wire_tokens - old_tokens for _, _, old_tokens in rows)


def _count(db: apsw.Connection, new: StoredSummary, was_truncated: int, gained: int) -> None:
    db.execute(
        "UPDATE conversations SET fallback_count = fallback_count - 1,"
        " truncated_count = truncated_count + :truncated,"
        " frontier_tokens = frontier_tokens + :gained,"
        " frontier_summary_tokens = frontier_summary_tokens + :gained,"
        " view_revision = view_revision + 1, updated_at = :now WHERE conversation_id = :id",
        {
            "truncated": int(new.truncated) - was_truncated,
            "gained": gained,
            "now": new.created_at,
            "id": new.conversation_id,
        },
    )
