"""Session files as a whole: formats, entries, the report, and files that are none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lcm_fast.errors import NotFoundError, SessionFileError
from lcm_fast.transcripts.reader import MAX_SPANS, Transcript, open_transcript
from lcm_fast.types import SessionEntry, UnreadableSpan

HEADER_V3 = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-01-05T09:00:00Z"}
HEADER_V1 = {"type": "session", "id": "s-2", "timestamp": "2025-12-05T09:00:00Z", "cwd": "/w"}
USER = {"role": "user", "content": "hello"}

Write = Callable[[bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_bytes(data: bytes) -> Path:
        path = tmp_path / "session.jsonl"
        path.write_bytes(data)
        return path

    return write_bytes


def as_lines(*objects: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in objects)


def read(path: Path) -> tuple[Transcript, list[SessionEntry]]:
    transcript = open_transcript(path)
    return transcript, list(transcript)


def only_entry(path: Path) -> SessionEntry:
    (entry,) = open_transcript(path)
    return entry


class TestFormats:
    def test_a_header_with_a_version_is_openclaw(self, write: Write) -> None:
        assert open_transcript(write(as_lines(HEADER_V3))).format == "openclaw"

    def test_a_header_without_version_is_pi(self, write: Write) -> None:
        path = write(as_lines(HEADER_V1, {"type": "message", "message": USER}))
        assert open_transcript(path).format == "pi"

    def test_entries_with_ids_are_openclaw_without_a_header(self, write: Write) -> None:
        path = write(as_lines({"type": "message", "id": "a", "parentId": None, "message": USER}))
        assert open_transcript(path).format == "openclaw"

    @pytest.mark.parametrize(
        "data",
        [
            as_lines(USER),
            as_lines({"message": USER}),
            as_lines({"id": "msg_1", "type": "message", **USER}),
            json.dumps([USER], indent=2).encode(),
        ],
    )
    def test_bare_messages_and_wrappers_are_a_message_list(self, write: Write, data: bytes) -> None:
        assert open_transcript(write(data)).format == "messages"

    def test_the_header_and_its_id_are_known_before_reading(self, write: Write) -> None:
        transcript = open_transcript(write(as_lines(HEADER_V3)))
        assert (transcript.header, transcript.session_id) == (HEADER_V3, "s-1")

    def test_a_session_object_further_down_is_no_header(self, write: Write) -> None:
        assert open_transcript(write(as_lines(USER, HEADER_V3))).header is None

    @pytest.mark.parametrize("blank", [b"\xef\xbb\xbf", b"\n\r\n  \n", b"\xef\xbb\xbf\n"])
    def test_a_byte_order_mark_and_blank_lines_may_come_first(
        self, write: Write, blank: bytes
    ) -> None:
        transcript, entries = read(write(blank + as_lines(HEADER_V3)))
        assert (transcript.session_id, entries[0].offset) == ("s-1", len(blank))


class TestEntries:
    def test_an_envelope_gives_id_parent_and_time(self, write: Write) -> None:
        envelope = {"type": "message", "id": "b", "parentId": "a", "timestamp": "2026-01-05T09:00Z"}
        entry = only_entry(write(as_lines({**envelope, "message": USER})))
        assert (entry.entry_id, entry.parent_id, entry.timestamp) == ("b", "a", "2026-01-05T09:00Z")

    def test_uuid_and_parent_uuid_do_as_well(self, write: Write) -> None:
        entry = only_entry(
            write(as_lines({"type": "message", "uuid": "b", "parentUuid": "a", "message": USER}))
        )
        assert (entry.entry_id, entry.parent_id) == ("b", "a")

    def test_raw_is_the_object_without_its_line_end(self, write: Write) -> None:
        assert only_entry(write(b'  { "role":"user" }\t\r\n')).raw == b'{ "role":"user" }'

    @pytest.mark.parametrize(
        "bare",
        [
            USER,
            {"role": "bashExecution", "command": "ls", "output": "a"},
            {"type": "message", "role": "assistant", "content": []},
            {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "a"},
            {"type": "reasoning", "summary": []},
        ],
    )
    def test_an_object_that_is_a_message_is_its_own_message(
        self, write: Write, bare: dict[str, object]
    ) -> None:
        entry = only_entry(write(as_lines(bare)))
        assert (entry.type, entry.message) == ("message", bare)

    def test_a_wrapper_without_type_carries_its_message(self, write: Write) -> None:
        entry = only_entry(write(as_lines({"message": USER})))
        assert (entry.type, entry.message) == ("message", USER)

    @pytest.mark.parametrize(
        "other",
        [
            {"type": "custom", "id": "c", "message": USER},
            {"type": "model_change", "id": "c", "modelId": "m"},
            {"type": "compaction", "id": "c", "summary": "s"},
            {"type": "message", "id": "c", "message": "text"},
            {"type": "something_new", "id": "c"},
        ],
    )
    def test_other_entries_are_carried_through_without_a_message(
        self, write: Write, other: dict[str, object]
    ) -> None:
        entry = only_entry(write(as_lines(other)))
        assert (entry.type, entry.message) == (other["type"], None)

    def test_an_object_without_type_or_message_is_unknown(self, write: Write) -> None:
        assert only_entry(write(as_lines({"type": 7, "x": 1}))).type == "unknown"

    def test_a_bare_message_has_no_entry_id(self, write: Write) -> None:
        assert only_entry(write(as_lines({"id": "msg_1", **USER}))).entry_id is None

    def test_an_array_gives_its_elements(self, write: Write) -> None:
        data = json.dumps([USER, {"role": "assistant", "content": "hi"}], indent=1).encode()
        _, entries = read(write(data))
        assert [data[entry.offset :][: len(entry.raw)] for entry in entries] == [
            entry.raw for entry in entries
        ]

    def test_reading_twice_gives_the_same(self, write: Write) -> None:
        transcript = open_transcript(write(as_lines(HEADER_V3, USER) + b'broken\n{"role":'))
        first, report = list(transcript), transcript.report
        assert (list(transcript), transcript.report) == (first, report)

    def test_what_is_appended_after_opening_waits_for_the_next_opening(self, write: Write) -> None:
        path = write(as_lines(USER))
        transcript = open_transcript(path)
        with path.open("ab") as stream:
            stream.write(as_lines(USER))
        assert (len(list(transcript)), len(list(open_transcript(path)))) == (1, 2)


class TestReport:
    def test_entries_messages_and_bytes_are_counted(self, write: Write) -> None:
        path = write(as_lines(HEADER_V3, USER, USER))
        report = read(path)[0].report
        assert (report.entries, report.messages, report.bytes_read) == (3, 2, path.stat().st_size)

    def test_a_broken_line_is_reported_and_reading_goes_on(self, write: Write) -> None:
        transcript, entries = read(write(as_lines(USER) + b'{"type":"message"\n' + as_lines(USER)))
        offset = len(as_lines(USER))
        assert len(entries) == 2
        assert transcript.report.unreadable == [UnreadableSpan(offset, 17, "broken JSON")]

    def test_an_unterminated_last_line_of_whole_objects_is_read(self, write: Write) -> None:
        transcript, entries = read(write(as_lines(USER) + b'{"role":"user"}{"role":"user"}'))
        assert (len(entries), transcript.report.pending_bytes) == (3, 0)

    def test_an_incomplete_last_line_waits_and_is_not_unreadable(self, write: Write) -> None:
        transcript, entries = read(write(as_lines(USER) + b'{"role":"user"}{"role"'))
        report = transcript.report
        assert (len(entries), report.pending_bytes, report.unreadable_count) == (1, 22, 0)

    def test_an_incomplete_array_waits_at_its_last_element(self, write: Write) -> None:
        transcript, entries = read(write(b'[{"role":"user"},{"role":'))
        report = transcript.report
        assert (len(entries), report.pending_bytes, report.unreadable_count) == (1, 8, 0)

    def test_text_of_another_kind_gives_no_entries_but_spans(self, write: Write) -> None:
        transcript, entries = read(write(b"dear diary\ntoday\n"))
        assert (entries, transcript.report.unreadable_count) == ([], 2)

    def test_no_more_than_a_thousand_spans_are_kept_and_all_are_counted(self, write: Write) -> None:
        report = read(write(b"x\n" * (MAX_SPANS + 5)))[0].report
        assert (len(report.unreadable), report.unreadable_count) == (MAX_SPANS, MAX_SPANS + 5)

    def test_binary_junk_is_one_span(self, write: Write) -> None:
        data = b"\x7fELF\x00\x01\n" * 2000
        transcript, entries = read(write(data))
        assert entries == []
        assert transcript.report.unreadable == [UnreadableSpan(0, len(data), "binary data")]

    def test_a_readable_first_line_makes_nul_bytes_text(self, write: Write) -> None:
        _, entries = read(write(as_lines(USER) + b"\x00\x00\n" + as_lines(USER)))
        assert len(entries) == 2


class TestFilesThatAreNone:
    def test_a_missing_file_is_not_found(self, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match=r"gone\.jsonl"):
            open_transcript(tmp_path / "gone.jsonl")

    def test_a_path_through_a_file_is_not_found(self, write: Write) -> None:
        with pytest.raises(NotFoundError):
            open_transcript(write(b"{}") / "below")

    def test_a_path_no_file_can_have_is_not_found(self) -> None:
        with pytest.raises(NotFoundError):
            open_transcript("a\0b")

    def test_a_directory_is_refused_by_name(self, tmp_path: Path) -> None:
        with pytest.raises(SessionFileError) as caught:
            open_transcript(tmp_path)
        assert caught.value.code == "is_directory"

    @pytest.mark.parametrize("data", [b"", b"\n\n  \r\n", b"\xef\xbb\xbf", b" " * 10_000])
    def test_a_file_that_holds_nothing_is_empty(self, write: Write, data: bytes) -> None:
        with pytest.raises(SessionFileError) as caught:
            open_transcript(write(data))
        assert caught.value.code == "empty_file"

    def test_a_pipe_is_refused(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(SessionFileError) as caught:
            open_transcript(tmp_path / "pipe")
        assert caught.value.code == "not_a_file"

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
    def test_a_file_without_read_permission_says_so(self, write: Write) -> None:
        path = write(as_lines(USER))
        path.chmod(0)
        with pytest.raises(SessionFileError) as caught:
            open_transcript(path)
        assert caught.value.code == "permission_denied"

    def test_a_file_removed_before_reading_is_not_found(self, write: Write) -> None:
        path = write(as_lines(USER))
        transcript = open_transcript(path)
        path.unlink()
        with pytest.raises(NotFoundError):
            list(transcript)


@pytest.mark.corpus
@pytest.mark.parametrize(
    "folder", ["openclaw-v3", "openclaw-v3-long", "openclaw-v3-chats", "pi-sessions-v1"]
)
def test_every_object_of_the_real_sessions_is_read(corpus: Path, folder: str) -> None:
    for path in sorted((corpus / folder).rglob("*.jsonl")):
        transcript, entries = read(path)
        assert b"".join(entry.raw for entry in entries) == path.read_bytes().replace(b"\n", b"")
        assert transcript.report.messages > 0


@pytest.mark.corpus
def test_hand_broken_lines_are_reported_once_each(corpus: Path) -> None:
    counts = {
        path.name: read(path)[0].report.unreadable_count
        for path in sorted((corpus / "edge-cases").glob("*.jsonl"))
    }
    assert {name for name, count in counts.items() if count == 1} == {
        "claude-code_cleanup_input.jsonl",
        "codex_cleanup_input.jsonl",
        "omp_cleanup_input.jsonl",
        "openclaw_cleanup_input.jsonl",
        "pi_cleanup_input.jsonl",
    }
