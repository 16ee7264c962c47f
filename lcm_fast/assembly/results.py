"""What an assembly reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from .diagnostics import Diagnostics

__all__ = ["Assembly", "AssemblyStats", "FreshTail", "Prefix", "Selection"]

Selection = Literal["full-fit", "chronological", "prompt-aware"]


@dataclass(frozen=True, slots=True)
class AssemblyStats:
    """What there was to choose from, and what became of it.

    Attributes
    ----------
    raw_messages, summaries, context_items
        Items of the frontier.
    dropped
        Items left out for lack of room.
    unsent
        Items with nothing to send: calls of a cut-off turn that were never answered, repeated
        calls and results.
    live
        Messages that only the host has yet.
    placeholders
        Messages inserted where the record itself lacks a tool call's partner.
    cut
        Messages shown in part, because they alone are larger than the budget.
    stubs
        Messages whose large tool results are shown as stubs.
    selection, reason
        How items were chosen, and in words why.
    """

    raw_messages: int
    summaries: int
    context_items: int
    dropped: int
    unsent: int
    live: int
    placeholders: int
    cut: int
    stubs: int
    selection: Selection
    reason: str


@dataclass(frozen=True, slots=True)
class FreshTail:
    """The newest messages, kept raw."""

    count: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Prefix:
    """How much of the output a provider's prompt cache has seen.

    `fingerprint` changes when summaries do; `stable_tokens` are those of the messages, from the
    start, that are the same as in this engine's previous assembly of the conversation.
    """

    fingerprint: str
    stable_tokens: int


@dataclass(frozen=True, slots=True)
class Assembly:
    """The context for one model call, in the shape the messages came in or the form asked for.

    All tokens are the model's: ours times `token_ratio`, which is 1 until its counts are known.
    `system` holds the conversation's system messages where the form has no role for them;
    `diagnostics` is there when it was asked for.
    """

    messages: list[dict[str, Any]]
    estimated_tokens: int
    token_budget: int
    stats: AssemblyStats
    fresh_tail: FreshTail
    prefix: Prefix
    token_ratio: float = 1.0
    system: str | None = None
    system_prompt_addition: str | None = None
    diagnostics: Diagnostics | None = None

    @staticmethod
    def nothing(token_budget: int) -> Assembly:
        """Return the assembly of a conversation that has no messages yet."""
        return Assembly(
            messages=[],
            estimated_tokens=0,
            token_budget=token_budget,
            stats=AssemblyStats(0, 0, 0, 0, 0, 0, 0, 0, 0, "full-fit", "no such conversation yet"),
            fresh_tail=FreshTail(0, 0),
            prefix=Prefix("", 0),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)
