"""A host's copy of a reply it delivered, written right behind the reply: stored, and shown once.

The reply carries its reasoning, the copy does not; so the copy is kept out of the view (spec:
storage 2.8 step 10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..transcripts.kinds import REASONING_TYPES
from ..types import Message
from .likeness import is_delivery_mirror, is_revision

__all__ = ["DELIVERY_MIRROR", "without_mirrors"]

DELIVERY_MIRROR = "delivery-mirror"


def without_mirrors(
    messages: Sequence[Message], before: Mapping[str, Any] | None = None
) -> list[Message]:
    """Return messages with mirrors of the reply before them excluded from the view.

    Parameters
    ----------
    before
        The message that stands before the first, where known.
    """
    found = []
    previous = before
    for message in messages:
        shown = message
        if is_delivery_mirror(message.body) and previous is not None:
            is_copy = _has_reasoning(previous) and is_revision(previous, message.body) == "mirror"
            if is_copy and message.excluded is None:
                shown = msgspec.structs.replace(message, excluded=DELIVERY_MIRROR)
        found.append(shown)
        previous = message.body
    return found


def _has_reasoning(body: Mapping[str, Any]) -> bool:
    content = body.get("content")
    blocks = content if isinstance(content, list) else ()
    return bool(body.get("reasoning_content")) or any(
        isinstance(block, dict) and block.get("type") in REASONING_TYPES for block in blocks
    )
