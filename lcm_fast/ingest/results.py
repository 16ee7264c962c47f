"""What ingest reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..types import UnreadableSpan

__all__ = ["BootstrapResult", "CommitResult", "IngestResult"]


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What a batch did.

    Attributes
    ----------
    ingested, duplicates, quarantined
        Messages stored now, stored before, set aside by the flood guard.
    revised
        How many of the duplicates came in a form they had not come in before.
    message_ids
        Ids of the messages stored now, in order.
    tokens
        Tokens of their content.
    reason
        Why nothing was stored, when the session is excluded from storing.
    is_over_threshold
        The conversation is in compaction debt: `maintain`, or the worker, is to compact it.
    """

    ingested: int = 0
    duplicates: int = 0
    quarantined: int = 0
    revised: int = 0
    message_ids: list[int] = field(default_factory=list)
    tokens: int = 0
    conversation_id: int | None = None
    session_key: str | None = None
    reason: str | None = None
    is_over_threshold: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult(IngestResult):
    """What committing a turn did; the counts as in `IngestResult`.

    Attributes
    ----------
    status
        ``"committed"``, ``"duplicate"`` when the same turn was committed before, or ``"skipped"``
        when the session is excluded from storing; `reason` says why.
    """

    status: Literal["committed", "duplicate", "skipped"]
    advancement_key: str


@dataclass(frozen=True, slots=True)
class BootstrapResult:
    """What reading a session file did.

    Attributes
    ----------
    ingested, duplicates
        Messages stored now; messages of the file that were stored before.
    revised
        How many of the duplicates came in a form they had not come in before.
    abandoned
        Messages of branches that the session left; stored, and kept out of the view.
    carried
        Entries without a message.
    unreadable, unreadable_spans
        How many pieces could not be read; the first of them with byte offsets.
    pending_bytes
        Bytes of an unfinished last line, left for the next read.
    bytes_read
        Bytes gone through: those behind the last read where the file has only grown.
    reason
        Why no more was stored, or what was special about it.
    is_frozen
        The file is held back: it repeats what is stored, in a form that cannot be told from new.
    is_over_threshold
        As in `IngestResult`.
    """

    session_key: str | None
    session_id: str | None
    conversation_id: int | None
    format: str
    ingested: int = 0
    duplicates: int = 0
    revised: int = 0
    abandoned: int = 0
    carried: int = 0
    tokens: int = 0
    unreadable: int = 0
    unreadable_spans: list[UnreadableSpan] = field(default_factory=list)
    pending_bytes: int = 0
    bytes_read: int = 0
    reason: str | None = None
    is_frozen: bool = False
    is_over_threshold: bool = False
    duration_ms: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        spans = [
            {"offset": span.offset, "length": span.length, "reason": span.reason}
            for span in self.unreadable_spans
        ]
        return {**asdict(self), "unreadable_spans": spans}
