"""What the store gives and takes: plain records, without SQL or a SQLite type in sight."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from ..types import Message, Role

__all__ = [
    "Address",
    "AppendOutcome",
    "Batch",
    "CarriedEntry",
    "Conversation",
    "Cursor",
    "NewSummary",
    "StoredMessage",
    "StoredSummary",
]


class Address(msgspec.Struct, frozen=True):
    """Which conversation: by session key first, then by session id."""

    session_key: str | None = None
    session_id: str | None = None


class Conversation(msgspec.Struct, frozen=True):
    """A conversation's row: names and counters."""

    conversation_id: int
    session_id: str
    session_key: str | None
    active: bool
    created_at: str
    last_ingest_at: str | None
    last_seq: int
    message_count: int
    message_tokens: int
    excluded_count: int
    frontier_items: int
    frontier_tokens: int
    frontier_summary_tokens: int
    covered_source_tokens: int
    leaf_count: int
    condensed_count: int
    fallback_count: int
    truncated_count: int
    quarantined_count: int
    history_digest: bytes
    view_revision: int


class CarriedEntry(msgspec.Struct, frozen=True):
    """A session file's entry without a message, kept so that an export gives the file back.

    `after` is the number of messages of the same batch that stand before it.
    """

    type: str
    raw: bytes
    identity: bytes
    after: int
    entry_id: str | None = None
    parent_id: str | None = None
    occurrence: int = 0


class Cursor(msgspec.Struct, frozen=True):
    """How far a session file has been read when the batch it comes with is stored."""

    path: str
    header_id: str | None
    size: int
    mtime_ns: int
    offset: int
    last_entry_id: str | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages to append, with what goes along with them.

    `occurrences` holds, for messages of a session file, how many messages with the same identity
    stand before each in that file; for a live batch it is None and the store works it out.
    """

    messages: list[Message]
    received_at: str
    occurrences: list[int] | None = None
    carried: list[CarriedEntry] = field(default_factory=list)
    cursor: Cursor | None = None


@dataclass(frozen=True, slots=True)
class AppendOutcome:
    """What an append did; `message_ids` are those of the new messages, in order."""

    conversation_id: int
    message_ids: list[int]
    duplicates: int
    tokens: int
    moved: int


class StoredMessage(msgspec.Struct, frozen=True):
    """A message as the record has it."""

    message_id: int
    conversation_id: int
    seq: int
    role: Role
    content: str
    token_count: int
    wire_tokens: int
    created_at: str
    entry_id: str | None
    excluded: str | None
    raw: bytes


class StoredSummary(msgspec.Struct, frozen=True):
    """A summary as the view has it; `source_ids` are summaries it was condensed from."""

    summary_id: str
    conversation_id: int
    kind: str
    depth: int
    content: str
    token_count: int
    earliest_at: str | None
    latest_at: str | None
    descendant_count: int
    descendant_token_count: int
    source_message_token_count: int
    created_at: str
    model: str
    level: str
    truncated: bool
    file_ids: list[str]
    source_ids: list[str] = []


class NewSummary(msgspec.Struct, frozen=True):
    """A summary to publish in place of what it was made from.

    `first_ordinal` to `last_ordinal` is the range of context items it replaces; `message_ids`, or
    the summary's `source_ids`, are what must still stand there, in order. `wire_tokens` are its
    tokens as a model is sent it.
    """

    summary: StoredSummary
    wire_tokens: int
    first_ordinal: int
    last_ordinal: int
    message_ids: list[int]
