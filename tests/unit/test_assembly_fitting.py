"""How the pieces of an output are made to fit a budget."""

from __future__ import annotations

import pytest

from lcm_fast.assembly.fitting import EARLIER_LEFT_OUT, OPENS_WITH_ASSISTANT, fit
from lcm_fast.assembly.pieces import Piece, count_message
from lcm_fast.errors import BudgetTooSmallError
from lcm_fast.kernels import estimate_tokens


def piece(
    ordinal: int, text: str, role: str = "user", *, opener: int = 0, essential: bool = False
) -> Piece:
    message = {"role": role, "content": text}
    digest, tokens = count_message(message, estimate_tokens)
    opener = opener or ordinal
    return Piece(ordinal, opener, f"msg_{ordinal}", message, tokens, digest, essential=essential)


def contents(pieces: list[Piece]) -> list[str]:
    return [one.message["content"] for one in pieces]


def test_what_fits_is_left_alone() -> None:
    pieces = [piece(1, "a"), piece(2, "b")]
    assert fit(pieces, 1000, estimate_tokens, complete=True) is pieces


def test_the_oldest_exchange_goes_whole() -> None:
    pieces = [
        piece(1, "x" * 400, "assistant"),
        piece(2, "x" * 400, "toolResult", opener=1),
        piece(3, "kept", essential=True),
    ]
    assert contents(fit(pieces, 200, estimate_tokens, complete=True)) == ["kept"]


def test_what_must_stay_stays_when_it_is_the_oldest() -> None:
    pieces = [piece(1, "rules", "system", essential=True), piece(2, "x" * 800), piece(3, "new")]
    assert contents(fit(pieces, 100, estimate_tokens, complete=True)) == ["rules", "new"]


def test_an_opening_of_the_assistant_is_preceded_by_a_note() -> None:
    fitted = fit([piece(1, "hello", "assistant")], 100, estimate_tokens, complete=True)
    assert contents(fitted) == [OPENS_WITH_ASSISTANT, "hello"]


def test_the_note_tells_when_something_before_was_left_out() -> None:
    fitted = fit([piece(5, "hello", "assistant")], 100, estimate_tokens, complete=False)
    assert contents(fitted) == [EARLIER_LEFT_OUT, "hello"]


def test_room_for_the_note_is_made_by_dropping_not_by_cutting() -> None:
    pieces = [piece(n, "x" * 360, "assistant") for n in range(1, 5)]
    pieces[-1].essential = True
    fitted = fit(pieces, 4 * pieces[0].tokens, estimate_tokens, complete=True)
    assert [one.cut for one in fitted] == [False] * 4
    assert contents(fitted)[0] == EARLIER_LEFT_OUT


def test_the_largest_of_what_must_stay_is_cut() -> None:
    pieces = [piece(1, "small", essential=True), piece(2, "x" * 9000, essential=True)]
    fitted = fit(pieces, 300, estimate_tokens, complete=True)
    assert [one.cut for one in fitted] == [False, True]


def test_what_cannot_be_cut_to_the_budget_is_an_error() -> None:
    pieces = [piece(n, "short text", essential=True) for n in range(100)]
    with pytest.raises(BudgetTooSmallError, match="what must stay needs"):
        fit(pieces, 300, estimate_tokens, complete=True)
