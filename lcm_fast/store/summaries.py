"""Publish summaries into the view, and read them.

Publishing is one short transaction: what a pass planned to replace must still stand there, then the
summary takes its place. The rows touched are those replaced, whatever the length of the
conversation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from ..errors import PlanStaleError
from .rows import NewSummary, StoredSummary

__all__ = ["by_id", "insert", "page", "publish"]

_COLUMNS = (
    "summary_id, conversation_id, kind, depth, content, token_count, earliest_at, latest_at,"
    " descendant_count, descendant_token_count, source_message_token_count, created_at, model,"
    " level, truncated, file_ids, redo_attempts, replaced_by"
)


def publish(db: apsw.Connection, conversation_id: int, new: NewSummary) -> tuple[int, int]:
    """Put a summary in the place of its sources; return (frontier tokens, view revision)
    afterwards.

    Raises
    ------
    PlanStaleError
        The context items it was planned to replace are not there any more; nothing is changed.
    """
    replaced = _check_plan(db, conversation_id, new)
    insert(db, _counted_now(db, new.summary))
    _insert_edges(db, new)
    db.execute(
        "DELETE FROM context_items WHERE conversation_id = ? AND ordinal BETWEEN ? AND ?",
        (conversation_id, new.first_ordinal, new.last_ordinal),
    )
    db.execute(
        "INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id, role, depth,"
        " wire_tokens, opener) VALUES (?, ?, 'summary', ?, 'summary', ?, ?, ?)",
        (
            conversation_id,
            new.first_ordinal,
            new.summary.summary_id,
            new.summary.depth,
            new.wire_tokens,
            new.first_ordinal,
        ),
    )
    return _count(db, conversation_id, new, replaced)


def by_id(db: apsw.Connection, summary_ids: Sequence[str]) -> list[StoredSummary]:
    """Return the summaries with these ids, in the order of the ids; unknown ids are left out."""
    wanted = json.dumps(list(summary_ids))
    sources: dict[str, list[str]] = {}
    edges = db.execute(
        "SELECT summary_id, parent_summary_id FROM json_each(?)"
        " CROSS JOIN summary_parents ON summary_id = value ORDER BY summary_id, ordinal",
        (wanted,),
    )
    for summary_id, source_id in edges:
        sources.setdefault(summary_id, []).append(source_id)
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM json_each(?)"
        " CROSS JOIN summaries ON summary_id = value ORDER BY key",
        (wanted,),
    )
    return [_summary(row, sources.get(str(row[0]), [])) for row in rows]


def page(
    db: apsw.Connection, conversation_id: int, *, after: tuple[str, str], limit: int
) -> list[StoredSummary]:
    """Return up to `limit` summaries of a conversation after (created_at, summary_id), oldest
    first; those that were replaced are left out."""
    ids = [
        str(summary_id)
        for (summary_id,) in db.execute(
            "SELECT summary_id FROM summaries"
            " WHERE conversation_id = ? AND (created_at, summary_id) > (?, ?)"
            " AND replaced_by IS NULL"
            " ORDER BY created_at, summary_id LIMIT ?",
            (conversation_id, *after, limit),
        )
    ]
    return by_id(db, ids)


def _check_plan(db: apsw.Connection, conversation_id: int, new: NewSummary) -> tuple[int, int]:
    """Return (items, tokens) that will be replaced, all of which must be as planned."""
    rows: list[tuple[Any, ...]] = db.execute(
        "SELECT message_id, summary_id, wire_tokens FROM context_items"
        " WHERE conversation_id = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal",
        (conversation_id, new.first_ordinal, new.last_ordinal),
    ).fetchall()
    found = [message_id if summary_id is None else summary_id for message_id, summary_id, _ in rows]
    planned: list[Any] = list(new.message_ids or new.summary.source_ids)
    if found != planned:
        raise PlanStaleError(
            f"conversation {conversation_id}: context items {new.first_ordinal}"
            f" to {new.last_ordinal} changed while they were being summarised",
            hint="compact again; nothing was published",
        )
    return len(rows), sum(tokens for _, _, tokens in rows)


def _counted_now(db: apsw.Connection, summary: StoredSummary) -> StoredSummary:
    """Return a summary with the tokens below it as they are now: one of them may have been redone
    since it was planned."""
    if not summary.source_ids:
        return summary
    rows = db.execute(
        "SELECT sum(token_count + descendant_token_count) FROM summaries"
        " WHERE summary_id IN (SELECT value FROM json_each(?))",
        (json.dumps(summary.source_ids),),
    )
    return msgspec.structs.replace(summary, descendant_token_count=int(next(rows)[0]))


def insert(db: apsw.Connection, summary: StoredSummary) -> None:
    """Insert a summary's row, without its edges."""
    db.execute(
        f"INSERT INTO summaries ({_COLUMNS}) VALUES ({', '.join('?' * len(_COLUMNS.split(',')))})",
        (
            summary.summary_id,
            summary.conversation_id,
            summary.kind,
            summary.depth,
            summary.content,
            summary.token_count,
            summary.earliest_at,
            summary.latest_at,
            summary.descendant_count,
            summary.descendant_token_count,
            summary.source_message_token_count,
            summary.created_at,
            summary.model,
            summary.level,
            int(summary.truncated),
            json.dumps(summary.file_ids),
            summary.redo_attempts,
            summary.replaced_by,
        ),
    )


def _insert_edges(db: apsw.Connection, new: NewSummary) -> None:
    summary = new.summary
    db.executemany(
        "INSERT INTO summary_messages VALUES (?, ?, ?)",
        [(summary.summary_id, message_id, at) for at, message_id in enumerate(new.message_ids)],
    )
    db.executemany(
        "INSERT INTO summary_parents VALUES (?, ?, ?)",
        [(summary.summary_id, source_id, at) for at, source_id in enumerate(summary.source_ids)],
    )


def _count(
    db: apsw.Connection, conversation_id: int, new: NewSummary, replaced: tuple[int, int]
) -> tuple[int, int]:
    items, tokens = replaced
    summary = new.summary
    is_leaf = summary.kind == "leaf"
    rows = db.execute(
        "UPDATE conversations SET frontier_items = frontier_items - :items + 1,"
        " frontier_tokens = frontier_tokens - :tokens + :wire,"
        " frontier_summary_tokens = frontier_summary_tokens - :summary_tokens + :wire,"
        " covered_source_tokens = covered_source_tokens + :covered,"
        " leaf_count = leaf_count + :leaf, condensed_count = condensed_count + :condensed,"
        " fallback_count = fallback_count + :fallback,"
        " truncated_count = truncated_count + :truncated,"
        " view_revision = view_revision + 1, updated_at = :now WHERE conversation_id = :id"
        " RETURNING frontier_tokens, view_revision",
        {
            "items": items,
            "tokens": tokens,
            "wire": new.wire_tokens,
            "summary_tokens": 0 if is_leaf else tokens,
            "covered": tokens if is_leaf else 0,
            "leaf": int(is_leaf),
            "condensed": int(not is_leaf),
            "fallback": int(summary.level == "fallback"),
            "truncated": int(summary.truncated),
            "now": summary.created_at,
            "id": conversation_id,
        },
    )
    frontier_tokens, revision = next(iter(rows))
    return int(frontier_tokens), int(revision)


def _summary(row: tuple[object, ...], source_ids: list[str]) -> StoredSummary:
    fields = dict(zip([name.strip() for name in _COLUMNS.split(",")], row, strict=True))
    fields["truncated"] = bool(fields["truncated"])
    fields["file_ids"] = json.loads(str(fields["file_ids"]))
    return StoredSummary(**fields, source_ids=source_ids)  # type: ignore[arg-type]
