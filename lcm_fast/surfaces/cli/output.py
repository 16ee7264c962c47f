"""Write to stdout, stderr and result files so that no text, locale or closed pipe can break it.

Text for people loses what a terminal would obey or cannot show; JSON keeps every character (design:
interfaces, command line).
"""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shutil
import sys
import textwrap
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

import click

from ...store import private_file

__all__ = [
    "WIDTH",
    "check_target",
    "columns",
    "counted",
    "encode_json",
    "one_line",
    "printable",
    "say",
    "say_json",
    "section",
    "silence_stdout",
    "survive_any_locale",
    "warn",
    "write_private",
]

WIDTH = 80
_LABEL_CHARS = 10

# Control characters but line feed and tab, and lone surrogates: stored text must drive no terminal.
_UNSHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    """Return a text as a terminal may be given it.

    >>> printable("a\\x1b[2Jb\\r\\nc")
    'a\ufffd[2Jb\\nc'
    """
    return _UNSHOWN.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str, max_columns: int) -> str:
    """Return the start of a text on one line; characters of East Asian scripts take two columns.

    >>> one_line("a\\n b  c", 4), one_line("没有意见", 6)
    ('a b…', '没有…')
    """
    # A longer start than is shown, for blanks fall away; not the whole, which may be megabytes.
    line = " ".join(text[: 4 * max_columns].split())
    ends = list(itertools.accumulate(2 if east_asian_width(char) in "WF" else 1 for char in line))
    if not ends or ends[-1] <= max_columns:
        return line
    return line[: bisect_right(ends, max_columns - 1)].rstrip() + "…"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun.

    >>> counted(1, "message"), counted(1200, "message"), counted(2, "entry", "entries")
    ('1 message', '1,200 messages', '2 entries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def section(label: str, paragraphs: Iterable[str], *, verbatim: bool = False) -> str:
    """Return paragraphs beside a label, wrapped to `WIDTH` columns unless they are `verbatim`.

    >>> print(section("out", ["12 messages", "all fit"]))
      out       12 messages
                all fit
    """
    lines: list[str] = []
    for paragraph in map(printable, paragraphs):
        if verbatim:
            lines.append(paragraph)
            continue
        # Paths are copied from here: they are never broken.
        lines += textwrap.wrap(
            paragraph, WIDTH - 2 - _LABEL_CHARS, break_long_words=False, break_on_hyphens=False
        )
    indents = [f"  {label:<{_LABEL_CHARS}}"] + [" " * (2 + _LABEL_CHARS)] * len(lines)
    return "\n".join(indent + line for indent, line in zip(indents, lines, strict=False))


def say(text: str, *, err: bool = False) -> None:
    """Print text for people."""
    click.echo(printable(text), err=err)


def warn(text: str) -> None:
    """Print one line on stderr."""
    say(text.replace("\n", " "), err=True)


def say_json(value: dict[str, Any]) -> None:
    """Print an object on one line, as UTF-8 whatever the locale."""
    click.echo(encode_json(value))


def encode_json(value: Any, *, indent: int | None = None) -> bytes:
    """Return JSON in UTF-8; with escapes throughout when a lone surrogate has no UTF-8 form.

    >>> encode_json(["é", "\\ud800"])
    b'["\\\\u00e9", "\\\\ud800"]'
    """
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent).encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent).encode()


def check_target(path: Path | None) -> None:
    """Find out before the work whether a result file can be made at all.

    Raises
    ------
    OSError
        Its folder is not there or may not be written, or it is a folder itself.
    """
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(21, "is a directory", str(path))
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(2, "no such folder", str(path.absolute().parent))
    if not os.access(path.absolute().parent, os.W_OK):
        raise PermissionError(13, "its folder may not be written", str(path))


def write_private(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all, readable by its owner only.

    Raises
    ------
    OSError
        It cannot be written; a file that was there before is as it was.
    """
    with private_file(path) as stream:
        stream.write(content)


def survive_any_locale() -> None:
    """Let stdout and stderr replace what their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def silence_stdout() -> None:
    """Drop what is buffered for a stdout that is gone; the interpreter would complain of it."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return


def columns() -> int:
    """Return the width of the terminal, or `WIDTH` when there is none."""
    return shutil.get_terminal_size((WIDTH, 24)).columns
