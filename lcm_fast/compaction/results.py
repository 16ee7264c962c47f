"""What compaction reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..errors import SummarizerAuthError, SummarizerOutageError, SummarizerRateLimitError

__all__ = ["CompactionResult", "CompactionStatus"]

_STATES_OF_A_SUMMARISER = {
    SummarizerOutageError.code,
    SummarizerAuthError.code,
    SummarizerRateLimitError.code,
    "circuit_open",
}

CompactionStatus = Literal["done", "deferred", "nothing", "exhausted", "failed"]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction did.

    Attributes
    ----------
    status
        ``done``: under the target now. ``deferred``: stopped at a limit or by a guard, more can be
        done.
        ``nothing``: it was under the target already. ``exhausted``: over the target and nothing
        more can be summarised. ``failed``: the summariser failed; what was published before it
        stays.
    tokens_before, tokens_after
        Frontier tokens.
    passes
        Summaries attempted; `summaries_created` of them were published.
    levels
        How the published ones came about.
    overhead_tokens
        What the host's prompts hold beyond the frontier, as far as it said so.
    failure_code
        Code of the error that stopped the summariser, such as ``summarizer_auth``.
    retry_at
        When it may be asked again, where that is known; UTC, ISO 8601.
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
    overhead_tokens: int = 0
    failure_code: str | None = None
    retry_at: str | None = None
    duration_ms: float = 0.0

    @property
    def made_progress(self) -> bool:
        """Whether the frontier takes fewer tokens than before."""
        return self.tokens_after < self.tokens_before

    @property
    def summarizer_is_out(self) -> bool:
        """Whether the summariser itself failed, so that it would fail others as well."""
        return self.failure_code in _STATES_OF_A_SUMMARISER

    @property
    def can_go_on(self) -> bool:
        """Whether a limit alone ended it, and another run at once would do more."""
        return self.status == "deferred" and self.made_progress and self.retry_at is None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)
