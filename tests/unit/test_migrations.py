"""A database of an earlier schema is brought up to date, with a backup beside it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from conftest import make_engine, said, texts, violations

import lcm_fast
from lcm_fast.errors import DatabaseError
from lcm_fast.store import SCHEMA_VERSION, migrations
from lcm_fast.store.schema import VERSION_2


@pytest.fixture
def version_2(database: Path) -> Path:
    """A database of the first schema, with a conversation in it."""
    with closing(apsw.Connection(str(database))) as db:
        db.execute(VERSION_2)
        migrations._mark_as_ours(db)
        db.pragma("user_version", 2)
        db.execute(
            "INSERT INTO conversations (session_id, session_key, created_at, updated_at)"
            " VALUES ('s-1', 'agent:main', '2026-01-01', '2026-01-01')"
        )
    return database


def test_it_is_migrated_and_goes_on(version_2: Path) -> None:
    with make_engine(version_2) as engine:
        assert [one.session_key for one in engine.conversations()] == ["agent:main"]
        engine.ingest([said("hello", 1)], session_key="agent:main")
        assert texts(engine, session_key="agent:main") == ["hello"]
        assert violations(engine.store) == []
        found = lcm_fast.status(engine)
    assert found.database["schema_version"] == SCHEMA_VERSION


def test_the_backup_is_the_database_as_it_was(version_2: Path) -> None:
    make_engine(version_2).close()
    (backup,) = version_2.parent.glob(f"{version_2.name}.before-v{SCHEMA_VERSION}.*")
    assert backup.stat().st_mode & 0o077 == 0
    with closing(apsw.Connection(str(backup), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        assert db.pragma("user_version") == 2
        assert list(db.execute("SELECT session_key FROM conversations")) == [("agent:main",)]


def test_it_has_the_tables_and_columns_of_a_new_one(version_2: Path, tmp_path: Path) -> None:
    make_engine(version_2).close()
    make_engine(tmp_path / "new.db").close()
    assert schema_of(version_2) == schema_of(tmp_path / "new.db")


def test_to_look_at_it_changes_nothing(version_2: Path) -> None:
    before = version_2.read_bytes()
    with pytest.raises(DatabaseError, match="schema version 2"):
        lcm_fast.status(version_2)
    assert version_2.read_bytes() == before


def schema_of(path: Path) -> list[tuple[object, ...]]:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        return list(db.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"))
