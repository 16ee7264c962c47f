"""What a summariser is given of stored messages and summaries (spec K4 to K7; decision 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..store import StoredMessage, StoredSummary
from ..summarize import (
    SourceItem,
    note_media,
    render_tool_call,
    sanitise_message,
    sanitise_summary,
    sender_label,
)
from ..transcripts import body_of, shapes

__all__ = ["item_from_message", "item_from_summary"]


def item_from_message(stored: StoredMessage, injected_tags: Sequence[str]) -> SourceItem:
    """Return a message's readable text with its role, time, tool and the calls it makes."""
    body = body_of(stored.sent)
    text = sanitise_message(stored.content, injected_tags=injected_tags)
    if shapes.has_picture(body):
        text = note_media(text)
    made = shapes.call_arguments(body) if stored.role == "assistant" else ()
    calls = [render_tool_call(name, arguments) for name, arguments in made]
    return SourceItem(
        id=f"msg_{stored.message_id}",
        role=stored.role,
        text="\n".join(filter(None, [text, *calls])),
        created_at=stored.created_at,
        sender=_sender(body),
        tool_name=shapes.tool_name_of(body) if stored.role == "tool" else None,
        is_error=bool(body.get("isError") or body.get("is_error")),
    )


def item_from_summary(stored: StoredSummary) -> SourceItem:
    """Return an earlier summary as a source."""
    return SourceItem(
        id=stored.summary_id,
        role="summary",
        text=sanitise_summary(stored.content),
        created_at=stored.earliest_at or stored.created_at,
        latest_at=stored.latest_at or stored.created_at,
    )


def _sender(body: dict[str, Any]) -> str | None:
    sender = body.get("__openclaw")
    if not isinstance(sender, dict):
        return None
    return sender_label(
        *(
            value if isinstance(value := sender.get(key), str) else None
            for key in ("senderId", "senderName", "senderUsername")
        )
    )
