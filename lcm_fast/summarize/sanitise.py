"""Cleans what a summariser reads: media, structured content, reasoning and injected blocks.

Carries rules K1 to K6 of the compaction behaviour with decision 8: structured content of an unknown
kind is rendered compactly instead of vanishing. The stored record is never touched. All work is
linear in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .source_text import one_line
from .tagged_blocks import strip_injected_context, strip_reasoning

__all__ = [
    "MEDIA_ATTACHMENT",
    "MEDIA_OMITTED",
    "clean_text",
    "extract_text",
    "note_media",
    "render_tool_call",
    "sanitise_message",
    "sanitise_summary",
]

MEDIA_OMITTED = "[embedded media omitted]"
MEDIA_ATTACHMENT = "[Media attachment]"
_WITH_MEDIA = "[with media attachment]"

# A payload may be wrapped at 76 columns; a line of plain words after it must survive, so a
# continuation line has to be long, or short and padded.
_DATA_URL = re.compile(
    r"data:[\w.+-]{1,100}/[\w.+-]{1,100}(?:;[\w.+=-]{1,100}){0,8}?;base64,[A-Za-z0-9+/_-]*={0,2}"
    r"(?:\r?\n[A-Za-z0-9+/_-]{40,}={0,2})*(?:\r?\n[A-Za-z0-9+/_-]{1,80}={1,2}(?=\s|$))?",
    re.IGNORECASE | re.ASCII,
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_BINARY_LINE_LENGTH = 256

_MAX_DEPTH = 8
_LONGEST_RECORD_LINE = 120
_REASONING_TYPES = frozenset(["reasoning", "thinking", "redacted_thinking"])
_MEDIA_TYPES = frozenset(["file", "image", "snapshot"])
_CALL_TYPES = frozenset(["toolCall", "tool_call", "tool_use", "toolUse", "function_call"])
_TEXT_KEYS = ("text", "caption", "alt", "title", "summary")
_NESTED_KEYS = (
    *("value", "content", "parts", "items", "message", "messages", "input", "arguments", "output"),
    *("result", "results", "data", "query", "command", "error", "stdout", "stderr"),
)


class _Number(str):
    """A JSON number or constant with its digits as they were written."""

    __slots__ = ()


def sanitise_message(text: str, *, injected_tags: Sequence[str] = ()) -> str:
    """Return the part of a message's content that belongs in a summariser's input.

    Parameters
    ----------
    text
        The stored content: plain text, or JSON of structured content.
    injected_tags
        Names of the blocks that memory plug-ins put into messages; these blocks are removed.

    Returns
    -------
    str
        May be empty.

    Complexity
    ----------
    Linear in the length of the text.
    """
    extracted = extract_text(text)
    stripped = strip_injected_context(extracted, injected_tags)
    return extracted if stripped == extracted else extract_text(stripped)


def sanitise_summary(text: str) -> str:
    """Return a stored summary without any reasoning a model has left in it; may be empty."""
    return strip_reasoning(extract_text(text))


def clean_text(text: str) -> str:
    """Remove media payloads, media path lines and blank lines.

    Examples
    --------
    >>> clean_text("see data:image/png;base64,AAAA then more words. tail")
    'see [embedded media omitted] then more words. tail'
    """
    if ";base64," in text.casefold():
        text = _DATA_URL.sub(MEDIA_OMITTED, text)
    if "\n" not in text and "MEDIA:/" not in text and len(text) < _BINARY_LINE_LENGTH:
        return text.strip()
    lines = [line for part in text.split("\n") if (line := part.rstrip())]
    if "MEDIA:/" in text or any(len(line) >= _BINARY_LINE_LENGTH for line in lines):
        lines = [line for line in lines if not _is_payload(line)]
    return "\n".join(lines).strip()


def extract_text(content: str) -> str:
    """Return the readable text of a content string, looking inside JSON.

    Examples
    --------
    >>> extract_text('{"result": {"status": "ok", "text": "hi"}}')
    'hi'
    >>> extract_text('{"status": "ok", "count": 3}')
    'status: ok, count: 3'
    """
    trimmed = content.strip()
    if trimmed[:1] + trimmed[-1:] not in ("{}", "[]"):
        return clean_text(content)
    try:
        value = json.loads(
            trimmed, parse_int=_Number, parse_float=_Number, parse_constant=_Number, strict=False
        )
    except (ValueError, RecursionError):
        return clean_text(content)
    if isinstance(value, list) and not any(type(entry) in (dict, list, str) for entry in value):
        return _compact(value, 0) if value else ""
    return "\n".join(_fragments(value, 0))


def note_media(text: str) -> str:
    """Return a message's sanitised text with the note that media came with it.

    Examples
    --------
    >>> note_media("Look at this!")
    'Look at this! [with media attachment]'
    """
    if not text:
        return MEDIA_ATTACHMENT
    return text if _WITH_MEDIA in text else f"{text} {_WITH_MEDIA}"


def render_tool_call(name: str, arguments: Any) -> str:
    """Render a tool call for a summariser: the tool, then each argument on its own line.

    Parameters
    ----------
    name
        The tool's name.
    arguments
        Decoded arguments, or their JSON text.

    Examples
    --------
    >>> print(render_tool_call("exec", {"command": "ls -la", "timeout": 30}))
    Tool input (exec):
    command: ls -la
    timeout: 30
    """
    label = f"Tool input ({one_line(name)}):"
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, parse_float=_Number, parse_int=_Number)
        except (ValueError, RecursionError):
            return f"{label}\n{clean_text(arguments)}".rstrip()
    if not isinstance(arguments, Mapping):
        arguments = {} if arguments is None else {"input": arguments}
    lines = (clean_text(f"{key}: {_compact(value, 0)}") for key, value in arguments.items())
    return "\n".join([label, *lines])


def _is_payload(line: str) -> bool:
    stripped = line.strip()
    if stripped.startswith("MEDIA:/"):
        return True
    if len(stripped) < _BINARY_LINE_LENGTH:
        return False
    packed = "".join(stripped.split("\t"))
    return (
        len(packed) % 4 == 0
        and _BASE64.fullmatch(packed) is not None
        and any(map(str.isdigit, packed))
        and any(map(str.isupper, packed))
        and any(map(str.islower, packed))
    )


def _fragments(value: Any, depth: int) -> Iterator[str]:
    """Yield the readable strings inside decoded JSON, in the order a reader expects them."""
    if depth > _MAX_DEPTH:
        yield _compact(value, 0)
    elif isinstance(value, dict):
        yield from _object_fragments(value, depth)
    elif isinstance(value, list):
        for entry in value:
            yield from _fragments(entry, depth + 1)
    elif isinstance(value, str) and not isinstance(value, _Number):
        cleaned = clean_text(value)
        if cleaned:
            yield cleaned


def _object_fragments(value: dict[str, Any], depth: int) -> Iterator[str]:
    kinds = {kind for key in ("type", "rawType") if isinstance(kind := value.get(key), str)}
    if kinds & _REASONING_TYPES:
        return
    if kinds & _CALL_TYPES and isinstance(name := value.get("name"), str):
        yield render_tool_call(name, value.get("arguments", value.get("input")))
        return
    found = False
    for fragment in _known_fragments(value, bool(kinds & _MEDIA_TYPES), depth):
        found = True
        yield fragment
    if not found and not kinds & _MEDIA_TYPES and (rest := _unknown_object(value)):
        yield rest


def _known_fragments(value: dict[str, Any], is_media: bool, depth: int) -> Iterator[str]:
    for key in _TEXT_KEYS:
        if isinstance(value.get(key), str) and (cleaned := clean_text(value[key])):
            yield cleaned
    if is_media:
        return
    for key in _NESTED_KEYS:
        if key in value:
            yield from _fragments(value[key], depth + 1)


def _unknown_object(value: dict[str, Any]) -> str:
    """Render an object in which no known key holds text."""
    has_known = any(key in value for key in (*_TEXT_KEYS, *_NESTED_KEYS))
    shown = {
        key: entry
        for key, entry in value.items()
        if entry != "" and not (has_known and key in ("type", "rawType"))
    }
    return _fields(shown, 0)


def _fields(value: Mapping[str, Any], depth: int) -> str:
    return _list_of([f"{key}: {_compact(entry, depth + 1)}" for key, entry in value.items()])


def _list_of(parts: list[str]) -> str:
    """Join parts on one line when they are short, else line by line."""
    is_short = sum(map(len, parts)) <= _LONGEST_RECORD_LINE and "\n" not in "".join(parts)
    return (", " if is_short else "\n").join(parts)


def _compact(value: Any, depth: int) -> str:
    """Render decoded JSON without quotes and escapes; nested too deep, it is only hinted at."""
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return f"{{{_fields(value, depth)}}}" if depth < _MAX_DEPTH else "{…}"
    if isinstance(value, (list, tuple)):
        if depth >= _MAX_DEPTH:
            return "[…]"
        return f"[{_list_of([_compact(entry, depth + 1) for entry in value])}]"
    return str(value)
