"""Databases that are not ours, not writable, busy, full, damaged, or left by a killed process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest
from conftest import chain, make_engine, said, texts, violations, write_session

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import (
    ConfigError,
    DatabaseError,
    ForeignDatabaseError,
    LcmError,
    NotFoundError,
    StoreBusyError,
    StoreFullError,
    StoreReadOnlyError,
)
from lcm_fast.store import SCHEMA_VERSION, Address, Batch, Store
from lcm_fast.store.schema import APPLICATION_ID

ADDRESS = Address("default")
as_root = os.geteuid() == 0


def make_foreign(
    path: Path, *, application_id: int = 0, version: int = 0, mode: str = "delete"
) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.pragma("journal_mode", mode)
        db.execute("CREATE TABLE notes (text); INSERT INTO notes VALUES ('theirs')")
        db.pragma("application_id", application_id)
        db.pragma("user_version", version)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refusal(path: Path) -> LcmError:
    """Return the one error that opening to write and opening to read both give; nothing changes."""
    before = contents(path.parent)
    with pytest.raises(LcmError) as writing:
        Store.open(path)
    with pytest.raises(LcmError) as reading:
        Store.open_read_only(path)
    assert contents(path.parent) == before
    assert writing.value.code == reading.value.code
    return writing.value


class TestForeignFiles:
    @pytest.mark.parametrize("mode", ["delete", "wal"])
    @pytest.mark.parametrize("application_id", [0, 42])
    def test_a_database_of_another_program_is_refused_untouched(
        self, database: Path, application_id: int, mode: str
    ) -> None:
        make_foreign(database, application_id=application_id, mode=mode)
        assert isinstance(refusal(database), ForeignDatabaseError)

    def test_a_log_that_another_program_left_is_untouched(
        self, database: Path, tmp_path: Path
    ) -> None:
        original = tmp_path / "running.db"
        make_foreign(original, mode="wal")
        with closing(apsw.Connection(str(original))) as running:
            running.execute("INSERT INTO notes VALUES ('in the log')")
            folder = tmp_path / "copy"
            folder.mkdir()
            for suffix in ("", "-wal"):
                shutil.copy(f"{original}{suffix}", folder / f"memory.db{suffix}")
        assert isinstance(refusal(folder / "memory.db"), ForeignDatabaseError)

    def test_a_text_file_is_refused_untouched(self, database: Path) -> None:
        database.write_text("notes of mine, no database\n" * 200)
        assert refusal(database).code == "not_a_database"

    def test_a_directory_is_refused(self, tmp_path: Path) -> None:
        assert refusal(tmp_path).code == "is_directory"

    def test_a_newer_schema_is_refused_untouched(self, database: Path) -> None:
        make_foreign(database, application_id=APPLICATION_ID, version=SCHEMA_VERSION + 1)
        assert refusal(database).code == "newer_schema"

    def test_a_schema_that_no_release_had_is_refused_untouched(self, database: Path) -> None:
        make_foreign(database, application_id=APPLICATION_ID, version=1)
        assert refusal(database).code == "unreleased_schema"

    @pytest.mark.corpus
    def test_a_lossless_claw_database_is_named_and_untouched(
        self, corpus: Path, tmp_path: Path
    ) -> None:
        (original,) = (corpus / "lossless-claw-db").glob("*.db")
        copy = tmp_path / "lcm.db"
        shutil.copy(original, copy)
        assert refusal(copy).code == "lossless_claw_database"


class TestPlaces:
    def test_what_we_make_is_private(self, tmp_path: Path) -> None:
        path = tmp_path / "one" / "two" / "memory.db"
        with make_engine(path) as engine:
            engine.ingest([said("hi")])
            made = [path.parent.parent, path.parent, *path.parent.iterdir()]
            modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in made}
        assert modes == {
            "one": 0o700,
            "two": 0o700,
            "memory.db": 0o600,
            "memory.db-wal": 0o600,
            "memory.db-shm": 0o600,
        }

    @pytest.mark.parametrize("below", ["memory.db", "folder/memory.db"])
    def test_a_place_under_a_file_is_not_writable(self, tmp_path: Path, below: str) -> None:
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(StoreReadOnlyError, match="cannot create the database"):
            Store.open(tmp_path / "file" / below)

    def test_a_name_too_long_for_the_disk_is_not_writable(self, tmp_path: Path) -> None:
        with pytest.raises(StoreReadOnlyError):
            Store.open(tmp_path / ("x" * 300))

    @pytest.mark.parametrize("name", [":memory:", "file:x?mode=memory", "a\0b", "a\udcff"])
    def test_a_name_that_can_keep_nothing_is_a_configuration_error(self, name: str) -> None:
        with pytest.raises(ConfigError, match="databasePath"):
            Store.open(name)

    def test_a_database_that_is_not_there_is_not_made_by_looking(self, database: Path) -> None:
        with pytest.raises(NotFoundError):
            Store.open_read_only(database)
        assert not database.exists()

    @pytest.mark.skipif(as_root, reason="nothing is read-only for root")
    def test_a_folder_that_may_not_be_written_is_named(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(StoreReadOnlyError):
            Store.open(tmp_path / "memory.db")

    def test_a_store_opened_to_look_at_refuses_to_write(self, engine: Engine) -> None:
        with (
            closing(Store.open_read_only(engine.store.path)) as store,
            pytest.raises(StoreReadOnlyError, match="opened to read only"),
        ):
            store.append(ADDRESS, Batch([], "2026-01-01T00:00:00.000Z"), [])

    def test_an_empty_file_is_taken_for_a_new_database(self, database: Path) -> None:
        database.touch()
        with make_engine(database) as engine:
            assert engine.ingest([said("hi")]).ingested == 1

    def test_an_empty_database_another_process_is_making_is_taken_for_a_new_one(
        self, database: Path
    ) -> None:
        with closing(apsw.Connection(str(database))) as other:
            other.pragma("journal_mode", "wal")
            with make_engine(database) as engine:
                assert engine.ingest([said("hi")]).ingested == 1


class TestBusy:
    @pytest.fixture
    def impatient(self, database: Path) -> Iterator[Store]:
        store = Store.open(database, busy_timeout_ms=50)
        yield store
        store.close()

    def test_a_lock_held_elsewhere_ends_the_wait_and_stores_nothing(self, impatient: Store) -> None:
        with closing(apsw.Connection(impatient.path)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusyError, match="another process is writing"):
                impatient.append(ADDRESS, Batch([], "2026-01-01T00:00:00.000Z"), [])
        assert impatient.find_conversation(ADDRESS) is None

    def test_the_write_works_once_the_lock_is_given_back(self, impatient: Store) -> None:
        with closing(apsw.Connection(impatient.path)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusyError):
                impatient.append(ADDRESS, Batch([], "2026-01-01T00:00:00.000Z"), [])
            other.execute("ROLLBACK")
        impatient.append(ADDRESS, Batch([], "2026-01-01T00:00:00.000Z"), [])
        assert impatient.find_conversation(ADDRESS) is not None

    def test_reading_goes_on_while_another_process_writes(self, engine: Engine) -> None:
        engine.ingest([said("hi")])
        with closing(apsw.Connection(engine.store.path)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert texts(engine) == ["hi"]


class TestFullDisk:
    def test_what_does_not_fit_is_refused_whole_and_later_work_goes_on(
        self, engine: Engine
    ) -> None:
        engine.ingest([said("before")])
        writer = engine.store._writer
        assert writer is not None
        writer._db.pragma("max_page_count", writer._db.pragma("page_count") + 2)
        noise = [said(os.urandom(3000).hex(), n) for n in range(20)]
        with pytest.raises(StoreFullError, match="free space"):
            engine.ingest(noise)
        assert texts(engine) == ["before"]
        assert violations(engine.store) == []
        writer._db.pragma("max_page_count", 1 << 30)
        assert engine.ingest(noise).ingested == len(noise)


class TestDamage:
    @pytest.mark.parametrize("first", [0.3, 0.6, 0.9], ids=lambda part: f"from {part:.0%}")
    def test_flipped_bytes_are_reported_without_a_crash(self, database: Path, first: float) -> None:
        with make_engine(database) as engine:
            engine.ingest([said(f"message {n} " * 40, n) for n in range(300)])
        whole = bytearray(database.read_bytes())
        for at in range(int(len(whole) * first), len(whole), 977):
            whole[at] ^= 0xFF
        database.write_bytes(whole)
        report = lcm_fast.doctor(database)
        failed = [check.name for check in report.checks if not check.ok]
        assert (report.ok, "integrity" in failed) == (False, True)

    @pytest.mark.parametrize("kept", [100, 4096, 5000, 40_000])
    def test_a_file_cut_short_is_an_error_or_a_finding(self, database: Path, kept: int) -> None:
        with make_engine(database) as engine:
            engine.ingest([said(f"message {n} " * 40, n) for n in range(100)])
        database.write_bytes(database.read_bytes()[:kept])
        with suppress(DatabaseError):
            assert not lcm_fast.doctor(database).ok

    def test_a_missing_dictionary_is_named(self, database: Path) -> None:
        make_engine(database).close()
        with closing(apsw.Connection(str(database))) as db:
            db.execute("DELETE FROM record_dictionaries")
        with pytest.raises(DatabaseError, match="dictionary is missing"):
            Store.open(database)


def run(script: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


DIES_AFTER_TWO_BATCHES = """
    import os, signal, sys
    import lcm_fast
    from lcm_fast.ingest import reading
    reading._BATCH_MESSAGES = 100
    calls = []
    def progress(done, total):
        calls.append(done)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
    lcm_fast.open(sys.argv[1]).bootstrap(sys.argv[2], progress=progress)
"""
DIES_INSIDE_A_TRANSACTION = """
    import os, sys
    import lcm_fast
    engine = lcm_fast.open(sys.argv[1])
    engine.ingest([{"role": "user", "content": "kept"}])
    def half(db):
        db.execute("UPDATE conversations SET session_key = 'half'")
        os._exit(9)
    engine.store._writer.submit(half)
"""
OPENS_AT_THE_SIGNAL = """
    import sys
    import lcm_fast
    print("ready", flush=True)
    sys.stdin.readline()
    with lcm_fast.open(sys.argv[1]) as engine:
        engine.ingest([{"role": "user", "content": sys.argv[2]}], session_key=sys.argv[2])
"""


class TestProcesses:
    def test_a_file_half_read_by_a_killed_process_is_completed(
        self, database: Path, tmp_path: Path
    ) -> None:
        messages = [said(f"message {n}", n) for n in range(500)]
        file = write_session(tmp_path / "session.jsonl", chain(*messages))
        killed = run(DIES_AFTER_TWO_BATCHES, database, file)
        killed.communicate()
        assert killed.returncode == -signal.SIGKILL
        with make_engine(database) as engine:
            assert engine.conversation(session_key="session").message_count == 200
            assert violations(engine.store) == []
            engine.bootstrap(file)
            exported = [json.loads(raw) for raw in engine.export_entries(session_key="session")]
            assert [one["message"] for one in exported[1:]] == messages

    def test_a_transaction_a_process_died_in_never_happened(self, database: Path) -> None:
        run(DIES_INSIDE_A_TRANSACTION, database).communicate()
        with make_engine(database) as engine:
            assert texts(engine) == ["kept"]

    def test_processes_that_open_a_new_database_at_once_make_it_once(self, database: Path) -> None:
        names = ["one", "two", "three"]
        openers = []
        for name in names:
            opener = subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(OPENS_AT_THE_SIGNAL), str(database), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            openers.append(opener)
        for opener in openers:
            assert opener.stdout is not None
            opener.stdout.readline()
        for opener in openers:
            assert opener.stdin is not None
            opener.stdin.write(b"go\n")
            opener.stdin.flush()
        errors = [opener.communicate()[1] for opener in openers]
        assert errors == [b"", b"", b""]
        with make_engine(database) as engine:
            assert {one.session_key for one in engine.conversations()} == set(names)
            assert violations(engine.store) == []
