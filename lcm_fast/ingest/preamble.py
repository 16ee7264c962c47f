"""The blocks in which OpenClaw wraps a user's message: what of them belongs to its identity.

A channel message comes with blocks of metadata before its body. Some fields change each time the
same message is shown (ids, times, a recap of the chat), so they are left out where messages are
compared. Never used for what is stored (spec: storage 2.6.5 to 2.6.7).

Every function takes time linear in the text; nearly all texts have no such block and cost one test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["canonical_content", "is_decorated_face", "matches_body", "reduced_body"]

_CONVERSATION = "Conversation info (untrusted metadata):"
_SENDER = "Sender (untrusted metadata):"
_CONVERSATION_KEYS = frozenset(
    {
        "chat_id",
        "message_id",
        "reply_to_id",
        "sender_id",
        "conversation_label",
        "sender",
        "timestamp",
        "group_subject",
        "group_channel",
        "group_space",
        "group_members",
        "thread_label",
        "inbound_event_kind",
        "topic_id",
        "topic_name",
        "is_forum",
        "mention_reason",
        "mention_target",
        "mentioned_user_ids",
        "mentioned_usernames",
        "has_reply_context",
        "has_forwarded_context",
        "has_thread_starter",
        "history_count",
        "history_media_count",
        "history_truncated",
    }
)
_SENDER_KEYS = frozenset({"label", "id", "name", "username", "tag", "e164"})
_VOLATILE = frozenset({"message_id", "reply_to_id", "timestamp"})
_VOLATILE_WITH_HISTORY = frozenset({"history_count", "history_media_count", "history_truncated"})
_CONTEXT_HEADINGS = (
    "Thread starter (untrusted, for context):",
    "Reply chain of current user message (untrusted, nearest first):",
    "Reply target of current user message (untrusted, for context):",
    "Forwarded message context (untrusted metadata):",
    "Location (untrusted metadata):",
)
_RECAP_HEADINGS = (
    "Chat history since last reply (untrusted, for context):",
    "Conversation context (untrusted, chronological, selected for current message):",
)
_RECAP_KEYS = frozenset({"sender", "timestamp_ms", "message_id", "body", "media"})

_CHANNEL_TIME = re.compile(
    r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})? [^\]\n]{1,20}\]"
)
_RECAP_LINE = re.compile(
    r"(?:#\S+ )?(?:\[?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"
    r" [^\]\s]{1,20}\]? ?)?"
)
_OPENING_FENCE = re.compile(r"\r?\n```json\r?\n")
_CLOSING_FENCE = re.compile(r"\r?\n```(?=\r?\n|$)")
_LINE_BREAK = re.compile(r"\r?\n")
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)*")
_BEHIND_TIME = re.compile(r"[ \t]*\r?\n?")
_BREAK = re.compile(r"[ \t]*(?:\r?\n)?(?:[ \t]*\r?\n)?")

Value = dict[str, Any]


def canonical_content(role: str, content: str) -> str:
    """Return a message's text with what changes between its showings left out.

    The text itself for every role but ``user``, and where there is no complete block to reduce.
    """
    if role != "user" or _CONVERSATION not in content:
        return content
    parsed = _Preamble.parse(content)
    if parsed is None or not parsed.body.strip():
        return content
    fields = parsed.stable_fields()
    if not fields:
        return content
    blocks = [f"{_CONVERSATION}\n```json\n{_encode(fields)}\n```"]
    if parsed.sender is not None:
        blocks.append(f"{_SENDER}\n```json\n{_encode(parsed.sender)}\n```")
    if parsed.context:
        blocks.append(parsed.context)
    return parsed.prelude + "\n\n".join([*blocks, parsed.body])


def reduced_body(content: str) -> str | None:
    """Return what a user wrote, without the blocks around it; None when there are none."""
    text = _without_channel_time(content)
    if _CONVERSATION not in text:
        return None
    parsed = _Preamble.parse(text)
    return parsed.body if parsed is not None and parsed.body.strip() else None


def matches_body(live: str, bare: str) -> bool:
    """Tell whether a text is another with blocks of metadata before it."""
    body = reduced_body(live)
    return body is not None and body == _without_channel_time(bare)


def is_decorated_face(live: str, bare: str) -> bool:
    """Tell whether a text ends with another that stands behind a channel's time stamp."""
    if not bare or len(live) <= len(bare) or not live.endswith(bare):
        return False
    if _without_channel_time(live) == bare:
        return True
    before = live[: len(live) - len(bare)].rstrip(" \t")
    before = before.removesuffix("\n").removesuffix("\r")
    line = before[before.rfind("\n") + 1 :]
    return _CHANNEL_TIME.fullmatch(line.strip()) is not None


class _Preamble:
    """The parts of a text that begins with a block of conversation metadata."""

    def __init__(
        self,
        prelude: str,
        conversation: Value,
        sender: Value | None,
        context: str,
        body: str,
    ) -> None:
        self.prelude = prelude
        self.conversation = conversation
        self.sender = sender
        self.context = context
        self.body = body

    @classmethod
    def parse(cls, content: str) -> _Preamble | None:
        text = content.lstrip()
        prelude, at = _prelude(text)
        found = _block(text, at, _CONVERSATION, _is_conversation)
        if found is None:
            return None
        conversation, at = found
        sender = None
        if (second := _block(text, _skip_blank_lines(text, at), _SENDER, _is_sender)) is not None:
            sender, at = second
        context = ""
        if _has_history(conversation):
            context, after = _context_blocks(text, at)
            recap_end = _recap_end(text, _skip_blank_lines(text, after))
            if recap_end is not None:
                at = recap_end
            else:
                context = ""
        body = text[_end(_BREAK, text, at) :]
        return cls(prelude, conversation, sender, context, body)

    def stable_fields(self) -> Value:
        volatile = _VOLATILE
        if _has_history(self.conversation):
            volatile |= _VOLATILE_WITH_HISTORY
        return {key: value for key, value in self.conversation.items() if key not in volatile}


def _has_history(conversation: Value) -> bool:
    count = conversation.get("history_count")
    return isinstance(count, int) and not isinstance(count, bool) and count > 0


def _prelude(text: str) -> tuple[str, int]:
    """Return the delivery lines before the first block, verbatim, and where the block begins."""
    if not text.startswith("Delivery:"):
        return "", 0
    for blank in re.finditer(r"\r?\n[ \t]*\r?\n", text):
        if text.startswith(_CONVERSATION, blank.end()):
            return text[: blank.end()], blank.end()
        break
    return "", 0


def _block(
    text: str, at: int, heading: str, is_right: Callable[[Any], bool]
) -> tuple[Any, int] | None:
    """Return the JSON in the fence behind a heading, and where the block ends."""
    if not text.startswith(heading, at):
        return None
    opening = _OPENING_FENCE.match(text, at + len(heading))
    if opening is None:
        return None
    closing = _CLOSING_FENCE.search(text, opening.end() - 1)
    if closing is None:
        return None
    try:
        value = msgspec.json.decode(text[opening.end() : closing.start()])
    except (ValueError, RecursionError):
        return None
    return (value, closing.end()) if is_right(value) else None


def _is_conversation(value: Any) -> bool:
    return isinstance(value, dict) and not _CONVERSATION_KEYS.isdisjoint(value)


def _is_sender(value: Any) -> bool:
    return isinstance(value, dict) and not _SENDER_KEYS.isdisjoint(value)


def _is_recap(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and not _RECAP_KEYS.isdisjoint(one) for one in value)
    )


def _context_blocks(text: str, at: int) -> tuple[str, int]:
    """Return the blocks of context that follow, as they stand, and where they end."""
    begin = end = _skip_blank_lines(text, at)
    while True:
        here = _skip_blank_lines(text, end)
        found = next(
            (
                block
                for heading in _CONTEXT_HEADINGS
                if (block := _block(text, here, heading, _is_payload)) is not None
            ),
            None,
        )
        if found is None:
            return text[begin:end], end
        end = found[1]


def _is_payload(value: Any) -> bool:
    return isinstance(value, dict | list)


def _recap_end(text: str, at: int) -> int | None:
    """Return where a recap of the chat ends, None when there is none or it does not end."""
    heading = next((one for one in _RECAP_HEADINGS if text.startswith(one, at)), None)
    if heading is None:
        return None
    fenced = _block(text, at, heading, _is_recap)
    if fenced is not None:
        return int(fenced[1])
    line_break = _LINE_BREAK.match(text, at + len(heading))
    if line_break is None:
        return None
    return _end_of_recap_lines(text, line_break.end())


def _end_of_recap_lines(text: str, at: int) -> int | None:
    count = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end].rstrip("\r")
        if not line.strip():
            return at if count else None
        if not _is_recap_line(line):
            return None
        count += 1
        at = end + 1
    return len(text) if count else None


def _is_recap_line(line: str) -> bool:
    token = _RECAP_LINE.match(line)
    if token is None or not token.group():
        return False
    sender, colon, said = line[token.end() :].partition(": ")
    return bool(sender.strip() and colon and said.strip())


def _skip_blank_lines(text: str, at: int) -> int:
    return _end(_BLANK_LINES, text, at)


def _without_channel_time(text: str) -> str:
    if not text.startswith("["):
        return text
    stamp = _CHANNEL_TIME.match(text)
    return text if stamp is None else text[_end(_BEHIND_TIME, text, stamp.end()) :]


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that matches anything, if only nothing, ends."""
    match = pattern.match(text, at)
    assert match is not None
    return match.end()


def _encode(value: Value) -> str:
    return json.dumps(_sorted(value), ensure_ascii=False, separators=(",", ":"))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=_collation)}
    if isinstance(value, list):
        return [_sorted(one) for one in value]
    return value


def _collation(key: str) -> tuple[list[tuple[int, str]], str]:
    """Order keys as locales do: "_" first, then digits, letters without case, lower before
    upper."""
    ranks = [(0 if char == "_" else 1, char) for char in key.lower()]
    return ranks, key.swapcase()
