"""What the store gives and takes: plain records, without SQL or a SQLite type in sight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from ..types import LargeFile, Message, Role
from .debt import DebtTerms

__all__ = [
    "Address",
    "AppendOutcome",
    "Batch",
    "CarriedEntry",
    "Commit",
    "Conversation",
    "Cursor",
    "FloodThresholds",
    "NewSummary",
    "QuarantinedBatch",
    "Source",
    "StoredFile",
    "StoredMessage",
    "StoredSummary",
]


class Address(msgspec.Struct, frozen=True):
    """Which conversation: by session key first, then by session id.

    Of an isolated key every session id has a conversation of its own.
    """

    session_key: str | None = None
    session_id: str | None = None
    is_isolated: bool = False

    @property
    def identity(self) -> tuple[str | None, str | None]:
        """What the conversation is found by: the same however else it is addressed.

        >>> Address("agent:main", "s-1").identity == Address("agent:main", "s-2").identity
        True
        """
        if self.session_key is None or self.is_isolated:
            return self.session_key, self.session_id
        return self.session_key, None


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
    view_revision: int


class CarriedEntry(msgspec.Struct, frozen=True):
    """A session file's entry without a message, kept so that an export gives the file back.

    `after` is the number of messages of the same batch that stand before it; `occurrence` that of
    equal entries before it in a transcript read from its start.
    """

    type: str
    raw: bytes
    identity: bytes
    after: int
    offset: int
    entry_id: str | None = None
    parent_id: str | None = None
    occurrence: int = 0


class Cursor(msgspec.Struct, frozen=True):
    """How far a session file has been read when the batch it comes with is stored.

    `offset` counts bytes of a file, events of a database; `messages` stand before it.
    `fingerprint` is a digest of the bytes there. Of a fork, the first `shown_from` messages, up to
    the entry `shown_from_id`, are not shown.
    """

    path: str
    header_id: str | None
    size: int
    mtime_ns: int
    offset: int
    last_entry_id: str | None
    fingerprint: bytes | None = None
    messages: int = 0
    shown_from: int = 0
    shown_from_id: str | None = None
    last_message_id: int | None = None
    frozen_since: str | None = None
    frozen_reason: str | None = None

    def behind(self, message_id: int | None) -> Cursor:
        """Return the cursor standing behind a row."""
        return msgspec.structs.replace(self, last_message_id=message_id)


# Where a batch is from: a host, the grown end of a transcript, a transcript read from its start.
Source = Literal["live", "appended", "transcript"]

FindRevision = Callable[[bytes, Message], str | None]


class FloodThresholds(msgspec.Struct, frozen=True):
    """How many repeats within a second are a replay: of users, of all other roles."""

    external: int = 3
    internal: int = 32


class Commit(msgspec.Struct, frozen=True):
    """A host's own key of a turn, and a digest of what it commits under it."""

    advancement_key: str
    payload_hash: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages to store, with what goes along with them and what is known of their place.

    Attributes
    ----------
    source
        Who shows them.
    after, before
        Message ids of the rows between which a transcript's batch begins, where known: the row of
        the message that stands before it, the first row that a later message of it is.
    is_covered
        A transcript that has just been read shows the same messages: the batch begins among the
        newest rows.
    thresholds
        Of the flood guard; None lets everything pass.
    in_transcript
        Whether the transcript being read shows an entry id.
    revision_of
        Given a stored message's bytes and a message at its place: in which way the message is
        another form of it, "" when it is the same throughout, None when it is another message.
    debt
        When the conversation is in compaction debt afterwards; None never.
    """

    messages: list[Message]
    received_at: str
    source: Source = "live"
    carried: list[CarriedEntry] = field(default_factory=list)
    cursor: Cursor | None = None
    after: int | None = None
    before: int | None = None
    is_covered: bool = False
    thresholds: FloodThresholds | None = None
    commit: Commit | None = None
    in_transcript: Callable[[str], bool] = lambda entry_id: False
    revision_of: FindRevision = lambda raw, message: None
    debt: DebtTerms | None = None


@dataclass(frozen=True, slots=True)
class AppendOutcome:
    """What an append did.

    `message_ids` are those of the new messages, in order; `last` is the row of the batch's last
    message, stored now or before. `is_in_debt` tells whether it is over its threshold now.
    """

    conversation_id: int
    message_ids: list[int]
    duplicates: int
    tokens: int
    moved: int
    quarantined: int = 0
    revised: int = 0
    last: int | None = None
    is_repeated_commit: bool = False
    is_in_debt: bool = False


class QuarantinedBatch(msgspec.Struct, frozen=True):
    """Messages that the flood guard refused in one batch, and why."""

    batch_id: str
    conversation_id: int
    session_key: str | None
    reason: str
    received_at: str
    messages: int


class StoredFile(msgspec.Struct, frozen=True):
    """A large payload and the messages that hold it."""

    file: LargeFile
    message_ids: list[int]


class StoredMessage(msgspec.Struct, frozen=True):
    """A message as the record has it; `shown` is it with references for its large payloads."""

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
    shown: bytes | None = None

    @property
    def sent(self) -> bytes:
        """The bytes of what a model is sent."""
        return self.raw if self.shown is None else self.shown


class Mention(NamedTuple):
    """A message that names something: who said it, and its text."""

    role: Role
    text: str


class StoredSummary(msgspec.Struct, frozen=True):
    """A summary as the view has it; `source_ids` are summaries it was condensed from.

    A fallback that a proper one stands for now has its id in `replaced_by`, and no sources.
    """

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
    redo_attempts: int = 0
    replaced_by: str | None = None
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
