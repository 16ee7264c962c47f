"""What ingest reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..types import UnreadableSpan

__all__ = ["BootstrapResult", "IngestResult"]


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What a batch did.

    Attributes
    ----------
    ingested, duplicates, quarantined
        Messages stored now, stored before, set aside.
    message_ids
        Ids of the messages stored now, in order.
    tokens
        Tokens of their content.
    """

    ingested: int
    duplicates: int
    quarantined: int
    message_ids: list[int]
    tokens: int
    conversation_id: int
    session_key: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class BootstrapResult:
    """What reading a session file did.

    Attributes
    ----------
    ingested, duplicates
        Messages stored now, stored before.
    abandoned
        Messages of branches that the session left; stored, and kept out of the view.
    carried
        Entries without a message.
    unreadable, unreadable_spans
        How many pieces could not be read; the first of them with byte offsets.
    pending_bytes
        Bytes of an unfinished last line, left for the next read.
    """

    session_key: str | None
    session_id: str | None
    conversation_id: int
    format: str
    ingested: int
    duplicates: int
    abandoned: int
    carried: int
    tokens: int
    unreadable: int
    unreadable_spans: list[UnreadableSpan] = field(default_factory=list)
    pending_bytes: int = 0
    bytes_read: int = 0
    duration_ms: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        spans = [
            {"offset": span.offset, "length": span.length, "reason": span.reason}
            for span in self.unreadable_spans
        ]
        return {**asdict(self), "unreadable_spans": spans}
