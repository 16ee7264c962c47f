"""A session file that is read again: grown, cut, rotated, replaced, branched, half-written.

Says how many bytes each reading goes through, and that the record has every message once, in its
place (spec: storage 3; decisions 11 and 13). Files that are held back have a module of their own.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import chain, entry, make_engine, said, shown, texts, violations
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.engine import Engine
from lcm_fast.errors import LcmError
from lcm_fast.ingest import BootstrapResult, reading
from lcm_fast.store import Cursor

KEY = "session"
TALK = chain(*(said(f"m{n}", n) for n in range(10)))
CUSTOM = {"type": "custom", "id": "c1", "parentId": "e9", "data": {"n": 1}}
names = (f"session {n}" for n in itertools.count())


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def lines(entries: Sequence[object], session_id: str = "s-1") -> bytes:
    header = {"type": "session", "version": 3, "id": session_id}
    return b"".join(map(line, (header, *entries)))


def write(path: Path, data: bytes) -> Path:
    """Write a file whose time of change no earlier state of it had."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_bytes(data)
    os.utime(path, ns=(before + 1, before + 1))
    return path


def read(engine: Engine, path: Path, data: bytes) -> BootstrapResult:
    return engine.bootstrap(write(path, data), session_key=KEY)


def order(engine: Engine) -> list[str]:
    return texts(engine, session_key=KEY)


def said_in(entries: Sequence[dict[str, Any]]) -> list[str]:
    return [one["message"]["content"] for one in entries if "message" in one]


def cursor_of(engine: Engine, path: Path) -> Cursor:
    number = engine.conversation(session_key=KEY).conversation_id
    found = engine.store.cursor(number, str(path))
    assert found is not None
    return found


class TestAnUnchangedFile:
    def test_is_not_read(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        again = engine.bootstrap(session, session_key=KEY)
        assert (again.bytes_read, again.ingested, again.duplicates) == (0, 0, 10)

    def test_is_not_read_for_a_new_time_of_change(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        again = read(engine, session, lines(TALK))
        assert (again.bytes_read, again.ingested, again.duplicates) == (0, 0, 10)

    def test_is_not_read_after_a_restart(self, database: Path, session: Path) -> None:
        with make_engine(database) as first:
            read(first, session, lines(TALK))
        with make_engine(database) as second:
            assert second.bootstrap(session, session_key=KEY).bytes_read == 0


class TestAFileThatGrew:
    @pytest.mark.parametrize("length", [1, 30, 1000])
    def test_is_read_from_its_cursor_whatever_stands_before(
        self, engine: Engine, session: Path, length: int
    ) -> None:
        old = lines(chain(*(said(f"m{n}", n) for n in range(length))))
        new = line(entry("new", f"e{length - 1}", said("new", length)))
        read(engine, session, old)
        result = read(engine, session, old + new)
        assert (result.bytes_read, result.ingested, result.duplicates) == (len(new), 1, length)

    def test_has_each_of_its_bytes_read_once(self, engine: Engine, session: Path) -> None:
        went_through = [
            read(engine, session, lines(TALK[:end])).bytes_read for end in range(1, len(TALK) + 1)
        ]
        assert (sum(went_through), order(engine)) == (len(lines(TALK)), said_in(TALK))

    def test_by_an_entry_without_a_message_is_read_from_its_cursor(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(TALK))
        result = read(engine, session, lines(TALK) + line(CUSTOM))
        assert (result.bytes_read, result.carried) == (len(line(CUSTOM)), 1)

    def test_without_ids_is_read_from_its_cursor(self, engine: Engine, session: Path) -> None:
        old = b"".join(line(said("ok")) for _ in range(5))
        read(engine, session, old)
        result = read(engine, session, old + line(said("ok")))
        assert (result.bytes_read, result.ingested) == (len(line(said("ok"))), 1)

    def test_after_its_messages_came_live_is_read_from_its_cursor_and_adds_nothing(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(TALK[:8]))
        engine.ingest([one["message"] for one in TALK[8:]], session_key=KEY)
        result = read(engine, session, lines(TALK))
        added = len(lines(TALK)) - len(lines(TALK[:8]))
        assert (result.bytes_read, result.ingested) == (added, 0)
        assert order(engine) == said_in(TALK)

    def test_and_is_given_back_byte_for_byte(self, engine: Engine, session: Path) -> None:
        for end in (3, 7, 10):
            read(engine, session, lines(TALK[:end]))
        assert list(engine.export_entries(session_key=KEY)) == lines(TALK).splitlines()

    def test_as_a_json_array_adds_the_new(self, engine: Engine, session: Path) -> None:
        messages = [one["message"] for one in TALK]
        read(engine, session, json.dumps(messages[:7]).encode())
        result = read(engine, session, json.dumps(messages).encode())
        assert (result.ingested, result.duplicates) == (3, 7)


class TestAHalfWrittenLine:
    def test_waits_and_is_then_read_from_where_it_began(
        self, engine: Engine, session: Path
    ) -> None:
        whole = lines(TALK)
        last = line(TALK[-1])
        first = read(engine, session, whole[:-20])
        second = read(engine, session, whole)
        assert (first.ingested, first.pending_bytes) == (9, len(last) - 20)
        assert (second.ingested, second.pending_bytes, second.bytes_read) == (1, 0, len(last))

    def test_is_said_to_wait_as_long_as_it_does(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK)[:-20])
        again = engine.bootstrap(session, session_key=KEY)
        assert (again.bytes_read, again.pending_bytes) == (0, len(line(TALK[-1])) - 20)

    def test_may_end_inside_a_character(self, engine: Engine, session: Path) -> None:
        old, new = lines(TALK[:1]), line(entry("e1", "e0", said("好 😀", 1)))
        cut = new.index("😀".encode()) + 2
        read(engine, session, old + new[:cut])
        read(engine, session, old + new)
        assert order(engine) == ["m0", "好 😀"]

    def test_that_its_writer_took_back_is_forgotten(self, engine: Engine, session: Path) -> None:
        old, other = lines(TALK[:5]), line(entry("x", "e4", said("other", 99)))
        read(engine, session, old + line(TALK[5])[:30])
        result = read(engine, session, old + other)
        assert (result.bytes_read, order(engine)) == (len(other), [*said_in(TALK[:5]), "other"])

    def test_that_is_whole_but_for_its_line_feed_is_read_at_once_and_not_again(
        self, engine: Engine, session: Path
    ) -> None:
        first = read(engine, session, lines(TALK).rstrip())
        second = read(engine, session, lines(TALK))
        assert (first.ingested, second.ingested, order(engine)) == (10, 0, said_in(TALK))

    def test_is_joined_by_a_next_line_once_its_line_feed_comes(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(TALK[:9]).rstrip())
        result = read(engine, session, lines(TALK))
        assert (result.ingested, order(engine)) == (1, said_in(TALK))


class TestAFileThatShrank:
    def test_is_read_whole_and_takes_nothing_away(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        result = read(engine, session, lines(TALK[:4]))
        assert (result.bytes_read, result.ingested) == (len(lines(TALK[:4])), 0)
        assert order(engine) == said_in(TALK)

    def test_and_goes_on_otherwise_adds_what_is_new(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        other = [*TALK[:4], entry("x", "e3", said("another way", 50))]
        result = read(engine, session, lines(other))
        assert (result.ingested, order(engine)) == (1, [*said_in(TALK), "another way"])

    def test_and_grows_again_is_read_from_its_new_end(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        read(engine, session, lines(TALK[:4]))
        result = read(engine, session, lines(TALK[:6]))
        added = len(lines(TALK[:6])) - len(lines(TALK[:4]))
        assert (result.bytes_read, result.ingested) == (added, 0)

    def test_to_a_half_written_line_takes_nothing_away(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        result = read(engine, session, lines(TALK[:4])[:-10])
        assert (result.ingested, order(engine)) == (0, said_in(TALK))


class TestARotatedFile:
    def test_that_kept_its_newest_entries_adds_nothing(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        kept = lines(TALK[7:])
        result = read(engine, session, kept)
        assert (result.bytes_read, result.ingested, result.duplicates) == (len(kept), 0, 3)

    def test_that_kept_its_newest_entries_and_grew_adds_the_new_at_the_end(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(TALK[:8]))
        read(engine, session, lines(TALK[6:]))
        assert order(engine) == said_in(TALK)

    def test_is_read_from_its_cursor_again_once_it_was_read_whole(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(TALK[:8]))
        read(engine, session, lines(TALK[6:9]))
        result = read(engine, session, lines(TALK[6:]))
        assert (result.bytes_read, result.ingested) == (len(line(TALK[9])), 1)

    def test_under_another_name_goes_on_in_the_same_conversation(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(TALK[:8]))
        result = read(engine, session.with_name("session-2.jsonl"), lines(TALK[6:]))
        assert (result.ingested, order(engine)) == (2, said_in(TALK))

    def test_and_the_old_one_may_be_read_in_any_turn(self, engine: Engine, session: Path) -> None:
        other = session.with_name("session-2.jsonl")
        read(engine, session, lines(TALK[:6]))
        read(engine, other, lines(TALK[4:8]))
        read(engine, session, lines(TALK[:7]))
        read(engine, other, lines(TALK[4:]))
        assert order(engine) == said_in(TALK)


class TestAFileWrittenAnew:
    def test_under_the_same_name_with_the_same_size_is_read_whole(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(TALK))
        data = lines(TALK).replace(b'"e9"', b'"x9"').replace(b'"m9"', b'"n9"')
        result = read(engine, session, data)
        assert (result.bytes_read, result.ingested) == (len(data), 1)

    def test_by_a_later_session_is_stored_behind_the_old_one(
        self, engine: Engine, session: Path
    ) -> None:
        later = [entry(f"x{n}", None, said(f"later {n}", 100 + n)) for n in range(3)]
        read(engine, session, lines(TALK))
        result = read(engine, session, lines(later, "s-2"))
        assert (result.ingested, order(engine)) == (3, [*said_in(TALK), *said_in(later)])

    def test_by_a_later_session_that_numbers_its_entries_alike_is_stored_behind_the_old_one(
        self, engine: Engine, session: Path
    ) -> None:
        later = chain(*(said(f"later {n}", 100 + n) for n in range(3)))
        read(engine, session, lines(TALK))
        result = read(engine, session, lines(later, "s-2"))
        assert (result.ingested, order(engine)) == (3, [*said_in(TALK), *said_in(later)])

    def test_with_another_header_adds_nothing(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        result = read(engine, session, lines(TALK, "s-2"))
        assert (result.ingested, result.duplicates) == (0, 10)

    def test_with_other_ids_and_the_same_times_adds_nothing(
        self, engine: Engine, session: Path
    ) -> None:
        messages = [
            {**one["message"], "timestamp": 1_700_000_000_123 + n * 1000}
            for n, one in enumerate(TALK)
        ]
        read(engine, session, lines(chain(*messages)))
        renamed = [entry(f"x{n}", f"x{n - 1}" if n else None, m) for n, m in enumerate(messages)]
        result = read(engine, session, lines(renamed))
        assert (result.ingested, result.is_frozen) == (0, False)

    @pytest.mark.parametrize(
        "known",
        [TALK[3:], TALK[:3] + TALK[6:], TALK[:7], TALK[4:6]],
        ids=["at its start", "in the middle", "at its end", "on both sides"],
    )
    def test_with_messages_that_were_missing_fills_them_in_where_they_stand(
        self, engine: Engine, session: Path, known: list[dict[str, Any]]
    ) -> None:
        read(engine, session, lines(known))
        result = read(engine, session, lines(TALK))
        assert (result.ingested, order(engine)) == (10 - len(known), said_in(TALK))
        assert violations(engine.store) == []

    def test_with_a_line_that_was_unreadable_mended_fills_it_in(
        self, engine: Engine, session: Path
    ) -> None:
        whole = lines(TALK)
        first = read(engine, session, whole.replace(line(TALK[4]), line(TALK[4])[:-9] + b"\n"))
        second = read(engine, session, whole)
        assert (first.unreadable, second.unreadable, second.ingested) == (1, 0, 1)
        assert order(engine) == said_in(TALK)

    def test_says_that_it_was_reconciled(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK[3:]))
        result = read(engine, session, lines(TALK))
        assert result.reason == "reconciled missing session messages"


class TestAFileThatBranches:
    BRANCHED = (*TALK, entry("x", "e4", said("another way", 50)))

    def test_is_read_whole_and_adds_the_branch(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        result = read(engine, session, lines(self.BRANCHED))
        assert (result.bytes_read, result.ingested) == (len(lines(self.BRANCHED)), 1)

    def test_keeps_what_was_left_in_the_record_alone(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK))
        read(engine, session, lines(self.BRANCHED))
        assert order(engine) == [*said_in(TALK), "another way"]
        assert shown(engine, KEY) == [*said_in(TALK[:5]), "another way"]

    def test_is_read_from_its_cursor_where_the_branch_goes_on(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(self.BRANCHED))
        more = entry("y", "x", said("and on", 51))
        result = read(engine, session, lines([*self.BRANCHED, more]))
        assert (result.bytes_read, result.ingested) == (len(line(more)), 1)
        assert shown(engine, KEY) == [*said_in(TALK[:5]), "another way", "and on"]

    def test_does_not_show_what_was_left_when_it_comes_again_live(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(self.BRANCHED))
        before = shown(engine, KEY)
        engine.ingest(TALK[5:], session_key=KEY)
        assert (shown(engine, KEY), len(order(engine))) == (before, 11)


class TestCursorAndRows:
    @pytest.mark.parametrize("after", [1, 2, 3])
    def test_an_interrupted_reading_goes_on_where_it_was_stored_to(
        self, engine: Engine, session: Path, after: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "_BATCH_MESSAGES", 2)
        calls: list[int] = []

        def interrupt(done: int, total: int) -> None:
            calls.append(done)
            if len(calls) == after:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            engine.bootstrap(write(session, lines(TALK)), session_key=KEY, progress=interrupt)
        stored = engine.conversation(session_key=KEY).message_count
        rest = engine.bootstrap(session, session_key=KEY)
        assert (stored, rest.ingested) == (2 * after, 10 - 2 * after)
        assert (rest.bytes_read, order(engine)) == (len(lines(TALK)) - calls[-1], said_in(TALK))

    def test_no_row_stays_when_the_cursor_cannot_be_moved(
        self, engine: Engine, session: Path
    ) -> None:
        read(engine, session, lines(TALK[:4]))
        before = cursor_of(engine, session)
        with closing(apsw.Connection(engine.store.path)) as db:
            db.execute(
                "CREATE TRIGGER broken BEFORE UPDATE ON transcript_cursors"
                " BEGIN SELECT raise(ABORT, 'no'); END"
            )
        with pytest.raises(LcmError):
            read(engine, session, lines(TALK))
        assert (order(engine), cursor_of(engine, session)) == (said_in(TALK[:4]), before)

    def test_the_cursor_counts_the_messages_before_it(self, engine: Engine, session: Path) -> None:
        read(engine, session, lines(TALK[:4]))
        read(engine, session, lines(TALK) + b'{"type"')
        found = cursor_of(engine, session)
        assert (found.messages, found.offset, found.last_entry_id) == (10, len(lines(TALK)), "e9")

    def test_two_copies_of_a_session_have_cursors_of_their_own(
        self, engine: Engine, session: Path
    ) -> None:
        copy = session.with_name("copy.jsonl")
        read(engine, session, lines(TALK[:4]))
        read(engine, copy, lines(TALK[:8]))
        result = read(engine, session, lines(TALK))
        assert result.bytes_read == len(lines(TALK)) - len(lines(TALK[:4]))
        assert (result.ingested, order(engine)) == (2, said_in(TALK))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One engine for all examples; each takes a session of its own."""
    with make_engine(tmp_path_factory.mktemp("reconcile") / "memory.db") as opened:
        yield opened


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["ok", "好 😀", "a\nb"]), min_size=1, max_size=8),
    st.lists(st.floats(0, 1), max_size=5),
)
def test_a_file_seen_at_any_moments_of_its_growth_is_read_in_proportion_to_it(
    memory: Engine, drawn: list[str], moments: list[float]
) -> None:
    data = lines(chain(*(said(text, n) for n, text in enumerate(drawn))))
    first, *rest = data.splitlines(keepends=True)
    longest = max(map(len, rest))
    name = next(names)
    path = Path(memory.store.path).with_name(f"{name}.jsonl")
    memory.bootstrap(write(path, first + rest[0]))
    seen = begin = len(first + rest[0])
    for end in sorted({begin + int(share * (len(data) - begin)) for share in moments}):
        result = memory.bootstrap(write(path, data[:end]))
        assert result.bytes_read < end - seen + longest
        seen = end
    memory.bootstrap(write(path, data))
    assert list(memory.export_entries(session_key=name)) == data.splitlines()


@st.composite
def views(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """Stretches of one talk: as a file under some name, of some session, or live at its end."""
    sources = st.sampled_from(["live", "a.jsonl s-1", "a.jsonl s-2", "b.jsonl s-1", "b.jsonl s-2"])
    drawn: list[tuple[str, int, int]] = []
    newest = 0
    for source in draw(st.lists(sources, min_size=1, max_size=6)):
        begin = draw(st.integers(0, min(newest, len(TALK) - 1)))
        end = draw(st.integers(begin + 1, len(TALK)))
        newest = max(newest, end)
        drawn.append((source, begin, end))
    return drawn


@settings(max_examples=100, deadline=None)
@given(views())
def test_overlapping_views_of_one_talk_add_up_to_it_whatever_shows_them(
    memory: Engine, drawn: list[tuple[str, int, int]]
) -> None:
    name = next(names)
    folder = Path(memory.store.path).with_name(name)
    folder.mkdir()
    for source, begin, end in drawn:
        if source == "live":
            memory.ingest([one["message"] for one in TALK[begin:end]], session_key=name)
            continue
        file, session_id = source.split()
        memory.bootstrap(write(folder / file, lines(TALK[begin:end], session_id)), session_key=name)
    newest = max(end for _, _, end in drawn)
    assert texts(memory, session_key=name) == said_in(TALK[:newest])


stretches = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 9), st.integers(1, 10))


@settings(max_examples=100, deadline=None)
@given(st.lists(stretches, min_size=1, max_size=6))
def test_stretches_of_one_talk_stand_in_its_order_in_whatever_order_they_are_read(
    memory: Engine, drawn: list[tuple[str, int, int]]
) -> None:
    name = next(names)
    folder = Path(memory.store.path).with_name(name)
    folder.mkdir()
    shown_in_all: set[int] = set()
    for file, begin, length in drawn:
        data = lines(TALK[begin : begin + length])
        memory.bootstrap(write(folder / f"{file}.jsonl", data), session_key=name)
        shown_in_all.update(range(begin, min(begin + length, len(TALK))))
    assert texts(memory, session_key=name) == [f"m{n}" for n in sorted(shown_in_all)]
