"""What users of such engines reported about session identity, one test a report.

Each test is named after the symptom and holds the reproduction, scaled down. Must not test how it
is done: the unit tests do.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import chain, entry, make_engine, said, shown, texts, violations

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import LcmError, NotFoundError
from lcm_fast.ingest import BootstrapResult

KEY = "agent:main:main"
TALK = chain(*(said(f"m{n}", n) for n in range(10)))
SMALL = {"fresh_tail_count": 2, "leaf_chunk_tokens": 300}


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def write(path: Path, entries: Sequence[object], session_id: str = "s-1", **header: object) -> Path:
    head = {"type": "session", "version": 3, "id": session_id, **header}
    path.write_text("".join(json.dumps(one) + "\n" for one in (head, *entries)))
    return path


def read(
    engine: Engine, path: Path, entries: Sequence[object], session_id: str = "s-1"
) -> BootstrapResult:
    return engine.bootstrap(write(path, entries, session_id), session_key=KEY)


def order(engine: Engine) -> list[str]:
    return texts(engine, session_key=KEY)


def said_in(entries: Sequence[dict[str, Any]]) -> list[str]:
    return [one["message"]["content"] for one in entries]


def sent(engine: Engine, **address: str) -> list[str]:
    """Return the contents of the messages a model is sent."""
    messages = engine.assemble(token_budget=100_000, **address).messages
    return [message["content"] for message in messages]


def steps(name: str, *numbers: int) -> list[dict[str, Any]]:
    """Return messages long enough to be summarised, each with the name of its session in it."""
    return [
        said(f"In {name} we moved step {n} to /srv/{name}/step{n}.py. " * 12, n) for n in numbers
    ]


def problems(engine: Engine) -> dict[str, dict[str, str]]:
    return {problem["code"]: problem for problem in lcm_fast.status(engine).problems}


def test_a_memory_that_nobody_feeds_any_more_is_flagged_and_a_backfill_adds_the_gap_once(
    engine: Engine, session: Path
) -> None:
    read(engine, session, TALK[:4])
    write(session, TALK)
    gap = problems(engine)["unread_transcripts"]
    backfilled = [engine.bootstrap(session, session_key=KEY).ingested for _ in range(2)]
    assert str(session) in gap["hint"]
    assert (backfilled, order(engine), problems(engine)) == ([6, 0], said_in(TALK), {})


def test_a_session_that_nobody_announced_is_bound_by_its_messages_and_compacted(
    database: Path,
) -> None:
    with make_engine(database, **SMALL) as engine:
        for message in steps("relay", *range(12)):
            engine.ingest([message], session_id="runtime-7")
        made = engine.compact(session_id="runtime-7", token_budget=600, force=True)
        (listed,) = lcm_fast.status(engine).conversations
        assert (listed["session_id"], listed["messages"]) == ("runtime-7", 12)
        assert made.summaries_created > 0


def test_no_change_of_a_file_splits_a_conversation_silently(database: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    found = []
    for name, path, entries, session_id in (
        ("start", first, TALK[:3], "s-1"),
        ("restart", first, TALK[:4], "s-1"),
        ("rename", second, TALK[:5], "s-1"),
        ("prune", second, TALK[2:6], "s-1"),
        ("rotate", second, TALK[5:7], "s-2"),
        ("roll over", first, TALK[7:9], "s-3"),
    ):
        with make_engine(database) as engine:
            read(engine, path, entries, session_id)
            found.append((name, len(engine.conversations()), order(engine)))
    lengths = {"start": 3, "restart": 4, "rename": 5, "prune": 6, "rotate": 7, "roll over": 9}
    assert found == [(name, 1, said_in(TALK[:n])) for name, n in lengths.items()]


def test_turns_of_a_backend_that_the_engine_was_not_asked_for_are_flagged_and_fetched(
    engine: Engine, session: Path
) -> None:
    read(engine, session, TALK[:2])
    write(session, TALK[:6])
    flagged = "unread_transcripts" in problems(engine)
    message = TALK[6]["message"]
    engine.after_turn([message], session_file=session, session_key=KEY)
    assert (flagged, order(engine), problems(engine)) == (True, said_in(TALK[:7]), {})


def test_sessions_that_compact_and_roll_over_side_by_side_keep_their_own_summaries(
    database: Path,
) -> None:
    names = ("desk", "cron", "helper", "phone")
    with make_engine(database, **SMALL) as engine:
        for round_ in range(3):
            numbers = range(8 * round_, 8 * round_ + 8)
            for n in numbers:
                for name in names:
                    run = f"{name}-run-{round_}"
                    engine.ingest(steps(name, n), session_key=name, session_id=run)
            for name in names:
                engine.compact(session_key=name, token_budget=600, force=True)
        assert len(engine.conversations()) == len(names)
        for name in names:
            summaries = engine.summaries(session_key=name, limit=1000)
            assert summaries
            assert [one.content for one in summaries if f"/srv/{name}/" not in one.content] == []
        assert violations(engine.store) == []


def test_a_broken_link_a_repeated_id_or_a_circle_does_not_hide_the_messages_before_it(
    engine: Engine, session: Path
) -> None:
    dangling = [TALK[0], TALK[1], entry("e2", "gone", said("m2", 2)), TALK[3]]
    repeated = [
        TALK[0],
        {"type": "custom", "id": "e1", "parentId": "e0", "data": {"snapshot": 1}},
        *TALK[1:4],
    ]
    circle = [entry("e0", "e3", said("m0", 0)), *TALK[1:4]]
    for key, entries in (("dangling", dangling), ("repeated", repeated), ("circle", circle)):
        engine.bootstrap(write(session, entries), session_key=key)
        stored, in_view = texts(engine, session_key=key), shown(engine, key)
        assert (key, stored, in_view) == (key, said_in(TALK[:4]), said_in(TALK[:4]))


def test_entries_of_an_older_format_without_ids_are_not_hidden_by_newer_ones(
    engine: Engine, session: Path
) -> None:
    old = [{"type": "message", "message": said(f"old {n}", n)} for n in range(40)]
    new = [entry(f"e{n}", None, said(f"new {n}", 100 + n)) for n in range(4)]
    result = read(engine, session, [*old, *new])
    assert (result.ingested, len(shown(engine, KEY))) == (44, 44)
    assert engine.bootstrap(session, session_key=KEY).ingested == 0


def test_session_files_added_and_moved_while_the_engine_was_off_are_each_found_once(
    database: Path, tmp_path: Path
) -> None:
    before = [write(tmp_path / f"{n}.jsonl", TALK[:2], f"s-{n}") for n in range(10)]
    with make_engine(database) as engine:
        for path in before:
            engine.bootstrap(path)
    (tmp_path / "moved").mkdir()
    moved = [path.rename(tmp_path / "moved" / path.name) for path in before]
    added = [write(tmp_path / "moved" / f"{n}.jsonl", TALK[:2], f"s-{n}") for n in range(10, 20)]
    with make_engine(database) as engine:
        stored = [engine.bootstrap(path).ingested for path in (*moved, *added)]
        listed = [one["session_key"] for one in lcm_fast.status(engine).conversations]
        assert stored == [0] * 10 + [2] * 10
        assert listed[:10] == [str(n) for n in range(19, 9, -1)]
        assert sorted(listed, key=int) == [str(n) for n in range(20)]


def test_a_session_file_that_was_deleted_is_named_and_its_history_stays_usable(
    database: Path, session: Path
) -> None:
    with make_engine(database) as engine:
        read(engine, session, TALK)
    session.unlink()
    with make_engine(database) as engine:
        with pytest.raises(NotFoundError, match=str(session)):
            engine.bootstrap(session, session_key=KEY)
        engine.after_turn([said("and on", 20)], session_file=session, session_key=KEY)
        assert sent(engine, session_key=KEY) == [*said_in(TALK), "and on"]


def test_an_automatic_reset_that_makes_a_new_id_does_not_orphan_the_summaries(
    database: Path,
) -> None:
    with make_engine(database, **SMALL) as engine:
        engine.ingest(steps("relay", *range(12)), session_key=KEY, session_id="monday")
        engine.compact(session_key=KEY, token_budget=600, force=True)
        before = sent(engine, session_key=KEY)
        engine.ingest([said("good morning", 99)], session_key=KEY, session_id="tuesday")
        after = sent(engine, session_key=KEY, session_id="tuesday")
        assert engine.conversation(session_key=KEY).leaf_count > 0
        assert after == [*before, "good morning"]


def test_a_hundred_runs_under_one_key_leave_one_active_conversation_and_all_the_others(
    engine: Engine,
) -> None:
    key = "agent:main:cron:nightly"
    for n in range(100):
        engine.ingest([said(f"run {n}")], session_key=key, session_id=f"run-{n}")
    found = engine.conversations(limit=200)
    active = [one.session_id for one in found if one.active]
    assert (len(found), active) == (100, ["run-99"])
    kept = [texts(engine, session_key=key, session_id=f"run-{n}") for n in range(100)]
    assert kept == [[f"run {n}"] for n in range(100)]


def test_a_session_file_renamed_in_mid_turn_and_made_anew_does_not_start_blank(
    engine: Engine, session: Path
) -> None:
    read(engine, session, TALK)
    session.rename(session.with_name("session.jsonl.reset.2026-01-05T09-00-00.000Z"))
    session.touch()
    retry = said("try again", 20)
    engine.after_turn([retry], session_file=session, session_key=KEY)
    blank = sent(engine, session_key=KEY)
    read(engine, session, [entry("r1", None, retry)], "s-2")
    assert (blank, sent(engine, session_key=KEY)) == ([*said_in(TALK), "try again"], blank)


def test_a_session_whose_file_is_missing_is_read_from_its_transcript_in_another_dialect(
    engine: Engine, session: Path, tmp_path: Path
) -> None:
    with pytest.raises(NotFoundError, match=str(session)):
        engine.bootstrap(session, session_key=KEY)
    sibling = tmp_path / "export.json"
    sibling.write_text(json.dumps([one["message"] for one in TALK]))
    engine.bootstrap(sibling, session_key=KEY)
    later = read(engine, session, [*TALK, entry("e10", "e9", said("and on", 20))])
    assert (later.ingested, order(engine)) == (1, [*said_in(TALK), "and on"])


@pytest.mark.parametrize("at", [20, None], ids=["with a time", "without a time"])
def test_a_first_message_that_repeats_a_trivial_old_one_is_not_taken_for_history(
    engine: Engine, session: Path, at: int | None
) -> None:
    read(engine, session, chain(said("ping", 0), said("pong", 1)))
    result = read(engine, session, [entry("n0", None, said("ping", at))], "s-2")
    assert (result.ingested, result.is_frozen) == (1, False)
    assert order(engine) == ["ping", "pong", "ping"]


def test_ids_of_summaries_that_an_agent_holds_stay_good_when_the_session_rolls_over(
    database: Path,
) -> None:
    with make_engine(database, **SMALL) as engine:
        engine.ingest(steps("relay", *range(12)), session_key=KEY, session_id="monday")
        engine.compact(session_key=KEY, token_budget=600, force=True)
        held = engine.summaries(session_key=KEY)
        engine.ingest(steps("relay", 99), session_key=KEY, session_id="tuesday")
        assert engine.store.summaries([one.summary_id for one in held]) == held
        assert engine.summaries(session_key=KEY, session_id="tuesday") == held


def test_a_rolled_over_session_is_not_frozen_for_a_week_without_an_alarm(
    engine: Engine, session: Path, tmp_path: Path
) -> None:
    read(engine, session, TALK)
    fresh = [entry(f"f{n}", None, said(f"m{n}", 100 + n)) for n in range(5)]
    rebound = read(engine, tmp_path / "fresh.jsonl", fresh, "s-2")
    ambiguous = [entry(f"x{n}", None, said(f"m{n}", 50 + n)) for n in range(5)]
    frozen = read(engine, tmp_path / "ambiguous.jsonl", ambiguous, "s-3")
    alarm = problems(engine)["frozen"]
    assert (rebound.is_frozen, rebound.ingested, frozen.is_frozen) == (False, 5, True)
    assert (lcm_fast.status(engine).ok, alarm["severity"]) == (False, "error")
    assert "is held back since 2026-01-01T00:00:" in alarm["detail"]


def test_the_transcript_of_a_scheduled_run_does_not_enter_the_next_run(
    engine: Engine, tmp_path: Path
) -> None:
    key = "agent:main:cron:digest"
    for n in range(10):
        run = chain(said("write the digest", 10 * n), said(f"digest {n}", 10 * n + 1))
        file = write(tmp_path / f"run-{n}.jsonl", run, f"run-{n}")
        engine.bootstrap(file, session_key=key)
    contexts = [sent(engine, session_key=key, session_id=f"run-{n}") for n in range(10)]
    assert contexts == [["write the digest", f"digest {n}"] for n in range(10)]


def test_a_new_transcript_path_without_a_common_message_goes_on_instead_of_freezing(
    engine: Engine, session: Path, tmp_path: Path
) -> None:
    read(engine, session, TALK)
    new = [entry(f"n{n}", None, said(f"new {n}", 100 + n)) for n in range(5)]
    result = read(engine, tmp_path / "other.jsonl", new, "s-2")
    assert (result.ingested, result.is_frozen) == (5, False)
    assert order(engine) == [*said_in(TALK), *said_in(new)]


@pytest.mark.parametrize(
    "number",
    [errno.EACCES, errno.EIO, errno.ENOENT, errno.EINTR],
    ids=errno.errorcode.get,
)
def test_a_passing_error_about_a_file_is_not_taken_for_its_end(
    engine: Engine, session: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(engine, session, TALK[:9])
    write(session, TALK)
    stat = Path.stat

    def failing(path: Path, **options: Any) -> os.stat_result:
        if path == session:
            raise OSError(number, os.strerror(number), str(path))
        return stat(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", failing)
        with pytest.raises(LcmError, match=str(session)):
            engine.bootstrap(session, session_key=KEY)
        with suppress(LcmError):
            engine.after_turn([TALK[9]["message"]], session_file=session, session_key=KEY)
    result = engine.bootstrap(session, session_key=KEY)
    added = len(session.read_bytes().splitlines(keepends=True)[-1])
    assert (result.bytes_read, len(engine.conversations())) == (added, 1)
    assert order(engine) == said_in(TALK)


def test_a_forked_session_does_not_show_the_whole_history_of_its_parent(
    engine: Engine, tmp_path: Path
) -> None:
    history = chain(*(said(f"turn {n} " + "word " * 200, n) for n in range(500)))
    parent = write(tmp_path / "parent.jsonl", history)
    engine.bootstrap(parent)
    own = entry("own", "e499", said("from here on", 1000))
    fork = write(tmp_path / "fork.jsonl", [*history, own], "s-2", parentSession=str(parent))
    engine.bootstrap(fork)
    in_view = shown(engine, "fork")
    assert 1 < len(in_view) < 50
    assert in_view == [*said_in(history), "from here on"][-len(in_view) :]
    assert texts(engine, session_key="fork")[:500] == texts(engine, session_key="parent")
    header = json.loads(next(engine.export_entries(session_key="fork")))
    assert header["parentSession"] == str(parent)
