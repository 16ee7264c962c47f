"""What the engine reports of a turn and of maintenance."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..compaction import CompactionResult
from ..ingest import BootstrapResult, IngestResult

__all__ = ["DrainedDebt", "MaintenanceResult", "TurnResult"]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn did.

    Attributes
    ----------
    transcript
        What its session file held; None without one.
    batch
        What its messages added.
    compaction
        What was compacted before the call returned, where that is due and
        ``proactiveThresholdCompactionMode`` is ``inline``.
    """

    transcript: BootstrapResult | None
    batch: IngestResult
    compaction: CompactionResult | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "transcript": self.transcript.to_dict() if self.transcript else None,
            "batch": self.batch.to_dict(),
            "compaction": self.compaction.to_dict() if self.compaction else None,
        }


@dataclass(frozen=True, slots=True)
class DrainedDebt:
    """A conversation whose compaction debt was worked on."""

    conversation_id: int
    session_key: str | None
    compaction: CompactionResult


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """What a round of maintenance did.

    Attributes
    ----------
    drained
        The conversations that were compacted, and how that ended.
    redone
        Fallback summaries that a summariser has now written properly.
    pending
        Debts that are still open.
    next_attempt_after
        When the first of those that wait may be tried again; UTC, ISO 8601.
    wait_s
        Seconds until then; 0 when a limit alone ended a compaction that can go on.
    stopped
        Why the round ended before all that was due was done; empty when it did not.
    """

    drained: list[DrainedDebt] = field(default_factory=list)
    redone: int = 0
    pending: int = 0
    next_attempt_after: str | None = None
    wait_s: float | None = None
    stopped: str = ""
    duration_ms: float = 0.0

    @property
    def failures(self) -> list[DrainedDebt]:
        """Those that the summariser failed."""
        return [one for one in self.drained if one.compaction.status == "failed"]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            **asdict(self),
            "drained": [
                {
                    "conversation_id": one.conversation_id,
                    "session_key": one.session_key,
                    **one.compaction.to_dict(),
                }
                for one in self.drained
            ],
        }
