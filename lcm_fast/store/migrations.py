"""Bring a database to the current schema: numbered, forward only, one transaction, a backup before.

A step is text and a version; version n runs on a database of version n - 1. Several processes may
open one file at once: the exclusive transaction lets one migrate and the others find it done.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

import apsw

from .codec import DEFAULT_DICTIONARY
from .connection import as_store_errors
from .schema import (
    APPLICATION_ID,
    FIRST_VERSION,
    SCHEMA_VERSION,
    VERSION_2,
    VERSION_3,
    VERSION_4,
)

__all__ = ["DEFAULT_DICTIONARY_ID", "migrate", "schema_version"]

DEFAULT_DICTIONARY_ID = 1
_STEPS: dict[int, str] = {2: VERSION_2, 3: VERSION_3, 4: VERSION_4}


def migrate(db: apsw.Connection, path: str) -> None:
    """Run the steps `db` lacks.

    Raises
    ------
    DatabaseError
        A step failed; the database is as it was.
    """
    if schema_version(db, path) == SCHEMA_VERSION:
        return
    if schema_version(db, path) > 0:
        _back_up(db, path)
    with as_store_errors(path, "bringing its schema up to date"):
        db.execute("BEGIN EXCLUSIVE")
        try:
            begin = max(schema_version(db, path) + 1, FIRST_VERSION)
            for version in range(begin, SCHEMA_VERSION + 1):
                db.execute(_STEPS[version])
                if version == FIRST_VERSION:
                    _mark_as_ours(db)
                db.pragma("user_version", version)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def schema_version(db: apsw.Connection, path: str) -> int:
    """Return the schema version a connection sees, 0 in an empty database."""
    with as_store_errors(path, "reading its schema version"):
        return int(db.pragma("user_version"))


def _mark_as_ours(db: apsw.Connection) -> None:
    db.pragma("application_id", APPLICATION_ID)
    db.execute(
        "INSERT INTO record_dictionaries VALUES (?, ?)", (DEFAULT_DICTIONARY_ID, DEFAULT_DICTIONARY)
    )
    db.execute("INSERT INTO search_watermark VALUES ('messages', 0, 0, 0), ('summaries', 0, 0, 0)")


def _back_up(db: apsw.Connection, path: str) -> None:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = f"{path}.before-v{SCHEMA_VERSION}.{stamp}"
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    with as_store_errors(target, "backing up before a migration"):
        copy = apsw.Connection(target)
        try:
            with copy.backup("main", db, "main") as backup:
                while not backup.done:
                    backup.step(1000)
        finally:
            copy.close()
