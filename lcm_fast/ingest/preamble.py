"""What a host puts around a user's words: read, and taken off where two messages are compared.

A channel message comes behind a time stamp, blocks of metadata and a recap of the chat; an agent's
plugins, and our own summaries, come before it as well. Some of that changes each time the same
message is shown. Must never be used for what is stored (spec: storage 2.6.5 to 2.6.7).

All or nothing: a block that is not whole is the user's own text. Time is linear in the text; nearly
all texts have no such block and cost one test.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

__all__ = [
    "canonical_content",
    "is_decorated_face",
    "matches_body",
    "reduced_body",
    "without_carried_summaries",
]

_CONVERSATION = "Conversation info (untrusted metadata)"
_SENDER = "Sender (untrusted metadata)"
_DELIVERY = "Delivery:"
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
_VOLATILE_KEYS = frozenset({"message_id", "reply_to_id", "timestamp"})
_HISTORY_KEYS = frozenset({"history_count", "history_media_count", "history_truncated"})
_CONTEXT_HEADINGS = (
    "Thread starter (untrusted, for context)",
    "Reply chain of current user message (untrusted, nearest first)",
    "Reply target of current user message (untrusted, for context)",
    "Forwarded message context (untrusted metadata)",
    "Location (untrusted metadata)",
)
_RECAP_HEADINGS = (
    "Chat history since last reply (untrusted, for context)",
    "Conversation context (untrusted, chronological, selected for current message)",
)
_RECAP_KEYS = frozenset({"sender", "timestamp_ms", "message_id", "body", "media"})

_OPENING_FENCE = re.compile(r":\r?\n```json[ \t]*\r?\n")
_CLOSING_FENCE = re.compile(r"\n```(?=[ \t]*(?:\r?\n|\Z))")
_HEADING_BREAK = re.compile(r":[ \t]*\r?\n")
# The rest of a block's last line, and at most one blank line.
_SEPARATOR = re.compile(r"[ \t]*\r?\n(?:[ \t]*\r?\n)?")
_WEEKDAY_AND_DATE = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d"
_CHANNEL_TIME = re.compile(
    rf"\[{_WEEKDAY_AND_DATE} (?:[^\]\n]{{0,40}}GMT[^\]\n]{{0,20}}"
    r"|\d{1,2}:\d\d(?::\d\d)?(?: [AP]M)? [A-Z]{2,5})\][ \t]*(?:\r?\n){0,2}"
)
_LONGEST_CHANNEL_TIME = 128
_RECAP_ID = re.compile(r"#\S+ ")
_RECAP_TIME = re.compile(rf"{_WEEKDAY_AND_DATE} \d\d:\d\d:\d\d \S+ ")
_INJECTED = re.compile(
    r"<(relevant-memories|relevant_memories|hindsight_memories|inherited-rules|derived-focus"
    r"|error-detected|active_memory_plugin)>"
)
_SUMMARY_START = '<summary id="sum_'
_SUMMARY_END = "</summary>"

# Deeper JSON is no host's; a fixed bound keeps the answer the same however deep the caller stands.
_MAX_DEPTH = 32
# As ICU's root collation has it: punctuation, then digits, then letters.
_COLLATION = str.maketrans(
    {char: chr(rank) for rank, char in enumerate(" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$", 1)}
)


class _Preamble(NamedTuple):
    """The blocks of metadata that a text begins with.

    `begin` and `end` are where the first block begins and what follows the last one begins.
    """

    conversation: dict[str, Any]
    sender: dict[str, Any] | None
    begin: int
    end: int

    @property
    def has_history(self) -> bool:
        count = self.conversation.get("history_count")
        return type(count) is int and count > 0


def canonical_content(role: str, content: str) -> str:
    """Return a text without what changes between its showings, for comparing and hashing only.

    Of a user's text behind OpenClaw's metadata: message ids and times are left out, keys sorted,
    the recap of the chat dropped. Any other text is returned as it is.

    Parameters
    ----------
    role
        The record's role; only ``"user"`` is looked at.

    Complexity: linear; one test for a text without a preamble.

    Source: spec storage 2.6.5.

    >>> canonical_content("user", "hello")
    'hello'
    """
    if role != "user":
        return content
    text = content.lstrip()
    if not text.startswith((_CONVERSATION, _DELIVERY)):
        return content
    found = _preamble(text, _after_prelude(text, 0))
    if found is None:
        return content
    dropped = _VOLATILE_KEYS | _HISTORY_KEYS if found.has_history else _VOLATILE_KEYS
    kept = {key: value for key, value in found.conversation.items() if key not in dropped}
    body = _without_recap(text, found)
    if not kept or not body.strip():
        return content
    blocks = [_block(_CONVERSATION, kept)]
    if found.sender is not None:
        blocks.append(_block(_SENDER, found.sender))
    return text[: found.begin] + "\n\n".join([*blocks, body])


def reduced_body(content: str) -> str | None:
    """Return what a user wrote, without the host's blocks around it.

    Taken off, each when it is whole: a channel's time stamp, the delivery lines, the blocks of
    metadata and context, the recap of the chat.

    Returns
    -------
    str or None
        None when there is no block of metadata, or nothing behind the blocks.

    Source: spec storage 2.6.6.
    """
    return _reduced(content, with_injected_context=False)


def matches_body(live: str, bare: str, *, with_injected_context: bool = False) -> bool:
    """Tell whether a text is a bare one behind blocks of metadata.

    Parameters
    ----------
    with_injected_context
        Take off what memory plugins put before the body, too, when it does not match without.

    Source: spec storage 2.6.6.
    """
    wanted = _without_channel_time(bare)
    variants = (False, True) if with_injected_context else (False,)
    bodies = (_reduced(live, with_injected_context=variant) for variant in variants)
    return any(
        body is not None and wanted in (body, _without_channel_time(body)) for body in bodies
    )


def is_decorated_face(live: str, bare: str) -> bool:
    """Tell whether a user's text ends with a bare one, right behind a channel's time stamp.

    The stamp must begin a line; blocks of metadata alone do not count.

    Source: spec storage 2.6.7.

    >>> is_decorated_face("[Sun 2026-01-01 12:00 GMT+0] hi", "hi")
    True
    """
    if not bare.strip() or not live.endswith(bare):
        return False
    end = len(live) - len(bare)
    line = live.rfind("\n[", max(0, end - _LONGEST_CHANNEL_TIME), end) + 1
    return _CHANNEL_TIME.fullmatch(live, line, end) is not None


def without_carried_summaries(content: str) -> str:
    """Return a text without our summaries before it; itself when it is nothing but summaries.

    Hosts that must not send two user messages in a row put what an assembly gave them, and what the
    user says, into one.
    """
    if not content.startswith(_SUMMARY_START):
        return content
    at = 0
    while content.startswith(_SUMMARY_START, at):
        end = content.find(_SUMMARY_END, at)
        if end < 0:
            break
        at = _after_separator(content, end + len(_SUMMARY_END))
    rest = content[at:]
    return rest if rest.strip() else content


def _preamble(text: str, at: int) -> _Preamble | None:
    """Read the blocks of metadata that begin at a place."""
    first = _fenced(text, at, _CONVERSATION)
    if first is None or not _has_one_of(first[0], _CONVERSATION_KEYS):
        return None
    conversation, end = first
    second = _fenced(text, end, _SENDER)
    if second is None or not _has_one_of(second[0], _SENDER_KEYS):
        return _Preamble(conversation, None, at, end)
    return _Preamble(conversation, second[0], at, second[1])


def _reduced(content: str, *, with_injected_context: bool) -> str | None:
    if _CONVERSATION not in content:
        return None
    skip = _after_injected if with_injected_context else _here
    text = _without_channel_time(content.lstrip())
    found = _preamble(text, _after_prelude(text, skip(text, 0)))
    if found is None:
        return None
    at = _after_context(text, skip(text, found.end))
    body = text[skip(text, _after_recap(text, at) or at) :]
    return body if body.strip() else None


def _without_recap(text: str, found: _Preamble) -> str:
    """Return what follows the metadata, without the recap that its history count announces."""
    if found.has_history:
        context_end = _after_context(text, found.end)
        rest = _after_recap(text, context_end)
        # Without the recap, a sender's block in the user's words would be taken for the host's.
        is_mistakable = found.sender is None and rest is not None and text.startswith(_SENDER, rest)
        if rest is not None and not is_mistakable:
            return text[found.end : context_end] + text[rest:]
    return text[found.end :]


def _after_prelude(text: str, at: int) -> int:
    """Return where the metadata behind delivery lines begins; `at` when there are no such lines."""
    if not text.startswith(_DELIVERY, at):
        return at
    heading = text.find(_CONVERSATION, at)
    while heading >= 0:
        if text[heading - 3 : heading].endswith(("\n\n", "\n\r\n")):
            return heading
        heading = text.find(_CONVERSATION, heading + 1)
    return at


def _after_context(text: str, at: int) -> int:
    while True:
        heading = next((one for one in _CONTEXT_HEADINGS if text.startswith(one, at)), None)
        found = _fenced(text, at, heading) if heading else None
        if found is None or not isinstance(found[0], dict | list):
            return at
        at = found[1]


def _after_recap(text: str, at: int) -> int | None:
    """Return where the text behind a recap begins, None when there is no whole recap."""
    heading = next((one for one in _RECAP_HEADINGS if text.startswith(one, at)), None)
    if heading is None:
        return None
    fenced = _fenced(text, at, heading)
    if fenced is not None:
        items, end = fenced
        is_recap = isinstance(items, list) and items
        return end if is_recap and all(_has_one_of(one, _RECAP_KEYS) for one in items) else None
    lines = _HEADING_BREAK.match(text, at + len(heading))
    end_of_lines = _end_of_recap_lines(text, lines.end()) if lines else None
    return None if end_of_lines is None else _after_separator(text, end_of_lines)


def _end_of_recap_lines(text: str, at: int) -> int | None:
    """Return where a run of recap lines ends; None when it is empty or anything else follows it."""
    end = None
    while at < len(text):
        line_end = text.find("\n", at)
        line = text[at:] if line_end < 0 else text[at:line_end]
        if not line.strip():
            return end
        if not _is_recap_line(line):
            return None
        end = at + len(line)
        at = end + 1
    return end


def _is_recap_line(line: str) -> bool:
    """Tell whether a line is "#id Mon 2026-01-05 10:00:00 UTC sender: words", of which either the
    id or the time may be missing."""
    at = 0
    for token in (_RECAP_ID, _RECAP_TIME):
        if found := token.match(line, at):
            at = found.end()
    sender, _, words = line[at:].partition(": ")
    return at > 0 and bool(sender.strip()) and bool(words.strip())


def _after_injected(text: str, at: int) -> int:
    while opening := _INJECTED.match(text, at):
        closing = f"</{opening[1]}>"
        end = text.find(closing, opening.end())
        if end < 0:
            break
        at = _after_separator(text, end + len(closing))
    return at


def _here(_text: str, at: int) -> int:
    return at


def _fenced(text: str, at: int, heading: str) -> tuple[Any, int] | None:
    """Return the JSON in the fence below a heading, and where the text behind it begins."""
    if not text.startswith(heading, at):
        return None
    opening = _OPENING_FENCE.match(text, at + len(heading))
    closing = _CLOSING_FENCE.search(text, opening.end() - 1) if opening else None
    if opening is None or closing is None:
        return None
    try:
        value = json.loads(text[opening.end() : closing.start()], parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return (value, _after_separator(text, closing.end())) if _is_shallow(value) else None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _after_separator(text: str, at: int) -> int:
    found = _SEPARATOR.match(text, at)
    return found.end() if found else at


def _without_channel_time(text: str) -> str:
    found = _CHANNEL_TIME.match(text)
    return text[found.end() :] if found else text


def _has_one_of(value: Any, keys: frozenset[str]) -> bool:
    return isinstance(value, dict) and not keys.isdisjoint(value)


def _block(heading: str, value: dict[str, Any]) -> str:
    written = json.dumps(_sorted(value), ensure_ascii=False, separators=(",", ":"))
    return f"{heading}:\n```json\n{written}\n```"


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=_locale_order)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _locale_order(key: str) -> tuple[str, str]:
    """Order keys without regard to case; lower before upper where they differ in that alone."""
    return key.casefold().translate(_COLLATION), key.swapcase()


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return True
    return False
