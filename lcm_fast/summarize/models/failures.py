"""From whatever was thrown at us to the states in which a summariser can fail.

Looks at errors only, never at what a model said: a summary may well tell of a refused key (spec
Z6, AB61). Knows no SDK: classes are told by name, answers by their status.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ...errors import (
    SourceTooLongError,
    SummarizerAuthError,
    SummarizerContentError,
    SummarizerError,
    SummarizerOutageError,
    SummarizerRateLimitError,
)
from ..metering import CallOutcome

__all__ = ["as_summarizer_error", "outcome_of", "retry_after_seconds", "status_error"]

_LONGEST_MESSAGE = 300
_DEEPEST_CAUSE = 4
_LONGEST_WAIT_S = 24 * 3600.0
# 402: the account has to be paid for before the key is good again.
_AUTH_STATUSES = {401, 402, 403}
_FILTER_CODES = {"content_filter", "content_policy_violation"}
_OUTAGE_CLASSES = {
    "APIConnectionError",
    "ClientConnectionError",
    "ConnectionError",
    "SSLError",
    "Timeout",
    "TimeoutError",
    "TransportError",
    "URLError",
    "gaierror",
}
_OUTCOMES: tuple[tuple[type[SummarizerError], CallOutcome], ...] = (
    (SummarizerAuthError, "auth"),
    (SummarizerRateLimitError, "rate_limited"),
    (SummarizerOutageError, "outage"),
    (SourceTooLongError, "too_long"),
)
_CONTENT_OUTCOMES: dict[str, CallOutcome] = {"refused": "refused", "truncated": "truncated"}
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|exceed_context|input token count|too many input"
    r"|reduce the length|\b(?:prompt|input|request|messages?) (?:is |are |was )?too (?:long|large)",
    re.IGNORECASE,
)
_RATE_LIMIT = re.compile(
    r"rate[ _-]?limit|too many requests|\b(?:http|status|code|error)\W{0,3}429\b", re.IGNORECASE
)
_AUTH = re.compile(
    r"unauthori[sz]ed|authentication (?:failed|error|required)|authori[sz]ation failed"
    r"|(?:invalid|incorrect|missing|expired) (?:api[ _-]?key|token|credentials?)"
    r"|(?:missing|insufficient) (?:scope|permission)|\b(?:http|status|code|error)\W{0,3}40[13]\b",
    re.IGNORECASE,
)
_SECRETS = re.compile(r"(?<=bearer )\S+|\b(?:sk|gsk|xai)[-_][\w-]{8,}", re.IGNORECASE)

_OUTAGE_HINT = "compaction tries again later"
_AUTH_HINT = "check the key and the right to use the model"
_RATE_LIMIT_HINT = "compaction waits; a larger leafChunkTokens makes fewer calls"
_TOO_LONG_HINT = "smaller chunks are tried next; leafChunkTokens sets what is tried first"
_OTHER_HINT = "nothing was stored; compaction tries again later"


def as_summarizer_error(
    exception: Exception,
    model_name: str,
    *,
    secrets: Sequence[str] = (),
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> SummarizerError:
    """Return the state that an exception of a summariser stands for.

    Parameters
    ----------
    exception
        What an SDK, an HTTP library or a user's function raised. Its status counts first
        (``status_code``, ``status``, ``response.status_code``), then what it says, then its class;
        after its own those of its causes.
    model_name
        Named in the error.
    secrets
        Texts that must not appear in the error; what looks like a key never does.
    now
        The time that a date in ``Retry-After`` is measured from.

    Returns
    -------
    SummarizerError
        The exception itself when it is one. The caller raises it.

    Examples
    --------
    >>> as_summarizer_error(TimeoutError("read timed out"), "ollama/llama3").code
    'summarizer_outage'
    """
    if isinstance(exception, SummarizerError):
        return exception
    message = _one_line(str(exception), secrets)
    for error in _with_causes(exception):
        status = _status(error)
        if status is not None:
            headers = _headers(error)
            return status_error(
                status, message, model_name, code=_code(error), headers=headers, now=now
            )
    told = ": ".join(filter(None, (model_name, type(exception).__name__, message)))
    kinds = (_kind_without_status(error) for error in _with_causes(exception))
    kind, hint = next(filter(None, kinds), (SummarizerError, _OTHER_HINT))
    return kind(told, hint=hint)


def status_error(
    status: int,
    message: str,
    model_name: str,
    *,
    code: str = "",
    headers: Mapping[str, str] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> SummarizerError:
    """Return the state that an HTTP status stands for.

    Parameters
    ----------
    status
        Of the response, or of the error that a response of status 200 carries.
    message
        What the provider said of it; one line.
    model_name
        Named in the error.
    code
        The provider's own word for the error, may be empty.
    headers
        Of the response, for ``Retry-After``.
    now
        The time that a date in ``Retry-After`` is measured from.
    """
    told = ": ".join(filter(None, (model_name, f"HTTP {status}", message)))
    if status in _AUTH_STATUSES:
        return SummarizerAuthError(told, hint=_AUTH_HINT)
    if status == 429:
        wait_s = _wait_asked_for(headers or {}, now)
        return SummarizerRateLimitError(told, hint=_RATE_LIMIT_HINT, retry_after_s=wait_s)
    if status == 408 or status >= 500:
        return SummarizerOutageError(told, hint=_OUTAGE_HINT)
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(f"{code} {message}")):
        return SourceTooLongError(told, hint=_TOO_LONG_HINT)
    if code in _FILTER_CODES:
        return SummarizerContentError(told, code="refused")
    return SummarizerError(told, hint=_OTHER_HINT)


def outcome_of(error: SummarizerError) -> CallOutcome:
    """Return how a call that ended in this error is counted."""
    if isinstance(error, SummarizerContentError):
        return _CONTENT_OUTCOMES.get(error.code, "empty")
    return next((outcome for kind, outcome in _OUTCOMES if isinstance(error, kind)), "error")


def retry_after_seconds(value: str, now: datetime) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for, at most a day; None when it cannot
    be read.

    Examples
    --------
    >>> retry_after_seconds("2.5", datetime(2026, 1, 1, tzinfo=UTC))
    2.5
    >>> retry_after_seconds("Thu, 01 Jan 2026 00:00:30 GMT", datetime(2026, 1, 1, tzinfo=UTC))
    30.0
    """
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
    if math.isnan(seconds):
        return None
    return min(max(0.0, seconds), _LONGEST_WAIT_S)


def _wait_asked_for(headers: Mapping[str, str], now: Callable[[], datetime]) -> float | None:
    asked = headers.get("retry-after") or headers.get("Retry-After")
    return retry_after_seconds(str(asked), now()) if asked else None


def _with_causes(exception: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = exception
    for _ in range(_DEEPEST_CAUSE):
        if current is None:
            return
        yield current
        current = current.__cause__


def _status(error: object) -> int | None:
    response = getattr(error, "response", None)
    for owner, name in (
        (error, "status_code"),
        (error, "status"),
        (response, "status_code"),
        (response, "status"),
    ):
        value = getattr(owner, name, None)
        if isinstance(value, int) and 400 <= value <= 599:
            return value
    return None


def _code(error: object) -> str:
    code = getattr(error, "code", None)
    return code if isinstance(code, str) else ""


def _headers(error: object) -> Mapping[str, str]:
    """Return the headers that came with an error; libraries keep them on it or on its response."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        headers = getattr(error, "headers", None)
    return headers if hasattr(headers, "get") else {}


def _kind_without_status(error: BaseException) -> tuple[type[SummarizerError], str] | None:
    message = f"{_code(error)} {error}"
    if isinstance(error, PermissionError) or _AUTH.search(message):
        return SummarizerAuthError, _AUTH_HINT
    if _RATE_LIMIT.search(message):
        return SummarizerRateLimitError, _RATE_LIMIT_HINT
    if _TOO_LONG.search(message):
        return SourceTooLongError, _TOO_LONG_HINT
    names = {ancestor.__name__ for ancestor in type(error).__mro__}
    if names & _OUTAGE_CLASSES:
        return SummarizerOutageError, _OUTAGE_HINT
    return None


def _one_line(text: str, secrets: Sequence[str]) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    text = _SECRETS.sub("***", " ".join(text[: 4 * _LONGEST_MESSAGE].split()))
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"
