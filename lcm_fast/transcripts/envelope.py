"""What one object of a session file is: an entry, the message it carries, its place among the
others.

Pure functions over decoded objects; must not read files (spec: storage 3.1, session formats).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..types import SessionEntry
from .jsonl import FoundObject, Piece, leading_blanks, parse_objects
from .leaf_path import Link

__all__ = ["body_of", "entry_of", "links_of", "message_of", "text_at"]

# OpenAI Responses items that are messages without having a role.
_RESPONSES_ITEMS = frozenset({"function_call", "function_call_output", "reasoning"})


def message_of(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the message an object carries or is; an entry of another type carries none.

    >>> message_of({"type": "message", "message": {"role": "user"}})
    {'role': 'user'}
    >>> message_of({"type": "custom", "message": {"role": "user"}}) is None
    True
    """
    kind = value.get("type")
    message = value.get("message")
    if isinstance(message, dict):
        return message if kind in (None, "message") else None
    if isinstance(value.get("role"), str) or _is_responses_item(kind):
        return value
    return None


def body_of(raw: bytes) -> dict[str, Any]:
    """Return the message in the bytes of one object that was read as a message before."""
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        value = parse_objects(raw, 0)[0][0].value
    return message_of(value) or value


def _is_responses_item(kind: object) -> bool:
    return isinstance(kind, str) and kind in _RESPONSES_ITEMS


def text_at(value: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first non-empty string under one of the keys."""
    for key in keys:
        text = value.get(key)
        if isinstance(text, str) and text:
            return text
    return None


def entry_of(found: FoundObject, on_path: frozenset[int] | None) -> SessionEntry:
    """Make the entry of an object.

    Parameters
    ----------
    found
        The object. One that is a message itself has no envelope, hence no entry id.
    on_path
        Offsets of the records on the leaf's path; None when all are.
    """
    value = found.value
    message = message_of(value)
    timestamp = text_at(value, "timestamp")
    if message is value:
        return SessionEntry("message", found.raw, found.offset, None, None, timestamp, message)
    kind = "message" if message is not None else text_at(value, "type") or "unknown"
    entry_id = text_at(value, "id", "uuid")
    is_record = entry_id is not None and kind != "session"
    return SessionEntry(
        kind,
        found.raw,
        found.offset,
        entry_id,
        text_at(value, "parentId", "parentUuid"),
        timestamp,
        message,
        on_leaf_path=on_path is None or not is_record or found.offset in on_path,
    )


_Parent = str | msgspec.UnsetType | None


class _Envelope(msgspec.Struct):
    """The fields that place a record; decoding these alone skips the content."""

    type: str | None = None
    role: str | None = None
    id: str | None = None
    uuid: str | None = None
    parent_id: _Parent = msgspec.field(default=msgspec.UNSET, name="parentId")
    parent_uuid: _Parent = msgspec.field(default=msgspec.UNSET, name="parentUuid")


_decode_envelope = msgspec.json.Decoder(_Envelope).decode


def links_of(piece: Piece) -> Iterator[Link]:
    """Yield the links of the records in a piece; the session header is none.

    Decodes the envelope alone where that tells all there is to know.
    """
    if piece.data is None:
        return
    try:
        envelope = _decode_envelope(piece.data)
    except (ValueError, RecursionError):
        yield from _links_of_objects(piece)
        return
    if envelope.type == "session":
        return
    entry_id = envelope.id or envelope.uuid
    if not entry_id or envelope.role is not None or _is_responses_item(envelope.type):
        yield from _links_of_objects(piece)
        return
    parents = (envelope.parent_id, envelope.parent_uuid)
    named = [parent for parent in parents if parent is not msgspec.UNSET]
    parent_id = next((parent for parent in named if parent), None)
    offset = piece.offset + leading_blanks(piece.data)
    yield Link(offset, entry_id, parent_id, bool(named))


def _links_of_objects(piece: Piece) -> Iterator[Link]:
    found, rest = parse_objects(piece.data or b"", piece.offset)
    if rest and not piece.terminated:
        return
    for one in found:
        entry = entry_of(one, None)
        if entry.entry_id is not None and entry.type != "session":
            names_parent = "parentId" in one.value or "parentUuid" in one.value
            yield Link(one.offset, entry.entry_id, entry.parent_id, names_parent)
        elif entry.message is not None:
            yield Link(one.offset, None, None, False)
