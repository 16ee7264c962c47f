"""What a message of any known shape is made of: texts, pictures, files, calls, results, reasoning.

Pure functions over decoded messages; what no shape knows becomes text, and never vanishes (spec:
storage 2.2 to 2.7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .envelope import text_at
from .kinds import CALL_TYPES, PICTURE_TYPES, REASONING_TYPES, RESULT_TYPES, is_call, is_result
from .message_text import as_json
from .payloads import File, Picture, file_of, picture_of
from .shapes import CALL_ID_KEYS, role_of, tool_name_of

__all__ = ["Call", "File", "Part", "Picture", "Reasoning", "Result", "Text", "parts_of"]

Speaker = Literal["system", "user", "assistant"]

_TEXT_TYPES = ("text", "input_text", "output_text", "summary_text")
_FILE_TYPES = ("document", "file", "input_file")


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; arguments are what the message has: an object, or JSON in a string."""

    call_id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool call gave."""

    call_id: str
    name: str
    parts: tuple[Text | Picture | File, ...]
    is_error: bool


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Reasoning as its model wrote it; `provider` is the model's, where the message names it."""

    block: Mapping[str, Any]
    provider: str


Part = Text | Picture | File | Call | Result | Reasoning


def parts_of(body: Mapping[str, Any]) -> tuple[Speaker, list[Part]]:
    """Return who speaks in a message, and its parts in order; blank texts are left out."""
    role = role_of(body)
    speaker: Speaker = "user" if role is None or role == "tool" else role
    if body.get("role") in ("toolResult", "tool", "function"):
        return speaker, [_result(body)]
    return speaker, list(_parts(body))


def _parts(body: Mapping[str, Any]) -> Iterator[Part]:
    provider = str(body.get("provider") or body.get("api") or "")
    if body.get("type") in (*CALL_TYPES, *RESULT_TYPES, *REASONING_TYPES):
        yield from _block_parts(body, provider)
        return
    thought = body.get("reasoning_content")
    if isinstance(thought, str) and thought.strip():
        yield Reasoning({"type": "reasoning_content", "text": thought}, provider)
    yield from _content_parts(body.get("content"), provider)
    yield from _texts(body.get("refusal"))
    calls = body.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield _call(call)


def _content_parts(content: Any, provider: str = "") -> Iterator[Part]:
    if isinstance(content, list):
        for block in content:
            yield from _block_parts(block, provider)
    elif isinstance(content, Mapping):
        yield from _block_parts(content, provider)
    else:
        yield from _texts(content)


def _block_parts(block: Any, provider: str) -> Iterator[Part]:
    if not isinstance(block, Mapping):
        yield from _texts(block)
        return
    kind = block.get("type")
    if kind in _TEXT_TYPES:
        yield from _texts(block.get("text"))
    elif is_call(block):
        yield _call(block)
    elif is_result(block):
        yield _result(block)
    elif kind in REASONING_TYPES:
        yield Reasoning(block, provider)
    elif kind in PICTURE_TYPES and (picture := picture_of(block)) is not None:
        yield picture
    elif kind in _FILE_TYPES and (file := file_of(block)) is not None:
        yield file
    elif kind == "refusal":
        yield from _texts(block.get("refusal"))
    else:
        yield Text(as_json(block))


def _texts(value: Any) -> Iterator[Text]:
    if value is not None:
        text = value if isinstance(value, str) else as_json(value)
        if text.strip():
            yield Text(text)


def _call(carrier: Mapping[str, Any]) -> Call:
    function = carrier.get("function")
    named = function if isinstance(function, dict) else carrier
    return Call(
        call_id=text_at(carrier, "call_id", "id") or "",
        name=text_at(named, "name") or "unknown",
        arguments=named.get("arguments", named.get("input")),
    )


def _result(carrier: Mapping[str, Any]) -> Result:
    content = carrier.get("content", carrier.get("output"))
    parts = tuple(
        part for part in _content_parts(content) if isinstance(part, Text | Picture | File)
    )
    return Result(
        call_id=text_at(carrier, *CALL_ID_KEYS) or "",
        name=tool_name_of(carrier) or "unknown",
        parts=parts,
        is_error=bool(carrier.get("isError") or carrier.get("is_error")),
    )
