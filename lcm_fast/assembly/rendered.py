"""Messages of the record as a model is sent them, kept from one assembly to the next.

A message never changes, and turn after turn shows nearly the same ones; what is remembered is not
read, decoded and counted again. Must not decide which messages are shown.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from ..store import Store, StoredMessage
from ..transcripts import body_of, shapes
from ..types import ToolCall
from .pieces import Piece, count_message
from .tool_blocks import has_unnamed

__all__ = ["MessagePieces"]

_REMEMBERED_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class _Rendered:
    """What is worth remembering of a message; the message itself is decoded anew for each caller,
    who may change it.

    From its second use on, `sent` is the JSON of just what is sent, where that says the same.
    """

    sent: bytes
    tokens: int
    digest: int
    calls: tuple[ToolCall, ...]
    answers: tuple[str, ...]
    unnamed: bool
    size: int
    is_encoded: bool | None = None

    def message(self) -> dict[str, Any]:
        if self.is_encoded:
            decoded: dict[str, Any] = msgspec.json.decode(self.sent)
            return decoded
        message = _message(self.sent)
        if self.is_encoded is None:
            encoded = _encoded(message)
            self.sent = encoded or self.sent
            self.is_encoded = encoded is not None
        return message


class MessagePieces:
    """Makes pieces of messages, reading those that are not remembered.

    Threading: safe to share.
    """

    def __init__(self, store: Store, count_tokens: Callable[[str], int]) -> None:
        self._store = store
        self._count_tokens = count_tokens
        self._lock = threading.Lock()
        self._rendered: OrderedDict[int, _Rendered] = OrderedDict()
        self._bytes = 0

    def read(self, places: Iterable[tuple[int, int, int]]) -> dict[int, Piece]:
        """Return pieces by message id, for messages given as (message id, ordinal, opener).

        Complexity: reads the messages that are not remembered, in one query.
        """
        wanted = {place[0]: place for place in places}
        known = self._recall(wanted)
        pieces = {
            message_id: _piece(rendered, rendered.message(), *wanted[message_id])
            for message_id, rendered in known.items()
        }
        missing = [message_id for message_id in wanted if message_id not in known]
        fresh: dict[int, _Rendered] = {}
        for row in self._store.messages(missing) if missing else ():
            message = _message(row.sent)
            fresh[row.message_id] = rendered = self._render(row, message)
            pieces[row.message_id] = _piece(rendered, message, *wanted[row.message_id])
        self._remember(fresh)
        return pieces

    def _render(self, stored: StoredMessage, message: dict[str, Any]) -> _Rendered:
        digest, tokens = count_message(message, self._count_tokens)
        return _Rendered(
            sent=stored.sent,
            tokens=tokens,
            digest=digest,
            calls=shapes.tool_calls(message),
            answers=shapes.tool_answers(message),
            unnamed=has_unnamed(message),
            size=len(stored.sent),
        )

    def _recall(self, message_ids: Iterable[int]) -> dict[int, _Rendered]:
        with self._lock:
            known = {
                message_id: rendered
                for message_id in message_ids
                if (rendered := self._rendered.get(message_id))
            }
            for message_id in known:
                self._rendered.move_to_end(message_id)
        return known

    def _remember(self, fresh: dict[int, _Rendered]) -> None:
        with self._lock:
            for message_id, rendered in fresh.items():
                if message_id not in self._rendered:
                    self._rendered[message_id] = rendered
                    self._bytes += rendered.size
            while self._bytes > _REMEMBERED_BYTES:
                _, oldest = self._rendered.popitem(last=False)
                self._bytes -= oldest.size


def _message(sent: bytes) -> dict[str, Any]:
    return shapes.wire_form(body_of(sent))


def _encoded(message: dict[str, Any]) -> bytes | None:
    """Return JSON that decodes to the very message, None where there is none (surrogates)."""
    try:
        encoded = msgspec.json.encode(message)
        return encoded if msgspec.json.decode(encoded) == message else None
    except (ValueError, RecursionError):
        return None


def _piece(
    rendered: _Rendered, message: dict[str, Any], message_id: int, ordinal: int, opener: int
) -> Piece:
    return Piece(
        ordinal=ordinal,
        opener=opener,
        item_id=f"msg_{message_id}",
        message=message,
        tokens=rendered.tokens,
        digest=rendered.digest,
        calls=rendered.calls,
        answers=rendered.answers,
        unnamed=rendered.unnamed,
    )
