"""Say what an assembly chose and why; reads nothing, changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..store import MESSAGE, SUMMARY, Frontier, in_model_tokens
from .pieces import Piece
from .recall_hint import RecallHint
from .request import AssemblyRequest
from .results import Assembly, AssemblyStats, FreshTail, Prefix, Selection
from .selection import Choice

__all__ = ["Outcome", "outcome_of", "report"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out: of which frontier, by which choice, as which pieces.

    Attributes
    ----------
    dropped
        Items left out for lack of room.
    unsent
        Chosen items that held nothing to send.
    live
        Messages that only the host has.
    cut
        Messages shown in part.
    """

    frontier: Frontier
    choice: Choice
    pieces: list[Piece]
    dropped: int
    unsent: int
    live: int
    cut: int


def outcome_of(
    frontier: Frontier, choice: Choice, chosen: list[Piece], paired: list[Piece], shown: list[Piece]
) -> Outcome:
    """Return what became of the chosen pieces: paired, then made to fit."""
    last = frontier.last_ordinal
    shown_ordinals = _ordinals(shown)
    live = sum(ordinal > last for ordinal in shown_ordinals)
    unsent = len(_ordinals(chosen) - _ordinals(paired))
    return Outcome(
        frontier=frontier,
        choice=choice,
        pieces=shown,
        dropped=len(frontier) - (len(shown_ordinals) - live) - unsent,
        unsent=unsent,
        live=live,
        cut=sum(piece.cut for piece in shown),
    )


def _ordinals(pieces: list[Piece]) -> set[int]:
    """Return which context items are shown."""
    return {piece.ordinal for piece in pieces if not piece.is_placeholder}


def report(
    conversation_id: int,
    outcome: Outcome,
    request: AssemblyRequest,
    system: list[Piece],
    sent: list[Piece],
    hint: RecallHint,
) -> Assembly:
    """Return the assembly with its figures.

    Parameters
    ----------
    system
        Pieces that stand beside the messages.
    sent
        The others, as they are sent.
    hint
        For the system prompt.
    """
    tail, ratio = _tail(outcome), request.token_ratio
    tokens = sum(piece.tokens for piece in (*system, *sent)) + hint.tokens
    return Assembly(
        messages=[piece.message for piece in sent],
        system="\n\n".join(piece.message["content"] for piece in system) or None,
        system_prompt_addition=hint.text,
        estimated_tokens=in_model_tokens(tokens, ratio),
        token_budget=request.budget_tokens,
        token_ratio=ratio,
        stats=_stats(outcome, request),
        fresh_tail=FreshTail(
            len(tail), in_model_tokens(sum(piece.tokens for piece in tail), ratio)
        ),
        prefix=Prefix(
            _fingerprint(conversation_id, outcome.frontier),
            in_model_tokens(_stable_tokens([*system, *sent], request.previous.digests), ratio),
        ),
    )


def _tail(outcome: Outcome) -> list[Piece]:
    start, frontier = outcome.choice.tail_start, outcome.frontier
    if start >= len(frontier):
        return []
    first = int(frontier.ordinals[start])
    return [one for one in outcome.pieces if one.ordinal >= first and not one.is_placeholder]


def _stats(outcome: Outcome, request: AssemblyRequest) -> AssemblyStats:
    frontier, pieces = outcome.frontier, outcome.pieces
    summaries = int(np.count_nonzero(frontier.kinds == SUMMARY))
    return AssemblyStats(
        raw_messages=int(np.count_nonzero(frontier.kinds == MESSAGE)),
        summaries=summaries,
        context_items=len(frontier),
        dropped=outcome.dropped,
        unsent=outcome.unsent,
        live=outcome.live,
        placeholders=sum(piece.is_placeholder for piece in pieces),
        cut=outcome.cut,
        stubs=sum(piece.is_stub for piece in pieces),
        selection=_selection(outcome),
        reason="; ".join(_reasons(outcome, request)),
    )


def _selection(outcome: Outcome) -> Selection:
    if outcome.choice.is_ranked:
        return "prompt-aware"
    return "chronological" if outcome.dropped or outcome.cut else "full-fit"


def _reasons(outcome: Outcome, request: AssemblyRequest) -> Iterator[str]:
    """Say in words what was chosen and why."""
    total, choice = len(outcome.frontier), outcome.choice
    prompt_tokens = in_model_tokens(request.prompt_tokens, request.token_ratio)
    room = f"{request.budget_tokens - prompt_tokens:,} tokens"
    if prompt_tokens:
        room += f" ({prompt_tokens:,} more are kept free for the prompt)"
    if outcome.dropped:
        kept = "those nearest to the prompt" if choice.is_ranked else "the newest"
        yield f"{total - outcome.dropped} of {total} items fit into {room}; {kept} were kept"
        if choice.is_prompt_unknown:
            yield "no term of the prompt occurs in the older ones"
    else:
        yield f"all {total} items fit into {room}"
    if request.brief is not None:
        yield "a focus brief stands in the place of summaries"
    yielded = choice.tail_start - choice.wanted_tail_start
    if yielded > 0:
        wanted = total - choice.wanted_tail_start
        yield f"the fresh tail of {wanted} items alone was larger and gave up {yielded}"
    if outcome.cut:
        yield f"{outcome.cut} shown in part, being larger than the room left"
    if stubs := sum(piece.is_stub for piece in outcome.pieces):
        yield f"large tool results of {stubs} older ones are stubs"
    if outcome.unsent:
        yield f"{outcome.unsent} of a turn that was cut off held nothing but unanswered calls"


def _fingerprint(conversation_id: int, frontier: Frontier) -> str:
    """Change when a summary or focus brief is added, moved or replaced, and at nothing else
    (spec U4)."""
    digest = hashlib.sha256(f"summary-prefix-v1\0{conversation_id}".encode())
    for index in np.flatnonzero(frontier.kinds != MESSAGE):
        digest.update(f"\0{int(frontier.ordinals[index])}\0{frontier.summary_ids[index]}".encode())
    return f"summary-prefix-v1:{conversation_id}:{digest.hexdigest()[:32]}"


def _stable_tokens(pieces: list[Piece], previous: Sequence[int]) -> int:
    stable = 0
    for piece, before in zip(pieces, previous, strict=False):
        if piece.digest != before:
            break
        stable += piece.tokens
    return stable
