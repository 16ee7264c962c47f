"""What a large text holds, in at most 2,000 characters that depend on the text alone.

Pure: no files, no model, no clock. Linear time whatever the text (spec: storage 2.9.10).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .bounded import MAX_SUMMARY_CHARS
from .code import code_summary
from .kinds import Kind, extension_of, kind_of
from .logs import log_summary, looks_like_log
from .prose import text_summary
from .structured import csv_summary, json_lines_summary, json_summary, xml_summary, yaml_summary

__all__ = ["MAX_SUMMARY_CHARS", "Kind", "explore", "extension_of", "kind_of"]


def explore(text: str, file_name: str | None, mime_type: str | None) -> str:
    """Return what a text holds, as its kind shows it best.

    Parameters
    ----------
    text
        The whole text, of any length.
    file_name, mime_type
        What it is called and declared as. A text that neither names a kind for is taken by its
        looks: JSON, a log, or else prose.

    Returns
    -------
    str
        At most `MAX_SUMMARY_CHARS` characters.

    >>> print(explore("a,b\\n1,2\\n3,4", "table.csv", None))
    Structured summary (CSV):
    Rows: 2.
    Columns (2): a, b.
    First row sample: 1,2.
    """
    kind = kind_of(file_name, mime_type)
    if kind == "code":
        summary = code_summary(text, extension_of(file_name, mime_type))
    else:
        summary = _SUMMARIES[kind](text)
    return summary[:MAX_SUMMARY_CHARS]


def _summary_by_looks(text: str) -> str:
    start, end = text[:200].lstrip()[:1], text[-200:].rstrip()[-1:]
    if start + end in ("{}", "[]"):
        return json_summary(text, otherwise=_log_or_prose)
    return _log_or_prose(text)


def _log_or_prose(text: str) -> str:
    return log_summary(text) if looks_like_log(text) else text_summary(text)


_SUMMARIES: dict[Kind, Callable[[str], str]] = {
    "json": json_summary,
    "json-lines": json_lines_summary,
    "csv": partial(csv_summary, delimiter=","),
    "tsv": partial(csv_summary, delimiter="\t"),
    "xml": xml_summary,
    "yaml": yaml_summary,
    "log": log_summary,
    "text": text_summary,
    "undeclared": _summary_by_looks,
}
