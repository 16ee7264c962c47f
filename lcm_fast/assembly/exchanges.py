"""Find which result answers which call, and take apart messages that belong to several exchanges.

The order of the pieces decides: a result answers the newest call of its id before it, else one
behind it that nothing answers. Ids may be missing, repeated or used again; nothing here is dropped
but repeats (spec S; decision 5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from ..transcripts import shapes
from . import tool_blocks
from .pieces import Piece

__all__ = ["Exchange", "find_exchanges"]

CountTokens = Callable[[str], int]


@dataclass(slots=True)
class Exchange:
    """A piece of the output and what must stand right behind it.

    Attributes
    ----------
    head
        A caller, a piece that has nothing to do with tools, or an orphaned result.
    results
        By call id; one piece may answer several calls.
    self_answered
        Calls whose result stands in the head itself.
    """

    head: Piece
    results: dict[str, Piece] = field(default_factory=dict)
    self_answered: set[str] = field(default_factory=set)
    is_orphan: bool = False


def find_exchanges(pieces: list[Piece], count_tokens: CountTokens) -> list[Exchange]:
    """Return every piece that heads an exchange or stands alone, in order, with its results.

    Complexity: linear in the pieces.
    """
    return _Matching(pieces, count_tokens).run()


class _Matching:
    def __init__(self, pieces: list[Piece], count_tokens: CountTokens) -> None:
        self._pieces = pieces
        self._count_tokens = count_tokens
        self._caller_ordinals = {piece.ordinal for piece in pieces if piece.calls}
        self._newest: dict[str, Exchange] = {}  # by call id
        self._unnamed: deque[tuple[str, Piece]] = deque()
        self._found: list[Exchange] = []
        self._early: list[Exchange] = []  # results that stood before any call of theirs

    def run(self) -> list[Exchange]:
        for piece in self._pieces:
            if piece.unnamed and not self._name(piece):
                continue
            if piece.answers:
                self._take_results(piece)
            elif piece.calls:
                self._take_caller(piece)
            else:
                self._found.append(Exchange(piece))
        for early in self._early:
            self._take_up(early)
        return self._found

    def _take_up(self, early: Exchange) -> None:
        """Give a result that stood before its call to the call, when nothing else answers it."""
        result = early.head
        homes = [self._newest.get(call_id) for call_id in result.answers]
        home = homes[0]
        if home is None or any(other is not home for other in homes):
            return
        answered = home.results.keys() | home.self_answered
        if answered.isdisjoint(result.answers):
            self._found.remove(early)
            self._give(result, home, result.answers)

    def _name(self, piece: Piece) -> bool:
        """Give ids to calls and results without one; tell whether anything is left to send.

        Results without an id answer such calls in order, as in APIs that know no ids.
        """
        if tool_blocks.has_unnamed_calls(piece.message):
            self._name_calls(piece)
        if tool_blocks.has_unnamed_results(piece.message):
            return self._name_results(piece)
        return True

    def _name_calls(self, caller: Piece) -> None:
        fresh = (f"call_lcm_{caller.ordinal}_{number}" for number in range(1, 1 << 31))
        message = tool_blocks.map_calls(caller.message, lambda call_id: call_id or next(fresh))
        known = {call.call_id for call in caller.calls}
        caller.replace(message, self._count_tokens)
        caller.calls = shapes.tool_calls(message)
        self._unnamed.extend(
            (call.call_id, caller) for call in caller.calls if call.call_id not in known
        )

    def _name_results(self, piece: Piece) -> bool:
        def next_unnamed(call_id: str) -> str:
            if call_id or not self._unnamed:
                return call_id
            named, caller = self._unnamed.popleft()
            piece.opener = caller.opener
            return named

        message: dict[str, object] | None = tool_blocks.map_answers(piece.message, next_unnamed)
        if message is not None and tool_blocks.has_unnamed_results(message):
            message = tool_blocks.unnamed_result_as_text(message)
        if message is None:
            return False
        piece.replace(message, self._count_tokens)
        piece.answers = shapes.tool_answers(message)
        return True

    def _take_caller(self, caller: Piece) -> None:
        """Open an exchange; a call repeated before it was answered is the same call."""
        again = {call.call_id for call in caller.calls if self._is_open(call.call_id)}
        if again or len({call.call_id for call in caller.calls}) < len(caller.calls):
            self._drop_repeated_calls(caller, again)
            if not caller.calls and tool_blocks.says_nothing_else(caller.message):
                return
        exchange = Exchange(caller)
        self._found.append(exchange)
        self._newest.update((call.call_id, exchange) for call in caller.calls)

    def _is_open(self, call_id: str) -> bool:
        exchange = self._newest.get(call_id)
        return (
            exchange is not None
            and call_id not in exchange.results
            and call_id not in exchange.self_answered
            and not exchange.head.terminal
        )

    def _drop_repeated_calls(self, caller: Piece, again: set[str]) -> None:
        seen = set(again)

        def keep_first(call_id: str) -> str | None:
            if call_id in seen:
                return None
            seen.add(call_id)
            return call_id

        caller.replace(tool_blocks.map_calls(caller.message, keep_first), self._count_tokens)
        caller.calls = tuple(
            call for call in shapes.tool_calls(caller.message) if call.call_id not in again
        )

    def _take_results(self, piece: Piece) -> None:
        """Hand a message's results to their exchanges, whole if they all belong to one."""
        if tool_blocks.is_top_level_result(piece.message):
            piece.answers = piece.answers[:1]
        own = {call.call_id for call in piece.calls}
        homes = {call_id: self._home(piece, call_id) for call_id in piece.answers}
        wanted = {
            call_id: home
            for call_id, home in homes.items()
            if call_id not in own and (home is None or _is_wanted(piece, home, call_id))
        }
        repeated = len(wanted) + len(own & homes.keys()) < len(homes)
        exchanges = {id(home): home for home in wanted.values()}
        if not own and not repeated and len(exchanges) == 1:
            (home,) = exchanges.values()
            if home is None or self._may_move(piece, home, wanted):
                self._give(piece, home, wanted)
                return
        if not tool_blocks.is_top_level_result(piece.message):
            self._take_apart(piece, wanted, own)

    def _home(self, piece: Piece, call_id: str) -> Exchange | None:
        """Return the exchange a result belongs to; None when its call is not among the pieces."""
        is_late = piece.opener != piece.ordinal and len(piece.answers) == 1
        if is_late and piece.opener not in self._caller_ordinals and not piece.unnamed:
            return None  # its call has been summarised; an older one may have had the same id
        return self._newest.get(call_id)

    def _may_move(self, piece: Piece, home: Exchange, call_ids: Collection[str]) -> bool:
        """Tell whether a message can go behind its call as it is.

        Other text in it must neither change its place nor come between results.
        """
        if tool_blocks.is_top_level_result(piece.message):
            return True
        if not tool_blocks.without_results(piece.message)["content"]:
            return True
        calls = [call.call_id for call in home.head.calls]
        is_last = calls[-1] in call_ids and not set(calls) - home.results.keys() - set(call_ids)
        return is_last and self._found[-1] is home

    def _give(self, piece: Piece, home: Exchange | None, call_ids: Iterable[str]) -> None:
        if home is None:
            orphan = Exchange(piece, is_orphan=True)
            if piece.opener == piece.ordinal:
                self._early.append(orphan)
            piece.opener = piece.ordinal
            self._found.append(orphan)
            return
        piece.opener = home.head.opener
        home.results.update(dict.fromkeys(call_ids, piece))

    def _take_apart(self, piece: Piece, wanted: dict[str, Exchange | None], own: set[str]) -> None:
        """Split a message into its results, an exchange each, and the rest, which stays."""
        for home, call_ids in _by_home(wanted):
            message = tool_blocks.only_results(piece.message, call_ids)
            self._give(self._part(piece, message, call_ids), home, call_ids)
        if own:
            rest = tool_blocks.map_answers(
                piece.message, lambda call_id: call_id if call_id in own else None
            )
        else:
            rest = tool_blocks.without_results(piece.message)
        if shapes.is_empty(rest):
            return
        remaining = self._part(piece, rest, ())
        remaining.calls = piece.calls
        if not own:
            remaining.opener = remaining.ordinal
            self._found.append(Exchange(remaining))
            return
        self._take_caller(remaining)
        for call_id in own & set(shapes.tool_answers(rest)):
            self._newest[call_id].self_answered.add(call_id)

    def _part(self, piece: Piece, message: dict[str, object], call_ids: Iterable[str]) -> Piece:
        part = msgspec.structs.replace(piece, answers=tuple(call_ids), calls=())
        part.replace(message, self._count_tokens)
        return part


def _is_wanted(piece: Piece, home: Exchange, call_id: str) -> bool:
    """Tell whether a result is the first of its call, or the first that is not a mere stand-in."""
    known = home.results.get(call_id)
    if known is None:
        return True
    return tool_blocks.is_stand_in(known.message) and not tool_blocks.is_stand_in(piece.message)


def _by_home(
    wanted: dict[str, Exchange | None],
) -> Iterator[tuple[Exchange | None, list[str]]]:
    grouped: dict[int, tuple[Exchange | None, list[str]]] = {}
    for call_id, home in wanted.items():
        grouped.setdefault(id(home), (home, []))[1].append(call_id)
    yield from grouped.values()
