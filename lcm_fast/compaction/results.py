"""What compaction reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = ["CompactionResult", "CompactionStatus"]

CompactionStatus = Literal["done", "deferred", "nothing", "exhausted", "failed"]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction did.

    Attributes
    ----------
    status
        ``done``: under the target now. ``deferred``: stopped at a limit, more can be done.
        ``nothing``: it was under the target already. ``exhausted``: over the target and nothing
        more can be summarised. ``failed``: the summariser failed; what was published before it
        stays.
    tokens_before, tokens_after
        Frontier tokens.
    passes
        Summaries attempted; `summaries_created` of them were published.
    levels
        How the published ones came about.
    """

    status: CompactionStatus
    reason: str
    tokens_before: int
    tokens_after: int
    target_tokens: int
    passes: int = 0
    summaries_created: int = 0
    levels: dict[str, int] = field(
        default_factory=lambda: {"normal": 0, "aggressive": 0, "fallback": 0}
    )
    duration_ms: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)
