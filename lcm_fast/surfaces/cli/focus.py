"""The verbs ``focus``, ``refocus`` and ``unfocus``: a brief in the place of summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from ...engine import Engine
from ...focus import FocusResult, FocusStatus
from ...store import FocusBrief
from .drawing import progress
from .failures import EXIT_PROBLEMS
from .invocation import (
    Invocation,
    conversation_options,
    global_options,
    pass_invocation,
    require_conversation,
)
from .output import counted, one_line, say, say_json, section

__all__ = ["focus", "refocus", "unfocus"]

_PROMPT_CHARS = 240
_PREVIEW_CHARS = 1_200
_CITED_SHOWN = 8


@click.command(short_help="Write a brief on a task, and show it instead of summaries.")
@click.argument("prompt", nargs=-1)
@conversation_options
@global_options
@pass_invocation
def focus(
    invocation: Invocation,
    *,
    prompt: tuple[str, ...],
    session_key: str | None,
    session_id: str | None,
) -> None:
    """Write a brief on PROMPT from what a conversation has summarised, and show it from now on in
    the place of those summaries. Without PROMPT, tell how the focus stands.
    """
    require_conversation(session_key, session_id)
    if prompt:
        task = " ".join(prompt)
        _do(
            invocation,
            lambda engine, told: engine.focus(
                task, session_key=session_key, session_id=session_id, progress=told
            ),
        )
        return
    with invocation.reading() as engine:
        found = engine.focus_status(session_key=session_key, session_id=session_id)
    if invocation.as_json:
        say_json({"ok": True, **found.to_dict()})
    else:
        say("\n".join(_status_lines(found)))


@click.command(short_help="Carry the brief on with what was summarised since.")
@conversation_options
@global_options
@pass_invocation
def refocus(invocation: Invocation, *, session_key: str | None, session_id: str | None) -> None:
    """Carry the brief of a conversation on with what was summarised after it."""
    require_conversation(session_key, session_id)
    _do(
        invocation,
        lambda engine, told: engine.refocus(
            session_key=session_key, session_id=session_id, progress=told
        ),
    )


@click.command(short_help="Show the summaries again.")
@conversation_options
@global_options
@pass_invocation
def unfocus(invocation: Invocation, *, session_key: str | None, session_id: str | None) -> None:
    """Show the summaries of a conversation again instead of its brief, which is kept."""
    require_conversation(session_key, session_id)
    _do(
        invocation,
        lambda engine, _told: engine.unfocus(session_key=session_key, session_id=session_id),
    )


def _do(
    invocation: Invocation, work: Callable[[Engine, Callable[[str], None]], FocusResult]
) -> None:
    with invocation.writing() as engine, progress(is_long=True) as bar:
        bar.begin("focusing")
        result = work(engine, bar.note)
    failed = result.status == "failed"
    if invocation.as_json:
        say_json({"ok": not failed, **result.to_dict()})
    else:
        lines = [f"{result.status}: {result.reason}"]
        if result.status == "active" and result.brief is not None:
            lines += _about(result.brief)
        say(section("focus", [*lines, *(f"WARNING: {warning}" for warning in result.warnings)]))
    click.get_current_context().exit(EXIT_PROBLEMS if failed else 0)


def _status_lines(found: FocusStatus) -> Iterator[str]:
    shown = found.brief or found.latest
    if shown is None:
        yield section(
            "focus", ["none: `lcm-fast focus --session-key KEY PROMPT` writes a brief on PROMPT"]
        )
        return
    yield section("focus", [f"{shown.status}, begun {shown.created_at}", *_about(shown)])
    cited = found.sources.get("cited", [])
    sources = [
        f"{counted(len(found.sources.get('active_input', [])), 'summary', 'summaries')} read,"
        f" {counted(len(found.sources.get('expanded', [])), 'summary', 'summaries')} opened"
    ]
    if cited:
        more = f" and {len(cited) - _CITED_SHOWN} more" if len(cited) > _CITED_SHOWN else ""
        sources.append(f"messages of {', '.join(cited[:_CITED_SHOWN])}{more}")
    yield section("sources", sources)
    if found.brief is not None:
        delta = found.delta
        since = (
            f"{counted(delta.messages, 'message')},"
            f" {counted(delta.summaries, 'summary', 'summaries')},"
            f" {counted(delta.tokens, 'token')}"
        )
        stale = "stale: `lcm-fast refocus` carries it on" if found.is_stale else "nothing to add"
        yield section("since", [since, stale])
    failed = next((one for one in (found.latest, shown) if one and one.error), None)
    if failed is not None:
        yield section("error", [f"{failed.brief_id}: {failed.error}"])
    if shown.content:
        yield ""
        yield shown.content[:_PREVIEW_CHARS]
        if len(shown.content) > _PREVIEW_CHARS:
            yield f"({len(shown.content) - _PREVIEW_CHARS:,} more characters; --json has them)"


def _about(brief: FocusBrief) -> Iterator[str]:
    yield f"{brief.brief_id}, {brief.token_count:,} of {counted(brief.target_tokens, 'token')}"
    yield f"on: {one_line(brief.prompt, _PROMPT_CHARS)}"
    if brief.truncated:
        yield "cut at its size limit"
