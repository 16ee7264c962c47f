"""What one call to a summariser cost and how it ended, and who may forbid it beforehand.

Types only: `compaction.guards` decides, the backends report (spec P; cases 367 to 372).
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

__all__ = ["CallGate", "CallOutcome", "CallRecord", "OpenGate"]

CallOutcome = Literal[
    "ok", "empty", "refused", "truncated", "too_long", "outage", "rate_limited", "auth", "error"
]


class CallRecord(msgspec.Struct, frozen=True):
    """One call to a summariser.

    Attributes
    ----------
    model
        ``provider/model``, or the name of a callable.
    input_tokens, output_tokens
        As the provider reports them, or None.
    """

    model: str
    outcome: CallOutcome
    duration_ms: int
    input_tokens: int | None = None
    output_tokens: int | None = None


class CallGate(Protocol):
    """Stands before every call that may cost something."""

    def check(self, model: str) -> None:
        """Allow a call.

        Raises
        ------
        SummarizerPausedError
            The model's circuit breaker (code ``circuit_open``) or the conversation's spend guard
            (code ``spend_limit``) is open.
        """
        ...

    def record(self, call: CallRecord) -> None:
        """Count a call that was made."""
        ...


class OpenGate:
    """Forbids nothing and remembers nothing."""

    def check(self, model: str) -> None:
        """Allow every call."""

    def record(self, call: CallRecord) -> None:
        """Forget the call."""
