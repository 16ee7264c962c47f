"""What a summariser reads: source items, and the text they are rendered to.

Carries rules F4, F6 and G4 of the compaction behaviour: every block has a header naming time and
role, so that an instruction inside fetched material can be told from an order. Does not sanitise:
callers do, before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from .timestamps import format_range, format_time, local_time

__all__ = [
    "EXPAND_PREFIX",
    "RUNNING_PREFIX",
    "SourceItem",
    "SourceRole",
    "calls_under_way",
    "count_by_role",
    "describe_items",
    "one_line",
    "render_source",
    "sender_label",
    "time_span",
]

# Begins the last line of every summary, whoever makes it.
EXPAND_PREFIX = "Expand for details about: "

# Begins a line that names calls under way, in a source and in a summary alike.
RUNNING_PREFIX = "No result yet: "

SourceRole = Literal["system", "user", "assistant", "tool", "summary"]
_ROLE_ORDER: tuple[SourceRole, ...] = ("user", "assistant", "tool", "system", "summary")


class SourceItem(msgspec.Struct, frozen=True):
    """One message, or one earlier summary, to be summarised.

    Attributes
    ----------
    id
        Message or summary id, for the caller's own bookkeeping.
    role
        Who speaks; ``"summary"`` for an earlier summary.
    text
        The sanitised text; may be empty.
    created_at, latest_at
        ISO 8601 times; a summary covers the span between them.
    sender
        The label made by `sender_label`, or a plain name.
    tool_name, is_error
        For tool results: the tool, and whether it reported failure.
    """

    id: str
    role: SourceRole
    text: str
    created_at: str | None = None
    latest_at: str | None = None
    sender: str | None = None
    tool_name: str | None = None
    is_error: bool = False


def render_source(items: Iterable[SourceItem], timezone: str) -> str:
    """Render items as the text a summariser is given.

    Parameters
    ----------
    items
        In conversation order. Items whose text is blank are left out.
    timezone
        IANA zone of the rendered times.

    Returns
    -------
    str
        Blocks of a header line and a body, separated by one blank line.

    Complexity
    ----------
    Linear in the length of the texts.

    Examples
    --------
    >>> render_source([SourceItem("1", "user", "Hello", "2026-03-01T00:05:00Z")], "UTC")
    '[2026-03-01 00:05 UTC | user]\\nHello'
    """
    blocks = (f"{_header(item, timezone)}\n{text}" for item in items if (text := item.text.strip()))
    return "\n\n".join(blocks)


def sender_label(
    sender_id: str | None = None, sender_name: str | None = None, sender_username: str | None = None
) -> str | None:
    """Return the label that names a speaker as untrusted metadata, or None when nothing is known.

    Control characters are escaped, so that a name cannot break out of its header line.
    """
    fields = {"senderId": sender_id, "senderName": sender_name, "senderUsername": sender_username}
    known = {key: value for key, value in fields.items() if value and value.strip()}
    if not known:
        return None
    return f"speaker (untrusted metadata): {json.dumps(known, ensure_ascii=False)}"


def time_span(items: Iterable[SourceItem], timezone: str) -> tuple[datetime, datetime] | None:
    """Return the earliest and the latest time of the items, or None when none has a time."""
    stamps = {stamp for item in items for stamp in (item.created_at, item.latest_at) if stamp}
    moments = [moment for stamp in stamps if (moment := local_time(stamp, timezone))]
    return (min(moments), max(moments)) if moments else None


def count_by_role(items: Iterable[SourceItem]) -> dict[SourceRole, int]:
    """Count items by role, in the order people expect to read them; absent roles are left out."""
    counts: dict[SourceRole, int] = dict.fromkeys(_ROLE_ORDER, 0)
    for item in items:
        counts[item.role] += 1
    return {role: count for role, count in counts.items() if count}


def describe_items(items: tuple[SourceItem, ...], timezone: str, *, qualifier: str = "") -> str:
    """Name what a run of items was, in one line.

    Parameters
    ----------
    items
        At least one.
    timezone
        IANA zone of the rendered times.
    qualifier
        Put after the noun, for example ``" without text"``.

    Examples
    --------
    >>> item = SourceItem("1", "tool", "", tool_name="exec")
    >>> describe_items((item,), "UTC", qualifier=" without text")
    '1 message without text (1 tool: exec)'
    """
    noun = "summary" if all(item.role == "summary" for item in items) else "message"
    if len(items) != 1:
        noun = "summaries" if noun == "summary" else "messages"
    line = f"{len(items)} {noun}{qualifier}"
    if noun.startswith("message"):
        line += f" ({_role_list(items)})"
    span = time_span(items, timezone)
    return f"{line}, {format_range(*span)}" if span else line


def _role_list(items: tuple[SourceItem, ...]) -> str:
    parts = [f"{count} {role}" for role, count in count_by_role(items).items()]
    tools = list(dict.fromkeys(one_line(item.tool_name) for item in items if item.tool_name))
    if not tools:
        return ", ".join(parts)
    named = ", ".join(tools[:6]) + (", …" if len(tools) > 6 else "")
    return ", ".join(f"{part}: {named}" if part.endswith(" tool") else part for part in parts)


def _header(item: SourceItem, timezone: str) -> str:
    begin = format_time(item.created_at, timezone) or "undated"
    if item.role == "summary":
        end = format_time(item.latest_at, timezone) or begin
        return f"[{begin} - {end}]"
    fields = [begin, item.role, one_line(item.sender) if item.sender else ""]
    return f"[{' | '.join(field for field in fields if field)}]"


def calls_under_way(items: Iterable[SourceItem]) -> list[str]:
    """Return the calls that the items say have no result yet, in order, each once.

    >>> calls_under_way([SourceItem("1", "assistant", "On it.\\nNo result yet: exec (call_1)")])
    ['exec (call_1)']
    """
    lines = (line for item in items for line in item.text.split("\n"))
    named = (line.removeprefix(RUNNING_PREFIX) for line in lines if line.startswith(RUNNING_PREFIX))
    return list(dict.fromkeys(call for line in named for call in line.split(", ")))


def one_line(text: str) -> str:
    """Return the text without line breaks or other control characters."""
    return "".join(char if char.isprintable() else " " for char in text).strip()
