"""A provider's own name of an event: what no other message of a conversation can have.

Only ids that cannot be guessed or counted count: models use short call ids again. Pure; must not
ask the database whether a key is taken (spec: storage 2.7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..transcripts import shapes, text_at
from ..transcripts.kinds import is_result

__all__ = ["stable_event_key"]

_UNGUESSABLE_CALL_ID = re.compile(r"(?:toolu_|call_)[A-Za-z0-9]{12,}")


def stable_event_key(body: Mapping[str, Any]) -> str | None:
    """Return the key of an assistant's response or of a tool's result, None where there is none.

    A result has one when it answers a single call, and all places that name the call agree. What a
    user says has none, even beside a result.

    >>> stable_event_key({"role": "assistant", "responseId": "resp_1"})
    'assistant-response:resp_1'
    >>> stable_event_key({"role": "tool", "tool_call_id": "exec:101", "content": ""}) is None
    True
    """
    role = shapes.role_of(body)
    if role == "assistant":
        response = text_at(body, "responseId", "response_id")
        is_id = response is not None and response.isascii() and not response.isspace()
        return f"assistant-response:{response}" if is_id else None
    if role == "tool":
        call_id = _only_call_id(body)
        if call_id is not None and _UNGUESSABLE_CALL_ID.fullmatch(call_id):
            return f"tool-result:{call_id}"
    return None


def _only_call_id(body: Mapping[str, Any]) -> str | None:
    """Return the id of the one call that a result answers, None when there are two or none."""
    content = body.get("content")
    blocks = list(filter(is_result, content)) if isinstance(content, list) else []
    if len(blocks) > 1:
        return None
    named = {text_at(carrier, *shapes.CALL_ID_KEYS, "id") for carrier in (body, *blocks)}
    named.discard(None)
    return named.pop() if len(named) == 1 else None
