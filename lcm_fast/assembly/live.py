"""Put what only the host has yet among the pieces of an assembly.

A host may ask for a context before it has stored the turn it is in. Which live messages are stored
is for the caller to say (spec T).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..transcripts import shapes
from .pieces import Piece, count_message
from .rendered import rendered_as
from .request import AssemblyRequest
from .tool_blocks import has_unnamed

__all__ = ["live_pieces", "with_live"]


def live_pieces(request: AssemblyRequest, last_ordinal: int) -> dict[int, list[Piece]]:
    """Return the pieces, by position, of each live message that the record does not hold.

    The newest one, and the newest of the user, must stay.
    """
    live = request.live
    unsaved = [
        position
        for position, body in enumerate(live.bodies)
        if position not in live.stored and not shapes.is_empty(body)
    ]
    users = [position for position in unsaved if live.is_users(position)]
    essential = {*unsaved[-1:], *users[-1:]}
    return {
        position: _pieces(
            request, position, last_ordinal + 1 + position, essential=position in essential
        )
        for position in unsaved
    }


def with_live(
    pieces: list[Piece], request: AssemblyRequest, unsaved: Mapping[int, list[Piece]]
) -> list[Piece]:
    """Return the pieces with each unsaved one before the first that follows it in the live list.

    A result belongs to the exchange of its call. A stored message that ends the live list is shown
    in the host's form, which may have more to say than what is stored.
    """
    live = request.live
    if not live.bodies:
        return pieces
    shown_ids = {piece.item_id for piece in pieces}
    openers = {call.call_id: piece.opener for piece in pieces for call in piece.calls}
    following: dict[str, list[Piece]] = {}
    waiting: list[Piece] = []
    for position in range(len(live.bodies)):
        for piece in unsaved.get(position, ()):
            openers.update((call.call_id, piece.opener) for call in piece.calls)
            called_by = [openers[one] for one in piece.answers if one in openers]
            piece.opener = called_by[0] if called_by else piece.opener
            waiting.append(piece)
        item_id = f"msg_{live.stored.get(position)}"
        if waiting and position not in unsaved and item_id in shown_ids:
            following[item_id], waiting = waiting, []
    _show_newest_as_held(pieces, request)
    merged: list[Piece] = []
    for piece in pieces:
        merged += following.pop(piece.item_id, [])
        merged.append(piece)
    return merged + waiting


def _show_newest_as_held(pieces: list[Piece], request: AssemblyRequest) -> None:
    last = len(request.live.bodies) - 1
    stored = [one for one in pieces if one.item_id == f"msg_{request.live.stored.get(last)}"]
    messages = rendered_as(request.live.bodies[last], request.form)
    if len(stored) == len(messages):
        for piece, message in zip(stored, messages, strict=True):
            piece.replace(message, request.count_tokens)


def _pieces(
    request: AssemblyRequest, position: int, ordinal: int, *, essential: bool
) -> list[Piece]:
    body = request.live.bodies[position]
    pieces = []
    for message in rendered_as(body, request.form):
        digest, tokens = count_message(message, request.count_tokens)
        piece = Piece(
            ordinal=ordinal,
            opener=ordinal,
            item_id=f"live message {position}",
            message=message,
            tokens=tokens,
            digest=digest,
            calls=shapes.tool_calls(message),
            answers=shapes.tool_answers(message),
            unnamed=has_unnamed(message),
            terminal=shapes.is_terminal(body),
            essential=essential,
        )
        pieces.append(piece)
    return pieces
