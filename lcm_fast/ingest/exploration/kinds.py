"""Which kind of text a name and a declared type stand for, and which extension its file gets (spec:
storage 2.9.2 and 2.9.10)."""

from __future__ import annotations

import re
from typing import Literal

from .code import LANGUAGES

__all__ = ["Kind", "extension_of", "kind_of"]

Kind = Literal[
    "json", "json-lines", "csv", "tsv", "xml", "yaml", "code", "log", "text", "undeclared"
]

_EXTENSION = re.compile(r"[a-z0-9]{1,10}")

_EXTENSIONS_OF_MIME_TYPES = {
    "application/json": "json",
    "application/x-ndjson": "json",
    "text/json": "json",
    "application/xml": "xml",
    "text/xml": "xml",
    "application/yaml": "yaml",
    "application/x-yaml": "yaml",
    "text/yaml": "yaml",
    "application/csv": "csv",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/markdown": "md",
    "text/plain": "txt",
    "text/html": "html",
    "application/javascript": "js",
    "text/javascript": "js",
    "application/typescript": "ts",
    "text/x-typescript": "ts",
    "text/x-python": "py",
    "text/x-script.python": "py",
    "application/x-python-code": "py",
    "text/x-rust": "rs",
    "application/x-rust": "rs",
    "application/x-sh": "sh",
    "text/x-shellscript": "sh",
    "text/x-c": "c",
    "text/x-c++": "cpp",
    "text/x-go": "go",
    "text/x-java": "java",
}

_KINDS: dict[str, Kind] = {
    "json": "json",
    "jsonl": "json-lines",
    "ndjson": "json-lines",
    "csv": "csv",
    "tsv": "tsv",
    "xml": "xml",
    "yaml": "yaml",
    "yml": "yaml",
    "log": "log",
    "txt": "undeclared",
    **dict.fromkeys(LANGUAGES, "code"),
}


def extension_of(file_name: str | None, mime_type: str | None) -> str:
    """Return the extension of a payload's file: its name's, else its type's, else ``txt``.

    >>> extension_of("report.CSV", "text/plain"), extension_of(None, "application/json")
    ('csv', 'json')
    >>> extension_of(".profile", None)
    'txt'
    """
    return _of_name(file_name) or _of_mime_type(mime_type) or "txt"


def kind_of(file_name: str | None, mime_type: str | None) -> Kind:
    """Return what to take a text for; a telling name counts more than its declared type.

    >>> kind_of("a.py", "text/plain"), kind_of("dump", "application/ld+json; charset=utf-8")
    ('code', 'json')
    >>> kind_of("exec.txt", "text/plain"), kind_of("notes.md", None)
    ('undeclared', 'text')
    """
    declared = _bare(mime_type)
    if declared == "application/x-ndjson":
        return "json-lines"
    found = [ending for ending in (_of_name(file_name), _of_mime_type(declared)) if ending]
    kinds: list[Kind] = [_KINDS.get(ending, "text") for ending in found]
    telling = [kind for kind in kinds if kind not in ("text", "undeclared")]
    return next(iter(telling + kinds), "undeclared")


def _of_name(file_name: str | None) -> str | None:
    if not file_name:
        return None
    stem, _, ending = re.split(r"[/\\]", file_name)[-1].rpartition(".")
    ending = ending.lower()
    return ending if stem and _EXTENSION.fullmatch(ending) else None


def _of_mime_type(mime_type: str | None) -> str | None:
    declared = _bare(mime_type)
    suffix = declared.rpartition("+")[2]
    by_suffix = suffix if suffix in ("json", "xml", "yaml") and suffix != declared else None
    return _EXTENSIONS_OF_MIME_TYPES.get(declared, by_suffix)


def _bare(mime_type: str | None) -> str:
    return (mime_type or "").partition(";")[0].strip().lower()
