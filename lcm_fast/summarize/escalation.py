"""Turns a request into a summary that is certainly smaller than its source.

Carries rules J1 to J6 and L6 of the compaction behaviour with decisions 6 and 8: normal, then
aggressive, then the deterministic fallback; a hard cap on whatever is accepted. Calls the
summariser, so nothing that is locked may call it. A summariser that answers nothing usable has
had its attempt; any other failure ends the request, and none is ever stored as a summary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import msgspec

from ..errors import SummarizerContentError
from .calls import as_response
from .fallback import cut_to_tokens, fallback_text, textless_note
from .models.failures import as_summarizer_error
from .protocol import Summarizer, SummaryRequest
from .tagged_blocks import strip_reasoning

__all__ = [
    "FALLBACK_MODEL",
    "TEXTLESS_MODEL",
    "Summary",
    "condensed_target_tokens",
    "leaf_target_tokens",
    "summarise_with_escalation",
]

FALLBACK_MODEL = "deterministic-fallback"
TEXTLESS_MODEL = "textless-note"
_OVER_TARGET_FACTOR = 1.5


class Summary(msgspec.Struct, frozen=True):
    """An accepted summary.

    Attributes
    ----------
    text, token_count
        The summary and its size by the caller's estimator.
    level
        Which attempt was accepted.
    model
        The model that answered, `FALLBACK_MODEL`, or `TEXTLESS_MODEL` for messages without any
        text.
    input_tokens
        Size of the rendered source; 0 when no item had text.
    truncated
        Whether the text was cut to a limit.
    problem
        Why earlier attempts were refused, or what is wrong with the accepted one; None when nothing
        is.
    """

    text: str
    token_count: int
    level: Literal["normal", "aggressive", "fallback"]
    model: str
    input_tokens: int
    truncated: bool = False
    problem: str | None = None


def leaf_target_tokens(
    input_tokens: int, leaf_target: int, level: Literal["normal", "aggressive"]
) -> int:
    """Return the length to ask for when messages are summarised.

    Parameters
    ----------
    input_tokens
        Size of the rendered source.
    leaf_target
        The configured ``leafTargetTokens``.
    level
        Which attempt.

    Examples
    --------
    >>> [leaf_target_tokens(7000, 2400, level) for level in ("normal", "aggressive")]
    [2400, 1320]
    """
    longest = max(192, leaf_target)
    if level == "normal":
        return max(192, min(longest, input_tokens * 35 // 100))
    cap = max(96, min(longest, longest * 55 // 100))
    return max(96, min(cap, input_tokens * 20 // 100))


def condensed_target_tokens(condensed_target: int) -> int:
    """Return the length to ask for when summaries are condensed, at either level."""
    return max(512, condensed_target)


def summarise_with_escalation(
    summarizer: Summarizer,
    request: SummaryRequest,
    *,
    count_tokens: Callable[[str], int],
    max_overage_factor: float,
    fallback_max_tokens: int,
    aggressive_target_tokens: int | None = None,
    max_tokens: int | None = None,
) -> Summary:
    """Summarise a request; whatever the summariser returns, the result is smaller than its source.

    Parameters
    ----------
    summarizer
        Called once or twice.
    request
        With its normal target. A request that is already aggressive is tried once.
    count_tokens
        The estimator that counts source and result.
    max_overage_factor
        A result above ``ceil(target * factor)`` is cut to that size, its marker included.
    fallback_max_tokens
        Upper limit of the deterministic fallback.
    aggressive_target_tokens
        Target of the second attempt; derived from the request's own when None.
    max_tokens
        Size that the summary must not exceed, at least 1, so that it fits where its sources were;
        None where smaller than its source is small enough.

    Returns
    -------
    Summary
        With `token_count` below `input_tokens` and at most `max_tokens`, unless that is too little
        to say how many messages there were. Items without any text give a one-line note at
        level ``"normal"`` without a call: there is nothing a better summariser could add.

    Raises
    ------
    SummarizerError
        The summariser raised, or returned something that is neither text nor a `SummaryResponse`;
        the cause is chained. `SummarizerContentError` counts as an empty answer.
        `KeyboardInterrupt` and other interrupts pass.
    ValueError
        The request has no items.
    """
    if not request.items:
        raise ValueError("request.items must hold at least one item")
    source = request.text
    if not source:
        note = textless_note(request)
        return Summary(note, count_tokens(note), "normal", TEXTLESS_MODEL, input_tokens=0)
    input_tokens = max(1, count_tokens(source))
    most = input_tokens - 1 if max_tokens is None else min(input_tokens - 1, max_tokens)
    problems: list[str] = []
    for attempt in _attempts(request, input_tokens, aggressive_target_tokens, max_tokens):
        try:
            text, model = _ask(summarizer, attempt)
        except SummarizerContentError as error:
            problems.append(f"{attempt.level} result: {error.detail}")
            continue
        tokens = count_tokens(text)
        if text and tokens <= most:
            limit = math.ceil(attempt.target_tokens * max_overage_factor)
            problems += _length_problem(attempt, model, tokens)
            accepted = Summary(text, tokens, attempt.level, model, input_tokens)
            return _capped(accepted, limit, problems, count_tokens)
        problems.append(_refusal(attempt.level, model, tokens, input_tokens, most))
    text, truncated = fallback_text(
        request, source, count_tokens=count_tokens, max_tokens=fallback_max_tokens, room_tokens=most
    )
    problem = "; ".join(problems)
    tokens = count_tokens(text)
    return Summary(text, tokens, "fallback", FALLBACK_MODEL, input_tokens, truncated, problem)


def _attempts(
    request: SummaryRequest,
    input_tokens: int,
    aggressive_target: int | None,
    max_tokens: int | None,
) -> list[SummaryRequest]:
    attempts = [request]
    if request.level == "normal":
        if aggressive_target is None:
            aggressive_target = request.target_tokens
            if request.kind == "leaf":
                longest = request.target_tokens
                aggressive_target = leaf_target_tokens(input_tokens, longest, "aggressive")
        attempts.append(
            msgspec.structs.replace(request, level="aggressive", target_tokens=aggressive_target)
        )
    if max_tokens is None:
        return attempts
    return [
        msgspec.structs.replace(attempt, target_tokens=min(attempt.target_tokens, max_tokens))
        for attempt in attempts
    ]


def _ask(summarizer: Summarizer, request: SummaryRequest) -> tuple[str, str]:
    """Return the answer, without reasoning a model left in it, and the model that gave it."""
    try:
        answer = summarizer.summarize(request)
    except Exception as cause:
        error = as_summarizer_error(cause, summarizer.name)
        if error is cause:
            raise
        raise error from cause
    response = as_response(answer, summarizer.name)
    return strip_reasoning(response.text), response.model


def _refusal(level: str, model: str, tokens: int, input_tokens: int, most: int) -> str:
    if not tokens:
        return f"{level} result of {model} was empty"
    told = f"{level} result of {model} has {tokens} tokens, its source {input_tokens}"
    return told if most == input_tokens - 1 else f"{told}, the room for it {most}"


def _length_problem(request: SummaryRequest, model: str, tokens: int) -> list[str]:
    target = request.target_tokens
    if tokens <= math.ceil(target * _OVER_TARGET_FACTOR):
        return []
    return [f"{request.level} result of {model} has {tokens} tokens for a target of {target}"]


def _capped(
    summary: Summary, limit: int, problems: list[str], count_tokens: Callable[[str], int]
) -> Summary:
    """Return the summary with its problems told, its text cut when it is above the limit."""
    problem = "; ".join(problems) or None
    if summary.token_count <= limit:
        return msgspec.structs.replace(summary, problem=problem)
    text = _cut_with_marker(summary.text, summary.token_count, limit, count_tokens)
    return msgspec.structs.replace(
        summary, text=text, token_count=count_tokens(text), truncated=True, problem=problem
    )


def _cut_with_marker(text: str, tokens: int, limit: int, count_tokens: Callable[[str], int]) -> str:
    markers = (f"[Capped from {tokens} tokens to ~{limit}]", f"[Capped to ~{limit}]", "[Capped]")
    for marker in markers:
        suffix = f"\n{marker}"
        room = limit - count_tokens(suffix)
        kept = cut_to_tokens(text, room, count_tokens).rstrip() if room > 0 else ""
        if kept:
            return kept + suffix
    return cut_to_tokens(text, limit, count_tokens).rstrip()
