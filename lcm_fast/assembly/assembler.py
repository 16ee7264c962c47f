"""Assemble the context for one model call: choose, fetch what was chosen, render, pair, fit.

Reads only; the caller gives the frontier. Only chosen rows are fetched (design: architecture,
section 3).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..errors import BudgetTooSmallError
from ..store import Frontier, Store, StoredSummary
from .cutting import cut_piece
from .fitting import fit
from .live import live_pieces, with_live
from .pairing import pair_tool_exchanges
from .pieces import Piece, brief_piece, summary_piece
from .placing import lift_system, merge_results
from .recall_cue import recall_cue
from .recall_hint import recall_hint
from .rendered import MessagePieces
from .report import outcome_of, report
from .request import AssemblyRequest, Shown
from .results import Assembly
from .selection import Choice, choose
from .stubs import with_stubs

__all__ = ["MIN_BUDGET_TOKENS", "assemble", "check_budget"]

MIN_BUDGET_TOKENS = 256


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
    conversation_id: int,
    frontier: Frontier,
    request: AssemblyRequest,
) -> tuple[Assembly, Shown]:
    """Return the assembly, and what it shows for the next one's `previous`.

    Raises
    ------
    BudgetTooSmallError
        Not even what must stay, cut down, fits.
    """
    frontier, stubs = with_stubs(frontier, request, messages)
    unsaved = live_pieces(request, frontier.last_ordinal)
    unsaved_tokens = sum(one.tokens for several in unsaved.values() for one in several)
    hint = recall_hint(frontier, request.available_tokens, request.count_tokens)
    room = request.room_beside(unsaved_tokens + hint.tokens)
    newer = list(filter(request.live.is_newer, unsaved))
    pin_user = not any(map(request.live.is_users, newer))
    choice = choose(frontier, room, request.rank, pin_user=pin_user)
    pieces = _fetch(messages, store, frontier, choice, request, stubs)
    newest_opener = [] if newer else frontier.openers[-1:].tolist()
    for piece in pieces:
        piece.essential |= piece.opener in newest_opener
    complete = len(choice.indexes) == len(frontier)
    pieces = with_live(pieces, request, unsaved)
    system: list[Piece] = []
    if request.form == "anthropic":
        system, pieces = lift_system(pieces, request.count_tokens)
    paired = pair_tool_exchanges(pieces, request.count_tokens)
    left = request.available_tokens - hint.tokens - _fitted_beside(system, request)
    fitted = fit(paired, left, request.count_tokens, complete=complete)
    sent = merge_results(fitted) if request.form == "anthropic" else list(fitted)
    outcome = outcome_of(frontier, choice, system + pieces, system + paired, system + fitted)
    left -= sum(piece.tokens for piece in sent)
    cue = recall_cue(sent, request, left, partial(store.mentions, conversation_id))
    if cue is not None:
        sent.insert(*cue)
    shown = Shown(
        digests=[one.digest for one in (*system, *sent)],
        ordinals=[one.ordinal for one in outcome.pieces],
        stored_tokens=hint.tokens + _stored_tokens([*system, *sent], frontier),
    )
    return report(conversation_id, outcome, request, system, sent, hint), shown


def _stored_tokens(pieces: list[Piece], frontier: Frontier) -> int:
    """Return the tokens of the pieces that the record holds."""
    last = frontier.last_ordinal
    return sum(piece.tokens for piece in pieces if piece.ordinal <= last)


def _fitted_beside(system: list[Piece], request: AssemblyRequest) -> int:
    """Cut a system prompt that takes more than half of the room; return its tokens."""
    if sum(piece.tokens for piece in system) > request.available_tokens // 2:
        for piece in system:
            share = request.available_tokens // 2 // len(system)
            cut_piece(piece, share, request.count_tokens)
    return sum(piece.tokens for piece in system)


def _fetch(
    messages: MessagePieces,
    store: Store,
    frontier: Frontier,
    choice: Choice,
    request: AssemblyRequest,
    stubs: frozenset[int],
) -> list[Piece]:
    """Fetch and render the chosen items, and no others."""
    chosen = np.asarray(choice.indexes, dtype=np.intp)
    ids: list[int] = frontier.message_ids[chosen].tolist()
    ordinals: list[int] = frontier.ordinals[chosen].tolist()
    openers: list[int] = frontier.openers[chosen].tolist()
    places = [place for place in zip(ids, ordinals, openers, strict=True) if place[0] >= 0]
    shown = messages.read(places, request.form, stubs)
    names = [frontier.summary_ids[index] for index in choice.indexes]
    brief = request.brief
    brief_id = brief.brief_id if brief is not None else None
    summaries = _summaries(store, [name for name in names if name != brief_id])
    pieces: list[Piece] = []
    for message_id, ordinal, name, pinned in zip(
        ids, ordinals, names, choice.pinned[chosen].tolist(), strict=True
    ):
        if name is None:
            some = shown[message_id]
        elif brief is not None and name == brief_id:
            some = [brief_piece(brief, ordinal, request.count_tokens)]
        else:
            row = summaries[name]
            some = [summary_piece(row, ordinal, request.timezone, request.count_tokens)]
        for piece in some:
            piece.essential = bool(pinned)
            piece.is_stub = message_id in stubs
        pieces += some
    return pieces


def _summaries(store: Store, ids: list[str | None]) -> dict[str, StoredSummary]:
    wanted = [summary_id for summary_id in ids if summary_id is not None]
    return {row.summary_id: row for row in store.summaries(wanted)} if wanted else {}
