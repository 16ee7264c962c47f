"""Make the tool exchanges of an output complete: each call answered right after it, each result
called for.

Pieces in, pieces out. `exchanges` tells which result answers which call; this puts them in order.
Nothing the record holds is replaced: a stand-in is made only where it lacks the partner. Calls of a
turn that was cut off and never answered are left out, as providers refuse them (spec S; decision
5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..transcripts import shapes
from ..types import ToolCall
from . import tool_blocks
from .exchanges import Exchange, find_exchanges
from .pieces import Piece, placeholder

__all__ = ["pair_tool_exchanges"]

CountTokens = Callable[[str], int]


def pair_tool_exchanges(pieces: list[Piece], count_tokens: CountTokens) -> list[Piece]:
    """Return the pieces with results moved behind their calls, and stand-ins for missing partners.

    Parameters
    ----------
    pieces
        In order.

    Returns
    -------
    list of Piece
        Every call has exactly one result and every result exactly one call, ids unique.

    Complexity: linear in the pieces.
    """
    if _is_paired(pieces):
        return pieces
    output = _Output(count_tokens)
    for exchange in find_exchanges(pieces, count_tokens):
        output.add(exchange)
    return output.pieces


def _is_paired(pieces: list[Piece]) -> bool:
    """Tell whether each call is answered right behind it, by a message of its own, under an id that
    no other has: nothing would be changed. What is told apart less easily is not asked for."""
    used: set[str] = set()
    waiting: list[str] = []  # for their results, the first call last
    opener = 0
    for piece in pieces:
        if piece.unnamed:
            return False
        if piece.answers:
            (answered, *others), expected = piece.answers, waiting.pop() if waiting else None
            is_own = piece.opener == opener and not piece.calls and not others
            if answered != expected or not is_own or not _is_result(piece.message):
                return False
            continue
        if waiting:
            return False
        if piece.calls:
            waiting = [call.call_id for call in reversed(piece.calls)]
            if not used.isdisjoint(waiting) or len(set(waiting)) < len(waiting):
                return False
            used.update(waiting)
            opener = piece.ordinal
            if piece.opener != opener:
                return False
    return not waiting


def _is_result(message: dict[str, Any]) -> bool:
    """Tell whether a message is a result, or carries one result and nothing else."""
    if tool_blocks.is_top_level_result(message):
        return True
    content = message.get("content")
    return isinstance(content, list) and len(content) == 1


class _Output:
    def __init__(self, count_tokens: CountTokens) -> None:
        self._count_tokens = count_tokens
        self._used_ids: set[str] = set()
        self.pieces: list[Piece] = []

    def add(self, exchange: Exchange) -> None:
        """Add a piece with what answers it; a result that nothing called for gets a stand-in."""
        if exchange.is_orphan:
            self._add_orphan(exchange.head)
            return
        caller = exchange.head
        if not caller.calls:
            self.pieces.append(caller)
            return
        if caller.terminal:
            self._drop_unanswered(exchange)
            if not caller.calls and tool_blocks.says_nothing_else(caller.message):
                return
        names = self._claim_ids(caller)
        self.pieces.append(caller)
        self._add_results(exchange, names)

    def _add_orphan(self, result: Piece) -> None:
        name = shapes.tool_name_of(result.message) or "unknown"
        calls = tuple(ToolCall(call_id, name) for call_id in result.answers)
        message = tool_blocks.missing_calls(calls, shapes.shape_of(result.message))
        caller = placeholder(result, message, self._count_tokens)
        caller.calls = calls
        names = self._claim_ids(caller)
        self.pieces += [caller, self._renamed(result, names)]

    def _drop_unanswered(self, exchange: Exchange) -> None:
        caller, answered = exchange.head, exchange.results.keys() | exchange.self_answered
        kept = tuple(call for call in caller.calls if call.call_id in answered)
        if len(kept) < len(caller.calls):
            message = tool_blocks.map_calls(
                caller.message, lambda call_id: call_id if call_id in answered else None
            )
            caller.replace(message, self._count_tokens)
            caller.calls = kept

    def _claim_ids(self, caller: Piece) -> dict[str, str]:
        """Give calls ids that no earlier exchange of the output has; return old and new names."""
        names: dict[str, str] = {}
        for call in caller.calls:
            fresh = call.call_id
            while fresh in self._used_ids:
                fresh = f"{fresh}_{caller.ordinal}"
            self._used_ids.add(fresh)
            names[call.call_id] = fresh
        if any(old != new for old, new in names.items()):
            message = tool_blocks.map_calls(caller.message, lambda old: names.get(old, old))
            caller.replace(
                tool_blocks.map_answers(message, lambda old: names.get(old, old)),
                self._count_tokens,
            )
            caller.calls = tuple(ToolCall(names[call.call_id], call.name) for call in caller.calls)
        return names

    def _renamed(self, result: Piece, names: dict[str, str]) -> Piece:
        if any(names.get(call_id, call_id) != call_id for call_id in result.answers):
            message = tool_blocks.map_answers(result.message, lambda old: names.get(old, old))
            result.replace(message, self._count_tokens)
            result.answers = tuple(names.get(call_id, call_id) for call_id in result.answers)
        return result

    def _add_results(self, exchange: Exchange, names: dict[str, str]) -> None:
        """Add the results in the order of the calls, then stand-ins for those that are missing."""
        added: set[int] = set()
        missing: list[ToolCall] = []
        for call, old in zip(exchange.head.calls, names, strict=True):
            result = exchange.results.get(old)
            if result is None:
                if old not in exchange.self_answered:
                    missing.append(call)
            elif id(result) not in added:
                added.add(id(result))
                self.pieces.append(self._renamed(result, names))
        if missing:
            self._add_missing(exchange.head, missing)

    def _add_missing(self, caller: Piece, missing: list[ToolCall]) -> None:
        shape = shapes.shape_of(caller.message)
        last = self.pieces[-1]
        if last is not caller and not tool_blocks.is_top_level_result(last.message):
            last.replace(tool_blocks.add_missing_results(last.message, missing), self._count_tokens)
            last.answers = (*last.answers, *(call.call_id for call in missing))
            return
        for message in tool_blocks.missing_results(missing, shape):
            stand_in = placeholder(caller, message, self._count_tokens)
            stand_in.answers = shapes.tool_answers(message)
            self.pieces.append(stand_in)
