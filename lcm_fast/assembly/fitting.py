"""Hold the budget on what is really sent: after pairing and stand-ins, piece by piece.

Selection worked with stored counts; this works with the counts of the rendered pieces and has the
last word (decisions 1 and 4). Drops whole exchanges, oldest first, then cuts what must stay.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import BudgetTooSmallError
from .cutting import cut_piece
from .pieces import Piece, placeholder

__all__ = ["EARLIER_LEFT_OUT", "OPENS_WITH_ASSISTANT", "fit"]

CountTokens = Callable[[str], int]

OPENS_WITH_ASSISTANT = "[lcm_fast] the conversation begins with the assistant"
EARLIER_LEFT_OUT = "[lcm_fast] what came before is left out for lack of room"


def fit(
    pieces: list[Piece], budget_tokens: int, count_tokens: CountTokens, *, complete: bool
) -> list[Piece]:
    """Return the pieces within the budget, beginning with a user or system message.

    Parameters
    ----------
    complete
        Nothing of the record stands before the first piece.

    Raises
    ------
    BudgetTooSmallError
        Not even what must stay, with its texts cut to nothing, fits.
    """
    opened = _open_with_user(pieces, count_tokens, complete=complete)
    if _total(opened) <= budget_tokens:
        return opened
    kept = _drop_oldest(pieces, budget_tokens)
    opened = _open_with_user(kept, count_tokens, complete=complete and len(kept) == len(pieces))
    excess = _total(opened) - budget_tokens
    if excess > 0:
        kept = _drop_oldest(kept, _total(kept) - excess)
        opened = _open_with_user(kept, count_tokens, complete=False)
    if _total(opened) > budget_tokens:
        _cut_essential(opened, budget_tokens, count_tokens)
    return opened


def _total(pieces: list[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _open_with_user(
    pieces: list[Piece], count_tokens: CountTokens, *, complete: bool
) -> list[Piece]:
    """Put a user message in front where the first one is not one that providers let begin."""
    if not pieces or _opens(pieces[0]):
        return pieces
    text = OPENS_WITH_ASSISTANT if complete else EARLIER_LEFT_OUT
    return [placeholder(pieces[0], {"role": "user", "content": text}, count_tokens), *pieces]


def _opens(piece: Piece) -> bool:
    return piece.message.get("role") in ("user", "system", "developer") and not piece.answers


def _drop_oldest(pieces: list[Piece], budget_tokens: int) -> list[Piece]:
    """Drop exchanges that need not stay, oldest first, until the rest fits."""
    exchange_tokens: dict[int, int] = {}
    for piece in pieces:
        exchange_tokens[piece.opener] = exchange_tokens.get(piece.opener, 0) + piece.tokens
    essential = {piece.opener for piece in pieces if piece.essential}
    excess = _total(pieces) - budget_tokens
    dropped: set[int] = set()
    for opener, tokens in exchange_tokens.items():
        if excess > 0 and opener not in essential:
            dropped.add(opener)
            excess -= tokens
    return [piece for piece in pieces if piece.opener not in dropped]


def _cut_essential(pieces: list[Piece], budget_tokens: int, count_tokens: CountTokens) -> None:
    """Cut the largest of what must stay; every piece may keep an equal share of what there is."""
    smallest_first = sorted(pieces, key=lambda piece: piece.tokens)
    left = budget_tokens
    for position, piece in enumerate(smallest_first):
        cut_piece(piece, left // (len(smallest_first) - position), count_tokens)
        left -= piece.tokens
    if left < 0:
        raise BudgetTooSmallError(
            f"token_budget leaves {budget_tokens} tokens, and what must stay needs"
            f" {_total(pieces)} even with its texts cut away",
            hint="give a larger budget",
        )
