"""Tell what of a host's live messages is stored; stores nothing (spec T)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..store import Batch, Conversation
from .normalise import message_from_object, revision_of
from .services import Services

__all__ = ["recognise_live"]


def recognise_live(
    services: Services, values: Iterable[Any], conversation: Conversation | None
) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """Return the live messages that a model is sent, and by position the ids of those stored.

    Raises
    ------
    MessageError
        Naming index and field of a malformed message.
    """
    messages = [
        message
        for index, value in enumerate(values)
        if not (message := message_from_object(value, index, services.count_tokens)).excluded
    ]
    bodies = [message.body for message in messages]
    if conversation is None or not messages:
        return bodies, {}
    batch = Batch(messages=messages, received_at=services.now(), revision_of=revision_of)
    return bodies, services.store.rows_of_live(conversation.conversation_id, batch)
