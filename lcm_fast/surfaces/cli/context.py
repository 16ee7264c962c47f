"""The verb that shows one conversation's context: ``assemble``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from ...ingest.normalise import iso_time
from ...summarize.timestamps import format_time
from ...transcripts import shapes
from ...transcripts.forms import FORMS
from ...types import Shape
from .invocation import (
    Invocation,
    budget_option,
    conversation_options,
    global_options,
    pass_invocation,
    require_conversation,
)
from .output import (
    WIDTH,
    check_target,
    counted,
    encode_json,
    one_line,
    say,
    say_json,
    write_private,
)
from .report import diagnostics_section, output_section

__all__ = ["assemble"]

_LINES_SHOWN = 6


@click.command(short_help="Print or write the context for the next model call.")
@conversation_options
@budget_option(required=True)
@click.option("--prompt", metavar="TEXT", help="The next message; room for it is kept free.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="The form of the messages; default: as they came.",
)
@click.option("--model", metavar="NAME", help="That the context is for, as turns name it.")
@click.option("--diagnose", is_flag=True, help="Also tell what fills the context.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, readable=False),
    metavar="FILE",
    help="Write the messages there, as a JSON array, instead of showing them.",
)
@global_options
@pass_invocation
def assemble(
    invocation: Invocation,
    *,
    session_key: str | None,
    session_id: str | None,
    budget: int,
    prompt: str | None,
    form: Shape | None,
    model: str | None,
    diagnose: bool,
    out: Path | None,
) -> None:
    """Choose the best context of a conversation within a token budget; changes nothing."""
    require_conversation(session_key, session_id)
    check_target(out)
    with invocation.reading() as engine:
        conversation = engine.conversation(session_key=session_key, session_id=session_id)
        assembly = engine.assemble(
            session_key=session_key,
            session_id=session_id,
            token_budget=budget,
            prompt=prompt,
            format=form,
            model=model,
            diagnostics=diagnose,
        )
        zone = engine.timezone
    if out is not None:
        write_private(out, encode_json(assembly.messages, indent=1) + b"\n")
    if invocation.as_json:
        about = {"session_key": conversation.session_key, "out": str(out) if out else None}
        say_json({"ok": True, **about, **assembly.to_dict()})
        return
    if out is None:
        for number, message in enumerate(assembly.messages, 1):
            say("\n".join(_shown(number, message, zone)))
    say(output_section(assembly))
    if assembly.diagnostics is not None:
        say(diagnostics_section(assembly.diagnostics))


def _shown(number: int, message: Mapping[str, Any], zone: str) -> Iterator[str]:
    """Yield the lines that show one message: who, when, the first of what."""
    role = str(message.get("role") or message.get("type"))
    when = format_time(iso_time(message.get("timestamp")), zone)
    names = [shapes.tool_name_of(message)] if shapes.tool_answers(message) else []
    if calls := [call.name for call in shapes.tool_calls(message)]:
        names.append(f"calls {', '.join(calls)}")
    yield "  ".join(filter(None, [f"{number:>4}  {role}", when, *names]))
    lines = [line for line in shapes.content_of(message).splitlines() if line.strip()]
    for line in lines[:_LINES_SHOWN]:
        yield " " * 6 + one_line(line, WIDTH - 6)
    if len(lines) > _LINES_SHOWN:
        yield " " * 6 + f"({counted(len(lines) - _LINES_SHOWN, 'more line')})"
