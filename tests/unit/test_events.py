"""Sessions kept as numbered events: the entries of a session file, and where reading goes on."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
import zstandard
from conftest import chain, entry, said
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.errors import NotFoundError
from lcm_fast.store.openclaw_agent import NO_EVENT, OpenClawAgentDatabase
from lcm_fast.transcripts.events import EMPTY, EventTranscript
from lcm_fast.transcripts.reader import open_transcript
from lcm_fast.types import SessionEntry, UnreadableSpan

HEADER = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-09-01T09:00:00Z"}
NINE = 1_788_253_200_000  # 2026-09-01T09:00:00Z

Events = dict[int, bytes | None]


class Session:
    """The session s-1 of a database, and the means to change it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(apsw.Connection(str(path))) as db:
            db.pragma("journal_mode", "wal")
            db.execute(
                "CREATE TABLE transcript_events (session_id TEXT,"
                " seq INTEGER, event_json TEXT, created_at INTEGER, event_zstd BLOB,"
                " PRIMARY KEY (session_id, seq)) STRICT"
            )

    def put(self, events: Events, *, compressed: bool = False) -> None:
        column, value = ("event_zstd", "?3") if compressed else ("event_json", "CAST(?3 AS TEXT)")
        with closing(apsw.Connection(str(self.path))) as db:
            db.executemany(
                f"INSERT OR REPLACE INTO transcript_events (session_id, seq, created_at, {column})"
                f" VALUES ('s-1', ?1, ?2, {value})",
                (
                    (seq, NINE + seq, zstandard.compress(event) if compressed and event else event)
                    for seq, event in events.items()
                ),
            )

    def put_all(self, *objects: object, first: int = 0) -> None:
        self.put({seq: json.dumps(one).encode() for seq, one in enumerate(objects, first)})

    def delete(self, seq: int) -> None:
        with closing(apsw.Connection(str(self.path))) as db:
            db.execute("DELETE FROM transcript_events WHERE seq = ?", (seq,))


Open = Callable[[], EventTranscript]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path / "openclaw-agent.sqlite")


@pytest.fixture
def open_events(session: Session) -> Iterator[Open]:
    opened: list[OpenClawAgentDatabase] = []

    def open_now() -> EventTranscript:
        opened.append(OpenClawAgentDatabase(session.path))
        return EventTranscript(opened[-1], "s-1")

    yield open_now
    for one in opened:
        one.close()


def ids(entries: Sequence[SessionEntry]) -> list[str | None]:
    return [one.entry_id for one in entries]


class TestTheSession:
    def test_it_is_named_by_database_and_session(self, session: Session, open_events: Open) -> None:
        session.put_all(HEADER)
        assert open_events().path == session.path / "s-1"

    def test_a_session_id_with_a_slash_is_one_name(self, session: Session) -> None:
        with closing(apsw.Connection(str(session.path))) as db:
            db.execute("INSERT INTO transcript_events VALUES ('../a/b', 0, '{}', 0, NULL)")
        with OpenClawAgentDatabase(session.path) as database:
            assert EventTranscript(database, "../a/b").path.parent == session.path

    def test_its_header_and_id_are_known_before_reading(
        self, session: Session, open_events: Open
    ) -> None:
        session.put_all(HEADER, *chain(said("a")))
        transcript = open_events()
        assert (transcript.header, transcript.session_id) == (HEADER, "s-1")

    def test_a_session_object_further_down_is_no_header(
        self, session: Session, open_events: Open
    ) -> None:
        session.put_all(*chain(said("a")), HEADER)
        assert open_events().header is None

    def test_its_format_is_openclaws(self, session: Session, open_events: Open) -> None:
        session.put_all({"type": "session", "id": "s-1"})
        assert open_events().format == "openclaw"

    def test_its_size_is_the_place_behind_the_newest_event_and_its_time_is_that_events(
        self, session: Session, open_events: Open
    ) -> None:
        session.put_all(HEADER, *chain(said("a")))
        transcript = open_events()
        assert (transcript.size, transcript.mtime_ns) == (2, (NINE + 1) * 1_000_000)

    def test_a_session_that_is_not_there_is_not_found(self, open_events: Open) -> None:
        with pytest.raises(NotFoundError):
            open_events()


class TestEntries:
    def test_an_offset_is_the_number_of_the_event(
        self, session: Session, open_events: Open
    ) -> None:
        session.put({0: b"{}", 7: b"  {}", 90: b"{}"})
        assert [one.offset for one in open_events()] == [0, 7, 90]

    def test_raw_is_the_object_without_the_blanks_around_it(
        self, session: Session, open_events: Open
    ) -> None:
        session.put({0: b' {"a":\n1}\r\n'})
        assert [one.raw for one in open_events()] == [b'{"a":\n1}']

    def test_two_objects_in_an_event_are_both_read(
        self, session: Session, open_events: Open
    ) -> None:
        session.put({4: b'{"id":"a"}{"id":"b"}'})
        assert [(one.entry_id, one.offset) for one in open_events()] == [("a", 4), ("b", 4)]

    def test_an_abandoned_branch_is_told_from_the_leafs_path(
        self, session: Session, open_events: Open
    ) -> None:
        session.put_all(
            entry("root", None, said("a")),
            entry("left", "root", said("b")),
            entry("right", "root", said("c")),
        )
        assert ids([one for one in open_events() if one.on_leaf_path]) == ["root", "right"]

    def test_two_objects_of_one_event_may_be_on_different_branches_whatever_the_numbers(
        self, session: Session, open_events: Open
    ) -> None:
        root, left, right, other, end = (
            json.dumps(entry(name, parent, said(name))).encode()
            for name, parent in (
                ("root", None),
                ("left", "root"),
                ("right", "root"),
                ("other", "root"),
                ("end", "right"),
            )
        )
        place_of_right = 1 + len(left)
        session.put({0: root, 1: left + right, place_of_right: other, place_of_right + 1: end})
        shown = ids([one for one in open_events() if one.on_leaf_path])
        assert shown == ["root", "right", "end"]

    def test_reading_twice_gives_the_same(self, session: Session, open_events: Open) -> None:
        session.put({0: b"{}", 1: b"broken", 2: b'{"id":"a"}'})
        transcript = open_events()
        first, report = list(transcript), transcript.report
        assert (list(transcript), transcript.report) == (first, report)

    def test_what_is_appended_after_opening_waits_for_the_next_opening(
        self, session: Session, open_events: Open
    ) -> None:
        session.put_all(HEADER)
        transcript = open_events()
        session.put_all(*chain(said("a")), first=1)
        assert (len(list(transcript)), len(list(open_events()))) == (1, 2)


class TestReport:
    def test_entries_messages_and_bytes_are_counted(
        self, session: Session, open_events: Open
    ) -> None:
        session.put({0: b"{}", 3: b'{"role":"user"} '})
        transcript = open_events()
        list(transcript)
        report = transcript.report
        assert (report.entries, report.messages, report.bytes_read) == (2, 1, 18)

    @pytest.mark.parametrize(
        ("event", "length", "reason"),
        [
            (None, 0, NO_EVENT),
            (b"", 0, EMPTY),
            (b" \n", 2, EMPTY),
            (b'{"type":"message"', 17, "broken JSON"),
            (b'{"id":"x"} oops', 4, "not a JSON object"),
            (b"[{}]", 4, "not a JSON object"),
        ],
    )
    def test_an_event_that_cannot_be_read_is_reported_with_its_number(
        self,
        session: Session,
        open_events: Open,
        event: bytes | None,
        length: int,
        reason: str,
    ) -> None:
        session.put({0: b'{"id":"a"}', 5: event, 6: b'{"id":"b"}'})
        transcript = open_events()
        list(transcript)
        assert transcript.report.unreadable == [UnreadableSpan(5, length, reason)]

    def test_the_events_behind_an_unreadable_one_are_read(
        self, session: Session, open_events: Open
    ) -> None:
        session.put({0: b'{"id":"a"}', 1: None, 2: b'{"id":"b"}'})
        assert ids(list(open_events())) == ["a", "b"]

    def test_nothing_ever_waits_for_the_rest_of_an_event(
        self, session: Session, open_events: Open
    ) -> None:
        session.put({0: b'{"role":"user"', 1: b'{"role":"user"'})
        transcript = open_events()
        list(transcript)
        report = transcript.report
        assert (report.pending_bytes, report.unreadable_count) == (0, 2)


class TestReadingOn:
    def test_the_position_at_the_end_is_the_size(self, session: Session, open_events: Open) -> None:
        session.put({0: b"{}", 5: None})
        transcript = open_events()
        list(transcript)
        assert transcript.position == transcript.size == 6

    def test_the_position_stays_before_an_event_until_all_its_objects_are_out(
        self, session: Session, open_events: Open
    ) -> None:
        session.put({0: b"{}", 4: b"{}{}", 6: b"{}"})
        transcript = open_events()
        assert [transcript.position for _ in transcript] == [1, 4, 5, 7]

    def test_reading_goes_on_where_it_ended(self, session: Session, open_events: Open) -> None:
        session.put_all(HEADER, *chain(said("a")))
        before = open_events()
        list(before)
        session.put_all(*chain(said("a"), said("b"))[1:], first=2)
        after = open_events()
        after.read_on_from(before.position)
        assert ids(list(after)) == ["e1"]

    def test_reading_on_from_0_reads_all(self, session: Session, open_events: Open) -> None:
        session.put_all(HEADER)
        transcript = open_events()
        transcript.read_on_from(0)
        assert len(list(transcript)) == 1

    def test_the_report_of_reading_on_counts_what_is_new_alone(
        self, session: Session, open_events: Open
    ) -> None:
        session.put({0: b"{}", 1: b"{} "})
        transcript = open_events()
        transcript.read_on_from(1)
        list(transcript)
        assert transcript.report.bytes_read == 3

    def test_a_child_of_the_last_entry_goes_on(self, session: Session, open_events: Open) -> None:
        session.put_all(HEADER, *chain(said("a"), said("b")))
        assert open_events().goes_on_from(2, "e0")

    def test_a_branch_does_not_go_on(self, session: Session, open_events: Open) -> None:
        session.put_all(*chain(said("a"), said("b")), entry("c", "e0", said("c")))
        assert not open_events().goes_on_from(2, "e1")

    def test_messages_without_ids_go_on_from_one_without(
        self, session: Session, open_events: Open
    ) -> None:
        session.put_all(said("a"), said("b"))
        transcript = open_events()
        assert transcript.goes_on_from(1, None)
        assert not transcript.goes_on_from(1, "e0")

    @pytest.mark.parametrize("offset", [-1, 3])
    def test_nothing_goes_on_from_outside_the_session(
        self, session: Session, open_events: Open, offset: int
    ) -> None:
        session.put_all(*chain(said("a"), said("b")))
        assert not open_events().goes_on_from(offset, "e1")

    def test_the_ids_of_all_records_are_known_without_the_headers(
        self, session: Session, open_events: Open
    ) -> None:
        session.put_all(HEADER, *chain(said("a"), said("b")))
        assert list(open_events().entry_ids()) == ["e0", "e1"]


class TestFingerprint:
    @pytest.fixture
    def print_at_3(self, session: Session, open_events: Open) -> bytes:
        session.put_all(HEADER, *chain(said("a"), said("b")))
        return open_events().fingerprint(3)

    def test_an_append_leaves_it(
        self, session: Session, open_events: Open, print_at_3: bytes
    ) -> None:
        session.put_all(*chain(said("c"), start=2), first=3)
        assert open_events().fingerprint(3) == print_at_3

    @pytest.mark.parametrize("seq", [0, 2])
    def test_another_first_or_last_event_changes_it(
        self, session: Session, open_events: Open, print_at_3: bytes, seq: int
    ) -> None:
        session.put({seq: b"{}"})
        assert open_events().fingerprint(3) != print_at_3

    @pytest.mark.parametrize("seq", [0, 2])
    def test_without_its_first_or_last_event_it_changes(
        self, session: Session, open_events: Open, print_at_3: bytes, seq: int
    ) -> None:
        session.put_all(*chain(said("c"), start=2), first=3)
        session.delete(seq)
        assert open_events().fingerprint(3) != print_at_3


names = st.sampled_from(["a", "b", "c", "d", None])
texts = st.text(st.sampled_from('aé漢😀 "\\\n\u2028\ufeff\ud800{}'), max_size=8)
messages = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": texts})
records = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["session", "message", "custom", "function_call", 7]),
        "id": names,
        "parentId": names,
        "uuid": names,
        "timestamp": texts | st.integers(),
        "message": messages,
        "role": st.just("user"),
        "note": st.floats() | texts,
    },
)
lines = st.lists(
    st.builds(
        lambda objects, ascii_only, rest: (
            b"".join(
                json.dumps(one, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
                for one in objects
            )
            + rest
        ),
        st.lists(records, min_size=1, max_size=2),
        st.booleans(),
        st.sampled_from([b"", b"", b"", b" ", b"junk", b"\xff"]),
    ),
    min_size=1,
    max_size=8,
)


def without_offset(entries: Iterator[SessionEntry] | Any) -> list[str]:
    """Return entries as text, in which a number that is none equals itself."""
    return [repr(msgspec.structs.replace(one, offset=0)) for one in entries]


@settings(deadline=None, max_examples=150)
@given(lines, st.integers(1, 5), st.booleans())
def test_a_database_gives_the_entries_that_a_session_file_gives(
    events: list[bytes], step: int, compressed: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "s-1.jsonl"
        file.write_bytes(b"".join(event + b"\n" for event in events))
        session = Session(Path(folder) / "openclaw-agent.sqlite")
        session.put({n * step: event for n, event in enumerate(events)}, compressed=compressed)
        transcript = open_transcript(file)
        with OpenClawAgentDatabase(session.path) as database:
            kept = EventTranscript(database, "s-1")
            assert without_offset(kept) == without_offset(transcript)
            assert repr(kept.header) == repr(transcript.header)
            assert [(span.length, span.reason) for span in kept.report.unreadable] == [
                (span.length, span.reason) for span in transcript.report.unreadable
            ]
