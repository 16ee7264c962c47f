"""What focusing a conversation reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import msgspec

from ..compaction import CompactionResult
from ..store import FocusBrief, FocusDelta

__all__ = ["FocusResult", "FocusStatus"]

_NOTHING_MORE = FocusDelta(0, 0, 0)


@dataclass(frozen=True, slots=True)
class FocusResult:
    """What a focus, refocus or unfocus did.

    Attributes
    ----------
    status
        ``active``: a new brief is shown. ``current``: the brief says all there is.
        ``inactive``: the brief is shown no more. ``nothing``: there is no brief, or no summary to
        write one from. ``failed``: `reason` says why; what was shown before is shown still.
    brief
        The one that is shown now.
    warnings
        What is not as it should be with it.
    compaction
        That went before a focus, or came after an unfocus.
    """

    status: Literal["active", "current", "inactive", "nothing", "failed"]
    reason: str
    brief: FocusBrief | None = None
    warnings: list[str] = field(default_factory=list)
    compaction: CompactionResult | None = None
    duration_ms: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**asdict(self), "brief": _brief_fields(self.brief)}


@dataclass(frozen=True, slots=True)
class FocusStatus:
    """How a conversation's focus stands.

    Attributes
    ----------
    brief
        The one that is shown; None without.
    latest
        The one begun last, where that is another: under way, failed, or no longer shown.
    sources
        Ids of the summaries that `brief`, else `latest`, was written from, by role.
    delta
        What the view holds beyond `brief`; the fresh tail is always beyond it.
    is_current
        The summaries of the view are those that it was written from.
    """

    brief: FocusBrief | None
    latest: FocusBrief | None
    sources: dict[str, list[str]] = field(default_factory=dict)
    delta: FocusDelta = _NOTHING_MORE
    is_current: bool = True

    @property
    def is_stale(self) -> bool:
        """Whether `Engine.refocus` has something to carry on with."""
        return self.delta.summaries > 0 or not self.is_current

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "brief": _brief_fields(self.brief),
            "latest": _brief_fields(self.latest),
            "sources": self.sources,
            "delta": msgspec.structs.asdict(self.delta),
            "is_current": self.is_current,
            "is_stale": self.is_stale,
        }


def _brief_fields(brief: FocusBrief | None) -> dict[str, Any] | None:
    return None if brief is None else msgspec.structs.asdict(brief)
