"""Messages that come again: what their rows take over, and which other forms are kept."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import chain, entry, said, texts, write_session

from lcm_fast.engine import Engine
from lcm_fast.store import Store

KEY = "session"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def result(text: str, call_id: str = "call_1", at: int = 5) -> dict[str, Any]:
    return {**said(text, at, role="toolResult"), "toolCallId": call_id}


def forms(store: Store) -> list[tuple[str, Any]]:
    """Return the other forms that are kept, with their kinds."""
    with closing(apsw.Connection(store.path)) as db:
        rows: list[tuple[Any, ...]] = db.execute(
            "SELECT kind, raw_codec, raw FROM message_revisions ORDER BY revision_id"
        ).fetchall()
    return [(kind, json.loads(store._codec.unpack(flags, raw, ""))) for kind, flags, raw in rows]


def exported(engine: Engine) -> list[bytes]:
    return list(engine.export_entries(session_key=KEY))


def test_a_live_message_takes_the_bytes_of_its_entry(engine: Engine, session: Path) -> None:
    engine.ingest([said("hi", 1)], session_key=KEY)
    engine.bootstrap(write_session(session, chain(said("hi", 1))))
    assert exported(engine) == session.read_bytes().splitlines()


def test_an_entry_given_live_takes_the_bytes_of_the_file(engine: Engine, session: Path) -> None:
    engine.ingest(chain(said("hi", 1)), session_key=KEY)
    engine.bootstrap(write_session(session, chain(said("hi", 1))))
    assert exported(engine) == session.read_bytes().splitlines()


def test_a_live_form_with_fields_the_entry_lacks_is_kept(engine: Engine, session: Path) -> None:
    live = {**said("hi", 1), "channel": "slack"}
    engine.ingest([live], session_key=KEY)
    engine.bootstrap(write_session(session, chain(said("hi", 1))))
    assert forms(engine.store) == [("live", live)]


def test_a_live_form_that_the_entry_repeats_is_not_kept(engine: Engine, session: Path) -> None:
    engine.ingest([said("hi", 1)], session_key=KEY)
    engine.bootstrap(write_session(session, chain(said("hi", 1))))
    assert forms(engine.store) == []


def test_a_live_message_without_a_time_takes_that_of_its_entry(
    engine: Engine, session: Path
) -> None:
    engine.ingest([said("hi")], session_key=KEY)
    engine.bootstrap(write_session(session, chain(said("hi", 1))))
    (row,) = engine.messages(session_key=KEY)
    assert row.created_at == "2023-11-14T22:13:21.000Z"


def test_a_cleared_output_is_kept_beside_the_first(engine: Engine, session: Path) -> None:
    whole = chain(said("go", 1), result("a long listing"), said("done", 6))
    cleared = chain(said("go", 1), result("[output cleared]"), said("done", 6))
    engine.bootstrap(write_session(session, whole))
    again = engine.bootstrap(write_session(session, cleared))
    assert texts(engine, session_key=KEY) == ["go", "a long listing", "done"]
    assert (again.ingested, again.revised) == (0, 1)
    assert [form["message"]["content"] for _, form in forms(engine.store)] == ["[output cleared]"]


def test_a_form_is_kept_once_however_often_it_comes(engine: Engine, session: Path) -> None:
    engine.bootstrap(write_session(session, chain(said("go", 1), result("a long listing"))))
    for n in range(3):
        more = [said(f"more {n}", 10 + n)]
        file = chain(said("go", 1), result("[output cleared]"), *more)
        engine.bootstrap(write_session(session, file))
    assert len(forms(engine.store)) == 1


def test_an_entry_of_the_same_id_and_time_is_another_form_whatever_it_says(
    engine: Engine, session: Path
) -> None:
    for text in ("first", "second"):
        engine.bootstrap(write_session(session, [entry("a", None, said(text, 1))]))
    assert (texts(engine, session_key=KEY), [kind for kind, _ in forms(engine.store)]) == (
        ["first"],
        ["edited"],
    )


def test_an_entry_of_the_same_id_at_another_time_is_another_message(
    engine: Engine, session: Path
) -> None:
    for at, text in enumerate(("first", "second")):
        engine.bootstrap(write_session(session, [entry("a", None, said(text, at))]))
    assert texts(engine, session_key=KEY) == ["first", "second"]


def test_a_pruned_history_sent_whole_is_known_again(engine: Engine) -> None:
    history = [said("go"), {**result("a long listing"), "timestamp": None}, said("thanks")]
    cleared = [history[0], {**history[1], "content": "[output cleared]"}, history[2]]
    engine.ingest(history)
    again = engine.ingest([*cleared, said("next")])
    assert (again.ingested, again.duplicates, again.revised) == (1, 3, 1)


def test_outputs_that_were_pruned_side_by_side_are_each_known_again(engine: Engine) -> None:
    history = [
        said("go"),
        *(result(f"a long listing {n}", f"call_{n}", at=0) for n in range(3)),
        said("thanks"),
        said("bye"),
    ]
    for message in history:
        message.pop("timestamp", None)
    cleared = [
        {**message, "content": "[output cleared]"} if "toolCallId" in message else message
        for message in history
    ]
    engine.ingest(history)
    again = engine.ingest([*cleared, said("next")])
    assert (again.ingested, again.duplicates, again.revised) == (1, 6, 3)


def test_an_event_of_a_provider_is_stored_once_in_any_form(engine: Engine) -> None:
    call_id = "toolu_01ABCDEFGHIJKLMN"
    engine.ingest([result("key=sk-ABCDEF123456", call_id, at=5)])
    again = engine.ingest([result("key=***", call_id, at=9)])
    assert (texts(engine), again.ingested) == (["key=sk-ABCDEF123456"], 0)


def test_two_results_under_a_used_call_id_are_two_messages(engine: Engine) -> None:
    engine.ingest([result("one", at=5)])
    engine.ingest([result("two", at=6)])
    assert texts(engine) == ["one", "two"]
