"""What a source file holds: its imports and the signatures of its top-level definitions (spec:
storage 2.9.10).

Line by line, on the beginning of each line; no parser, so that any language and any broken file
will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .bounded import Listing, line_count, line_heads, one_line

__all__ = ["LANGUAGES", "code_summary"]

_LINE_CHARS = 400
_SHOWN_IMPORTS = 12
_IMPORT_CHARS = 180
_IMPORTS_CHARS = 500
_SHOWN_DEFINITIONS = 24
_DEFINITION_CHARS = 200
_DEFINITIONS_CHARS = 1_300


class _Language(NamedTuple):
    """How a language's lines begin that import or define something."""

    imports: re.Pattern[str]
    definitions: re.Pattern[str]


_NOTHING = r"(?!)"
_MODIFIERS = (
    "public|private|protected|internal|fileprivate|static|final|abstract|sealed|open|data|partial"
    "|async|override|readonly|inline|suspend|case|implicit|unsafe|virtual|indirect"
)
_PYTHON = _Language(re.compile(r"(?:import|from)\s"), re.compile(r"(?:async\sdef|def|class)\s"))
_SCRIPT = _Language(
    re.compile(r"import\b|export\s.*\bfrom\b|(?:const|let|var)\s.*\brequire\("),
    re.compile(
        r"(?:(?:export|default|declare|abstract|async)\s+)*"
        r"(?:(?:function|class|interface|type|enum|namespace)\b"
        r"|(?:const|let|var)\s.*(?:=>|\bfunction\b))"
    ),
)
_GO = _Language(re.compile(r"import\b"), re.compile(r"(?:func|type)\b"))
_RUST = _Language(
    re.compile(r"(?:pub\s)?use\s|extern\scrate\s"),
    re.compile(
        r"(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|unsafe|const|default)\s+|extern\s\"[^\"]*\"\s+)*"
        r"(?:fn|struct|enum|trait|impl|mod|type|union|macro_rules!)(?!\w)"
    ),
)
_C = _Language(
    re.compile(r"#\s*(?:include|import)\b"),
    re.compile(
        r"(?:class|struct|enum|union|namespace|typedef|template|@interface|@implementation"
        r"|@protocol)\b"
        r"|(?!(?:if|for|while|switch|return|else|do)\b)[A-Za-z_][\w\s*&:<>,~]*\([^;]*$|[-+]\s?\("
    ),
)
_CLASSES = _Language(
    re.compile(r"(?:import|package|using|use|require|require_once|include)\s"),
    re.compile(
        rf"(?:(?:{_MODIFIERS})\s+)*"
        r"(?:class|interface|enum|record|struct|protocol|extension|trait|object|fun|func|def"
        r"|function|actor|typealias|namespace|@interface)\b"
    ),
)
_RUBY = _Language(
    re.compile(r"require(?:_relative)?\s|include\s"), re.compile(r"(?:def|class|module)\s")
)
_SHELL = _Language(re.compile(r"(?:source|\.)\s"), re.compile(r"function\s|[A-Za-z_][\w-]*\s?\(\)"))
_SQL = _Language(
    re.compile(_NOTHING),
    re.compile(r"create\s.*\b(?:table|view|function|procedure|index|trigger|type|schema)\b", re.I),
)

# By the extension of a source file.
LANGUAGES = {
    "py": _PYTHON,
    **dict.fromkeys(("js", "jsx", "ts", "tsx"), _SCRIPT),
    "go": _GO,
    "rs": _RUST,
    **dict.fromkeys(("c", "cc", "cpp", "h", "hpp", "m"), _C),
    **dict.fromkeys(("java", "kt", "cs", "scala", "swift", "php"), _CLASSES),
    "rb": _RUBY,
    "sh": _SHELL,
    "sql": _SQL,
}


def code_summary(text: str, extension: str) -> str:
    """Return lines, imports and top-level signatures of a source file.

    >>> print(code_summary("import os\\n\\ndef run(name: str) -> None:\\n    pass\\n", "py"))
    Code summary (py):
    Lines: 5.
    Imports/dependencies: import os.
    Top-level definitions: def run(name: str) -> None.
    """
    language = LANGUAGES[extension]
    imports = Listing(_IMPORTS_CHARS, _SHOWN_IMPORTS)
    definitions = Listing(_DEFINITIONS_CHARS, _SHOWN_DEFINITIONS)
    for statement, is_import in _statements(text, language):
        if is_import:
            imports.add(one_line(statement.rstrip("\r;"), _IMPORT_CHARS))
        else:
            definitions.add(one_line(statement.rstrip(" \t\r{:"), _DEFINITION_CHARS))
    lines = [f"Code summary ({extension}):", f"Lines: {line_count(text):,}."]
    if shown := imports.text(" | "):
        lines.append(f"Imports/dependencies: {shown}.")
    if shown := definitions.text(" | "):
        lines.append(f"Top-level definitions: {shown}.")
    return "\n".join(lines)


def _statements(text: str, language: _Language) -> Iterator[tuple[str, bool]]:
    """Yield what imports or defines something, and which; lists over several lines as one."""
    pending = ""
    is_import = False
    for head in line_heads(text, _LINE_CHARS):
        if pending:
            pending += " " + head.strip()
        elif language.imports.match(head):
            pending, is_import = head, True
        elif language.definitions.match(head):
            pending, is_import = head, False
        else:
            continue
        if len(pending) > _LINE_CHARS or not _is_open(pending, is_import):
            yield pending, is_import
            pending = ""
    if pending:
        yield pending, is_import


def _is_open(statement: str, is_import: bool) -> bool:
    """Tell whether a list goes on; the brace of a definition opens its body, not a list."""
    has_open_brace = is_import and statement.count("{") > statement.count("}")
    return has_open_brace or statement.count("(") > statement.count(")")
