"""The command itself: its verbs, its help, its completion scripts, and how it ends."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click
from click.shell_completion import get_completion_class

from .context import assemble
from .failures import EXIT_USAGE, ending
from .files import describe
from .focus import focus, refocus, unfocus
from .invocation import Invocation, global_options, pass_invocation
from .output import survive_any_locale
from .quarantine import quarantine
from .sessions import ingest, run
from .state import doctor, status
from .stored import conversations, export, messages, summaries
from .upkeep import compact, maintain

__all__ = ["cli", "main"]

PROGRAM = "lcm-fast"
_ASKED_FOR_JSON = "lcm_fast.asked_for_json"


class CommandLine(click.Group):
    """A group whose every end is one of ours: no bare traceback, no foreign exit code."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse what stands before the verb."""
        survive_any_locale()
        as_json = _asks_for_json(args)
        with ending(as_json=as_json):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[_ASKED_FOR_JSON] = as_json
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the rest and do it."""
        with ending(as_json=ctx.meta[_ASKED_FOR_JSON]):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs, the main job first."""
        return list(self.commands)


def _asks_for_json(args: list[str]) -> bool:
    """Tell it from the words themselves: one that cannot be parsed is answered in JSON too."""
    words = args[: args.index("--")] if "--" in args else args
    return "--json" in words


@click.group(
    cls=CommandLine,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    invoke_without_command=True,
    epilog="Exit codes: 0 fine, 1 found problems, 2 usage, 3 not found, 4 configuration,"
    " 5 database, 70 a bug.",
)
@global_options
@click.pass_context
def cli(context: click.Context) -> None:
    """Keep every message of an agent's conversations; assemble the best context for a token budget.

    Start with: lcm-fast run SESSION.jsonl
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(EXIT_USAGE)


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@global_options
@pass_invocation
def completion(_invocation: Invocation, shell: str) -> None:
    """Print what makes SHELL complete this command, for its start-up file.

    For bash: eval "$(lcm-fast completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, PROGRAM, "_LCM_FAST_COMPLETE").source())


for _verb in (
    run,
    ingest,
    assemble,
    compact,
    maintain,
    focus,
    refocus,
    unfocus,
    status,
    doctor,
    export,
    conversations,
    messages,
    summaries,
    describe,
    quarantine,
    completion,
):
    cli.add_command(_verb)


def main() -> NoReturn:
    """Run the command on the arguments of this process."""
    sys.exit(cli(prog_name=PROGRAM))
