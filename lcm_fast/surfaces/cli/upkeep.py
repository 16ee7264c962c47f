"""The verbs that summarise: ``compact`` for one conversation, ``maintain`` for all that is due."""

from __future__ import annotations

import click

from .drawing import progress
from .failures import EXIT_PROBLEMS
from .invocation import (
    Invocation,
    budget_option,
    conversation_options,
    global_options,
    pass_invocation,
    require_conversation,
    session_key_option,
)
from .output import say, say_json
from .report import compaction_section, maintenance_section, plan_section

__all__ = ["compact", "maintain"]


@click.command(short_help="Summarise what is old until a conversation fits.")
@conversation_options
@budget_option(required=True)
@click.option("--force", is_flag=True, help="Summarise all that can be, even when it fits.")
@click.option(
    "--target",
    type=click.Choice(["threshold", "budget"]),
    default="threshold",
    show_default=True,
    help="Fit contextThreshold of the budget, or the budget itself.",
)
@click.option("--instructions", metavar="TEXT", help="For the summariser.")
@click.option("--dry-run", is_flag=True, help="Print what would be summarised; change nothing.")
@global_options
@pass_invocation
def compact(
    invocation: Invocation,
    *,
    session_key: str | None,
    session_id: str | None,
    budget: int,
    force: bool,
    target: str,
    instructions: str | None,
    dry_run: bool,
) -> None:
    """Summarise old messages of a conversation until it is under its target."""
    require_conversation(session_key, session_id)
    with invocation.reading() as engine:
        # A memory is not made only to find nothing in it.
        conversation = engine.conversation(session_key=session_key, session_id=session_id)
        if dry_run:
            plan = engine.plan_compaction(
                session_key=session_key,
                session_id=session_id,
                token_budget=budget,
                force=force,
                target=target,
            )
            if invocation.as_json:
                about = {"session_key": conversation.session_key, "dry_run": True}
                say_json({"ok": True, **about, **plan.to_dict()})
            else:
                say(plan_section(plan))
            return
    with invocation.writing() as engine, progress(is_long=True) as bar:
        bar.begin("compacting")
        result = engine.compact(
            session_key=session_key,
            session_id=session_id,
            token_budget=budget,
            force=force,
            target=target,
            instructions=instructions,
            progress=bar.note,
        )
        conversation = engine.conversation(session_key=session_key, session_id=session_id)
    failed = result.status == "failed"
    if invocation.as_json:
        say_json({"ok": not failed, "session_key": conversation.session_key, **result.to_dict()})
    else:
        say(compaction_section(result, conversation))
    click.get_current_context().exit(EXIT_PROBLEMS if failed else 0)


@click.command(short_help="Do what turns have left to be done.")
@session_key_option("This conversation alone.")
@click.option(
    "--deadline-ms",
    type=click.IntRange(min=1),
    metavar="N",
    help="Begin nothing further after so many milliseconds.",
)
@global_options
@pass_invocation
def maintain(invocation: Invocation, *, session_key: str | None, deadline_ms: int | None) -> None:
    """Compact the conversations that are over their threshold, the one that waits longest first;
    then have fallback summaries written properly.

    What fails is tried again by a later call: after 5, 10, 20, then 30 minutes.
    """
    with invocation.writing() as engine, progress(is_long=True) as bar:
        bar.begin("maintaining")
        result = engine.maintain(
            session_key=session_key, deadline_ms=deadline_ms, progress=bar.note
        )
    ok = not result.failures
    if invocation.as_json:
        say_json({"ok": ok, **result.to_dict()})
    else:
        say(maintenance_section(result))
    click.get_current_context().exit(0 if ok else EXIT_PROBLEMS)
