"""Turn a message as received into the record's `Message`: role, text, counts, identity, times.

Pure functions; all of it runs on the caller's thread, outside any lock. Must not touch the database
(spec: storage 2.2 to 2.6; decisions 4 and 11).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from ..errors import MessageError
from ..store import ABANDONED_BRANCH
from ..transcripts import body_of, message_of, shapes, text_at
from ..types import (
    ENVELOPE_TIME,
    OWN_TIME,
    UNTIMED,
    LargeFile,
    Message,
    Role,
    SessionEntry,
    ToolCall,
)
from .event_keys import stable_event_key
from .likeness import identity_text, is_revision

__all__ = [
    "EMPTY",
    "HOST_ONLY",
    "digest",
    "iso_time",
    "message_from_entry",
    "message_from_object",
    "raw_of",
    "revision_of",
    "storable",
]

EMPTY = "empty"
HOST_ONLY = "host-only"

CountTokens = Callable[[str], int]


class Show(Protocol):
    """Gives large payloads files of their own."""

    def __call__(
        self, body: dict[str, Any], raw: bytes, content: str, calls: tuple[ToolCall, ...]
    ) -> tuple[dict[str, Any], tuple[LargeFile, ...]]:
        """Return a message as it is shown, itself where that is no other, and its files."""
        ...


# A message with no other field that a model reads says its text and nothing else.
_TEXT_FACE_KEYS = frozenset(
    {"role", "content", "type", "name", "toolName", "isError", "is_error", *shapes.CALL_ID_KEYS}
)
_TEXT_BLOCK_KEYS = frozenset({"type", "text"})
# Roles of records that hosts keep among messages for themselves.
_HOST_ROLES = ("custom", "compactionSummary", "branchSummary")
_TIME_KEYS = ("timestamp", "createdAt", "created_at")
# Numbers below are seconds, above milliseconds: 1e11 ms is the year 1973.
_FIRST_MILLISECOND_VALUE = 1e11
_DAY_MS = 86_400_000


def message_from_entry(
    entry: SessionEntry, count_tokens: CountTokens, show: Show | None = None
) -> Message | None:
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
            show,
            entry_id=entry.entry_id,
            parent_id=entry.parent_id,
            envelope_time=entry.timestamp,
            excluded=None if entry.on_leaf_path else ABANDONED_BRANCH,
        )
    except RecursionError:
        return None


def message_from_object(
    value: Any, index: int, count_tokens: CountTokens, show: Show | None = None
) -> Message:
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
            show,
            entry_id=text_at(envelope, "id", "uuid"),
            parent_id=text_at(envelope, "parentId", "parentUuid"),
            envelope_time=envelope.get("timestamp"),
            excluded=None,
        )
    except (TypeError, RecursionError) as error:
        raise _not_json(index, error) from error
    if message is None:
        message = _host_only(body, raw)
    if message is None:
        raise MessageError(
            f"messages[{index}].role is {body.get('role')!r}",
            hint="a role is one of system, developer, user, assistant, tool, toolResult",
        )
    return message


def revision_of(raw: bytes, message: Message) -> str | None:
    """Return in which way a message is another form of stored bytes at its place.

    "" when it is the same throughout, None when it is another message.
    """
    stored = body_of(raw)
    kind = is_revision(stored, message.body)
    if kind is None and message.role == "user" and _time(stored, None) == _own_time(message):
        # Hosts put recalled memory and other blocks around the words of a live message.
        texts = shapes.content_of(stored).strip(), shapes.content_of(message.body).strip()
        shorter, longer = sorted(texts, key=len)
        return "decorated" if shorter and shorter in longer else None
    return kind


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
            return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
        if isinstance(value, int | float) and not isinstance(value, bool):
            milliseconds = value * 1000 if value < _FIRST_MILLISECOND_VALUE else value
            day, rest = divmod(int(milliseconds), _DAY_MS)
            minute, in_minute = divmod(rest, 60_000)
            time = f"{minute // 60:02d}:{minute % 60:02d}:{in_minute // 1000:02d}"
            return f"{_day_text(day)}T{time}.{in_minute % 1000:03d}Z"
    except (ValueError, OverflowError, OSError):
        pass
    return None


@lru_cache(maxsize=1024)
def _day_text(day: int) -> str:
    """Return a day since 1970 in UTC; the messages of a session share few."""
    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()


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
    show: Show | None,
    *,
    entry_id: str | None,
    parent_id: str | None,
    envelope_time: Any,
    excluded: str | None,
) -> Message | None:
    role = shapes.role_of(body)
    if role is None:
        return None
    face, payload_tokens = shapes.model_face(body)
    encoded = shapes.encode_face(face)
    answers = tuple(map(storable, shapes.tool_answers(body)))
    created_at, timed = _time(body, envelope_time)
    identity = _identity(role, face, encoded, answers)
    calls = tuple(map(_storable_call, shapes.tool_calls(body)))
    content = shapes.content_of(body)
    shown, files = show(body, raw, content, calls) if show is not None else (body, ())
    if shown is not body:
        content = shapes.content_of(shown)
        face, payload_tokens = shapes.model_face(shown)
        encoded = shapes.encode_face(face)
    return Message(
        role=role,
        content=storable(content),
        body=body,
        raw=raw,
        token_count=shapes.content_token_count(face, role, count_tokens) + payload_tokens,
        wire_tokens=count_tokens(encoded.decode("utf-8", "surrogatepass")) + payload_tokens,
        identity=identity,
        created_at=created_at,
        timed=timed,
        entry_id=entry_id and storable(entry_id),
        parent_id=parent_id and storable(parent_id),
        event_key=stable_event_key(body),
        calls=calls,
        answers=answers,
        excluded=excluded or (EMPTY if shapes.is_empty(body) else None),
        files=files,
        shown=None if shown is body else raw_of(shown, 0),
    )


def _host_only(body: dict[str, Any], raw: bytes) -> Message | None:
    """Return a host's own record, which no model is sent: stored, and kept out of the view."""
    if body.get("role") not in _HOST_ROLES:
        return None
    created_at, timed = _time(body, None)
    return Message(
        role="system",
        content=storable(shapes.content_of(body)),
        body=body,
        raw=raw,
        token_count=0,
        wire_tokens=0,
        identity=digest(b"host", shapes.encode_face(body)),
        created_at=created_at,
        timed=timed,
        excluded=HOST_ONLY,
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


def _identity(
    role: Role, face: Mapping[str, Any], encoded: bytes, answers: tuple[str, ...]
) -> bytes:
    """Return what tells that two messages say the same: text alike in a string or in blocks."""
    content = face.get("content")
    if face.keys() <= _TEXT_FACE_KEYS:
        text = content if isinstance(content, str) else _only_text(content)
        if text is not None:
            said = identity_text(role, text).encode("utf-8", "surrogatepass")
            return digest(role.encode(), "\0".join(answers).encode(), said)
    if role == "user" and isinstance(content, list):
        blocks = [_with_identity_text(block) for block in content]
        if blocks != content:
            encoded = shapes.encode_face({**face, "content": blocks})
    return digest(role.encode(), encoded)


def _only_text(content: Any) -> str | None:
    """Return the text of blocks that are nothing else, or None."""
    if not isinstance(content, list):
        return None
    texts = []
    for block in content:
        if not isinstance(block, dict) or block.keys() != _TEXT_BLOCK_KEYS:
            return None
        texts.append(block["text"])
    return "\n".join(texts) if all(isinstance(text, str) for text in texts) else None


def _with_identity_text(block: Any) -> Any:
    if isinstance(block, dict) and isinstance(text := block.get("text"), str):
        return {**block, "text": identity_text("user", text)}
    return block


def _own_time(message: Message) -> tuple[str | None, int] | None:
    return (message.created_at, OWN_TIME) if message.timed == OWN_TIME else None


def _time(body: Mapping[str, Any], envelope_time: Any) -> tuple[str | None, int]:
    for key in _TIME_KEYS:
        value = body.get(key)
        if value is not None:
            own = iso_time(value)
            if own is not None:
                return own, OWN_TIME
            break
    time = iso_time(envelope_time)
    return time, UNTIMED if time is None else ENVELOPE_TIME
