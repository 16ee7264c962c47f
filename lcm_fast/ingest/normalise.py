"""Turn a message as received into the record's `Message`: role, text, counts, identity, times.

Pure functions; all of it runs on the caller's thread, outside any lock. Must not touch the database
(spec: storage 2.2 to 2.6; decisions 4 and 11).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..errors import MessageError
from ..store import ABANDONED_BRANCH
from ..transcripts import message_of, shapes, text_at
from ..types import Message, SessionEntry, ToolCall

__all__ = [
    "EMPTY",
    "digest",
    "iso_time",
    "message_from_entry",
    "message_from_object",
    "raw_of",
    "storable",
]

EMPTY = "empty"

CountTokens = Callable[[str], int]

_TIME_KEYS = ("timestamp", "createdAt", "created_at")
# Numbers below are seconds, above milliseconds: 1e11 ms is the year 1973.
_FIRST_MILLISECOND_VALUE = 1e11


def message_from_entry(entry: SessionEntry, count_tokens: CountTokens) -> Message | None:
    """Return the message of a session file's entry, or None when no model is sent it.

    One nested too deep to be written as JSON again is sent to none either; it is carried.
    """
    if entry.message is None:
        return None
    try:
        return _message(
            entry.message,
            entry.raw,
            count_tokens,
            entry_id=entry.entry_id,
            parent_id=entry.parent_id,
            envelope_time=entry.timestamp,
            excluded=None if entry.on_leaf_path else ABANDONED_BRANCH,
        )
    except RecursionError:
        return None


def message_from_object(value: Any, index: int, count_tokens: CountTokens) -> Message:
    """Return the message of an object given to the engine: a message, or an entry that carries one.

    Raises
    ------
    MessageError
        Naming the index and the field that cannot be a message's.
    """
    body = _checked(value, index)
    raw = raw_of(value, index)
    envelope = value if body is not value else {}
    try:
        message = _message(
            body,
            raw,
            count_tokens,
            entry_id=text_at(envelope, "id", "uuid"),
            parent_id=text_at(envelope, "parentId", "parentUuid"),
            envelope_time=envelope.get("timestamp"),
            excluded=None,
        )
    except (TypeError, RecursionError) as error:
        raise _not_json(index, error) from error
    if message is None:
        raise MessageError(
            f"messages[{index}].role is {body.get('role')!r}",
            hint="a role is one of system, developer, user, assistant, tool, toolResult",
        )
    return message


def raw_of(value: Mapping[str, Any], index: int) -> bytes:
    """Return an object as compact JSON, keys in their order; lone surrogates become escapes.

    Raises
    ------
    MessageError
        The object holds something JSON has no form for.
    """
    try:
        try:
            return msgspec.json.encode(value)
        except UnicodeEncodeError:
            return json.dumps(value, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(index, error) from error


def iso_time(value: Any) -> str | None:
    """Return a time as UTC, ISO 8601 with milliseconds, or None when it is not a time.

    >>> iso_time(1773937850221)
    '2026-03-19T16:30:50.221Z'
    >>> iso_time("2026-03-19T12:30:50-04:00")
    '2026-03-19T16:30:50.000Z'
    """
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            moment = moment.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value if value < _FIRST_MILLISECOND_VALUE else value / 1000
            moment = datetime.fromtimestamp(seconds, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"


def storable(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 has; the record's bytes keep them.

    >>> storable("a\\ud800b")
    'a\ufffdb'
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def digest(*parts: bytes) -> bytes:
    """Return a 16-byte digest of parts, each set off from the next."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()


def _message(
    body: dict[str, Any],
    raw: bytes,
    count_tokens: CountTokens,
    *,
    entry_id: str | None,
    parent_id: str | None,
    envelope_time: Any,
    excluded: str | None,
) -> Message | None:
    role = shapes.role_of(body)
    if role is None:
        return None
    face, opaque = shapes.model_face(body)
    encoded = shapes.encode_face(face)
    own_time = _own_time(body)
    return Message(
        role=role,
        content=storable(shapes.content_of(body)),
        body=body,
        raw=raw,
        token_count=shapes.content_token_count(face, role, count_tokens)
        + opaque * shapes.OPAQUE_TOKENS,
        wire_tokens=count_tokens(encoded.decode("utf-8", "surrogatepass"))
        + opaque * shapes.OPAQUE_TOKENS,
        identity=digest(role.encode(), encoded, (own_time or "").encode()),
        created_at=own_time or iso_time(envelope_time),
        entry_id=entry_id and storable(entry_id),
        parent_id=parent_id and storable(parent_id),
        calls=tuple(map(_storable_call, shapes.tool_calls(body))),
        answers=tuple(map(storable, shapes.tool_answers(body))),
        excluded=excluded or (EMPTY if shapes.is_empty(body) else None),
    )


def _storable_call(call: ToolCall) -> ToolCall:
    return ToolCall(storable(call.call_id), storable(call.name))


def _not_json(index: int, error: Exception) -> MessageError:
    return MessageError(
        f"messages[{index}] cannot be written as JSON: {error}",
        hint="use strings, numbers, booleans, None, lists and dicts",
    )


def _checked(value: Any, index: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MessageError(
            f"messages[{index}] is {type(value).__name__}, not an object",
            hint='a message is a dict such as {"role": "user", "content": "..."}',
        )
    body = message_of(value)
    if body is None:
        raise MessageError(
            f"messages[{index}] has no role", hint='give "role", or a session entry with "message"'
        )
    if not isinstance(body.get("role", ""), str):
        raise MessageError(f"messages[{index}].role is {body['role']!r}, not a string")
    content = body.get("content")
    if content is not None and not isinstance(content, str | list | dict):
        raise MessageError(
            f"messages[{index}].content is {type(content).__name__}",
            hint="content is a string or a list of blocks",
        )
    return body


def _own_time(body: Mapping[str, Any]) -> str | None:
    for key in _TIME_KEYS:
        value = body.get(key)
        if value is not None:
            return iso_time(value)
    return None
