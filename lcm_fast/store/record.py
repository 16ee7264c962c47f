"""Read the record: messages and carried entries, by id, by page, and whole for an export."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from .codec import RecordCodec
from .rows import Mention, StoredMessage

__all__ = ["export", "mentions", "messages_by_id", "messages_page", "texts_by_id"]

_COLUMNS = (
    "message_id, conversation_id, seq, role, content, token_count, wire_tokens, created_at,"
    " transcript_entry_id, excluded, raw_codec, raw, shown_codec, shown"
)
# How far back in a conversation a name is looked for, in messages.
_MENTIONS_SEARCHED = 20_000
_CONTENT = StoredMessage.__struct_fields__.index("content")


def messages_by_id(
    db: apsw.Connection, codec: RecordCodec, message_ids: Sequence[int]
) -> list[StoredMessage]:
    """Return the messages with these ids, in the order of the ids, leaving out unknown ones."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM json_each(?)"
        " CROSS JOIN messages ON message_id = value ORDER BY key",
        (json.dumps(list(message_ids)),),
    )
    return [_message(row, codec) for row in rows]


def texts_by_id(db: apsw.Connection, message_ids: Sequence[int]) -> dict[int, str]:
    """Return the text of each of these messages that is there."""
    rows = db.execute(
        "SELECT message_id, content FROM json_each(?) CROSS JOIN messages ON message_id = value",
        (json.dumps(list(message_ids)),),
    )
    return dict(rows)


def mentions(
    db: apsw.Connection, conversation_id: int, name: str, before_id: int | None, limit: int
) -> list[Mention]:
    """Return what users and assistants said that holds a string, newest first.

    Parameters
    ----------
    before_id
        The message that they come before; None: any.

    Complexity: reads texts newest first, at most `_MENTIONS_SEARCHED` of them, until `limit` hold
    it.
    """
    rows = db.execute(
        "SELECT role, content FROM (SELECT role, content, excluded, seq FROM messages"
        " WHERE conversation_id = :conversation AND seq < coalesce("
        "(SELECT seq FROM messages WHERE message_id = :before), 9e18)"
        " ORDER BY seq DESC LIMIT :searched)"
        " WHERE role IN ('user', 'assistant') AND excluded IS NULL AND instr(content, :name)"
        " ORDER BY seq DESC LIMIT :limit",
        {
            "conversation": conversation_id,
            "before": before_id,
            "searched": _MENTIONS_SEARCHED,
            "name": name,
            "limit": limit,
        },
    )
    return [Mention(*row) for row in rows]


def messages_page(
    db: apsw.Connection, codec: RecordCodec, conversation_id: int, *, after_seq: int, limit: int
) -> list[StoredMessage]:
    """Return up to `limit` messages of a conversation, those after `after_seq`, in order."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM messages"
        " WHERE conversation_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (conversation_id, after_seq, limit),
    )
    return [_message(row, codec) for row in rows]


def export(db: apsw.Connection, codec: RecordCodec, conversation_id: int) -> Iterator[bytes]:
    """Yield the bytes of each entry as received, messages and carried entries in their order."""
    entries = db.execute(
        "SELECT after_seq, raw_codec, raw FROM transcript_entries WHERE conversation_id = ?"
        " ORDER BY after_seq, row_id",
        (conversation_id,),
    )
    pending = next(entries, None)
    messages = db.execute(
        "SELECT seq, content, raw_codec, raw FROM messages WHERE conversation_id = ? ORDER BY seq",
        (conversation_id,),
    )
    for seq, content, flags, raw in messages:
        while pending is not None and pending[0] < seq:
            yield codec.unpack(pending[1], pending[2], "")
            pending = next(entries, None)
        yield codec.unpack(flags, raw, content)
    while pending is not None:
        yield codec.unpack(pending[1], pending[2], "")
        pending = next(entries, None)


def _message(row: tuple[Any, ...], codec: RecordCodec) -> StoredMessage:
    *fields, flags, raw, shown_flags, shown = row
    sent = None if shown is None else codec.unpack(shown_flags, shown, "")
    stored = (*fields, codec.unpack(flags, raw, fields[_CONTENT]), sent)
    return StoredMessage(*stored)
