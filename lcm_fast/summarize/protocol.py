"""What the engine asks of a summariser, and what it accepts as one.

Carries design section 2 (`summarize/`): the request and response records, the `Summarizer`
protocol, and the adapter for plain callables. Decides nothing about quality: `escalation` does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Literal, Protocol, cast, runtime_checkable

import msgspec

from ..errors import ConfigError
from .prompts import Prompt, build_prompt
from .source_text import SourceItem, render_source

__all__ = [
    "SummarizeFunction",
    "Summarizer",
    "SummaryRequest",
    "SummaryResponse",
    "as_summarizer",
]


class SummaryRequest(msgspec.Struct, frozen=True):
    """One run of messages, or of earlier summaries, to be condensed.

    Attributes
    ----------
    kind, depth
        ``"leaf"`` (messages, depth 0) or ``"condensed"`` (summaries, depth of the result).
    items
        The sources, oldest first, sanitised.
    target_tokens
        Length to aim at, in estimated tokens.
    level
        ``"aggressive"`` asks for lasting facts and open work only.
    previous_summary
        What came just before, for continuity; not to be repeated.
    instructions
        The operator's own instructions, may be empty.
    focus
        What the text is to serve, in the operator's words: it is a brief for that, made of
        summaries and of messages behind them. Empty: it is a summary of all there is.
    timezone
        IANA zone of rendered times.
    timeout_s
        Seconds after which nobody waits for the answer any more; None without limit.
    """

    kind: Literal["leaf", "condensed"]
    depth: int
    items: tuple[SourceItem, ...]
    target_tokens: int
    level: Literal["normal", "aggressive"] = "normal"
    previous_summary: str | None = None
    instructions: str = ""
    focus: str = ""
    timezone: str = "UTC"
    timeout_s: float | None = None

    @property
    def text(self) -> str:
        """The sources as one text with time and role headers; rendered at each access."""
        return render_source(self.items, self.timezone)

    def call_timeout_s(self, configured_s: float) -> float:
        """Return how long one call may take where `configured_s` is what calls may take in general.

        A brief is so long that it may take as long as the request allows.
        """
        if self.timeout_s is None:
            return configured_s
        return (max if self.focus else min)(configured_s, self.timeout_s)

    @property
    def prompt(self) -> Prompt:
        """The request as a prompt for a language model; built at each access."""
        return build_prompt(self)


class SummaryResponse(msgspec.Struct, frozen=True):
    """A summary as a summariser returned it.

    Attributes
    ----------
    text
        Plain text.
    model
        The model that really answered.
    usage
        Token counts as the provider reports them, or None.
    """

    text: str
    model: str
    usage: dict[str, int] | None = None


@runtime_checkable
class Summarizer(Protocol):
    """Anything with a name that turns a request into a summary; raises when it cannot."""

    @property
    def name(self) -> str:
        """What is recorded as the model when the response does not name one."""
        ...

    def summarize(self, request: SummaryRequest) -> SummaryResponse | str:
        """Return the summary; blocking, called outside any lock or transaction."""
        ...


SummarizeFunction = Callable[[SummaryRequest], "SummaryResponse | str"]


class _FunctionSummarizer:
    """A plain callable with the summariser's interface."""

    def __init__(self, function: SummarizeFunction) -> None:
        self._function = function
        self.name = getattr(function, "__name__", None) or type(function).__name__

    def summarize(self, request: SummaryRequest) -> SummaryResponse | str:
        return self._function(request)


def as_summarizer(candidate: object) -> Summarizer:
    """Return `candidate` as a summariser.

    Parameters
    ----------
    candidate
        An object with a `name` and a `summarize` method, or a synchronous callable that takes a
        `SummaryRequest` and returns text or a `SummaryResponse`.

    Raises
    ------
    ConfigError
        `candidate` is neither, or is asynchronous; names what was given.

    Examples
    --------
    >>> def first_line(request):
    ...     return request.text.splitlines()[0]
    >>> as_summarizer(first_line).name
    'first_line'
    """
    method = getattr(candidate, "summarize", None)
    if callable(method) and not isinstance(candidate, type):
        _refuse_async(method, candidate)
        if not isinstance(getattr(candidate, "name", None), str):
            raise _unusable(candidate, "it has no `name` of type str")
        return cast("Summarizer", candidate)
    if callable(candidate) and not isinstance(candidate, type):
        _refuse_async(candidate, candidate)
        return _FunctionSummarizer(cast("SummarizeFunction", candidate))
    raise _unusable(candidate, "it is neither callable nor has a `summarize` method")


def _refuse_async(function: object, candidate: object) -> None:
    call = getattr(function, "__call__", function)  # noqa: B004
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        raise _unusable(candidate, "it is asynchronous")


def _unusable(candidate: object, reason: str) -> ConfigError:
    shown = getattr(candidate, "__qualname__", None) or repr(candidate)
    return ConfigError(
        f"summarizer: cannot use {shown[:80]} of type {type(candidate).__name__}: {reason}",
        hint="pass a function of one SummaryRequest that returns str, or an object with `name` and"
        " `summarize`",
        code="bad_summarizer",
    )
