"""What a batch reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["MapResult", "MappedItem"]

MapStatus = Literal["done", "partial", "paused"]


@dataclass(frozen=True, slots=True)
class MappedItem:
    """One item: its result, or why there is none.

    Attributes
    ----------
    result
        Text, or the decoded JSON value where there is a schema.
    """

    ordinal: int
    ref: str
    state: str
    result: Any
    error: str | None
    attempts: int


@dataclass(frozen=True, slots=True)
class MapResult:
    """What became of a batch.

    Attributes
    ----------
    status
        ``done``: every item has a result. ``partial``: some failed. ``paused``: a rate limit, an
        outage, refused credentials or the caller ended it; the same call goes on where it stopped.
    reason
        Why it is not done; empty when it is.
    calls, input_tokens, output_tokens
        Made and used by this call.
    """

    job_id: str
    status: MapStatus
    reason: str
    items: list[MappedItem]
    calls: int
    input_tokens: int
    output_tokens: int
    duration_ms: float

    @property
    def results(self) -> list[Any]:
        """The results in the order of the items, None where there is none."""
        return [item.result for item in self.items]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)
