"""Reads what a provider answered: its text, whether it was cut off, what it cost.

Providers disagree about where the text is, so all known places are looked at; a model's reasoning
is never taken for its answer (spec Z6, Z8 to Z10; cases 118, 121 to 123, 436).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import SummarizerContentError, SummarizerError, SummarizerOutageError
from ..tagged_blocks import strip_reasoning
from .failures import status_error
from .protocol import ModelAnswer

__all__ = ["UnusableAnswerError", "decode_body", "read_answer"]

_DEEPEST = 8
_LONGEST_SHOWN = 80
_TEXT_KEYS = ("text", "output_text", "value")
_NESTED_KEYS = ("content", "summary", "output", "message", "response", "choices", "delta")
# Under these a bare text is an answer; under the others it may be anything.
_BARE_TEXT_KEYS = {"content", "summary", "response"}
_SIGNAL_KEYS = ("finish_reason", "stop_reason", "done_reason", "status")
_REASONING_KEYS = ("reasoning", "reasoning_content", "thinking")
_INCOMPLETE = {
    "incomplete",
    "length",
    "max_output_tokens",
    "max_tokens",
    "model_context_window_exceeded",
    "model_length",
}
_FAILED = {"cancelled", "error", "failed"}
_REFUSED = {"content_filter", "refusal"}
_INPUT_KEYS = ("prompt_tokens", "input_tokens")
_CACHE_KEYS = ("cache_read_input_tokens", "cache_creation_input_tokens")
_OUTPUT_KEYS = ("completion_tokens", "output_tokens")


class UnusableAnswerError(SummarizerContentError):
    """A model answered nothing usable, and the call was paid for all the same.

    Its code says why: ``empty``, ``reasoning_only``, ``truncated`` (cut off before any text) or
    ``refused``.

    Attributes
    ----------
    input_tokens, output_tokens
        As the provider reports them, or None.
    """

    def __init__(
        self,
        detail: str,
        *,
        code: str,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> None:
        super().__init__(detail, code=code)
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens


def decode_body(body: bytes, model_name: str) -> Any:
    """Return the JSON value of a successful response.

    Raises
    ------
    SummarizerOutageError
        It is not JSON: what answered is no endpoint of a model, or one that is out of order.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        shown = " ".join(body[:_LONGEST_SHOWN].decode("utf-8", "replace").split())
        raise SummarizerOutageError(
            f"{model_name}: answered with something else than JSON: {shown!r}",
            hint="check the address of the endpoint",
        ) from None


def read_answer(payload: object, model_name: str) -> ModelAnswer:
    """Return what a model said.

    Parameters
    ----------
    payload
        The decoded response, in the shape of any provider; a plain text is the answer itself.
    model_name
        Named in errors, and in the answer when the response names no model.

    Raises
    ------
    UnusableAnswerError
        There is no text in it, or the model refused.
    SummarizerError
        The response is an error that came with status 200; of the state its own status stands for.

    Complexity
    ----------
    Linear in the size of the response; O(n log n) in the number of tags in its text.

    Examples
    --------
    >>> said = {"reasoning": "Let me think", "content": [{"type": "text", "text": "Chose SQLite."}]}
    >>> read_answer({"choices": [{"message": said}]}, "openai/gpt").text
    'Chose SQLite.'
    """
    reading = _Reading()
    reading.take(payload, 0)
    envelope = payload if isinstance(payload, Mapping) else {}
    if isinstance(envelope.get("error"), Mapping) or reading.signals & _FAILED:
        raise _failure(envelope, model_name)
    input_tokens, output_tokens = _usage(envelope)
    found = "\n".join(reading.fragments)
    text = strip_reasoning(found).encode("utf-8", "replace").decode("utf-8")
    reasoned = reading.has_reasoning or bool(found)
    problem = _problem(text, reading, reasoned=reasoned)
    if problem is not None:
        code, what = problem
        raise UnusableAnswerError(
            f"{model_name}: {what}",
            code=code,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
        )
    named = envelope.get("model")
    return ModelAnswer(
        text=text,
        model=named if isinstance(named, str) and named else model_name,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        is_incomplete=bool(reading.signals & _INCOMPLETE),
    )


@dataclass(slots=True)
class _Reading:
    """What was found in a response so far."""

    fragments: dict[str, None] = field(default_factory=dict)
    signals: set[str] = field(default_factory=set)
    has_reasoning: bool = False
    has_refusal: bool = False

    def take(self, value: object, depth: int) -> None:
        """Collect from a part of a response in which a bare text is part of the answer."""
        if depth > _DEEPEST:
            return
        if isinstance(value, str):
            if fragment := value.strip():
                self.fragments[fragment] = None
        elif isinstance(value, list):
            for part in value:
                self.take(part, depth + 1)
        elif isinstance(value, Mapping):
            self._take_object(value, depth)

    def _take_object(self, value: Mapping[str, Any], depth: int) -> None:
        kind = f"{value.get('type')} {value.get('rawType')}"
        if "reasoning" in kind or "thinking" in kind:
            self.has_reasoning = True
            return
        self.has_reasoning |= any(value.get(key) for key in _REASONING_KEYS)
        self.has_refusal |= bool(value.get("refusal"))
        self._note_signals(value)
        for key in _TEXT_KEYS:
            self.take(value.get(key), depth + 1)
        for key in _NESTED_KEYS:
            part = value.get(key)
            if key in _BARE_TEXT_KEYS or not isinstance(part, str):
                self.take(part, depth + 1)

    def _note_signals(self, value: Mapping[str, Any]) -> None:
        details = value.get("incomplete_details")
        signals = [value.get(key) for key in _SIGNAL_KEYS]
        if isinstance(details, Mapping):
            signals.append(details.get("reason"))
        self.signals.update(signal for signal in signals if isinstance(signal, str))


def _problem(text: str, reading: _Reading, *, reasoned: bool) -> tuple[str, str] | None:
    """Return the code and the words for what makes an answer unusable."""
    if reading.has_refusal or reading.signals & _REFUSED:
        return "refused", "the model refused to summarise"
    if text:
        return None
    if reading.signals & _INCOMPLETE:
        return "truncated", "the answer was cut off before any text"
    if reasoned:
        return "reasoning_only", "the answer was reasoning alone"
    return "empty", "the answer was empty"


def _failure(envelope: Mapping[str, Any], model_name: str) -> SummarizerError:
    error = envelope.get("error")
    told = error if isinstance(error, Mapping) else {}
    message = " ".join(str(told.get("message", "")).split())[:_LONGEST_SHOWN]
    code = told.get("code", told.get("status"))
    if isinstance(code, int) and 400 <= code <= 599:
        return status_error(code, message, model_name)
    return SummarizerOutageError(
        f"{model_name}: reported a failure in place of an answer: {message or 'without a reason'}",
        hint="compaction tries again later",
    )


def _usage(envelope: Mapping[str, Any]) -> tuple[int | None, int | None]:
    usage = envelope.get("usage")
    if not isinstance(usage, Mapping):
        return None, None
    input_tokens = _count(usage, _INPUT_KEYS)
    if input_tokens is not None:
        input_tokens += sum(_count(usage, (key,)) or 0 for key in _CACHE_KEYS)
    return input_tokens, _count(usage, _OUTPUT_KEYS)


def _count(usage: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    counts = (usage.get(key) for key in keys)
    return next((count for count in counts if isinstance(count, int) and count >= 0), None)
