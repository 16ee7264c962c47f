"""Session files: what they add, which branch is shown, what is carried along."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import chain, entry, said, shown, texts, violations, write_session

from lcm_fast.engine import Engine
from lcm_fast.errors import SessionFileError
from lcm_fast.ingest import reading

MODEL = {"type": "model_change", "id": "m1", "parentId": None, "modelId": "m"}
BRANCHED = [
    entry("a", None, said("question")),
    entry("b", "a", said("first try")),
    entry("c", "a", said("second try")),
]
RESUMED = [*BRANCHED, entry("d", "b", said("on from the first"))]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def exported(engine: Engine, session_key: str = "session") -> list[Any]:
    return [json.loads(raw) for raw in engine.export_entries(session_key=session_key)]


class TestBranches:
    def test_an_abandoned_branch_is_stored_and_not_shown(
        self, engine: Engine, session: Path
    ) -> None:
        result = engine.bootstrap(write_session(session, BRANCHED))
        assert (result.ingested, result.abandoned) == (3, 1)
        assert shown(engine, "session") == ["question", "second try"]

    def test_a_branch_taken_up_again_comes_back_and_the_other_leaves(
        self, engine: Engine, session: Path
    ) -> None:
        engine.bootstrap(write_session(session, BRANCHED))
        engine.bootstrap(write_session(session, RESUMED))
        assert shown(engine, "session") == ["question", "first try", "on from the first"]

    def test_moving_between_branches_keeps_the_counters_right(
        self, engine: Engine, session: Path
    ) -> None:
        for entries in (BRANCHED, RESUMED, [*RESUMED, entry("e", "c", said("back"))]):
            engine.bootstrap(write_session(session, entries))
        assert violations(engine.store) == []

    def test_reading_a_branched_file_again_moves_nothing(
        self, engine: Engine, session: Path
    ) -> None:
        for _ in range(2):
            engine.bootstrap(write_session(session, RESUMED))
        revision = engine.conversation(session_key="session").view_revision
        engine.bootstrap(session)
        assert engine.conversation(session_key="session").view_revision == revision

    def test_an_entry_written_twice_is_shown_when_one_copy_is_on_the_path(
        self, engine: Engine, session: Path
    ) -> None:
        twice = [BRANCHED[0], BRANCHED[1], BRANCHED[1], entry("d", "b", said("next"))]
        for _ in range(3):
            engine.bootstrap(write_session(session, twice))
        assert shown(engine, "session") == ["question", "first try", "next"]

    def test_a_live_message_the_file_has_on_a_left_branch_leaves_the_view(
        self, engine: Engine, session: Path
    ) -> None:
        engine.ingest([said("question"), said("first try")], session_key="session")
        engine.bootstrap(write_session(session, BRANCHED))
        assert shown(engine, "session") == ["question", "second try"]


class TestCarriedEntries:
    def test_entries_without_a_message_come_back_where_they_stood(
        self, engine: Engine, session: Path
    ) -> None:
        entries = [MODEL, *chain(said("one"), said("two")), {"type": "custom", "data": 1}]
        engine.bootstrap(write_session(session, entries))
        assert exported(engine)[1:] == entries

    def test_equal_entries_are_all_carried(self, engine: Engine, session: Path) -> None:
        mark = {"type": "custom", "data": 1}
        entries = [mark, entry("a", None, said("one")), mark, mark]
        for _ in range(2):
            engine.bootstrap(write_session(session, entries))
        assert exported(engine)[1:] == entries

    def test_entries_at_the_seam_of_two_batches_keep_their_place(
        self, engine: Engine, session: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "_BATCH_MESSAGES", 2)
        entries: list[dict[str, Any]] = []
        for n, one in enumerate(chain(*(said(f"m{n}") for n in range(7)))):
            entries += [one, {"type": "custom", "data": n}]
        for _ in range(2):
            engine.bootstrap(write_session(session, entries))
        assert exported(engine)[1:] == entries

    def test_a_message_of_a_role_no_model_is_sent_is_carried(
        self, engine: Engine, session: Path
    ) -> None:
        wizard = entry("a", None, {"role": "wizard", "content": "x"})
        result = engine.bootstrap(write_session(session, [wizard]))
        assert (result.ingested, exported(engine)[1:]) == (0, [wizard])

    def test_a_file_of_nothing_but_a_header_is_kept(self, engine: Engine, session: Path) -> None:
        engine.bootstrap(write_session(session, []))
        assert [one["type"] for one in exported(engine)] == ["session"]


class TestFilesWithoutIds:
    def test_a_message_list_read_again_adds_nothing(self, engine: Engine, session: Path) -> None:
        session.write_text(json.dumps([said("ok"), said("ok"), said("no")]))
        added = [engine.bootstrap(session).ingested for _ in range(2)]
        assert added == [3, 0]

    def test_a_pi_session_that_grew_adds_the_new(self, engine: Engine, session: Path) -> None:
        lines = [{"type": "session", "id": "p", "cwd": "/w"}]
        lines += [{"type": "message", "message": said("ok")} for _ in range(3)]
        for end in (2, 4):
            session.write_text("".join(json.dumps(one) + "\n" for one in lines[:end]))
            engine.bootstrap(session)
        assert texts(engine, session_key="session") == ["ok", "ok", "ok"]

    def test_equal_messages_are_told_apart_across_batches(
        self, engine: Engine, session: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "_BATCH_MESSAGES", 2)
        session.write_text(json.dumps([said("ok")] * 7))
        added = [engine.bootstrap(session).ingested for _ in range(2)]
        assert added == [7, 0]


class TestAddresses:
    def test_a_file_is_a_conversation_by_its_name(self, engine: Engine, tmp_path: Path) -> None:
        path = write_session(tmp_path / "monday.jsonl", chain(said("hi")))
        assert engine.bootstrap(path).session_key == "monday"

    def test_two_sessions_of_one_file_name_are_two_conversations(
        self, engine: Engine, session: Path
    ) -> None:
        keys = []
        for session_id in ("one", "two", "two", "one"):
            header = {"type": "session", "version": 3, "id": session_id}
            lines = [header, entry("a", None, said("hi"))]
            session.write_text("".join(json.dumps(line) + "\n" for line in lines))
            keys.append(engine.bootstrap(session).session_key)
        assert keys == ["session", "session#two", "session#two", "session"]

    def test_a_file_name_that_is_not_utf8_is_survived(self, engine: Engine, tmp_path: Path) -> None:
        path = Path(f"{tmp_path}/na\udcffme.jsonl")
        path.write_text(json.dumps(said("hi")) + "\n")
        assert engine.bootstrap(path).session_key == "na\ufffdme"


def test_an_id_with_a_nul_in_it_is_known_again(engine: Engine, session: Path) -> None:
    write_session(session, [entry("a\0b", None, said("one")), entry("a\0c", "a\0b", said("one"))])
    added = [engine.bootstrap(session).ingested for _ in range(2)]
    assert added == [2, 0]


def test_a_file_without_any_message_is_refused_and_leaves_nothing(
    engine: Engine, session: Path
) -> None:
    session.write_text('{"a": 1}\n{"b": 2}\n')
    with pytest.raises(SessionFileError, match="2 entries of other kinds"):
        engine.bootstrap(session)
    assert engine.conversations() == []


def test_an_unfinished_last_line_is_read_once_it_is_finished(engine: Engine, session: Path) -> None:
    whole = write_session(session, chain(said("one"), said("two"))).read_bytes()
    session.write_bytes(whole[:-9])
    first = engine.bootstrap(session)
    session.write_bytes(whole)
    second = engine.bootstrap(session)
    assert (first.ingested, first.pending_bytes > 0, second.ingested) == (1, True, 1)


def test_the_batches_of_a_file_make_one_conversation(
    engine: Engine, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_BATCH_MESSAGES", 3)
    engine.bootstrap(write_session(session, chain(*(said(f"m{n}") for n in range(10)))))
    assert texts(engine, session_key="session") == [f"m{n}" for n in range(10)]


def test_progress_ends_with_the_size_of_the_file(engine: Engine, session: Path) -> None:
    calls: list[tuple[int, int]] = []
    write_session(session, chain(said("one")))
    engine.bootstrap(session, progress=lambda done, total: calls.append((done, total)))
    size = session.stat().st_size
    assert calls[-1] == (size, size)


@pytest.mark.corpus
@pytest.mark.parametrize("folder", ["openclaw-v3", "openclaw-v3-long", "pi-sessions-v1"])
def test_real_sessions_come_back_byte_for_byte_and_are_known_again(
    engine: Engine, corpus: Path, folder: str
) -> None:
    for path in sorted((corpus / folder).glob("*.jsonl"))[:4]:
        first, again = engine.bootstrap(path), engine.bootstrap(path)
        raw = b"".join(engine.export_entries(session_key=first.session_key))
        kept = path.read_bytes().replace(b"\n", b"").replace(b"\r", b"")
        assert (again.ingested, len(raw)) == (0, len(kept)), path.name
    assert violations(engine.store) == []
