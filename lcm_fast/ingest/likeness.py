"""When two faces of a message are one: what it says, and forms of it that stand at its place.

Hosts space texts otherwise, wrap them, mask secrets and clear old outputs. Pure functions; the
caller knows that the two stand at the same place of a transcript (spec: storage 2.6, 2.8, 2.11;
decision 11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..transcripts import shapes
from ..types import Role
from .preamble import canonical_content, is_decorated_face, matches_body

__all__ = ["identity_text", "is_revision"]

_SPACES = re.compile(" {2,}")
_MASK = re.compile(
    r"\*{3,}|•{3,}|\u2026{2,}|\[REDACTED[^\]\n]{0,60}\]|\[redacted[^\]\n]{0,60}\]|<redacted>"
)
_CLEARED = re.compile(
    r"\b(?:cleared|omitted|truncated|pruned|removed|elided|compacted|deleted|hidden|dropped)\b"
    r"|^\s*\[[^\]\n]*\]\s*$|\[LCM (?:Tool Output|File|Raw Payload): ",
    re.IGNORECASE,
)
_CUT = re.compile(r"\.{3}|…|\[[^\]\n]{0,80}\]|<[^>\n]{0,80}>")
_MOST_PLACEHOLDER_CHARACTERS = 200
_LEAST_KEPT_CHARACTERS = 4
_MIRROR_MODEL = "delivery-mirror"


def identity_text(role: str, content: str) -> str:
    """Return what is equal for two faces of one message; nearly always the very text given.

    Of a user's text: volatile metadata left out, runs of spaces as one, blank edges trimmed.
    """
    if role != "user":
        return content
    text = canonical_content(role, content)
    if "  " in text:
        text = _SPACES.sub(" ", text)
    return text.strip()


def is_revision(stored: Mapping[str, Any], incoming: Mapping[str, Any]) -> str | None:
    """Return in which way a message is another form of a stored one at its place.

    Returns
    -------
    str or None
        ``"metadata"``, ``"whitespace"``, ``"decorated"``, ``"redacted"``, ``"pruned"`` or
        ``"mirror"``; None when the two are different messages.
    """
    role = shapes.role_of(stored)
    if role is None or role != shapes.role_of(incoming):
        return None
    old, new = shapes.content_of(stored), shapes.content_of(incoming)
    if _MIRROR_MODEL in (stored.get("model"), incoming.get("model")):
        return "mirror" if role == "assistant" and old.strip() and old == new else None
    answers = shapes.tool_answers(stored)
    is_one_exchange = answers == shapes.tool_answers(incoming) and shapes.tool_calls(
        stored
    ) == shapes.tool_calls(incoming)
    if not is_one_exchange:
        return None
    if old == new:
        return "metadata" if old.strip() or answers else None
    return _change_of_text(role, old, new, is_result=role == "tool" and bool(answers))


def _change_of_text(role: Role, old: str, new: str, *, is_result: bool) -> str | None:
    if role == "user" and identity_text(role, old) == identity_text(role, new):
        return "whitespace"
    if role == "user" and (_is_wrapped(old, new) or _is_wrapped(new, old)):
        return "decorated"
    if _is_masked(old, new) or _is_masked(new, old):
        return "redacted"
    return "pruned" if is_result and _is_cleared(old, new) else None


def _is_wrapped(live: str, bare: str) -> bool:
    return matches_body(live, bare) or is_decorated_face(live, bare)


def _is_masked(masked: str, whole: str) -> bool:
    """Tell whether a text is another with spans masked: what is left stands in it, in order.

    Something must be left: a text that is nothing but a mask could be any other.
    """
    parts = _MASK.split(masked)
    if len(parts) < 2 or sum(len(part.strip()) for part in parts) < _LEAST_KEPT_CHARACTERS:
        return False
    first, *middle, last = parts
    if not (whole.startswith(first) and whole.endswith(last)):
        return False
    at, end = len(first), len(whole) - len(last)
    for part in middle:
        found = whole.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


def _is_cleared(old: str, new: str) -> bool:
    """Tell whether one result is a placeholder for the other, or a piece of it."""
    return _stands_for(new, old) or _stands_for(old, new)


def _stands_for(short: str, whole: str) -> bool:
    if len(short) <= _MOST_PLACEHOLDER_CHARACTERS and _CLEARED.search(short):
        return True
    if short.startswith("[LCM "):
        return _CLEARED.search(short[:_MOST_PLACEHOLDER_CHARACTERS]) is not None
    return 0 < len(short) < len(whole) and _is_cut(short, whole)


def _is_cut(short: str, whole: str) -> bool:
    """Tell whether a text is head and tail of another around a mark where it was cut."""
    for mark in _CUT.finditer(short):
        head, tail = short[: mark.start()].rstrip(), short[mark.end() :].lstrip()
        is_piece = whole.startswith(head) and whole.endswith(tail)
        if is_piece and len(head) + len(tail) >= _LEAST_KEPT_CHARACTERS:
            return True
    return False
