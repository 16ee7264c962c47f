"""What verbs share: the options accepted before and after the verb, and opening the memory."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from ..._version import __version__
from ...config import Config, load_config
from ...counting import choose_counter
from ...engine import Engine, open_engine
from ...store import Store
from ...summarize import ExtractiveSummarizer

__all__ = [
    "Invocation",
    "budget_option",
    "conversation_options",
    "global_options",
    "is_text",
    "page_options",
    "pass_invocation",
    "require_conversation",
    "session_key_option",
]

Callback = TypeVar("Callback", bound=Callable[..., Any])

# Far above any model's window, and far below what overflows a 64-bit sum.
MAX_BUDGET_TOKENS = 10**12
MAX_PAGE_ROWS = 1000
MAX_CURSOR = 2**63 - 1


@dataclass(slots=True)
class Invocation:
    """The global options of one run of the command."""

    db: str | None = None
    config: str | None = None
    as_json: bool = False

    def settings(self) -> Config:
        """Return the configuration, with ``--db`` over every other source."""
        return load_config(self.config, overrides={"databasePath": self.db})

    @contextmanager
    def writing(self) -> Iterator[Engine]:
        """Lend the engine, its database made when it is not there yet."""
        with open_engine(config=self.settings()) as engine:
            yield engine

    @contextmanager
    def reading(self) -> Iterator[Engine]:
        """Lend an engine that changes nothing.

        Raises
        ------
        NotFoundError
            There is no database yet.
        """
        config = self.settings()
        count_tokens = choose_counter(config).count
        store = Store.open_read_only(config.database_path)
        with Engine(store, config, ExtractiveSummarizer(), count_tokens) as engine:
            yield engine

    def next_command(self, *words: str) -> str:
        """Return a command line of ours that looks at the same memory."""
        options = [
            word
            for name, value in (("--db", self.db), ("--config", self.config))
            if value is not None
            for word in (name, value)
        ]
        return shlex.join(["lcm-fast", *words, *options])


pass_invocation = click.make_pass_decorator(Invocation, ensure=True)


def global_options(command: Callback) -> Callback:
    """Give a command the options that may stand before and after the verb."""
    for decorate in (
        click.version_option(__version__, prog_name="lcm-fast", message="%(prog)s %(version)s"),
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            expose_value=False,
            callback=_remember,
            help="Print JSON for programs.",
        ),
        click.option(
            "--config",
            metavar="PATH",
            expose_value=False,
            callback=_remember,
            help="Configuration file (JSON).",
        ),
        click.option(
            "--db",
            metavar="PATH",
            expose_value=False,
            callback=_remember,
            help="Database; default lcm.db in OPENCLAW_STATE_DIR or ~/.openclaw.",
        ),
    ):
        command = decorate(command)
    return command


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    invocation = context.ensure_object(Invocation)
    _in_unicode(context, parameter, value)
    if value and parameter.name:
        setattr(invocation, parameter.name, value)


def _in_unicode(_context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
    """Refuse a name whose bytes are no text: the database could not hold it."""
    if isinstance(value, str) and not is_text(value):
        raise click.BadParameter(f"{value!r} is not valid text in this system's encoding")
    return value


def is_text(name: str) -> bool:
    """Tell whether a name can be written as UTF-8, which bytes that are no text cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def session_key_option(meaning: str) -> Callable[[Callback], Callback]:
    """Give a command ``--session-key``."""
    return click.option("--session-key", metavar="KEY", callback=_in_unicode, help=meaning)


def conversation_options(command: Callback) -> Callback:
    """Give a command ``--session-key`` and ``--session-id``."""
    command = click.option(
        "--session-id", metavar="ID", callback=_in_unicode, help="Session id, instead of the key."
    )(command)
    return session_key_option("Which conversation.")(command)


def require_conversation(session_key: str | None, session_id: str | None) -> None:
    """Refuse a command that names no conversation.

    Raises
    ------
    click.UsageError
        Neither is given.
    """
    if session_key is None and session_id is None:
        raise click.UsageError(
            "no conversation is named: give --session-key or --session-id"
            " (`lcm-fast conversations` lists them)",
            click.get_current_context(),
        )


def budget_option(**more: Any) -> Callable[[Callback], Callback]:
    """Give a command ``--budget``; how small it may be is the engine's to say."""
    return click.option(
        "--budget",
        type=click.IntRange(max=MAX_BUDGET_TOKENS),
        metavar="TOKENS",
        help="Tokens of the whole context, at least 256.",
        **more,
    )


def page_options(first: int | str) -> Callable[[Callback], Callback]:
    """Give a command ``--limit`` and ``--cursor``; `first` is the cursor of the first page."""
    kind = click.IntRange(0, MAX_CURSOR) if isinstance(first, int) else click.STRING

    def decorate(command: Callback) -> Callback:
        command = click.option(
            "--cursor", type=kind, default=first, metavar="CURSOR", help="Where to go on."
        )(command)
        return click.option(
            "--limit",
            type=click.IntRange(1, MAX_PAGE_ROWS),
            default=50,
            show_default=True,
            metavar="ROWS",
            help="Rows of a page.",
        )(command)

    return decorate
