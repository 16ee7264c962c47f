"""Put what only the host has yet among the pieces of an assembly.

A host may ask for a context before it has stored the turn it is in. Which live messages are stored
is for the caller to say (spec T).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..transcripts import shapes
from .pieces import Piece, count_message
from .tool_blocks import has_unnamed

__all__ = ["NOTHING_LIVE", "LiveMessages", "live_pieces", "with_live"]

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class LiveMessages:
    """What a host holds of a conversation.

    Attributes
    ----------
    bodies
        Its messages, in order.
    stored
        Message ids of those that the record holds, by position.
    """

    bodies: Sequence[dict[str, Any]] = ()
    stored: Mapping[int, int] = field(default_factory=dict)

    @property
    def newest_prompt(self) -> str | None:
        """What the user said last, None where the host holds nothing of the user."""
        users = [body for body in self.bodies if body.get("role") == "user"]
        return shapes.content_of(users[-1]) if users else None


NOTHING_LIVE = LiveMessages()


def live_pieces(
    live: LiveMessages, last_ordinal: int, count_tokens: CountTokens
) -> dict[int, Piece]:
    """Return a piece, by position, of each message that the record does not hold.

    The newest one, and the newest of the user, must stay.
    """
    pieces = {
        position: _piece(position, body, last_ordinal + 1 + position, count_tokens)
        for position, body in enumerate(live.bodies)
        if position not in live.stored and not shapes.is_empty(body)
    }
    users = [position for position in pieces if live.bodies[position].get("role") == "user"]
    for position in {*list(pieces)[-1:], *users[-1:]}:
        pieces[position].essential = True
    return pieces


def with_live(
    pieces: list[Piece],
    live: LiveMessages,
    unsaved: Mapping[int, Piece],
    count_tokens: CountTokens,
) -> list[Piece]:
    """Return the pieces with each unsaved one before the first that follows it in the live list.

    A result belongs to the exchange of its call. A stored message that ends the live list is shown
    in the host's form, which may have more to say than what is stored.
    """
    openers = {call.call_id: piece.opener for piece in pieces for call in piece.calls}
    if not live.bodies:
        return pieces
    shown_ids = {piece.item_id for piece in pieces}
    following: dict[str, list[Piece]] = {}
    waiting: list[Piece] = []
    for position in range(len(live.bodies)):
        if (piece := unsaved.get(position)) is not None:
            openers.update((call.call_id, piece.opener) for call in piece.calls)
            called_by = [openers[one] for one in piece.answers if one in openers]
            piece.opener = called_by[0] if called_by else piece.opener
            waiting.append(piece)
        elif waiting and (item_id := f"msg_{live.stored.get(position)}") in shown_ids:
            following[item_id], waiting = waiting, []
    last = len(live.bodies) - 1
    merged: list[Piece] = []
    for piece in pieces:
        merged += following.get(piece.item_id, [])
        if piece.item_id == f"msg_{live.stored.get(last)}":
            piece.replace(shapes.wire_form(live.bodies[last]), count_tokens)
        merged.append(piece)
    return merged + waiting


def _piece(position: int, body: dict[str, Any], ordinal: int, count_tokens: CountTokens) -> Piece:
    message = shapes.wire_form(body)
    digest, tokens = count_message(message, count_tokens)
    return Piece(
        ordinal=ordinal,
        opener=ordinal,
        item_id=f"live message {position}",
        message=message,
        tokens=tokens,
        digest=digest,
        calls=shapes.tool_calls(message),
        answers=shapes.tool_answers(message),
        unnamed=has_unnamed(message),
    )
