"""Batch work over stored items: a row for each job and each item, with results and leases.

Every function is one short transaction of the caller's. Which items there are and what is done with
them is `mapping`'s; here an item is leased to one owner at a time, and finished once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import msgspec

from ..errors import JobConflictError
from .leases import is_gone

__all__ = [
    "MapItem",
    "NewJob",
    "delete",
    "drop_item",
    "finish",
    "items",
    "keep",
    "lease",
    "open_job",
    "release",
    "set_state",
]


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be made, or to be gone on with.

    Attributes
    ----------
    output_schema
        JSON text, or None.
    refs
        What each item is, in order: a stored item's id, or the text itself.
    """

    job_id: str
    conversation_id: int | None
    prompt: str
    output_schema: str | None
    refs: Sequence[str]


class MapItem(msgspec.Struct, frozen=True):
    """An item of a job."""

    ordinal: int
    ref: str
    state: str
    attempts: int
    result: str | None
    error: str | None


def open_job(db: apsw.Connection, job: NewJob, now: str) -> None:
    """Make a job, or take up one of the same id, prompt, schema and items.

    Raises
    ------
    JobConflictError
        The id is another job's.
    """
    known = next(
        db.execute("SELECT prompt, output_schema FROM map_jobs WHERE job_id = ?", (job.job_id,)),
        None,
    )
    if known is not None:
        if known != (job.prompt, job.output_schema) or _refs(db, job.job_id) != list(job.refs):
            raise JobConflictError(
                f"job {job.job_id!r} was made with another prompt, schema or other items",
                hint="choose another job_id, or none",
            )
        db.execute("UPDATE map_jobs SET state = 'running' WHERE job_id = ?", (job.job_id,))
        return
    db.execute(
        "INSERT INTO map_jobs (job_id, conversation_id, prompt, output_schema, state, created_at)"
        " VALUES (?, ?, ?, ?, 'running', ?)",
        (job.job_id, job.conversation_id, job.prompt, job.output_schema, now),
    )
    db.executemany(
        "INSERT INTO map_items (job_id, ordinal, item_ref, state) VALUES (?, ?, ?, 'waiting')",
        [(job.job_id, ordinal, ref) for ordinal, ref in enumerate(job.refs)],
    )


def lease(db: apsw.Connection, job_id: str, owner: str, *, now: str, until: str) -> MapItem | None:
    """Lease the next item that waits, or whose owner is gone; None when there is none."""
    rows: list[tuple[Any, ...]] = db.execute(
        "SELECT ordinal, state, leased_until, lease_owner FROM map_items"
        " WHERE job_id = ? AND state IN ('waiting', 'leased') ORDER BY ordinal",
        (job_id,),
    ).fetchall()
    for ordinal, state, leased_until, holder in rows:
        if state == "leased" and leased_until > now and not is_gone(holder or ""):
            continue
        db.execute(
            "UPDATE map_items SET state = 'leased', lease_owner = ?, leased_until = ?,"
            " attempts = attempts + 1 WHERE job_id = ? AND ordinal = ?",
            (owner, until, job_id, ordinal),
        )
        return next(_select(db, "job_id = ? AND ordinal = ?", (job_id, ordinal)))
    return None


def finish(
    db: apsw.Connection,
    job_id: str,
    ordinal: int,
    owner: str,
    *,
    result: str | None = None,
    error: str | None = None,
) -> bool:
    """End an item with its result, or with why there is none; tell whether it was still the
    owner's."""
    db.execute(
        "UPDATE map_items SET state = ?, result = ?, error = ?, lease_owner = NULL,"
        " leased_until = NULL"
        " WHERE job_id = ? AND ordinal = ? AND lease_owner = ? AND state = 'leased'",
        ("failed" if result is None else "done", result, error, job_id, ordinal, owner),
    )
    return db.changes() == 1


def release(
    db: apsw.Connection,
    job_id: str,
    ordinal: int,
    owner: str,
    error: str,
    *,
    counts: bool,
) -> None:
    """Give a leased item back to be tried again; an attempt that was none does not count."""
    db.execute(
        "UPDATE map_items SET state = 'waiting', error = ?, attempts = attempts - ?,"
        " lease_owner = NULL, leased_until = NULL"
        " WHERE job_id = ? AND ordinal = ? AND lease_owner = ?",
        (error, int(not counts), job_id, ordinal, owner),
    )


def keep(
    db: apsw.Connection,
    job_id: str,
    conversation_id: int,
    ordinal: int,
    ref: str,
    result: str,
    now: str,
) -> None:
    """Keep a result under a job that is made with its first one."""
    db.execute(
        "INSERT OR IGNORE INTO map_jobs (job_id, conversation_id, prompt, state, created_at)"
        " VALUES (?, ?, '', 'running', ?)",
        (job_id, conversation_id, now),
    )
    db.execute(
        "INSERT OR REPLACE INTO map_items (job_id, ordinal, item_ref, state, attempts, result)"
        " VALUES (?, ?, ?, 'done', 1, ?)",
        (job_id, ordinal, ref, result),
    )


def drop_item(db: apsw.Connection, job_id: str, ordinal: int) -> None:
    """Forget an item."""
    db.execute("DELETE FROM map_items WHERE job_id = ? AND ordinal = ?", (job_id, ordinal))


def set_state(db: apsw.Connection, job_id: str, state: str, now: str) -> None:
    """Note how a job stands."""
    finished = None if state == "running" else now
    db.execute(
        "UPDATE map_jobs SET state = ?, finished_at = ? WHERE job_id = ?",
        (state, finished, job_id),
    )


def items(db: apsw.Connection, job_id: str) -> list[MapItem]:
    """Return the items of a job, in order; none when there is no such job."""
    return list(_select(db, "job_id = ? ORDER BY ordinal", (job_id,)))


def delete(db: apsw.Connection, job_id: str) -> None:
    """Delete a job with its items, if it is there."""
    db.execute("DELETE FROM map_jobs WHERE job_id = ?", (job_id,))


def _refs(db: apsw.Connection, job_id: str) -> list[str]:
    rows = db.execute("SELECT item_ref FROM map_items WHERE job_id = ? ORDER BY ordinal", (job_id,))
    return [str(ref) for (ref,) in rows]


def _select(db: apsw.Connection, where: str, parameters: tuple[Any, ...]) -> Iterator[MapItem]:
    rows = db.execute(
        f"SELECT ordinal, item_ref, state, attempts, result, error FROM map_items WHERE {where}",
        parameters,
    )
    return (MapItem(*row) for row in rows)
