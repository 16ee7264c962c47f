"""What structured texts hold: shape and counts of JSON, CSV, XML and YAML (spec: storage
2.9.10)."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from .bounded import joined, line_count, lines_of, one_line

__all__ = ["csv_summary", "json_lines_summary", "json_summary", "xml_summary", "yaml_summary"]

_NOT_JSON = "Structured summary (JSON): failed to parse as valid JSON."

_SHOWN_DEPTH = 2
_SHOWN_KEYS = 10
_SHOWN_SAMPLES = 3
_SHOWN_COLUMNS = 30
_SHOWN_NAMES = 30
_NAME_CHARS = 80
_LIST_CHARS = 700
_SAMPLE_CHARS = 180

_YAML_KEY = re.compile(r"^([\w.-]+|\"[^\"\n]*\"|'[^'\n]*'):[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_XML_TAG = re.compile(r"<([A-Za-z_][\w.:-]{0,79})(?=[\s>])")

# They have no UTF-8, which the decoder reads; what they stand in does not change a shape.
_SURROGATES = re.compile("[\ud800-\udfff]")


def json_summary(text: str, otherwise: Callable[[str], str] = lambda _: _NOT_JSON) -> str:
    """Return type, shape and sizes of a JSON text; what is not JSON is left to `otherwise`.

    >>> print(json_summary('{"users": [{"id": 1}], "count": 1}'))
    Structured summary (JSON):
    Top-level type: object.
    Shape: object(keys=2: users, count).
    """
    try:
        value = _decoded(text)
    except msgspec.DecodeError:
        return otherwise(text)
    except RecursionError:
        return "Structured summary (JSON): nested too deep to be explored."
    lines = [
        "Structured summary (JSON):",
        f"Top-level type: {_type_name(value)}.",
        f"Shape: {_shape(value)}.",
    ]
    if parts := joined(_large_parts(value), "; ", _LIST_CHARS, _SHOWN_KEYS):
        lines.append(f"Parts: {parts}.")
    return "\n".join(lines)


def json_lines_summary(text: str) -> str:
    """Return how many records a text of one JSON value a line has, and the first one's shape.

    >>> print(json_lines_summary('{"a": 1}\\n{"a": 2}\\n'))
    Structured summary (JSON lines):
    Records: 2.
    First record: object(keys=1: a).
    """
    records = unreadable = 0
    first = None
    for line in lines_of(text):
        if line.isspace():
            continue
        try:
            value = _decoded(line)
        except (msgspec.DecodeError, RecursionError):
            unreadable += 1
            continue
        records += 1
        first = first or _shape(value)
    lines = ["Structured summary (JSON lines):", f"Records: {records:,}."]
    if unreadable:
        lines.append(f"Lines that are not JSON: {unreadable:,}.")
    if first:
        lines.append(f"First record: {first}.")
    return "\n".join(lines)


def csv_summary(text: str, delimiter: str) -> str:
    """Return rows, columns and the first row of a table; its first line names the columns."""
    title = "Structured summary (CSV):" if delimiter == "," else "Structured summary (TSV):"
    reader = csv.reader(lines_of(text.removeprefix("\ufeff")), delimiter=delimiter)
    rows = filter(None, reader)
    try:
        header = next(rows, [])
        first = next(rows, None)
        count = (first is not None) + sum(1 for _ in rows)
    except csv.Error as error:
        where = f"malformed at line {reader.line_num:,}: {error}."
        return f"{title} {where}\nLines: {line_count(text):,}."
    columns = _names(header, _SHOWN_COLUMNS) or "(none)"
    lines = [title, f"Rows: {count:,}.", f"Columns ({len(header):,}): {columns}."]
    if first is not None:
        lines.append(f"First row sample: {one_line(delimiter.join(first), _SAMPLE_CHARS)}.")
    return "\n".join(lines)


def xml_summary(text: str) -> str:
    """Return the root element and the names of the others.

    >>> print(xml_summary("<?xml version='1.0'?><a><b>1</b><c/><b>2</b></a>"))
    Structured summary (XML):
    Root element: a.
    Other elements (1): b.
    """
    names = _distinct((tag[1] for tag in _XML_TAG.finditer(text)), _SHOWN_NAMES + 1)
    if not names:
        return "Structured summary (XML): no elements found."
    root, *others = names
    lines = ["Structured summary (XML):", f"Root element: {root}."]
    if others:
        lines.append(f"Other elements ({len(others)}): {_names(others, _SHOWN_NAMES)}.")
    return "\n".join(lines)


def yaml_summary(text: str) -> str:
    """Return the top-level keys under which something is nested.

    >>> print(yaml_summary("top:\\n  k: v\\nname: x\\nother:  # more\\n"))
    Structured summary (YAML):
    Top-level keys (2): top, other.
    """
    keys = _distinct((key[1].strip("\"'") for key in _YAML_KEY.finditer(text)), _SHOWN_NAMES)
    shown = _names(keys, _SHOWN_NAMES) or "(none)"
    return f"Structured summary (YAML):\nTop-level keys ({len(keys)}): {shown}."


def _decoded(text: str) -> Any:
    text = text.removeprefix("\ufeff")
    try:
        return msgspec.json.decode(text)
    except UnicodeEncodeError:
        return msgspec.json.decode(_SURROGATES.sub("\ufffd", text))


def _type_name(value: Any) -> str:
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    return "string" if isinstance(value, str) else "number"


def _shape(value: Any, depth: int = 0) -> str:
    if depth >= _SHOWN_DEPTH:
        return "..."
    if isinstance(value, dict):
        keys = _names(value, _SHOWN_KEYS)
        return f"object(keys={len(value)}: {keys})" if value else "object(keys=0)"
    if isinstance(value, list):
        sample = ", ".join(_shape(item, depth + 1) for item in value[:_SHOWN_SAMPLES])
        return f"array(len={len(value)}, sample=[{sample}])" if value else "array(len=0)"
    return _type_name(value)


def _large_parts(value: Any) -> Iterator[str]:
    """Yield the shapes of an object's containers that hold more than a sample shows."""
    if not isinstance(value, dict):
        return
    for key, part in islice(value.items(), _SHOWN_KEYS):
        if isinstance(part, dict | list) and len(part) > _SHOWN_SAMPLES:
            yield f"{one_line(key, _NAME_CHARS)} = {_shape(part)}"


def _names(names: Iterable[str], shown: int) -> str:
    """Return the first names on one line, with dots where there are more."""
    listed = [one_line(name, _NAME_CHARS) for name in islice(names, shown + 1)]
    more = ["..."] if len(listed) > shown else []
    return joined(listed[:shown] + more, ", ", _LIST_CHARS, shown + 1)


def _distinct(names: Iterable[str], limit: int) -> list[str]:
    """Return the first `limit` distinct names in order."""
    found: dict[str, None] = {}
    for name in names:
        found[name] = None
        if len(found) == limit:
            break
    return list(found)
