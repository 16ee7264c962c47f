"""OpenClaw's database of sessions: what is read of it, and what is refused, without a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from apsw import Connection

from lcm_fast.errors import NotFoundError, SessionFileError
from lcm_fast.store import Store, openclaw_agent
from lcm_fast.store.openclaw_agent import (
    NO_EVENT,
    NOT_ZSTD,
    TOO_LONG,
    AgentEvent,
    AgentSession,
    OpenClawAgentDatabase,
)

TEXT_ONLY = "session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT NOT NULL, created_at"
FRAME_ONLY = "session_id TEXT, seq INTEGER, event_zstd BLOB, created_at INTEGER"
BOTH = (
    "session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL,"
    " event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT"
)
SHUFFLED = "note, created_at, event_zstd, EVENT_JSON, Seq INTEGER, Session_Id TEXT"
NINE = 1_788_253_200_000  # 2026-09-01T09:00:00Z


def make(path: Path, columns: str = BOTH, *, setup: str = "") -> Connection:
    """Make a database as OpenClaw does, and return the connection that writes to it."""
    db = Connection(str(path))
    db.execute(setup or "PRAGMA journal_mode = wal")
    db.execute("CREATE TABLE session_windows (session_id TEXT PRIMARY KEY)")
    db.execute(f"CREATE TABLE transcript_events ({columns}, PRIMARY KEY (session_id, seq))")
    return db


def make_other(path: Path, *tables: str) -> None:
    with closing(Connection(str(path))) as db:
        for table in tables:
            db.execute(f"CREATE TABLE {table}")


def put(db: Connection, session_id: str, seq: int, **cells: object) -> None:
    row = {"session_id": session_id, "seq": seq, "created_at": NINE + 1000 * seq, **cells}
    places = ", ".join("?" * len(row))
    db.execute(
        f"INSERT INTO transcript_events ({', '.join(row)}) VALUES ({places})", [*row.values()]
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "openclaw-agent.sqlite"


@pytest.fixture
def writer(path: Path) -> Iterator[Connection]:
    """OpenClaw, running."""
    db = make(path)
    yield db
    db.close()


def events_of(path: Path, session_id: str = "s", after: int | None = None) -> list[AgentEvent]:
    with OpenClawAgentDatabase(path) as database:
        return list(database.rows(session_id, after))


def only_event(path: Path) -> AgentEvent:
    (event,) = events_of(path)
    return event


def refusal(path: Path) -> SessionFileError:
    with pytest.raises(SessionFileError) as caught:
        OpenClawAgentDatabase(path, busy_timeout_ms=10)
    assert str(path) in caught.value.detail
    return caught.value


def inflated(path: Path, writer: Connection, frame: bytes) -> AgentEvent:
    put(writer, "s", 0, event_zstd=frame)
    return only_event(path)


class TestRows:
    def test_an_event_is_its_number_its_exact_bytes_and_its_time(
        self, path: Path, writer: Connection
    ) -> None:
        put(writer, "s", 0, event_json=' {"a": "漢"}\n')
        assert only_event(path) == AgentEvent(0, ' {"a": "漢"}\n'.encode(), 14, NINE)

    @pytest.mark.parametrize("columns", [TEXT_ONLY, BOTH, SHUFFLED])
    def test_an_event_kept_as_text_is_read_whatever_the_columns(
        self, path: Path, columns: str
    ) -> None:
        with closing(make(path, columns)) as writer:
            put(writer, "s", 0, event_json='{"a":1}')
        assert only_event(path).data == b'{"a":1}'

    @pytest.mark.parametrize("columns", [FRAME_ONLY, BOTH, SHUFFLED])
    def test_a_compressed_event_is_read_whatever_the_columns(
        self, path: Path, columns: str
    ) -> None:
        with closing(make(path, columns)) as writer:
            put(writer, "s", 0, event_zstd=zstandard.compress(b'{"a":1}'))
        assert only_event(path).data == b'{"a":1}'

    def test_the_text_counts_where_a_row_has_both(self, path: Path, writer: Connection) -> None:
        put(writer, "s", 0, event_json="{}", event_zstd=zstandard.compress(b'{"a":1}'))
        assert only_event(path).data == b"{}"

    def test_events_come_by_number_across_gaps(self, path: Path, writer: Connection) -> None:
        for seq in (7, 0, 90, 3):
            put(writer, "s", seq, event_json="{}")
        assert [event.seq for event in events_of(path)] == [0, 3, 7, 90]

    def test_reading_begins_behind_a_number(self, path: Path, writer: Connection) -> None:
        for seq in range(4):
            put(writer, "s", seq, event_json="{}")
        assert [event.seq for event in events_of(path, after=1)] == [2, 3]

    def test_sessions_of_one_database_are_kept_apart(self, path: Path, writer: Connection) -> None:
        put(writer, "a", 0, event_json='{"of":"a"}')
        put(writer, "b", 0, event_json='{"of":"b"}')
        assert [event.data for event in events_of(path, "b")] == [b'{"of":"b"}']

    def test_all_events_come_however_many_batches_they_take(
        self, path: Path, writer: Connection
    ) -> None:
        with writer:
            for seq in range(2000):
                put(writer, "s", seq, event_json="{}")
        assert [event.seq for event in events_of(path)] == list(range(2000))

    def test_all_events_come_when_each_fills_a_batch(
        self, path: Path, writer: Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(openclaw_agent, "_BATCH_BYTES", 1)
        for seq in range(5):
            put(writer, "s", seq, event_json="{}")
        assert [event.seq for event in events_of(path)] == list(range(5))

    def test_text_of_a_utf_16_database_is_read_as_utf_8(self, path: Path) -> None:
        with closing(make(path, setup="PRAGMA encoding = 'UTF-16'")) as writer:
            put(writer, "s", 0, event_json='{"a":"é漢😀"}')
        assert only_event(path).data == '{"a":"é漢😀"}'.encode()

    def test_bytes_that_are_not_utf_8_are_handed_on(self, path: Path, writer: Connection) -> None:
        put(writer, "s", 0, event_json="")
        writer.execute("UPDATE transcript_events SET event_json = CAST(x'7bff7d' AS TEXT)")
        assert only_event(path).data == b"{\xff}"

    @pytest.mark.parametrize("created_at", [None, "yesterday", 1.5])
    def test_a_time_that_is_no_number_of_milliseconds_is_none(
        self, path: Path, created_at: object
    ) -> None:
        with closing(make(path, TEXT_ONLY)) as writer:
            put(writer, "s", 0, event_json="{}", created_at=created_at)
        assert only_event(path).created_at_ms is None


class TestUnreadableRows:
    def test_a_row_without_an_event_says_so(self, path: Path, writer: Connection) -> None:
        put(writer, "s", 3)
        assert only_event(path) == AgentEvent(3, None, 0, NINE + 3000, NO_EVENT)

    def test_an_event_beyond_the_limit_is_not_read(
        self, path: Path, writer: Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(openclaw_agent, "MAX_EVENT_BYTES", 9)
        put(writer, "s", 0, event_json="0123456789")
        assert only_event(path) == AgentEvent(0, None, 10, NINE, TOO_LONG)

    def test_the_events_behind_an_unreadable_one_are_read(
        self, path: Path, writer: Connection
    ) -> None:
        frame = zstandard.ZstdCompressor(write_checksum=True).compress(b"{}")
        put(writer, "s", 0, event_zstd=frame[:-1] + b"?")
        put(writer, "s", 1, event_zstd=frame)
        assert [event.data for event in events_of(path)] == [None, b"{}"]

    def test_a_frame_without_a_content_size_is_read(self, path: Path, writer: Connection) -> None:
        compressor = zstandard.ZstdCompressor(write_content_size=False)
        assert inflated(path, writer, compressor.compress(b"{}" * 50)).data == b"{}" * 50

    def test_a_frame_that_needs_a_dictionary_names_it(self, path: Path, writer: Connection) -> None:
        samples = [b'{"type":"message","id":"%d","n":%d}' % (n, n * n) for n in range(900)]
        dictionary = zstandard.train_dictionary(1024, samples, dict_id=77)
        frame = zstandard.ZstdCompressor(dict_data=dictionary).compress(samples[0])
        assert "dictionary 77" in inflated(path, writer, frame).unreadable

    @pytest.mark.parametrize("junk", [b"", b"(", b"junk and more junk", b"\x28\xb5\x2f\xfd"])
    def test_bytes_that_are_no_frame_say_so(
        self, path: Path, writer: Connection, junk: bytes
    ) -> None:
        event = inflated(path, writer, junk)
        assert (event.data, event.unreadable) == (None, NOT_ZSTD)

    @pytest.mark.parametrize(
        ("cut", "end", "reason"), [(9, b"", "cut short"), (1, b"?", "damaged")]
    )
    def test_a_frame_whose_end_is_missing_or_wrong_is_not_read(
        self, path: Path, writer: Connection, cut: int, end: bytes, reason: str
    ) -> None:
        frame = zstandard.ZstdCompressor(write_checksum=True).compress(b"{}" * 99)
        event = inflated(path, writer, frame[:-cut] + end)
        assert (event.data, reason in event.unreadable) == (None, True)

    @pytest.mark.parametrize("is_sized", [True, False])
    def test_a_frame_that_would_inflate_beyond_the_limit_is_not_read(
        self, path: Path, writer: Connection, monkeypatch: pytest.MonkeyPatch, is_sized: bool
    ) -> None:
        monkeypatch.setattr(openclaw_agent, "MAX_EVENT_BYTES", 1 << 20)
        compressor = zstandard.ZstdCompressor(write_content_size=is_sized)
        frame = compressor.compress(bytes((1 << 20) + 1))
        assert inflated(path, writer, frame) == AgentEvent(0, None, len(frame), NINE, TOO_LONG)


class TestSessions:
    def test_sessions_are_listed_with_events_and_times_the_oldest_first(
        self, path: Path, writer: Connection
    ) -> None:
        put(writer, "a", 5, event_json="{}")
        put(writer, "b", 0, event_json="{}")
        put(writer, "b", 2, event_zstd=b"")
        with OpenClawAgentDatabase(path) as database:
            assert database.sessions() == [
                AgentSession("b", 2, "2026-09-01T09:00:00.000Z", "2026-09-01T09:00:02.000Z"),
                AgentSession("a", 1, "2026-09-01T09:00:05.000Z", "2026-09-01T09:00:05.000Z"),
            ]

    def test_a_session_without_usable_times_has_none(self, path: Path) -> None:
        with closing(make(path, TEXT_ONLY)) as writer:
            put(writer, "s", 0, event_json="{}", created_at="soon")
            put(writer, "s", 1, event_json="{}", created_at=2**60)
        with OpenClawAgentDatabase(path) as database:
            assert database.sessions() == [AgentSession("s", 2, None, None)]

    def test_a_database_without_events_has_no_sessions(
        self, path: Path, writer: Connection
    ) -> None:
        with OpenClawAgentDatabase(path) as database:
            assert database.sessions() == []

    def test_the_last_number_of_a_session_is_its_own(self, path: Path, writer: Connection) -> None:
        put(writer, "a", 5, event_json="{}")
        put(writer, "b", 9, event_json="{}")
        with OpenClawAgentDatabase(path) as database:
            assert database.last_seq("a") == 5

    def test_a_session_that_is_not_there_names_ten_that_are(
        self, path: Path, writer: Connection
    ) -> None:
        for number in range(12):
            put(writer, f"s{number:02}", 0, event_json="{}")
        with OpenClawAgentDatabase(path) as database, pytest.raises(NotFoundError) as caught:
            database.last_seq("gone")
        named = "it has " + ", ".join(f"s{number:02}" for number in range(10)) + " and more"
        assert ("'gone'" in caught.value.detail, caught.value.hint) == (True, named)

    @pytest.mark.parametrize("session_id", ["gone", "", "\ud800", "s\0"])
    def test_rows_of_a_session_that_is_not_there_are_not_found(
        self, path: Path, writer: Connection, session_id: str
    ) -> None:
        put(writer, "s", 0, event_json="{}")
        with OpenClawAgentDatabase(path) as database, pytest.raises(NotFoundError):
            database.rows(session_id)


class TestWhileItIsWritten:
    def test_what_is_only_in_the_log_is_read_through_a_link(
        self, path: Path, writer: Connection, tmp_path: Path
    ) -> None:
        put(writer, "s", 0, event_json='{"in":"log"}')
        link = tmp_path / "link"
        link.symlink_to(path)
        assert only_event(link).data == b'{"in":"log"}'

    def test_what_a_writer_that_was_killed_left_in_the_log_is_read(
        self, path: Path, writer: Connection, tmp_path: Path
    ) -> None:
        put(writer, "s", 0, event_json='{"in":"log"}')
        copy = tmp_path / "copy.sqlite"
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        assert only_event(copy).data == b'{"in":"log"}'

    def test_a_writer_is_not_held_up_between_two_batches(
        self, path: Path, writer: Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(openclaw_agent, "_BATCH_BYTES", 1)
        put(writer, "s", 0, event_json="{}")
        put(writer, "s", 1, event_json="{}")
        with OpenClawAgentDatabase(path) as database:
            next(database.rows("s"))
            busy, _, _ = next(iter(writer.execute("PRAGMA wal_checkpoint(truncate)")))
        assert busy == 0

    def test_events_appended_meanwhile_are_read(self, path: Path, writer: Connection) -> None:
        for seq in range(20):
            put(writer, "s", seq, event_json="{}")
        with OpenClawAgentDatabase(path) as database:
            rows = database.rows("s")
            first = next(rows)
            put(writer, "s", 20, event_json="{}")
            assert [first.seq, *(row.seq for row in rows)] == list(range(21))

    def test_a_writer_that_starts_and_ends_between_two_reads_is_noticed(self, path: Path) -> None:
        with closing(make(path)) as writer:
            put(writer, "s", 0, event_json="{}")
        with OpenClawAgentDatabase(path) as database:
            before = database.last_seq("s")
            append = (
                "import sys, apsw; db = apsw.Connection(sys.argv[1]);"
                "db.execute('INSERT INTO transcript_events VALUES (?, 1, ?, 0, NULL, 2, NULL)',"
                "('s', '{}')); db.close()"
            )
            subprocess.run([sys.executable, "-c", append, str(path)], check=True)
            assert (before, database.last_seq("s")) == (0, 1)

    def test_what_was_seen_as_a_writer_started_is_looked_at_again(self, path: Path) -> None:
        with closing(make(path)) as writer:
            put(writer, "s", 0, event_json="{}")
        started: list[Connection] = []

        def look(db: Connection) -> int:
            if not started:
                started.append(Connection(str(path)))
                put(started[0], "s", 1, event_json="{}")
            return len(list(db.execute("SELECT * FROM transcript_events")))

        with OpenClawAgentDatabase(path) as database:
            seen = database._read(look)
        started[0].close()
        assert seen == 2

    def test_events_compressed_between_two_batches_are_read_all_the_same(self, path: Path) -> None:
        writer = make(path, TEXT_ONLY.replace("event_json TEXT NOT NULL", "event_json TEXT"))
        for seq in range(20):
            put(writer, "s", seq, event_json="{}")
        with OpenClawAgentDatabase(path) as database:
            rows = database.rows("s")
            first = next(rows)
            writer.execute("ALTER TABLE transcript_events ADD COLUMN event_zstd BLOB")
            writer.execute(
                "UPDATE transcript_events SET event_json = NULL, event_zstd = ?",
                (zstandard.compress(b"{}"),),
            )
            assert {first.data, *(row.data for row in rows)} == {b"{}"}
        writer.close()

    def test_a_database_that_another_process_locks_is_busy_not_waited_for(self, path: Path) -> None:
        writer = make(path, setup="PRAGMA journal_mode = delete")
        writer.execute("PRAGMA locking_mode = exclusive; BEGIN EXCLUSIVE")
        put(writer, "s", 0, event_json="{}")
        error = refusal(path)
        writer.close()
        assert error.code == "session_file_busy"


class TestNothingIsChanged:
    def test_reading_a_database_at_rest_leaves_no_side_files(self, path: Path) -> None:
        with closing(make(path)) as writer:
            put(writer, "s", 0, event_json="{}")
        events_of(path)
        assert [one.name for one in path.parent.iterdir()] == [path.name]

    def test_reading_a_running_one_leaves_its_files_as_they_were(
        self, path: Path, writer: Connection
    ) -> None:
        put(writer, "s", 0, event_json="{}")
        files = {one: one.read_bytes() for one in path.parent.iterdir() if "-shm" not in one.name}
        events_of(path)
        assert {one: one.read_bytes() for one in files} == files

    def test_the_connection_refuses_to_write(self, path: Path, writer: Connection) -> None:
        with OpenClawAgentDatabase(path) as database, pytest.raises(SessionFileError):
            database._read(lambda db: list(db.execute("DELETE FROM transcript_events")))

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
    def test_a_database_in_a_folder_that_may_not_be_written_is_read(self, path: Path) -> None:
        with closing(make(path)) as writer:
            put(writer, "s", 0, event_json="{}")
        path.parent.chmod(0o500)
        events = events_of(path)
        path.parent.chmod(0o700)
        assert len(events) == 1


class TestFilesThatAreNone:
    @pytest.mark.parametrize("name", ["gone", "a\0b"])
    def test_a_path_without_a_file_is_not_found(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(NotFoundError):
            OpenClawAgentDatabase(tmp_path / name)

    def test_a_directory_is_refused_by_name(self, tmp_path: Path) -> None:
        assert refusal(tmp_path).code == "is_directory"

    def test_a_pipe_is_refused(self, path: Path) -> None:
        os.mkfifo(path)
        assert refusal(path).code == "not_a_file"

    def test_an_empty_file_is_empty(self, path: Path) -> None:
        path.touch()
        error = refusal(path)
        assert (error.code, "transcript_events" in error.detail) == ("empty_file", True)

    def test_a_session_file_is_no_database(self, path: Path) -> None:
        path.write_bytes(b'{"type":"session","version":3,"id":"s-1"}\n' * 50)
        error = refusal(path)
        assert (error.code, "transcript_events" in error.detail) == ("not_a_database", True)

    def test_a_database_without_the_table_says_what_was_looked_for(self, path: Path) -> None:
        make_other(path, "notes (note)")
        error = refusal(path)
        wanted = "transcript_events(session_id, seq, event_json or event_zstd)"
        assert (error.code, wanted in error.detail) == ("no_transcripts", True)

    def test_a_table_of_that_name_with_other_columns_is_named_with_them(self, path: Path) -> None:
        make_other(path, "transcript_events (id, transcript_id)")
        assert "transcript_events has id, transcript_id" in refusal(path).detail

    def test_a_lossless_claw_database_is_refused_with_the_way_to_its_sessions(
        self, path: Path
    ) -> None:
        make_other(path, "conversations (id)", "message_parts (id)", "lcm_migration_state (id)")
        error = refusal(path)
        assert (error.code, "ingest" in error.hint) == ("lossless_claw_database", True)

    def test_a_memory_of_this_package_is_refused_with_the_option_that_names_one(
        self, database: Path
    ) -> None:
        Store.open(database).close()
        error = refusal(database)
        assert (error.code, "--db" in error.hint) == ("own_database", True)

    def test_a_damaged_schema_is_damaged(self, path: Path) -> None:
        make(path).close()
        data = bytearray(path.read_bytes())
        data[100:2000] = b"\xee" * 1900
        path.write_bytes(data)
        assert refusal(path).code == "damaged"

    def test_what_stands_before_the_damage_is_read(self, path: Path) -> None:
        with closing(make(path)) as writer:
            for seq in range(200):
                put(writer, "s", seq, event_json=f'{{"n":{seq},"x":"{"x" * 3000}"}}')
        data = bytearray(path.read_bytes())
        data[len(data) // 2 :] = b"\xee" * (len(data) - len(data) // 2)
        path.write_bytes(data)
        with OpenClawAgentDatabase(path) as database:
            rows = database.rows("s")
            first = next(rows)
            with pytest.raises(SessionFileError) as caught:
                list(rows)
        assert (caught.value.code, first.seq) == ("damaged", 0)
