"""A provider's own name of an event: what no other message of a conversation can have.

Only ids that cannot be guessed or counted count: models use short call ids again (spec: storage
2.7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..transcripts import shapes, text_at
from ..transcripts.kinds import is_result

__all__ = ["stable_event_key"]

_UNGUESSABLE_CALL_ID = re.compile(r"(toolu_|call_)[A-Za-z0-9]{12,}")


def stable_event_key(body: Mapping[str, Any]) -> str | None:
    """Return the key of an assistant's response or of a tool's result, None where there is none.

    >>> stable_event_key({"role": "assistant", "responseId": "resp_1"})
    'assistant-response:resp_1'
    >>> stable_event_key({"role": "tool", "tool_call_id": "exec:101", "content": ""}) is None
    True
    """
    if body.get("role") == "assistant":
        response = text_at(body, "responseId", "response_id")
        return None if response is None else f"assistant-response:{response}"
    answers = shapes.tool_answers(body)
    if len(answers) != 1 or _UNGUESSABLE_CALL_ID.fullmatch(answers[0]) is None:
        return None
    content = body.get("content")
    if isinstance(content, list) and sum(map(is_result, content)) > 1:
        return None
    return f"tool-result:{answers[0]}"
