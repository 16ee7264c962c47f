"""Assemble the context for one model call: choose, fetch what was chosen, render, pair, fit.

Reads only; the caller gives the frontier. Only chosen rows are fetched (design: architecture,
section 3).
"""

from __future__ import annotations

import numpy as np

from ..errors import BudgetTooSmallError
from ..store import Frontier, Store, StoredSummary
from .fitting import fit
from .live import live_pieces, with_live
from .pairing import pair_tool_exchanges
from .pieces import Piece, summary_piece
from .rendered import MessagePieces
from .report import outcome_of, report
from .request import AssemblyRequest, Shown
from .results import Assembly
from .selection import Choice, choose

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
    unsaved = live_pieces(request.live, frontier.last_ordinal, request.count_tokens)
    room = request.room_beside(sum(one.tokens for one in unsaved.values()))
    choice = choose(frontier, room, request.rank)
    pieces = _fetch(messages, store, frontier, choice, request)
    complete = len(pieces) == len(frontier)
    pieces = with_live(pieces, request.live, unsaved, request.count_tokens)
    paired = pair_tool_exchanges(pieces, request.count_tokens)
    fitted = fit(paired, request.available_tokens, request.count_tokens, complete=complete)
    shown = Shown([one.digest for one in fitted], [one.ordinal for one in fitted])
    outcome = outcome_of(frontier, choice, pieces, paired, fitted)
    return report(conversation_id, outcome, request), shown


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
