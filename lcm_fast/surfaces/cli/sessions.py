"""The verbs that read session files: ``run``, the main job in one call, and ``ingest``.

Each session is a job of its own: one that fails is reported and does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click

from ...assembly import Assembly, check_budget
from ...compaction import CompactionResult
from ...counting import choose_counter
from ...engine import DEFAULT_TOKEN_BUDGET, Engine
from ...errors import LcmError, SessionFileError
from ...ingest import BootstrapResult, sessions_in
from ...kernels import IMPLEMENTATION
from ...store import Conversation
from .drawing import Progress, progress
from .failures import EXIT_PROBLEMS, Failure, failure_of, report_failure
from .invocation import (
    Invocation,
    budget_option,
    global_options,
    is_text,
    pass_invocation,
    session_key_option,
)
from .output import check_target, encode_json, say, say_json, section, write_private
from .report import compaction_section, ingest_section, messages_per_second, output_section

__all__ = ["ingest", "run"]

_LONG_FILE_BYTES = 2_000_000

_sessions_argument = click.argument(
    "sessions",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, readable=False),
    metavar="SESSION...",
)


class Session(NamedTuple):
    """A session to read: a file, or one of several in a database."""

    path: Path
    session_id: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.session_id is None else f"{self.path} {self.session_id}"


@dataclass(slots=True)
class Outcome:
    """What became of one session, as far as its job came."""

    session: Session
    db: str
    ingested: BootstrapResult
    conversation: Conversation
    compaction: CompactionResult | None = None
    assembly: Assembly | None = None
    out: Path | None = None
    failure: Failure | None = None

    @property
    def exit_code(self) -> int:
        """Say whether the job found problems."""
        failed = self.compaction is not None and self.compaction.status == "failed"
        has_problems = self.ingested.unreadable or self.ingested.is_frozen or failed
        problems = EXIT_PROBLEMS if has_problems else 0
        return max(problems, self.failure.exit_code if self.failure else 0)


@click.command(short_help="Ingest, compact and assemble: the main job in one call.")
@_sessions_argument
@budget_option(default=DEFAULT_TOKEN_BUDGET, show_default=True)
@click.option("--prompt", metavar="TEXT", help="The next message; room for it is kept free.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, readable=False),
    metavar="FILE",
    help="With one SESSION: write the assembled messages there, as a JSON array.",
)
@session_key_option("With one SESSION: its conversation; default its name.")
@global_options
@pass_invocation
def run(
    invocation: Invocation,
    *,
    sessions: tuple[Path, ...],
    budget: int,
    prompt: str | None,
    out: Path | None,
    session_key: str | None,
) -> None:
    """Store what is new of each SESSION, compact what is old, assemble what fits.

    Prints what went in, what came out, and why. A second run of the same file adds nothing.
    """
    _only_with_one_session(sessions, session_key=session_key, out=out)
    check_budget(budget, choose_counter(invocation.settings()).count(prompt or ""))
    check_target(out)

    def job(engine: Engine, session: Session, bar: Progress) -> Outcome:
        outcome = _ingest_one(engine, session, session_key, bar)
        try:
            _go_on(engine, outcome, budget, prompt, bar)
            if out is not None and outcome.assembly is not None:
                write_private(out, encode_json(outcome.assembly.messages, indent=1) + b"\n")
                outcome.out = out
        except (LcmError, OSError) as error:
            # What was stored before it is told all the same.
            outcome.failure = failure_of(error)
        return outcome

    _each_session(invocation, sessions, session_key, job, _run_json, _run_report)


@click.command(short_help="Store what is new of session files.")
@_sessions_argument
@session_key_option("With one SESSION: its conversation; default its name.")
@click.option(
    "--admit", is_flag=True, help="Store files that are held back as repeating what is stored."
)
@global_options
@pass_invocation
def ingest(
    invocation: Invocation, *, sessions: tuple[Path, ...], session_key: str | None, admit: bool
) -> None:
    """Store what is new of each SESSION: an OpenClaw or pi session, or a list of messages.

    Of a database in which OpenClaw keeps an agent's sessions, every session is stored.
    """
    _only_with_one_session(sessions, session_key=session_key)

    def job(engine: Engine, session: Session, bar: Progress) -> Outcome:
        return _ingest_one(engine, session, session_key, bar, admit=admit)

    _each_session(invocation, sessions, session_key, job, _ingest_json, _ingest_report)


def _only_with_one_session(sessions: tuple[Path, ...], **options: object) -> None:
    for name, value in options.items():
        if value is not None and len(sessions) > 1:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(
                f"{option} goes with one SESSION, not with {len(sessions)}",
                click.get_current_context(),
            )


def _each_session(
    invocation: Invocation,
    paths: tuple[Path, ...],
    session_key: str | None,
    job: Callable[[Engine, Session, Progress], Outcome],
    to_json: Callable[[Outcome], dict[str, Any]],
    to_text: Callable[[Invocation, Outcome], str],
) -> None:
    """Do a job for every session; end with the highest exit code met."""
    worst = 0
    with invocation.writing() as engine:
        for session, refusal in _sessions(paths, session_key):
            outcome, failure = None, refusal
            if refusal is None:
                outcome, failure = _attempt(engine, session, job)
            if failure is not None:
                report_failure(failure, as_json=invocation.as_json, session_file=str(session))
                worst = max(worst, failure.exit_code)
            if outcome is None:
                continue
            worst = max(worst, outcome.exit_code)
            if invocation.as_json:
                say_json(to_json(outcome))
            else:
                say(to_text(invocation, outcome))
            if outcome.failure is not None:
                report_failure(outcome.failure, as_json=False)
    click.get_current_context().exit(worst)


def _sessions(
    paths: tuple[Path, ...], session_key: str | None
) -> Iterator[tuple[Session, Failure | None]]:
    """Yield the sessions of files and databases; of one that cannot be looked at, why."""
    for path in paths:
        try:
            if not is_text(str(path)):
                raise SessionFileError(
                    f"{path}: the file's name is not valid text in this system's encoding",
                    hint="rename it, or give a link to it",
                    code="bad_file_name",
                )
            ids = sessions_in(path)
            if session_key is not None and len(ids) > 1:
                raise SessionFileError(
                    f"{path} holds {len(ids)} sessions; --session-key goes with one",
                    hint="leave --session-key out: each is a conversation by its session id",
                )
        except LcmError as error:
            yield Session(path), failure_of(error)
            continue
        for session_id in ids:
            yield Session(path, session_id), None


def _attempt(
    engine: Engine, session: Session, job: Callable[[Engine, Session, Progress], Outcome]
) -> tuple[Outcome | None, Failure | None]:
    try:
        path = session.path
        is_long = path.is_file() and path.stat().st_size > _LONG_FILE_BYTES
        with progress(is_long=is_long) as bar:
            return job(engine, session, bar), None
    except Exception as error:
        return None, failure_of(error)


def _ingest_one(
    engine: Engine,
    session: Session,
    session_key: str | None,
    bar: Progress,
    *,
    admit: bool = False,
) -> Outcome:
    bar.begin(f"reading {session.path.name}")
    result = engine.bootstrap(
        session.path,
        session_key=session_key,
        session_id=session.session_id,
        admit=admit,
        progress=bar.advance,
    )
    return Outcome(session, engine.store.path, result, _conversation(engine, result))


def _go_on(
    engine: Engine, outcome: Outcome, budget: int, prompt: str | None, bar: Progress
) -> None:
    """Compact and assemble what was ingested."""
    key, identity = outcome.ingested.session_key, outcome.ingested.session_id
    bar.begin("compacting")
    outcome.compaction = engine.compact(
        session_key=key, session_id=identity, token_budget=budget, progress=bar.note
    )
    outcome.conversation = _conversation(engine, outcome.ingested)
    outcome.assembly = engine.assemble(
        session_key=key, session_id=identity, token_budget=budget, prompt=prompt
    )


def _conversation(engine: Engine, result: BootstrapResult) -> Conversation:
    return engine.conversation(session_key=result.session_key, session_id=result.session_id)


def _ingest_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "ok": outcome.exit_code == 0,
        "session_file": str(outcome.session),
        **_ingest_fields(outcome),
        "implementation": IMPLEMENTATION,
        "db": outcome.db,
    }


def _ingest_fields(outcome: Outcome) -> dict[str, Any]:
    per_second = messages_per_second(outcome.ingested)
    return {**outcome.ingested.to_dict(), "messages_per_s": per_second}


def _run_json(outcome: Outcome) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "ok": outcome.exit_code == 0,
        "session_key": outcome.ingested.session_key,
        "session_file": str(outcome.session),
        "ingest": _ingest_fields(outcome),
        "compaction": outcome.compaction and outcome.compaction.to_dict(),
        "assembly": outcome.assembly and _assembly_fields(outcome.assembly),
        "implementation": IMPLEMENTATION,
        "db": outcome.db,
        "out": str(outcome.out) if outcome.out else None,
    }
    if outcome.failure is not None:
        fields["error"] = outcome.failure.to_dict()
    return fields


def _assembly_fields(assembly: Assembly) -> dict[str, Any]:
    """Return an assembly without its messages: their number stands in their place."""
    fields = assembly.to_dict()
    return {**fields, "messages": len(assembly.messages), **fields.pop("stats")}


def _ingest_report(invocation: Invocation, outcome: Outcome) -> str:
    key = outcome.ingested.session_key or ""
    follow = [
        invocation.next_command("messages", "--session-key", key),
        invocation.next_command("status"),
    ]
    sections = [str(outcome.session), ingest_section(outcome.ingested), _where(outcome)]
    return "\n".join([*sections, section("next", follow, verbatim=True)])


def _run_report(invocation: Invocation, outcome: Outcome) -> str:
    sections = [str(outcome.session), ingest_section(outcome.ingested)]
    if outcome.compaction is not None:
        sections.append(compaction_section(outcome.compaction, outcome.conversation))
    if outcome.assembly is not None:
        sections.append(output_section(outcome.assembly))
    follow = section("next", _after_run(invocation, outcome), verbatim=True)
    sections += [_where(outcome), follow]
    return "\n".join(sections)


def _where(outcome: Outcome) -> str:
    places = [
        f"database {outcome.db}, {IMPLEMENTATION} kernels",
        f"session key {outcome.ingested.session_key}",
    ]
    if outcome.out is not None:
        places.append(f"messages {outcome.out}")
    return section("where", places)


def _after_run(invocation: Invocation, outcome: Outcome) -> list[str]:
    """Return what to type next: see the context, the state, the summaries, get it all back."""
    which = ("--session-key", outcome.ingested.session_key or "")
    commands = [
        invocation.next_command("status"),
        invocation.next_command("summaries", *which),
        invocation.next_command("export", *which, "--to", "FILE"),
    ]
    if outcome.assembly is not None and outcome.out is None:
        budget = str(outcome.assembly.token_budget)
        shown = invocation.next_command("assemble", *which, "--budget", budget)
        commands.insert(0, shown)
    return commands
