"""The verbs about the memory as a whole: ``status`` and ``doctor``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from ...errors import NotFoundError
from ..doctor import Check, DoctorReport
from ..doctor import doctor as examine
from ..status import Status
from ..status import status as look
from .drawing import draw_table
from .failures import EXIT_PROBLEMS
from .invocation import Invocation, global_options, pass_invocation, session_key_option
from .output import counted, say, say_json, section

__all__ = ["doctor", "status"]


@click.command(short_help="Show the state of the memory.")
@session_key_option("List this conversation alone.")
@global_options
@pass_invocation
def status(invocation: Invocation, session_key: str | None) -> None:
    """Show totals, conversations, waiting work and problems. Exit code 1 when there is an error."""
    config = invocation.settings()
    found = look(config.database_path, session_key=session_key, config=config)
    if session_key is not None and not found.conversations:
        raise NotFoundError(
            f"no conversation with session key {session_key!r} in {found.database['path']}",
            hint="`lcm-fast conversations` lists them",
        )
    if invocation.as_json:
        say_json(found.to_dict())
    else:
        say(_status_report(found))
        _draw_conversations(found.conversations)
    click.get_current_context().exit(0 if found.ok else EXIT_PROBLEMS)


def _status_report(found: Status) -> str:
    verdict = "ok" if found.ok else "PROBLEMS"
    return "\n".join(
        [
            f"lcm-fast {found.version}, {found.implementation} kernels: {verdict}",
            section("database", _database(found.database)),
            section("record", [_record(found)]),
            section("view", [_view(found.totals)]),
            section("waiting", [_waiting(found), *map(_debt, found.maintenance["debts"])]),
            section("summaries", [_summarizer(found)]),
            section("tokens", list(_token_counter(found.token_counter))),
            *([section("focus", list(map(_brief, found.focus)))] if found.focus else []),
            section("problems", [_problem(problem) for problem in found.problems] or ["none"]),
            section("config", _set_keys(found.config_sources) or ["defaults"]),
        ]
    )


def _database(database: dict[str, Any]) -> list[str]:
    log = f" and {database['wal_bytes']:,} in its log" if database["wal_bytes"] else ""
    size = f"{counted(database['size_bytes'], 'byte')}{log}, schema {database['schema_version']}"
    return [database["path"], size]


def _record(found: Status) -> str:
    quarantined = found.ingest["quarantined"]
    return (
        f"{counted(found.totals['messages'], 'message')} in"
        f" {counted(found.totals['conversations'], 'conversation')},"
        f" last stored {found.ingest['last_at'] or 'never'}"
        + (f"; {quarantined:,} quarantined" if quarantined else "")
    )


def _view(totals: dict[str, Any]) -> str:
    made = totals["summaries"]
    text = f"{counted(totals['frontier_tokens'], 'token')}"
    if not made["leaf"]:
        return f"{text}; no summaries yet"
    return (
        f"{text}; {made['leaf']:,} leaf and {made['condensed']:,} condensed summaries cover"
        f" {counted(totals['covered_source_tokens'], 'token')} of messages"
        f" ({totals['compression_ratio']} to 1)"
    )


def _waiting(found: Status) -> str:
    return (
        f"{counted(found.maintenance['pending'], 'compaction')},"
        f" {counted(found.search['pending'], 'message')} to index for search"
    )


def _debt(debt: dict[str, Any]) -> str:
    name = debt["session_key"] or debt["conversation_id"]
    text = (
        f"{name}: compaction {debt['state']} since {debt['requested_at']},"
        f" {debt['tokens'] or 0:,} tokens for a budget of {debt['token_budget'] or 0:,}"
    )
    if not debt["next_attempt_after"]:
        return text
    return f"{text}; attempt {debt['retry_attempts'] + 1} after {debt['next_attempt_after']}"


def _summarizer(found: Status) -> str:
    text = f"made by {found.summarizer['name']}"
    calls = [
        f"{row['model']}: {counted(row['calls'], 'call')} ({row['failed']:,} failed),"
        f" {row['input_tokens']:,} tokens in, {row['output_tokens']:,} out"
        for row in found.summarizer["usage"]
    ]
    return "; ".join([text, *calls])


def _token_counter(counter: dict[str, Any]) -> Iterator[str]:
    how = "exactly" if counter["exact"] else "by estimate"
    yield f"counted {how} by {counter['name']}: {counter['reason']}"
    for row in counter["calibrations"]:
        prompts = counted(row["samples"], "prompt")
        yield (
            f"{row['model']} makes {row['ratio']:.3f} of one counted by {row['counter']}"
            f" ({prompts} compared, last {row['updated_at']})"
        )


def _brief(brief: dict[str, Any]) -> str:
    name = brief["session_key"] or f"conversation {brief['conversation_id']}"
    size = f"{brief['tokens']:,} of {counted(brief['target_tokens'], 'token')}"
    return f"{name}: {brief['status']}, {size}: {brief['prompt']}"


def _problem(problem: dict[str, str]) -> str:
    hint = f" ({problem['hint']})" if problem["hint"] else ""
    return f"{problem['severity']} {problem['code']}: {problem['detail']}{hint}"


def _set_keys(sources: dict[str, str]) -> list[str]:
    return [f"{key}: {source}" for key, source in sources.items() if source != "default"]


def _draw_conversations(conversations: list[dict[str, Any]]) -> None:
    if not conversations:
        return
    say("")
    headings = ("#id", "#messages", "#tokens in view", "#summaries", "session key")
    draw_table(
        headings,
        [
            (
                str(row["conversation_id"]),
                f"{row['messages']:,}",
                f"{row['frontier_tokens']:,}",
                f"{sum(row['summaries'].values()):,}",
                _name(row),
            )
            for row in conversations
        ],
    )


def _name(row: dict[str, Any]) -> str:
    name = str(row["session_key"] or f"(session id {row['session_id']})")
    return name if row["active"] else f"{name} (archived)"


@click.command(short_help="Prove the memory's invariants.")
@global_options
@pass_invocation
def doctor(invocation: Invocation) -> None:
    """Check the database and what it holds. Exit code 1 when a check fails; changes nothing."""
    with invocation.reading() as engine:
        report = examine(engine)
    if invocation.as_json:
        say_json(report.to_dict())
    else:
        say(_doctor_report(report))
    click.get_current_context().exit(0 if report.ok else EXIT_PROBLEMS)


def _doctor_report(report: DoctorReport) -> str:
    failed = sum(not check.ok for check in report.checks)
    checks = counted(len(report.checks), "check")
    verdict = f"{failed} of {checks} FAILED" if failed else f"{checks}, all passed"
    return "\n".join([*(_check_lines(check) for check in report.checks), verdict])


def _check_lines(check: Check) -> str:
    if check.ok:
        return f"ok      {check.name}: {check.detail}"
    line = f"FAILED  {check.name}: {check.detail} ({check.affected:,} affected)"
    return f"{line}\n        hint: {check.hint}" if check.hint else line
