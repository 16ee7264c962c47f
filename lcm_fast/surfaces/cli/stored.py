"""The verbs that list, show and hand back what is stored.

``conversations``, ``messages``, ``summaries`` and ``export``; none of them changes anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from ...engine import Engine
from ...errors import NotFoundError
from ...store import Conversation, StoredMessage, StoredSummary
from ...summarize.timestamps import format_time, local_time
from ...transcripts import body_of, shapes
from .drawing import draw_table
from .invocation import (
    Invocation,
    conversation_options,
    global_options,
    page_options,
    pass_invocation,
    require_conversation,
)
from .output import check_target, counted, one_line, say, say_json, section

__all__ = ["conversations", "export", "messages", "summaries"]

_PREVIEW_CHARS = 200


@click.command(short_help="List the conversations.")
@page_options(0)
@global_options
@pass_invocation
def conversations(invocation: Invocation, limit: int, cursor: int) -> None:
    """List the conversations of the memory, oldest first."""
    with invocation.reading() as engine:
        rows = engine.conversations(limit=limit + 1, cursor=cursor)
    rows, more = rows[:limit], len(rows) > limit
    next_cursor = rows[-1].conversation_id if more else None
    if invocation.as_json:
        listed = [_conversation_fields(row) for row in rows]
        say_json({"ok": True, "conversations": listed, "next_cursor": next_cursor})
        return
    draw_table(
        ("#id", "#messages", "#tokens", "#in view", "#summaries", "session key"),
        [_conversation_cells(row) for row in rows],
    )
    _say_next_page(invocation, next_cursor, "conversations", "--limit", str(limit))


def _conversation_fields(row: Conversation) -> dict[str, Any]:
    return {
        "conversation_id": row.conversation_id,
        "session_key": row.session_key,
        "session_id": row.session_id,
        "active": row.active,
        "created_at": row.created_at,
        "last_ingest_at": row.last_ingest_at,
        "messages": row.message_count,
        "message_tokens": row.message_tokens,
        "excluded": row.excluded_count,
        "frontier_items": row.frontier_items,
        "frontier_tokens": row.frontier_tokens,
        "summaries": {"leaf": row.leaf_count, "condensed": row.condensed_count},
    }


def _conversation_cells(row: Conversation) -> tuple[str, ...]:
    name = row.session_key or f"(session id {row.session_id})"
    return (
        str(row.conversation_id),
        f"{row.message_count:,}",
        f"{row.message_tokens:,}",
        f"{row.frontier_tokens:,}",
        f"{row.leaf_count + row.condensed_count:,}",
        name if row.active else f"{name} (archived)",
    )


@click.command(short_help="List a conversation's messages, or show one whole.")
@conversation_options
@click.option("--id", "message_id", metavar="msg_N", help="Show this message, whole.")
@page_options(0)
@global_options
@pass_invocation
def messages(
    invocation: Invocation,
    *,
    session_key: str | None,
    session_id: str | None,
    message_id: str | None,
    limit: int,
    cursor: int,
) -> None:
    """List messages in order, abandoned branches included, or show one by its id."""
    if message_id is None:
        require_conversation(session_key, session_id)
    with invocation.reading() as engine:
        zone = engine.timezone
        if message_id is not None:
            _show_message(invocation, _find_message(engine, message_id), zone)
            return
        rows = engine.messages(
            session_key=session_key, session_id=session_id, limit=limit + 1, cursor=cursor
        )
    rows, more = rows[:limit], len(rows) > limit
    next_cursor = rows[-1].seq if more else None
    if invocation.as_json:
        listed = [_message_fields(row, zone) for row in rows]
        say_json({"ok": True, "messages": listed, "next_cursor": next_cursor})
        return
    draw_table(
        ("id", "role", "time", "#tokens", "text"), [_message_cells(row, zone) for row in rows]
    )
    which = _which(session_key, session_id)
    _say_next_page(invocation, next_cursor, "messages", *which, "--limit", str(limit))


def _find_message(engine: Engine, message_id: str) -> StoredMessage:
    digits = message_id.removeprefix("msg_")
    # 18 digits always fit the store's 64-bit numbers.
    known = digits.isascii() and digits.isdigit() and len(digits) <= 18
    rows = engine.store.messages([int(digits)]) if known else []
    if not rows:
        raise NotFoundError(
            f"no message {message_id!r} in {engine.store.path}",
            hint="an id is msg_ and a number; `lcm-fast messages` lists them",
        )
    return rows[0]


def _show_message(invocation: Invocation, row: StoredMessage, zone: str) -> None:
    if invocation.as_json:
        # Bytes that are no UTF-8 come out as lone surrogates, from which they can be had back.
        raw = row.raw.decode("utf-8", "surrogateescape")
        say_json({"ok": True, "message": {**_message_fields(row, zone), "raw": raw}})
        return
    where = f"conversation {row.conversation_id}, message {row.seq}"
    about = [f"{row.role}, {format_time(row.created_at, zone) or 'no time'}"]
    if row.excluded:
        about.append(f"kept out of the view: {row.excluded}")
    about.append(f"{counted(row.token_count, 'token')}, {counted(len(row.raw), 'byte')}")
    say(f"msg_{row.message_id}\n{section('where', [where])}\n{section('what', about)}\n")
    body = body_of(row.raw)
    if row.content:
        say(row.content)
    for name, arguments in shapes.call_arguments(body):
        say(f"calls {name} {_as_text(arguments)}")


def _as_text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def _message_fields(row: StoredMessage, zone: str) -> dict[str, Any]:
    return {
        "id": f"msg_{row.message_id}",
        "message_id": row.message_id,
        "conversation_id": row.conversation_id,
        "seq": row.seq,
        "role": row.role,
        "created_at": _stamp(row.created_at, zone),
        "token_count": row.token_count,
        "wire_tokens": row.wire_tokens,
        "entry_id": row.entry_id,
        "excluded": row.excluded,
        "content": row.content,
    }


def _message_cells(row: StoredMessage, zone: str) -> tuple[str, ...]:
    preview = one_line(row.content, _PREVIEW_CHARS)
    if not preview:
        calls = [call.name for call in shapes.tool_calls(body_of(row.raw))]
        preview = f"calls {', '.join(calls)}" if calls else ""
    return (
        f"msg_{row.message_id}",
        row.role,
        _minute(row.created_at, zone),
        f"{row.token_count:,}",
        f"({row.excluded}) {preview}" if row.excluded else preview,
    )


@click.command(short_help="List a conversation's summaries, or show one whole.")
@conversation_options
@click.option("--id", "summary_id", metavar="sum_X", help="Show this summary, whole.")
@page_options("")
@global_options
@pass_invocation
def summaries(
    invocation: Invocation,
    *,
    session_key: str | None,
    session_id: str | None,
    summary_id: str | None,
    limit: int,
    cursor: str,
) -> None:
    """List summaries, oldest first, or show one by its id."""
    if summary_id is None:
        require_conversation(session_key, session_id)
    with invocation.reading() as engine:
        zone = engine.timezone
        if summary_id is not None:
            _show_summary(invocation, _find_summary(engine, summary_id), zone)
            return
        rows = engine.summaries(
            session_key=session_key, session_id=session_id, limit=limit + 1, cursor=cursor
        )
    rows, more = rows[:limit], len(rows) > limit
    next_cursor = rows[-1].summary_id if more else None
    if invocation.as_json:
        listed = [_summary_fields(row, zone) for row in rows]
        say_json({"ok": True, "summaries": listed, "next_cursor": next_cursor})
        return
    draw_table(
        ("id", "#depth", "#tokens", "#covers", "from", "text"),
        [_summary_cells(row, zone) for row in rows],
    )
    which = _which(session_key, session_id)
    _say_next_page(invocation, next_cursor, "summaries", *which, "--limit", str(limit))


def _find_summary(engine: Engine, summary_id: str) -> StoredSummary:
    rows = engine.store.summaries([summary_id])
    if not rows:
        raise NotFoundError(
            f"no summary {summary_id!r} in {engine.store.path}",
            hint="`lcm-fast summaries` lists them",
        )
    return rows[0]


def _show_summary(invocation: Invocation, row: StoredSummary, zone: str) -> None:
    if invocation.as_json:
        say_json({"ok": True, "summary": _summary_fields(row, zone)})
        return
    span = [format_time(moment, zone) or "?" for moment in (row.earliest_at, row.latest_at)]
    about = [
        f"{row.kind}, depth {row.depth}, {counted(row.token_count, 'token')}, by {row.model}"
        f" ({row.level})",
        f"covers {counted(row.source_message_token_count, 'token')} of messages,"
        f" {' to '.join(dict.fromkeys(span))}",
    ]
    if row.source_ids:
        about.append(f"made from {', '.join(row.source_ids)}")
    say(f"{row.summary_id}\n{section('what', about)}\n\n{row.content}")


def _summary_fields(row: StoredSummary, zone: str) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(row)
    times = {
        name: _stamp(fields[name], zone) for name in ("earliest_at", "latest_at", "created_at")
    }
    return {"id": row.summary_id, **fields, **times}


def _summary_cells(row: StoredSummary, zone: str) -> tuple[str, ...]:
    return (
        row.summary_id,
        str(row.depth),
        f"{row.token_count:,}",
        f"{row.source_message_token_count:,}",
        _minute(row.earliest_at, zone),
        one_line(row.content, _PREVIEW_CHARS),
    )


@click.command(short_help="Hand back a conversation, byte for byte.")
@conversation_options
@click.option(
    "--to",
    type=click.Path(path_type=Path, readable=False),
    metavar="FILE",
    help="Default: standard output.",
)
@global_options
@pass_invocation
def export(
    invocation: Invocation, session_key: str | None, session_id: str | None, to: Path | None
) -> None:
    """Write every entry of a conversation as it was received, one a line."""
    require_conversation(session_key, session_id)
    if to is None and invocation.as_json:
        raise click.UsageError(
            "--json goes with --to FILE: without it the export itself goes to standard output",
            click.get_current_context(),
        )
    check_target(to)
    with invocation.reading() as engine:
        if to is None:
            for raw in engine.export_entries(session_key=session_key, session_id=session_id):
                click.echo(raw)
            return
        entries = engine.export(session_key=session_key, session_id=session_id, to=to)
    if invocation.as_json:
        say_json({"ok": True, "entries": entries, "to": str(to)})
    else:
        say(f"{counted(entries, 'entry', 'entries')} written to {to}")


def _which(session_key: str | None, session_id: str | None) -> list[str]:
    named = (("--session-key", session_key), ("--session-id", session_id))
    return [word for name, value in named if value is not None for word in (name, value)]


def _say_next_page(invocation: Invocation, cursor: int | str | None, *words: str) -> None:
    if cursor is not None:
        say(f"\nmore: {invocation.next_command(*words, '--cursor', str(cursor))}")


def _stamp(iso: str | None, zone: str) -> str | None:
    """Return a stored time as ISO 8601 with the offset of the zone (decision 18)."""
    moment = local_time(iso, zone)
    return iso if moment is None else moment.isoformat(timespec="milliseconds")


def _minute(iso: str | None, zone: str) -> str:
    moment = local_time(iso, zone)
    return "" if moment is None else moment.isoformat(sep=" ", timespec="minutes")[:16]
