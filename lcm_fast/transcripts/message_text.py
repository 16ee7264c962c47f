"""The text of a message: what people search and summaries are made from.

Reasoning, tool calls and pictures have no text of their own here; they stay in the record. Must not
touch files or the database (spec: storage 2.3; the text of tool results is kept on purpose).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from .kinds import CALL_TYPES, PICTURE_TYPES, REASONING_TYPES, RESULT_TYPES

__all__ = ["as_json", "content_of"]

_TEXT_KEYS = ("text", "transcript", "transcription", "message", "summary")
_LIST_KEYS = ("segments", "utterances", "paragraphs", "alternatives", "words", "items", "results")
_NESTED_KEYS = ("content", "output", "result", "payload", "data", "value")
_MAX_DEPTH = 6
_UNREAD_TYPES = (*CALL_TYPES, *RESULT_TYPES, *REASONING_TYPES, *PICTURE_TYPES, "text")

_decode = msgspec.json.decode


def content_of(body: Mapping[str, Any]) -> str:
    """Return the text of a message (spec storage 2.3), with tool results' text kept.

    >>> content_of({"content": [{"type": "text", "text": "see"}, {"type": "image"}]})
    'see'
    >>> content_of({"role": "bashExecution", "command": "ls", "output": "a"})
    '$ ls\\na'
    """
    if "content" not in body:
        return _text_of_output(body)
    content = body["content"]
    text = _text_of_one_block(content) or _structured_text(content, 0)
    if text is not None:
        return text
    if content is None:
        refusal = body.get("refusal")
        return refusal if isinstance(refusal, str) else ""
    return "" if _only_unread_blocks(content) else as_json(content)


def _only_unread_blocks(content: Any) -> bool:
    return isinstance(content, list) and all(
        isinstance(block, dict) and block.get("type") in _UNREAD_TYPES for block in content
    )


def as_json(value: Any) -> str:
    """Return compact JSON, keys in their order."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text_of_output(body: Mapping[str, Any]) -> str:
    output = body.get("output")
    if output is None:
        return ""
    if body.get("type") in RESULT_TYPES:
        return _structured_text(output, 0) or ""
    return f"$ {body.get('command') or ''}\n{output}"


def _text_of_one_block(content: Any) -> str | None:
    """Return the text of content that is one text block, by far the commonest list."""
    if type(content) is list and len(content) == 1:
        block = content[0]
        if type(block) is dict and block.get("type") == "text":
            text = block.get("text")
            if type(text) is str and text and not text.isspace():
                return text
    return None


def _structured_text(value: Any, depth: int) -> str | None:
    """Return the text inside a value, or None when it holds none (spec storage 2.3.1 to 2.3.4)."""
    if value is None or depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        return _text_of_string(value, depth)
    if isinstance(value, list):
        return _join_texts(value, depth)
    if isinstance(value, dict):
        return _text_of_object(value, depth)
    return None


def _text_of_string(value: str, depth: int) -> str:
    stripped = value.strip()
    if stripped[:1] + stripped[-1:] in ("{}", "[]"):
        try:
            inner = _structured_text(_decode(stripped), depth + 1)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return value
        if inner:
            return inner
    return value


def _text_of_object(value: Mapping[str, Any], depth: int) -> str | None:
    kind = value.get("type")
    if kind in REASONING_TYPES or kind in CALL_TYPES or kind in PICTURE_TYPES:
        return None
    for key in _TEXT_KEYS:
        text = value.get(key)
        if isinstance(text, str) and text.strip():
            return text
    for key in _LIST_KEYS:
        items = value.get(key)
        if isinstance(items, list) and (joined := _join_texts(items, depth)):
            return joined
    for key in _NESTED_KEYS:
        nested = _structured_text(value.get(key), depth + 1)
        if nested and nested.strip():
            return nested
    return None


def _join_texts(items: list[Any], depth: int) -> str | None:
    texts = [text for item in items if (text := _structured_text(item, depth + 1)) and text.strip()]
    return "\n".join(texts) if texts else None
