"""Assemble the context for one model call: choose, fetch what was chosen, render, pair, fit.

Reads only; the caller gives the frontier. Only chosen rows are fetched (design: architecture,
section 3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import BudgetTooSmallError
from ..store import MESSAGE, Conversation, Frontier, Store, StoredSummary
from .fitting import fit
from .pairing import pair_tool_exchanges
from .pieces import Piece, summary_piece
from .rendered import MessagePieces
from .results import Assembly, AssemblyStats, FreshTail, Prefix, Selection
from .selection import Choice, Room, choose

__all__ = ["MIN_BUDGET_TOKENS", "AssemblyRequest", "assemble", "check_budget"]

CountTokens = Callable[[str], int]

MIN_BUDGET_TOKENS = 256


@dataclass(frozen=True, slots=True)
class AssemblyRequest:
    """What an assembly is asked for.

    Attributes
    ----------
    budget_tokens
        Size of the whole output.
    prompt_tokens
        Kept free of it for the prompt that will follow.
    eviction_step
        Share of the budget that is freed at once when items must be left out.
    previous
        Digests of the messages of this process' last assembly of the conversation, for
        `Prefix.stable_tokens`.
    """

    budget_tokens: int
    prompt_tokens: int
    fresh_tail_count: int
    fresh_tail_max_tokens: int | None
    eviction_step: float
    timezone: str
    count_tokens: CountTokens
    previous: Sequence[int] = ()

    @property
    def available_tokens(self) -> int:
        """Tokens the output may take."""
        return self.budget_tokens - self.prompt_tokens

    @property
    def room(self) -> Room:
        """What selection may fill."""
        return Room(
            budget_tokens=self.available_tokens,
            step_tokens=int(self.eviction_step * self.budget_tokens),
            fresh_tail_count=self.fresh_tail_count,
            fresh_tail_max_tokens=self.fresh_tail_max_tokens,
        )


def check_budget(budget_tokens: int, prompt_tokens: int = 0) -> None:
    """Refuse a budget no assembly fits.

    Raises
    ------
    BudgetTooSmallError
        Below `MIN_BUDGET_TOKENS`, or below it once the prompt has its room.
    """
    if budget_tokens < MIN_BUDGET_TOKENS:
        raise BudgetTooSmallError(
            f"token_budget is {budget_tokens}", hint=f"it must be at least {MIN_BUDGET_TOKENS}"
        )
    if budget_tokens - prompt_tokens < MIN_BUDGET_TOKENS:
        raise BudgetTooSmallError(
            f"token_budget is {budget_tokens} and the prompt alone takes {prompt_tokens}",
            hint=f"at least {MIN_BUDGET_TOKENS} tokens must be left for the context",
        )


def assemble(
    store: Store,
    messages: MessagePieces,
    conversation: Conversation,
    frontier: Frontier,
    request: AssemblyRequest,
) -> tuple[Assembly, list[int]]:
    """Return the assembly, and the digests of its messages for the next one's `previous`.

    Raises
    ------
    BudgetTooSmallError
        Not even what must stay, cut down, fits.
    """
    choice = choose(frontier, request.room)
    pieces = _fetch(messages, store, frontier, choice, request)
    complete = len(pieces) == len(frontier)
    paired = pair_tool_exchanges(pieces, request.count_tokens)
    fitted = fit(paired, request.available_tokens, request.count_tokens, complete=complete)
    digests = [piece.digest for piece in fitted]
    unsent = len(_ordinals(pieces) - _ordinals(paired))
    return _report(conversation, frontier, choice, fitted, unsent, request, digests), digests


def _ordinals(pieces: list[Piece]) -> set[int]:
    """Return which context items are shown."""
    return {piece.ordinal for piece in pieces if not piece.is_placeholder}


def _fetch(
    messages: MessagePieces,
    store: Store,
    frontier: Frontier,
    choice: Choice,
    request: AssemblyRequest,
) -> list[Piece]:
    """Fetch and render the chosen items, and no others."""
    chosen = np.asarray(choice.indexes, dtype=np.intp)
    ids: list[int] = frontier.message_ids[chosen].tolist()
    ordinals: list[int] = frontier.ordinals[chosen].tolist()
    openers: list[int] = frontier.openers[chosen].tolist()
    places = [place for place in zip(ids, ordinals, openers, strict=True) if place[0] >= 0]
    shown = messages.read(places)
    names = [frontier.summary_ids[index] for index in choice.indexes]
    summaries = _summaries(store, names)
    newest_opener = frontier.openers[-1:].tolist()
    pieces: list[Piece] = []
    for message_id, ordinal, name, pinned in zip(
        ids, ordinals, names, choice.pinned[chosen].tolist(), strict=True
    ):
        if name is None:
            piece = shown[message_id]
        else:
            piece = summary_piece(summaries[name], ordinal, request.timezone, request.count_tokens)
        piece.essential = bool(pinned) or piece.opener in newest_opener
        pieces.append(piece)
    return pieces


def _summaries(store: Store, ids: list[str | None]) -> dict[str, StoredSummary]:
    wanted = [summary_id for summary_id in ids if summary_id is not None]
    return {row.summary_id: row for row in store.summaries(wanted)} if wanted else {}


def _report(
    conversation: Conversation,
    frontier: Frontier,
    choice: Choice,
    pieces: list[Piece],
    unsent: int,
    request: AssemblyRequest,
    digests: list[int],
) -> Assembly:
    estimated = sum(piece.tokens for piece in pieces)
    tail_ordinal = (
        int(frontier.ordinals[choice.tail_start]) if choice.tail_start < len(frontier) else None
    )
    tail = [
        piece
        for piece in pieces
        if tail_ordinal is not None and piece.ordinal >= tail_ordinal and not piece.is_placeholder
    ]
    return Assembly(
        messages=[piece.message for piece in pieces],
        estimated_tokens=estimated,
        token_budget=request.budget_tokens,
        stats=_stats(frontier, choice, pieces, unsent, request),
        fresh_tail=FreshTail(len(tail), sum(piece.tokens for piece in tail)),
        prefix=Prefix(
            _fingerprint(conversation, frontier), _stable_tokens(pieces, digests, request.previous)
        ),
    )


def _stats(
    frontier: Frontier,
    choice: Choice,
    pieces: list[Piece],
    unsent: int,
    request: AssemblyRequest,
) -> AssemblyStats:
    dropped = len(frontier) - len(_ordinals(pieces)) - unsent
    summaries = int(np.count_nonzero(frontier.kinds != MESSAGE))
    cut = sum(piece.cut for piece in pieces)
    selection: Selection = "chronological" if dropped or cut else "full-fit"
    return AssemblyStats(
        raw_messages=len(frontier) - summaries,
        summaries=summaries,
        context_items=len(frontier),
        dropped=dropped,
        unsent=unsent,
        placeholders=sum(piece.is_placeholder for piece in pieces),
        cut=cut,
        selection=selection,
        reason="; ".join(_reasons(frontier, choice, dropped, unsent, cut, request)),
    )


def _reasons(
    frontier: Frontier,
    choice: Choice,
    dropped: int,
    unsent: int,
    cut: int,
    request: AssemblyRequest,
) -> Iterator[str]:
    """Say in words what was chosen and why."""
    total = len(frontier)
    room = f"{request.available_tokens:,} tokens"
    if request.prompt_tokens:
        room += f" ({request.prompt_tokens:,} more are kept free for the prompt)"
    if dropped:
        yield f"{total - dropped} of {total} items fit into {room}; the newest were kept"
    else:
        yield f"all {total} items fit into {room}"
    yielded = choice.tail_start - choice.wanted_tail_start
    if yielded > 0:
        wanted = total - choice.wanted_tail_start
        yield f"the fresh tail of {wanted} items alone was larger and gave up {yielded}"
    if cut:
        yield f"{cut} shown in part, being larger than the room left"
    if unsent:
        yield f"{unsent} of a turn that was cut off held nothing but unanswered calls"


def _fingerprint(conversation: Conversation, frontier: Frontier) -> str:
    """Change when a summary is added, moved or replaced, and at nothing else (spec U4)."""
    number = conversation.conversation_id
    digest = hashlib.sha256(f"summary-prefix-v1\0{number}".encode())
    for index in np.flatnonzero(frontier.kinds != MESSAGE):
        digest.update(f"\0{int(frontier.ordinals[index])}\0{frontier.summary_ids[index]}".encode())
    return f"summary-prefix-v1:{number}:{digest.hexdigest()[:32]}"


def _stable_tokens(pieces: list[Piece], digests: list[int], previous: Sequence[int]) -> int:
    stable = 0
    for piece, ours, theirs in zip(pieces, digests, previous, strict=False):
        if ours != theirs:
            break
        stable += piece.tokens
    return stable
