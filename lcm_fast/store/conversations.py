"""Find, create and list conversations."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from .rows import Address, Conversation

__all__ = ["create", "find", "get", "list_page", "recent", "resolve", "totals"]

CRON_ROTATION = "cron-rotation"

_COLUMNS = ", ".join(Conversation.__struct_fields__)


def find(db: apsw.Connection, address: Address) -> Conversation | None:
    """Return the active conversation of a session key, else of a session id (spec storage 1.8.2).

    Of an isolated key each session id has a conversation of its own, active or not.
    """
    if address.is_isolated and address.session_key and address.session_id:
        where = "session_key = ? AND session_id = ?"
        return _first(db, where, (address.session_key, address.session_id))
    if address.session_key:
        found = _first(db, "session_key = ? AND active = 1", (address.session_key,))
        if found is not None:
            return found
    if address.session_id:
        where = "session_id = ? AND active = 1"
        if address.session_key:
            where += " AND session_key IS NULL"
        return _first(db, where, (address.session_id,))
    return None


def get(db: apsw.Connection, conversation_id: int) -> Conversation | None:
    """Return a conversation by its number."""
    return _first(db, "conversation_id = ?", (conversation_id,))


def resolve(db: apsw.Connection, address: Address, now: str) -> Conversation:
    """Return the conversation of an address, made when there is none; the caller holds the write
    lock."""
    found = find(db, address)
    if found is None:
        if address.is_isolated:
            _archive_active(db, address, now)
        return create(db, address, now)
    if address.session_key and found.session_key is None:
        db.execute(
            "UPDATE conversations SET session_key = ?, updated_at = ? WHERE conversation_id = ?",
            (address.session_key, now, found.conversation_id),
        )
    if address.session_id and address.session_id != found.session_id:
        db.execute(
            "UPDATE conversations SET session_id = ?, updated_at = ? WHERE conversation_id = ?",
            (address.session_id, now, found.conversation_id),
        )
    return found


def create(db: apsw.Connection, address: Address, now: str) -> Conversation:
    """Insert a conversation and return it."""
    session_id = address.session_id or address.session_key
    db.execute(
        "INSERT INTO conversations (session_id, session_key, created_at, updated_at)"
        " VALUES (?, ?, ?, ?)",
        (session_id, address.session_key, now, now),
    )
    made = get(db, db.last_insert_rowid())
    assert made is not None
    return made


def _archive_active(db: apsw.Connection, address: Address, now: str) -> None:
    """Make room for another run of an isolated key."""
    db.execute(
        "UPDATE conversations SET active = 0, archived_at = ?, archive_cause = ?, updated_at = ?"
        " WHERE session_key = ? AND active = 1",
        (now, CRON_ROTATION, now, address.session_key),
    )


def list_page(db: apsw.Connection, *, after_id: int, limit: int) -> list[Conversation]:
    """Return conversations in the order they were made, those after `after_id`."""
    where = "conversation_id > ? ORDER BY conversation_id LIMIT ?"
    return list(_select(db, where, (after_id, limit)))


def recent(db: apsw.Connection, *, limit: int, session_key: str | None) -> list[Conversation]:
    """Return the conversations that were stored into last, newest first."""
    where = "? IN (session_key, '') ORDER BY last_ingest_at DESC, conversation_id DESC LIMIT ?"
    return list(_select(db, where, (session_key or "", limit)))


def totals(db: apsw.Connection) -> dict[str, int]:
    """Return the sums of the counters over all conversations."""
    names = (
        "message_count",
        "leaf_count",
        "condensed_count",
        "frontier_tokens",
        "frontier_summary_tokens",
        "covered_source_tokens",
        "fallback_count",
        "truncated_count",
        "quarantined_count",
    )
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in names)
    row = next(iter(db.execute(f"SELECT count(*), {sums} FROM conversations")))
    return dict(zip(("conversations", *names), (int(value) for value in row), strict=True))


def _first(db: apsw.Connection, where: str, parameters: tuple[object, ...]) -> Conversation | None:
    order = " ORDER BY created_at DESC, conversation_id DESC LIMIT 1"
    return next(_select(db, where + order, parameters), None)


def _select(
    db: apsw.Connection, where: str, parameters: tuple[object, ...]
) -> Iterator[Conversation]:
    for row in db.execute(f"SELECT {_COLUMNS} FROM conversations WHERE {where}", parameters):
        yield _conversation(row)


def _conversation(row: tuple[object, ...]) -> Conversation:
    fields = dict(zip(Conversation.__struct_fields__, row, strict=True))
    fields["active"] = bool(fields["active"])
    return Conversation(**fields)  # type: ignore[arg-type]
