"""Status: its keys, its figures, and that it reads counters alone."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import make_engine, said

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import ForeignDatabaseError, NotFoundError

KEYS: dict[str, set[str] | None] = {
    "ok": None,
    "version": None,
    "enabled": None,
    "selected": None,
    "implementation": None,
    "database": {"path", "size_bytes", "wal_bytes", "schema_version"},
    "totals": {
        "conversations",
        "messages",
        "summaries",
        "frontier_tokens",
        "covered_source_tokens",
        "compression_ratio",
    },
    "conversations": None,
    "maintenance": {"pending", "running", "last_failure", "debts"},
    "ingest": {"last_at", "frozen", "quarantined", "writes_waiting", "longest_wait_ms"},
    "search": {"pending"},
    "summarizer": {"name", "usage", "paused"},
    "token_counter": {"name", "exact", "reason", "calibrations"},
    "focus": None,
    "summary_health": {"fallback", "truncated"},
    "config_sources": None,
    "problems": None,
}


def report(memory: Engine | Path, **options: Any) -> dict[str, Any]:
    return lcm_fast.status(memory, **options).to_dict()


def test_the_keys_are_those_of_the_interface(engine: Engine) -> None:
    found = report(engine)
    inner = {key: set(value) for key, value in found.items() if KEYS.get(key)}
    assert (list(found), inner) == (
        list(KEYS),
        {key: inner for key, inner in KEYS.items() if inner},
    )


def test_an_empty_memory_is_fine_and_holds_nothing(engine: Engine) -> None:
    found = report(engine)
    assert (found["ok"], found["totals"]["messages"], found["conversations"]) == (True, 0, [])


def test_the_totals_are_those_of_all_conversations(engine: Engine) -> None:
    for key in ("one", "two"):
        engine.ingest([said("hello"), said("again")], session_key=key)
    totals = report(engine)["totals"]
    assert (totals["conversations"], totals["messages"]) == (2, 4)


def test_the_newest_conversation_comes_first(engine: Engine) -> None:
    for key in ("one", "two", "one"):
        engine.ingest([said("hello")], session_key=key)
    assert [one["session_key"] for one in report(engine)["conversations"]] == ["one", "two"]


def test_what_counts_the_tokens_is_named_with_the_reason(database: Path) -> None:
    with lcm_fast.open(database, config={"tokenCounter": "o200k_base"}) as engine:
        found = report(engine)["token_counter"]
    assert (found["name"], found["exact"]) == ("o200k_base", True)
    assert "o200k_base.tiktoken" in found["reason"]


def test_a_damaged_vocabulary_is_a_problem_that_names_the_file(
    database: Path, tmp_path: Path
) -> None:
    (tmp_path / "o200k_base.tiktoken").write_bytes(b"damaged")
    config = {"tokenCounter": "auto", "tokenVocabularyDir": str(tmp_path)}
    with lcm_fast.open(database, config=config) as engine:
        found = report(engine)
    assert found["token_counter"]["exact"]
    (problem,) = found["problems"]
    assert problem["code"] == "vocabulary_damaged"
    assert str(tmp_path / "o200k_base.tiktoken") in problem["detail"]


def test_a_counter_of_the_hosts_is_named_as_such(database: Path) -> None:
    with lcm_fast.open(database, token_counter=len) as engine:
        found = report(engine)["token_counter"]
    assert (found["name"], found["exact"]) == ("len", False)
    assert found["reason"] == "given by the host"


def test_one_conversation_can_be_asked_for(engine: Engine) -> None:
    for key in ("one", "two"):
        engine.ingest([said("hello")], session_key=key)
    found = report(engine, session_key="two")
    assert [one["session_key"] for one in found["conversations"]] == ["two"]


def test_a_conversation_has_the_keys_others_rely_on(engine: Engine) -> None:
    engine.ingest([said("hello")])
    (found,) = report(engine)["conversations"]
    needed = {"conversation_id", "session_key", "messages", "frontier_tokens"}
    assert needed <= set(found)


def test_compaction_shows_in_the_ratio(database: Path) -> None:
    with make_engine(database, fresh_tail_count=4) as engine:
        engine.ingest([said(f"We moved step {n} to /srv/{n}.py. " * 30, n) for n in range(40)])
        engine.compact(token_budget=4000, force=True)
        totals = report(engine)["totals"]
    assert totals["summaries"]["leaf"] > 0
    assert totals["compression_ratio"] > 1


def test_messages_the_search_index_lacks_are_pending(engine: Engine) -> None:
    engine.ingest([said("one"), said("two")])
    assert report(engine)["search"] == {"pending": 2}


def test_the_last_ingest_is_dated(engine: Engine) -> None:
    engine.ingest([said("one")])
    assert report(engine)["ingest"]["last_at"] == "2026-01-01T00:00:00.000Z"


def test_a_frozen_session_file_is_an_error(database: Path) -> None:
    with make_engine(database) as engine:
        engine.ingest([said("one")])
    with closing(apsw.Connection(str(database))) as db:
        db.execute(
            "INSERT INTO transcript_cursors (conversation_id, session_file_path, last_seen_size,"
            " last_seen_mtime_ns, last_processed_offset, frozen_since, frozen_reason, updated_at)"
            " VALUES (1, '/s.jsonl', 0, 0, 0, '2026-01-01', 'it was cut', '')"
        )
    found = report(database)
    frozen = [problem["code"] for problem in found["problems"] if problem["severity"] == "error"]
    assert (found["ok"], frozen, found["ingest"]["frozen"]) == (False, ["frozen"], 1)


@pytest.mark.parametrize(
    ("counter", "code"),
    [("fallback_count", "fallback_summaries"), ("truncated_count", "truncated_summaries")],
)
def test_a_summary_that_is_not_sound_is_a_warning(database: Path, counter: str, code: str) -> None:
    with make_engine(database) as engine:
        engine.ingest([said("one")])
    with closing(apsw.Connection(str(database))) as db:
        db.execute(f"UPDATE conversations SET {counter} = 2")
    found = report(database)
    warnings = [one["code"] for one in found["problems"] if one["severity"] == "warning"]
    assert (found["ok"], code in warnings) == (True, True)


def test_a_memory_that_is_switched_off_says_so(engine: Engine) -> None:
    off = dataclasses.replace(engine.config, enabled=False)
    found = report(Path(engine.store.path), config=off)
    assert (found["enabled"], "disabled" in [one["code"] for one in found["problems"]]) == (
        False,
        True,
    )


def test_problems_have_code_detail_and_hint(engine: Engine) -> None:
    off = dataclasses.replace(engine.config, enabled=False)
    (problem, *_) = report(Path(engine.store.path), config=off)["problems"]
    assert {"code", "detail", "hint"} <= set(problem)


def test_the_size_of_the_log_is_told_apart_from_the_file(engine: Engine) -> None:
    engine.ingest([said("one")])
    found = report(engine)["database"]
    assert found["size_bytes"] == Path(engine.store.path).stat().st_size
    assert found["wal_bytes"] == Path(f"{engine.store.path}-wal").stat().st_size


def test_looking_at_a_closed_memory_changes_nothing(database: Path) -> None:
    with make_engine(database) as engine:
        engine.ingest([said("one")])
    before = database.read_bytes()
    report(database)
    assert database.read_bytes() == before


def test_a_memory_that_is_not_there_is_not_made(database: Path) -> None:
    with pytest.raises(NotFoundError):
        lcm_fast.status(database)
    assert not database.exists()


def test_a_file_of_another_program_is_refused(database: Path) -> None:
    database.write_text("a text file\n" * 500)
    with pytest.raises(ForeignDatabaseError):
        lcm_fast.status(database)
