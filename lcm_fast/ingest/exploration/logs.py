"""What a log holds: its levels, the time it spans, its distinct error lines (spec: storage
2.9.10)."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice

from .bounded import joined, line_count, line_heads, one_line

__all__ = ["log_summary", "looks_like_log"]

_LINE_CHARS = 240
_SAMPLED_LINES = 200
_FEWEST_LINES = 10
_SHOWN_ERRORS = 8
_ERROR_CHARS = 170
_REMEMBERED_ERRORS = 1_000

_STAMP = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
)
_LEVEL_NAMES = (
    "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|SEVERE|EMERG|ALERT|PANIC"
)
_LEVEL = re.compile(
    rf"\b({_LEVEL_NAMES})\b"
    rf"|(?i:(?:\[|\blevel[\"']?\s?[=:]\s?[\"']?)({_LEVEL_NAMES})\b)"
    r"|\b(?i:(error|warning|fatal|panic)):"
)
_LEVEL_OF_NAME = {"WARNING": "WARN", "ERR": "ERROR"}
_ERROR_LEVELS = frozenset({"ERROR", "FATAL", "CRITICAL", "SEVERE", "EMERG", "ALERT", "PANIC"})
_THROWN = re.compile(r"(?:Error|Exception):|\bTraceback \(most recent")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


def looks_like_log(text: str) -> bool:
    """Tell whether most of the first lines of a text bear a time or a level."""
    heads = (head for head in line_heads(text, _LINE_CHARS) if not head.isspace())
    sample = list(islice(heads, _SAMPLED_LINES))
    marked = sum(1 for head in sample if _STAMP.search(head) or _LEVEL.search(head))
    return len(sample) >= _FEWEST_LINES and 2 * marked > len(sample)


def log_summary(text: str) -> str:
    """Return counts of lines and levels, the time spanned, the first distinct error lines.

    Error lines that differ in numbers and times only count as one.
    """
    levels: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    first_of: dict[str, str] = {}
    error_lines = 0
    first_time = last_time = None
    for head in line_heads(text, _LINE_CHARS):
        if stamp := _STAMP.search(head):
            last_time = stamp[0]
            first_time = first_time or last_time
        level = _level(head)
        if level:
            levels[level] += 1
        if level in _ERROR_LEVELS or _THROWN.search(head):
            error_lines += 1
            kind = _NUMBER.sub("#", _STAMP.sub("", head))
            if kind in first_of or len(first_of) < _REMEMBERED_ERRORS:
                first_of.setdefault(kind, head)
                errors[kind] += 1
    lines = ["Log summary:", f"Lines: {line_count(text):,}."]
    if levels:
        counts = (f"{level} {count:,}" for level, count in levels.most_common())
        lines.append(f"Levels: {joined(counts, ', ', _LINE_CHARS, len(levels))}.")
    if first_time:
        lines.append(f"Time range: {first_time} to {last_time}.")
    if error_lines:
        lines.append(f"Error lines: {error_lines:,}; the first distinct ones:")
        lines += [
            f"- {one_line(line, _ERROR_CHARS)} ({errors[kind]:,}x)"
            for kind, line in islice(first_of.items(), _SHOWN_ERRORS)
        ]
    return "\n".join(lines)


def _level(head: str) -> str | None:
    found = _LEVEL.search(head)
    if found is None:
        return None
    name = (found[1] or found[2] or found[3]).upper()
    return _LEVEL_OF_NAME.get(name, name)
