"""Turns a host commits under a key of its own: each once, or refused. In the caller's transaction.

Source: host hooks, `commitTurn`; decision 11.
"""

from __future__ import annotations

import apsw

from ..errors import CommitConflictError
from .rows import Commit

__all__ = ["is_committed", "note"]


def is_committed(db: apsw.Connection, conversation_id: int, commit: Commit) -> bool:
    """Tell whether this payload is committed under its key.

    Raises
    ------
    CommitConflictError
        Another payload is.
    """
    rows = db.execute(
        "SELECT payload_hash, committed_at FROM commit_keys"
        " WHERE conversation_id = ? AND advancement_key = ?",
        (conversation_id, commit.advancement_key),
    )
    found = next(rows, None)
    if found is None:
        return False
    payload_hash, committed_at = found
    if payload_hash != commit.payload_hash:
        raise CommitConflictError(
            f"advancement key {commit.advancement_key!r} was committed at {committed_at} with"
            " other messages; nothing was stored",
            hint="commit other messages under a key of their own",
        )
    return True


def note(db: apsw.Connection, conversation_id: int, commit: Commit, now: str) -> None:
    """Note that a payload is committed."""
    db.execute(
        "INSERT INTO commit_keys (conversation_id, advancement_key, payload_hash, committed_at)"
        " VALUES (?, ?, ?, ?)",
        (conversation_id, commit.advancement_key, commit.payload_hash, now),
    )
