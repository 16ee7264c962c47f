"""Move stored messages out of the view, and back, as a session leaves branches and resumes them.

The record keeps every branch; only which messages the view shows changes. Runs in the caller's
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw

__all__ = ["ABANDONED_BRANCH", "follow"]

ABANDONED_BRANCH = "abandoned-branch"


def follow(
    db: apsw.Connection,
    conversation_id: int,
    was: Mapping[int, str | None],
    now: Mapping[int, str | None],
) -> int:
    """Apply what a file says of messages stored before; return how many moved.

    Parameters
    ----------
    was, now
        Seq -> why the message is, or is to be, out of the view; None for one that is in it.
    """
    moved = 0
    for seq, before in was.items():
        after = now[seq]
        if before is None and after == ABANDONED_BRANCH:
            moved += _leave(db, conversation_id, seq)
        elif before == ABANDONED_BRANCH and after is None:
            moved += _return(db, conversation_id, seq)
    return moved


def _leave(db: apsw.Connection, conversation_id: int, seq: int) -> int:
    """Take a message out of the view; one a summary already covers stays covered."""
    rows: list[tuple[Any, ...]] = db.execute(
        "DELETE FROM context_items"
        " WHERE conversation_id = ? AND ordinal = ? AND item_type = 'message'"
        " RETURNING wire_tokens",
        (conversation_id, seq),
    ).fetchall()
    for (tokens,) in rows:
        _mark(db, conversation_id, seq, ABANDONED_BRANCH, items=-1, tokens=-tokens)
    return len(rows)


def _return(db: apsw.Connection, conversation_id: int, seq: int) -> int:
    rows: list[tuple[Any, ...]] = db.execute(
        "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, role, depth,"
        " wire_tokens, opener)"
        " SELECT conversation_id, seq, 'message', message_id, role, -1, wire_tokens, opener_seq"
        " FROM messages WHERE conversation_id = ? AND seq = ? RETURNING wire_tokens",
        (conversation_id, seq),
    ).fetchall()
    for (tokens,) in rows:
        _mark(db, conversation_id, seq, None, items=1, tokens=tokens)
    return len(rows)


def _mark(
    db: apsw.Connection,
    conversation_id: int,
    seq: int,
    excluded: str | None,
    *,
    items: int,
    tokens: int,
) -> None:
    db.execute(
        "UPDATE messages SET excluded = ? WHERE conversation_id = ? AND seq = ?",
        (excluded, conversation_id, seq),
    )
    db.execute(
        "UPDATE conversations SET frontier_items = frontier_items + ?,"
        " frontier_tokens = frontier_tokens + ?, excluded_count = excluded_count - ?,"
        " view_revision = view_revision + 1 WHERE conversation_id = ?",
        (items, tokens, items, conversation_id),
    )
