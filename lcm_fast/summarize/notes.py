"""The format of extractive notes: who said what when, written and read back.

A note is a header line, bullets ``- [HH:MM role] quote`` in order of time with the day named where
it changes, ``Also mentioned:`` and ``Expand for details about:``. Reading back lets earlier notes
be merged bullet by bullet. Chooses nothing: `extractive` does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from .directives import DIRECTIVE_MARKER
from .protocol import SummaryRequest
from .sentences import printable
from .source_text import EXPAND_PREFIX, RUNNING_PREFIX, SourceItem, describe_items, one_line
from .timestamps import format_range, local_time

__all__ = [
    "MENTIONED_PREFIX",
    "Entry",
    "bullet",
    "entries_of",
    "header_candidates",
]

MENTIONED_PREFIX = "Also mentioned: "
_TITLE = "Notes on "

_ROLES = "user|assistant|tool|system|summary"
_BULLET = re.compile(
    rf"- \[(?:(\d{{4}}-\d\d-\d\d) )?(?:(\d\d:\d\d) )?((?:{_ROLES})\b[^\]\n]{{0,80}})\] (.+)"
)
_BLOCK_HEADER = re.compile(
    rf"\[(?:(\d{{4}}-\d\d-\d\d) (\d\d:\d\d) [^|\]\n]{{1,12}}|undated) \| ({_ROLES})\b[^\n]*\]"
)
_TITLE_LINE = re.compile(
    rf"{_TITLE}(?:\d+ summar(?:y|ies)(?: of (\d+) messages?)?|(\d+) messages?)\b"
)
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_MARKER = re.compile(r"\[(?:Truncated from \d+ tokens|Capped[^\]\n]{0,60})\]")
_SENDER_PREFIX = "speaker (untrusted metadata): "
_LONGEST_NAME = 32


class Entry(NamedTuple):
    """One voice at one time.

    `day` and `time` are as printed, empty when unknown; `label` is the role with tool or sender;
    `mentions` is text to take exact names from, not to quote.
    """

    role: str
    label: str
    day: str
    time: str
    text: str
    is_error: bool = False
    mentions: bool = False


def entries_of(request: SummaryRequest) -> list[Entry]:
    """Return the entries of a request's items that have text, in order.

    A message has one. Of a summary, bullets of earlier notes keep their role and time; other text
    speaks as ``summary`` at its own time.
    """
    entries: list[Entry] = []
    for item in request.items:
        if not item.text.strip():
            continue
        moment = local_time(item.created_at, request.timezone)
        if item.role == "summary":
            entries += _entries_of_summary(item, moment)
        else:
            entries.append(_entry(item, moment))
    return entries


def bullet(entry: Entry, quote: str, day_before: str) -> str:
    """Return a bullet; the day is named when it differs from the day before it.

    Examples
    --------
    >>> bullet(Entry("user", "user", "2026-03-01", "10:02", ""), "Use SQLite.", "2026-03-01")
    '- [10:02 user] Use SQLite.'
    """
    day = entry.day if entry.day != day_before else ""
    stamp = " ".join(part for part in (day, entry.time, entry.label) if part)
    return f"- [{stamp}] {quote}"


def header_candidates(
    request: SummaryRequest, span: tuple[datetime, datetime] | None
) -> Iterator[str]:
    """Yield header lines, the most telling first, for the first that fits to be taken."""
    described = printable(describe_items(request.items, request.timezone))
    if request.kind == "leaf":
        yield _TITLE + described
    else:
        yield _TITLE + _merged(request.items, described)
    count = described.split(",")[0].split(" (")[0]
    if span:
        yield f"{_TITLE}{count}, {format_range(*span)}"
    yield _TITLE + count


def _merged(items: tuple[SourceItem, ...], described: str) -> str:
    """Name the messages behind the summaries, where every summary says how many it stands for."""
    total = 0
    for item in items:
        title = _TITLE_LINE.match(item.text)
        if title is None or not (title.group(1) or title.group(2)):
            return described
        total += int(title.group(1) or title.group(2))
    count, comma, span = described.partition(",")
    return f"{count} of {total} messages{comma}{span}"


def _entry(item: SourceItem, moment: datetime | None) -> Entry:
    return Entry(
        item.role,
        _label(item),
        moment.strftime("%Y-%m-%d") if moment else "",
        moment.strftime("%H:%M") if moment else "",
        _without_running(printable(item.text)),
        item.is_error,
    )


def _without_running(text: str) -> str:
    """Return a text without the lines that a line of the notes' own names."""
    if RUNNING_PREFIX not in text:
        return text
    return "\n".join(line for line in text.split("\n") if not line.startswith(RUNNING_PREFIX))


def _label(item: SourceItem) -> str:
    parts: list[str] = [item.role]
    if item.role == "tool" and item.tool_name:
        parts.append(_name(item.tool_name))
    if item.is_error:
        parts.append("error")
    if item.sender and item.role == "user":
        parts.append(_name(_sender_name(item.sender)))
    return " ".join(part for part in parts if part)


def _sender_name(label: str) -> str:
    if not label.startswith(_SENDER_PREFIX):
        return label
    try:
        fields = json.loads(label.removeprefix(_SENDER_PREFIX))
    except (ValueError, RecursionError):
        return ""
    known = [fields.get(key) for key in ("senderName", "senderUsername", "senderId")]
    return next((str(name) for name in known if name), "")


def _name(text: str) -> str:
    """Return a name that cannot end its label early."""
    return printable(one_line(text)).replace("]", "").replace("[", "")[:_LONGEST_NAME].strip()


def _entries_of_summary(item: SourceItem, moment: datetime | None) -> Iterator[Entry]:
    base = _entry(item, moment)._replace(role="summary", label="summary", text="")
    current = base
    lines: list[str] = []
    for line in printable(item.text).split("\n"):
        opened = _opened_entry(line, current)
        if opened is None:
            lines.append(line)
            continue
        yield from _closed(current, lines)
        current, lines = opened, [opened.text]
        if current.role == "":  # a line of the frame: what follows speaks as the summary again
            current, lines = base._replace(day=current.day or base.day), []
    yield from _closed(current, lines)


def _opened_entry(line: str, current: Entry) -> Entry | None:
    """Return the entry a line begins, one without a role for a line of the frame, or None."""
    if match := _BULLET.match(line):
        day, time, label, quote = match.groups()
        role = label.split(" ")[0]
        is_error = label.endswith(" error")
        return Entry(role, label, day or current.day, time or "", quote, is_error)
    if match := _BLOCK_HEADER.fullmatch(line):
        day, time, role = match.groups()
        return Entry(role, role, day or current.day, time or "", "")
    if line.startswith(MENTIONED_PREFIX):
        return current._replace(text=line.removeprefix(MENTIONED_PREFIX), mentions=True)
    is_frame = line.startswith((EXPAND_PREFIX, RUNNING_PREFIX)) or line == DIRECTIVE_MARKER
    if is_frame or _MARKER.fullmatch(line):
        return Entry("", "", current.day, "", "")
    if _TITLE_LINE.match(line):
        day = _DAY.search(line)
        return Entry("", "", day.group() if day else "", "", "")
    return None


def _closed(entry: Entry, lines: Iterable[str]) -> Iterator[Entry]:
    text = "\n".join(lines).strip()
    if text:
        yield entry._replace(text=text)
