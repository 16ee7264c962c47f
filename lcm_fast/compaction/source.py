"""What a summariser is given of stored messages and summaries (spec K4 to K7; decision 8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..store import Store, StoredMessage, StoredSummary
from ..summarize import (
    SourceItem,
    note_media,
    render_tool_call,
    sanitise_message,
    sanitise_summary,
    sender_label,
)
from ..summarize.source_text import RUNNING_PREFIX
from ..transcripts import body_of, shapes

__all__ = ["item_from_message", "item_from_summary", "items_from_messages"]


def items_from_messages(
    store: Store, messages: Sequence[StoredMessage], injected_tags: Sequence[str]
) -> list[SourceItem]:
    """Return messages of one conversation, in order, as sources; calls under way are named."""
    first, last = messages[0], messages[-1]
    open_calls = store.unanswered_calls(first.conversation_id, first.seq, last.seq)
    return [
        item_from_message(message, injected_tags, open_calls.get(message.seq, ()))
        for message in messages
    ]


def item_from_message(
    stored: StoredMessage,
    injected_tags: Sequence[str],
    open_calls: Iterable[tuple[str, str]] = (),
) -> SourceItem:
    """Return a message's readable text with its role, time, tool and the calls it makes.

    Of the open ones it says, by tool and id, that there is no result yet (case 134).
    """
    body = body_of(stored.sent)
    text = sanitise_message(stored.content, injected_tags=injected_tags)
    if shapes.has_picture(body):
        text = note_media(text)
    made = shapes.call_arguments(body) if stored.role == "assistant" else ()
    calls = [render_tool_call(name, arguments) for name, arguments in made]
    calls += [f"{RUNNING_PREFIX}{name} ({call_id})" for name, call_id in open_calls]
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
