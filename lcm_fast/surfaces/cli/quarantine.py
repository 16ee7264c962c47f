"""The verbs about what the flood guard set aside: ``quarantine list``, ``admit`` and ``drop``."""

from __future__ import annotations

import click

from ...store import QuarantinedBatch
from .drawing import draw_table
from .invocation import (
    MAX_PAGE_ROWS,
    Invocation,
    global_options,
    pass_invocation,
    session_key_option,
)
from .output import counted, say, say_json

__all__ = ["quarantine"]


@click.group(short_help="List, admit or drop what the flood guard set aside.")
@global_options
def quarantine() -> None:
    """Look at messages that were refused as a replay, and decide about them.

    Nothing set aside is lost: it waits until it is admitted or dropped.
    """


@quarantine.command("list", short_help="List the batches that wait.")
@session_key_option("This conversation alone.")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_PAGE_ROWS),
    default=50,
    show_default=True,
    metavar="ROWS",
    help="Most batches to list.",
)
@global_options
@pass_invocation
def list_batches(invocation: Invocation, session_key: str | None, limit: int) -> None:
    """List the batches that wait, oldest first."""
    with invocation.reading() as engine:
        rows = engine.quarantined(session_key=session_key, limit=limit)
    if invocation.as_json:
        say_json({"ok": True, "batches": [_fields(row) for row in rows]})
        return
    if not rows:
        say("nothing is set aside")
        return
    draw_table(
        ("batch", "#messages", "received", "session key", "reason"),
        [
            (row.batch_id, f"{row.messages:,}", row.received_at, row.session_key or "", row.reason)
            for row in rows
        ],
    )


@quarantine.command(short_help="Store batches after all.")
@click.argument("batches", nargs=-1, required=True, metavar="BATCH...")
@global_options
@pass_invocation
def admit(invocation: Invocation, batches: tuple[str, ...]) -> None:
    """Store each BATCH after all, at the end of its conversation."""
    with invocation.writing() as engine:
        for batch_id in batches:
            result = engine.admit(batch_id)
            if invocation.as_json:
                say_json({"ok": True, "batch_id": batch_id, **result.to_dict()})
            else:
                say(
                    f"{batch_id}: {counted(result.ingested, 'message')} stored,"
                    f" {result.duplicates:,} known before"
                )


@quarantine.command(short_help="Leave batches out of the conversation for good.")
@click.argument("batches", nargs=-1, required=True, metavar="BATCH...")
@global_options
@pass_invocation
def drop(invocation: Invocation, batches: tuple[str, ...]) -> None:
    """Leave each BATCH out of its conversation for good; its bytes stay in the database."""
    with invocation.writing() as engine:
        for batch_id in batches:
            dropped = engine.drop(batch_id)
            if invocation.as_json:
                say_json({"ok": True, "batch_id": batch_id, "dropped": dropped})
            else:
                say(f"{batch_id}: {counted(dropped, 'message')} dropped")


def _fields(row: QuarantinedBatch) -> dict[str, object]:
    return {
        "batch_id": row.batch_id,
        "session_key": row.session_key,
        "conversation_id": row.conversation_id,
        "messages": row.messages,
        "received_at": row.received_at,
        "reason": row.reason,
    }
