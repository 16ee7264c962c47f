"""The records that travel between the layers. A leaf: imports nothing of ours, holds no behaviour.

`SessionEntry` is what a transcript reader yields, `Message` what ingest makes of it and the store
keeps (design: architecture, section 3).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = [
    "ENVELOPE_TIME",
    "OWN_TIME",
    "UNTIMED",
    "LargeFile",
    "Message",
    "Role",
    "SessionEntry",
    "Shape",
    "ToolCall",
    "UnreadableSpan",
]

Role = Literal["system", "user", "assistant", "tool"]
Shape = Literal["openclaw", "openai", "responses", "anthropic"]

# Where a message's time is from: nowhere (its receipt stands in), its entry's envelope, itself.
UNTIMED, ENVELOPE_TIME, OWN_TIME = 0, 1, 2


class SessionEntry(msgspec.Struct, frozen=True):
    """One JSON object of a session file, in file order.

    `raw` holds the object's bytes exactly as they stand in the file, without the line feed.
    `message` is the message object inside it, or None for an entry that carries none (header,
    model change, custom, ...).
    """

    type: str
    raw: bytes
    offset: int
    entry_id: str | None = None
    parent_id: str | None = None
    timestamp: str | None = None
    message: dict[str, Any] | None = None
    on_leaf_path: bool = True


class UnreadableSpan(msgspec.Struct, frozen=True):
    """Bytes of a session file that could not be read as an entry."""

    offset: int
    length: int
    reason: str


class ToolCall(msgspec.Struct, frozen=True):
    """A call an assistant message makes."""

    call_id: str
    name: str


class LargeFile(msgspec.Struct, frozen=True):
    """A payload kept in a file of its own, named by its content; `storage_uri` is relative to the
    folder of large files."""

    file_id: str
    file_name: str | None
    mime_type: str | None
    byte_size: int
    line_count: int | None
    storage_uri: str
    exploration_summary: str


class Message(msgspec.Struct, frozen=True):
    """One message, normalised, ready to be stored.

    Attributes
    ----------
    role
        The record's role; `toolResult` and `tool` are both ``"tool"``.
    content
        The text people and models read, derived from `body`; lone surrogates are replaced.
    body
        The message object as received, without its session-file envelope.
    raw
        The bytes as received: a session-file entry, or the message as compact JSON.
    token_count
        Tokens of the content (spec B6).
    wire_tokens
        Tokens of the message as the model is sent it, envelope included.
    identity
        16-byte digest of what the message says, equal for every face of it; times and ids tell
        messages that say the same apart.
    created_at, timed
        Its time, ISO 8601 UTC, and where that is from; None and `UNTIMED` when it has none.
    event_key
        A provider's own id of the event, which no other message of the conversation shares.
    calls, answers
        Tool calls made; ids of the tool calls answered.
    excluded
        Why the message is kept out of the view, or None when it belongs to it.
    files, shown
        Its payloads that are files of their own, and the message as JSON with references in the
        place of those that are large; None when it is shown as it is.
    """

    role: Role
    content: str
    body: dict[str, Any]
    raw: bytes
    token_count: int
    wire_tokens: int
    identity: bytes
    created_at: str | None = None
    timed: int = UNTIMED
    entry_id: str | None = None
    parent_id: str | None = None
    event_key: str | None = None
    calls: tuple[ToolCall, ...] = ()
    answers: tuple[str, ...] = ()
    excluded: str | None = None
    files: tuple[LargeFile, ...] = ()
    shown: bytes | None = None
