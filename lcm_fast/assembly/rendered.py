"""Messages of the record as a model is sent them, kept from one assembly to the next.

A message never changes, and turn after turn shows nearly the same ones; what is remembered is not
read, decoded and counted again. Must not decide which messages are shown.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import msgspec

from ..store import Store
from ..transcripts import body_of, shapes
from ..transcripts.forms import in_form
from ..types import Shape, ToolCall
from .pieces import Piece, count_message
from .tool_blocks import has_unnamed

__all__ = ["MessagePieces", "rendered_as"]

_REMEMBERED_BYTES = 32 * 1024 * 1024

# Returns a message with its large tool results as stubs, which name its item id; or itself.
MakeStub = Callable[[dict[str, Any], str], dict[str, Any]]
# Message id, ordinal, opener.
_Place = tuple[int, int, int]
# Message id, form, and whether its large results are stubs.
_Key = tuple[int, Shape | None, bool]


class _Rendered(msgspec.Struct, eq=False):
    """What is worth remembering of one message that is sent; the message itself is decoded anew for
    each caller, who may change it.

    From its second use on, `sent` is the JSON of just what is sent, where that says the same.
    """

    sent: bytes
    form: Shape | None
    place: int
    tokens: int
    digest: int
    calls: tuple[ToolCall, ...]
    answers: tuple[str, ...]
    unnamed: bool
    terminal: bool
    size: int
    is_encoded: bool | None = None

    def message(self) -> dict[str, Any]:
        if self.is_encoded:
            return _decode(self.sent)
        message = rendered_as(body_of(self.sent), self.form)[self.place]
        if self.is_encoded is None:
            encoded = _encoded(message)
            self.sent = encoded or self.sent
            self.is_encoded = encoded is not None
        return message


class MessagePieces:
    """Makes pieces of messages, reading those that are not remembered.

    Threading: safe to share.
    """

    def __init__(
        self, store: Store, count_tokens: Callable[[str], int], make_stub: MakeStub
    ) -> None:
        self._store = store
        self._count_tokens = count_tokens
        self._make_stub = make_stub
        self._lock = threading.Lock()
        self._rendered: OrderedDict[_Key, list[_Rendered]] = OrderedDict()
        self._bytes = 0

    def read(
        self,
        places: Iterable[_Place],
        form: Shape | None = None,
        stubs: Container[int] = (),
    ) -> dict[int, list[Piece]]:
        """Return pieces by message id, for messages given as (message id, ordinal, opener).

        Parameters
        ----------
        form
            In which they are sent; None: as they came, one piece each.
        stubs
            Ids of those whose large tool results are sent as stubs.

        Complexity: reads the messages that are not remembered, in one query.
        """
        wanted: dict[_Key, _Place] = {
            (place[0], form, place[0] in stubs): place for place in places
        }
        pieces: dict[int, list[Piece]] = {}
        for key, rendered in self._recall(wanted).items():
            place = wanted.pop(key)
            pieces[place[0]] = [_piece(one, one.message(), place) for one in rendered]
        for key, rendered, messages in self._read(wanted):
            pieces[key[0]] = [
                _piece(one, message, wanted[key])
                for one, message in zip(rendered, messages, strict=True)
            ]
        return pieces

    def stub_tokens(self, message_ids: Iterable[int], form: Shape | None) -> dict[int, int]:
        """Return the tokens that messages take with their large tool results as stubs.

        Complexity: reads the messages whose stubs are not remembered, in one query.
        """
        wanted: list[_Key] = [(message_id, form, True) for message_id in message_ids]
        stubs = self._recall(wanted)
        for key, rendered, _ in self._read(key for key in wanted if key not in stubs):
            stubs[key] = rendered
        return {key[0]: sum(one.tokens for one in rendered) for key, rendered in stubs.items()}

    def _read(
        self, keys: Iterable[_Key]
    ) -> Iterator[tuple[_Key, list[_Rendered], list[dict[str, Any]]]]:
        """Yield messages of the record as they are sent, in one query, and remember them."""
        by_id = {key[0]: key for key in keys}
        fresh: dict[_Key, list[_Rendered]] = {}
        for row in self._store.messages(list(by_id)) if by_id else ():
            key = by_id[row.message_id]
            _, form, is_stub = key
            body, sent = body_of(row.sent), row.sent
            if is_stub:
                body = self._make_stub(body, f"msg_{row.message_id}")
                sent = _encoded(body) or json.dumps(body).encode()
            messages = rendered_as(body, form)
            fresh[key] = self._render(sent, messages, form, terminal=shapes.is_terminal(body))
            yield key, fresh[key], messages
        self._remember(fresh)

    def _render(
        self, sent: bytes, messages: list[dict[str, Any]], form: Shape | None, *, terminal: bool
    ) -> list[_Rendered]:
        rendered = []
        for place, message in enumerate(messages):
            digest, tokens = count_message(message, self._count_tokens)
            rendered.append(
                _Rendered(
                    sent=sent,
                    form=form,
                    place=place,
                    tokens=tokens,
                    digest=digest,
                    calls=shapes.tool_calls(message),
                    answers=shapes.tool_answers(message),
                    unnamed=has_unnamed(message),
                    terminal=terminal,
                    size=len(sent) // len(messages),
                )
            )
        return rendered

    def _recall(self, keys: Iterable[_Key]) -> dict[_Key, list[_Rendered]]:
        with self._lock:
            known = {
                key: rendered for key in keys if (rendered := self._rendered.get(key)) is not None
            }
            for key in known:
                self._rendered.move_to_end(key)
        return known

    def _remember(self, fresh: dict[_Key, list[_Rendered]]) -> None:
        with self._lock:
            for key, rendered in fresh.items():
                if key not in self._rendered:
                    self._rendered[key] = rendered
                    self._bytes += sum(one.size for one in rendered)
            while self._bytes > _REMEMBERED_BYTES:
                _, oldest = self._rendered.popitem(last=False)
                self._bytes -= sum(one.size for one in oldest)


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def rendered_as(body: dict[str, Any], form: Shape | None) -> list[dict[str, Any]]:
    """Return the messages that a model is sent for one message."""
    return [shapes.wire_form(body)] if form is None else in_form(body, form)


def _encoded(message: dict[str, Any]) -> bytes | None:
    """Return JSON that decodes to the very message, None where there is none (surrogates)."""
    try:
        encoded = msgspec.json.encode(message)
        return encoded if msgspec.json.decode(encoded) == message else None
    except (ValueError, RecursionError):
        return None


def _piece(rendered: _Rendered, message: dict[str, Any], place: _Place) -> Piece:
    message_id, ordinal, opener = place
    return Piece(
        ordinal,
        opener,
        f"msg_{message_id}",
        message,
        rendered.tokens,
        rendered.digest,
        rendered.calls,
        rendered.answers,
        rendered.unnamed,
        rendered.terminal,
    )
