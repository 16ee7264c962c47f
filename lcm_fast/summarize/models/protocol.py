"""What is asked of a language model, and what it answers; types only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

__all__ = ["LanguageModel", "ModelAnswer", "ModelCall"]


class ModelCall(msgspec.Struct, frozen=True):
    """One call.

    Attributes
    ----------
    system, user
        The prompt: our instructions, and the material.
    max_tokens
        Length of the answer, room for reasoning included.
    timeout_s
        Seconds after which the call is given up.
    think
        Whether the model may reason, at low effort, where it can.
    json_schema
        The answer is to be one JSON value of this schema; None for plain text.
    """

    system: str
    user: str
    max_tokens: int
    timeout_s: float
    think: bool = False
    json_schema: Mapping[str, Any] | None = None


class ModelAnswer(msgspec.Struct, frozen=True):
    """What a model said.

    Attributes
    ----------
    text
        Without reasoning; never blank.
    model
        The model that really answered, as the provider names it.
    input_tokens, output_tokens
        As the provider reports them, or None.
    is_incomplete
        The model was cut off at its limit.
    """

    text: str
    model: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    is_incomplete: bool = False


class LanguageModel(Protocol):
    """A model of a provider, or a program, that answers prompts.

    Threading: `complete` may be called from several threads at once.
    """

    @property
    def name(self) -> str:
        """``provider/model``; the key of its circuit breaker."""
        ...

    def complete(self, call: ModelCall) -> ModelAnswer:
        """Return the answer; blocking, ends within the call's timeout.

        Raises
        ------
        SummarizerOutageError, SummarizerAuthError, SummarizerRateLimitError, SourceTooLongError
            As the provider answered, or did not.
        SummarizerContentError
            It answered nothing usable.
        """
        ...
