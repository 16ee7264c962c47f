"""The verb that reads a large payload back: ``describe``."""

from __future__ import annotations

from pathlib import Path

import click

from ...ingest import FileDescription
from .invocation import Invocation, global_options, pass_invocation
from .output import check_target, counted, say, say_json, section, write_private

__all__ = ["describe"]


@click.command(short_help="Say what a large file holds, or read it back.")
@click.argument("file_id", metavar="FILE_ID")
@click.option("--expand-file", is_flag=True, help="Print its content.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, readable=False),
    metavar="FILE",
    help="Write its content there instead.",
)
@global_options
@pass_invocation
def describe(invocation: Invocation, *, file_id: str, expand_file: bool, out: Path | None) -> None:
    """Say what the file of a large payload holds; FILE_ID is an id, or a whole reference.

    With --expand-file or --out its content is read back, byte for byte.
    """
    check_target(out)
    with invocation.reading() as engine:
        found = engine.describe(file_id, expand_file=expand_file or out is not None)
    content = found.content or b""
    if out is not None:
        write_private(out, content)
    if invocation.as_json:
        say_json({"ok": True, **found.to_dict(), "out": str(out) if out else None})
    elif expand_file and out is None:
        click.echo(content, nl=False)
    else:
        say(_text(found, out))


def _text(found: FileDescription, out: Path | None) -> str:
    size = counted(found.byte_size, "byte")
    lines = "" if found.line_count is None else f", {counted(found.line_count, 'line')}"
    facts = [f"{found.file_name or 'no name'}, {found.mime_type or 'unknown type'}, {size}{lines}"]
    facts.append(f"in {', '.join(found.used_in)}")
    if out is not None:
        facts.append(f"written to {out}")
    return "\n".join([section("file", facts), "", found.exploration_summary])
