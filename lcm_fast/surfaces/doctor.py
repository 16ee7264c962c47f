"""Prove a store's invariants, one small check each. Reads only; repair is another verb."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ..config import Config
from ..engine import Engine
from ..errors import DatabaseError, LcmError
from ..store import Store, audit
from .status import ingest_command, look_at, unread_transcripts

__all__ = ["Check", "DoctorReport", "doctor"]


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found; `affected` counts what violates it."""

    name: str
    ok: bool
    detail: str
    hint: str
    affected: int


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """All checks; the keys of ``lcm-fast doctor --json``."""

    ok: bool
    checks: list[Check]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


def doctor(
    engine_or_path: Engine | str | os.PathLike[str], *, config: Config | None = None
) -> DoctorReport:
    """Check a memory's invariants.

    Parameters
    ----------
    engine_or_path
        An open engine, or a database to look at; the latter is opened to read only.
    config
        For a path: says where large files are; default as resolved from the environment.

    Returns
    -------
    DoctorReport
        `ok` when every check passes. A check that damage keeps from running has failed.

    Raises
    ------
    NotFoundError, ForeignDatabaseError, DatabaseError
        There is no such database, or it is not ours to read.

    Complexity: reads whole tables; not for a turn.
    """
    try:
        with look_at(engine_or_path, config) as (store, settings):
            checks = [_run(check, store, settings) for check in _CHECKS]
    except DatabaseError as error:
        if error.code != "damaged":
            raise
        checks = [_not_run("integrity", error)]
    return DoctorReport(all(check.ok for check in checks), checks)


@dataclass(frozen=True, slots=True)
class _Question:
    name: str
    ask: Callable[[Store, Config], audit.Finding]
    fine: str
    hint: str


def _run(question: _Question, store: Store, config: Config) -> Check:
    try:
        affected, samples = question.ask(store, config)
    except LcmError as error:
        return _not_run(question.name, error)
    if not affected:
        return Check(question.name, True, question.fine, "", 0)
    shown = "; ".join(samples)
    more = f"; and {affected - len(samples)} more" if affected > len(samples) else ""
    return Check(question.name, False, shown + more, question.hint, affected)


def _not_run(name: str, error: LcmError) -> Check:
    hint = _RESTORE if error.code == "damaged" else error.hint
    return Check(name, False, error.detail, hint, 1)


def _large_files(store: Store, config: Config) -> audit.Finding:
    found: list[str] = []
    folder = config.large_files_folder(store.path)
    for file_id, uri, size in store.large_files():
        place = folder / uri
        if not place.is_file():
            found.append(f"{file_id}: {uri} is missing")
        elif place.stat().st_size != size:
            found.append(f"{file_id}: {uri} has {place.stat().st_size} bytes, not {size}")
    return len(found), found[: audit.SAMPLES]


def _unread(store: Store, _: Config) -> audit.Finding:
    found = [
        f"{behind:,} bytes of it are not read: {ingest_command(path, key)}"
        for key, path, behind in unread_transcripts(store)
    ]
    return len(found), found[: audit.SAMPLES]


_RESTORE = "restore a backup; the record may be damaged"
_REPORT = "this is a bug: please report it with this line"
_CHECKS = (
    _Question(
        "integrity",
        lambda store, _: store.check_integrity(),
        "pages, indexes and constraints are sound",
        _RESTORE,
    ),
    _Question(
        "foreign_keys",
        lambda store, _: store.check_foreign_keys(),
        "every reference leads somewhere",
        _RESTORE,
    ),
    _Question(
        "coverage",
        lambda store, _: store.audit(audit.COVERAGE),
        "each message is in the view, under one reachable summary, or excluded",
        _REPORT,
    ),
    _Question(
        "ordinals",
        lambda store, _: store.audit(audit.ORDINALS),
        "context items stand where their messages and summaries say",
        _REPORT,
    ),
    _Question(
        "summary_edges",
        lambda store, _: store.audit(audit.EDGES),
        "summaries have sources, shallower than themselves, counted right",
        _REPORT,
    ),
    _Question(
        "counters",
        lambda store, _: store.audit(audit.COUNTERS),
        "the counters of conversations agree with their rows",
        _REPORT,
    ),
    _Question(
        "fallback_summaries",
        lambda store, _: store.audit(audit.FALLBACKS),
        "no summary is a deterministic fallback",
        "`lcm-fast maintain` has them written anew; their messages are whole in the record",
    ),
    _Question(
        "truncated_summaries",
        lambda store, _: store.audit(audit.TRUNCATED),
        "no summary was cut at its size limit",
        "the summariser wrote more than summaryMaxOverageFactor allows",
    ),
    _Question(
        "large_files",
        _large_files,
        "every large file is where its row says",
        "`lcm-fast describe FILE_ID --expand-file` writes it again from the record",
    ),
    _Question(
        "frozen",
        lambda store, _: store.audit(audit.FROZEN),
        "every session file can be read on",
        "`lcm-fast status` names the command that stores it; it goes on by itself once it shows"
        " what is new",
    ),
    _Question(
        "transcripts_read",
        _unread,
        "every session file that was read is read to its end",
        "run the commands named",
    ),
)
