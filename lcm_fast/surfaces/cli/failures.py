"""How a command ends when something is wrong: a line for people, an object for programs, a code.

The only place that maps errors to exit codes. Prints no traceback unless it is asked for.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from ...errors import LcmError, SessionFileError
from .output import say, say_json, silence_stdout, warn

__all__ = ["EXIT_PROBLEMS", "Failure", "ending", "failure_of", "report_failure"]

EXIT_PROBLEMS = 1
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3
EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

TRACEBACK_VARIABLE = "LCM_FAST_TRACEBACK"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as the command line tells it."""

    exit_code: int
    code: str
    detail: str
    hint: str = ""
    traceback: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return ``{"code", "detail", "hint"}``, as ``--json`` prints it."""
        return {"code": self.code, "detail": self.detail, "hint": self.hint}


def failure_of(error: Exception) -> Failure:
    """Return what to tell about an error, and the exit code it means.

    >>> failure_of(FileNotFoundError(2, "No such file or directory", "x")).exit_code
    3
    """
    match error:
        case SessionFileError(code="is_directory"):
            return Failure(EXIT_USAGE, error.code, error.detail, error.hint)
        case LcmError():
            return Failure(error.exit_code, error.code, error.detail, error.hint)
        case click.UsageError():
            return Failure(EXIT_USAGE, "usage", error.format_message(), _usage_hint(error))
        case OSError():
            return _system_failure(error)
    return Failure(
        EXIT_BUG,
        "internal_error",
        f"internal error: {type(error).__name__}: {error}",
        "please report it at the project's issue tracker",
        "".join(traceback.format_exception(error)),
    )


def report_failure(failure: Failure, *, as_json: bool, **about: Any) -> None:
    """Print a failure: lines on stderr, and with ``--json`` an object on stdout.

    Parameters
    ----------
    about
        Further keys of the object, such as which session failed.
    """
    if failure.traceback:
        warn(f"lcm-fast: {failure.detail}; {failure.hint}")
        if os.environ.get(TRACEBACK_VARIABLE) == "1":
            say(failure.traceback, err=True)
    else:
        warn(f"lcm-fast: error: {failure.detail}")
        if failure.hint:
            warn(f"hint: {failure.hint}")
    if as_json:
        say_json({"ok": False, **about, "error": failure.to_dict()})


@contextmanager
def ending(*, as_json: bool) -> Iterator[None]:
    """End the command with a line and an exit code, whatever the block raises.

    Raises
    ------
    click.exceptions.Exit
        In place of every other exception.
    """
    try:
        yield
        sys.stdout.flush()
    except click.exceptions.Exit:
        raise
    except (KeyboardInterrupt, click.Abort):
        warn("lcm-fast: interrupted; what was stored before it stays")
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        silence_stdout()
        raise click.exceptions.Exit(EXIT_BROKEN_PIPE) from None
    except Exception as error:
        failure = failure_of(error)
        _report_last(failure, as_json=as_json)
        raise click.exceptions.Exit(failure.exit_code) from None


def _report_last(failure: Failure, *, as_json: bool) -> None:
    """Report a failure that may be that of stdout itself."""
    try:
        report_failure(failure, as_json=as_json)
        sys.stdout.flush()
    except OSError:
        silence_stdout()


def _usage_hint(error: click.UsageError) -> str:
    return f"`{error.ctx.command_path} --help` lists what it takes" if error.ctx else ""


def _system_failure(error: OSError) -> Failure:
    """Return the failure of a file or stream: the system said no, which is no bug."""
    what = error.strerror or str(error)
    detail = f"{os.fsdecode(error.filename)}: {what}" if error.filename else what
    if isinstance(error, FileNotFoundError):
        return Failure(EXIT_NOT_FOUND, "not_found", detail, "check the path")
    return Failure(EXIT_PROBLEMS, "system_error", detail)
