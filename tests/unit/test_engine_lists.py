"""Pages of what is stored, and exports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import make_engine

from lcm_fast.engine import Engine
from lcm_fast.errors import NotFoundError

Page = Callable[[Any], list[Any]]


def all_pages(page: Page, cursor_of: Callable[[Any], Any], first: Any) -> Iterator[Any]:
    """Follow the cursor to the end."""
    cursor = first
    while rows := page(cursor):
        yield from rows
        cursor = cursor_of(rows[-1])


def ingest_numbered(engine: Engine, count: int, **address: str) -> None:
    engine.ingest([{"role": "user", "content": f"number {n}"} for n in range(count)], **address)


def test_pages_of_messages_give_each_message_once_in_order(engine: Engine) -> None:
    ingest_numbered(engine, 25)
    rows = all_pages(lambda seq: engine.messages(limit=10, cursor=seq), lambda row: row.seq, 0)
    assert [row.content for row in rows] == [f"number {n}" for n in range(25)]


def test_pages_of_conversations_give_each_conversation_once(engine: Engine) -> None:
    for n in range(5):
        ingest_numbered(engine, 1, session_key=f"k{n}")
    rows = all_pages(
        lambda number: engine.conversations(limit=2, cursor=number),
        lambda row: row.conversation_id,
        0,
    )
    assert [row.session_key for row in rows] == [f"k{n}" for n in range(5)]


def test_pages_of_summaries_give_each_summary_once(database: Path) -> None:
    with make_engine(database, fresh_tail_count=1, leaf_chunk_tokens=300) as engine:
        engine.ingest(
            [{"role": "assistant", "content": f"step {n} went well. " * 40} for n in range(9)]
        )
        result = engine.compact(token_budget=300)
        rows = all_pages(
            lambda name: engine.summaries(limit=2, cursor=name), lambda row: row.summary_id, ""
        )
        ids = [row.summary_id for row in rows]
    assert len(ids) == len(set(ids)) == result.summaries_created > 2


def test_a_cursor_that_is_no_summary_is_not_found(engine: Engine) -> None:
    ingest_numbered(engine, 1)
    with pytest.raises(NotFoundError, match="sum_nothing"):
        engine.summaries(cursor="sum_nothing")


def test_an_export_is_what_was_received_one_entry_a_line(engine: Engine, tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "héllo 🙂"},
        {"details": {"kept": True}, "role": "toolResult", "toolCallId": "A", "content": []},
    ]
    engine.ingest(messages)
    target = tmp_path / "out.jsonl"
    assert engine.export(to=target) == 2
    assert [json.loads(line) for line in target.read_bytes().splitlines()] == messages


def test_an_exported_session_file_is_the_file_itself(engine: Engine, tmp_path: Path) -> None:
    source = tmp_path / "session.jsonl"
    source.write_bytes(
        b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-05T09:00:00Z"}\n'
        b'{"type":"message","id":"e0","parentId":null,"message":{"role":"user","content" : "x"}}\n'
        b'{"type":"custom","id":"e1","parentId":"e0","n":1.50}\n'
    )
    engine.bootstrap(source)
    engine.export(session_key="session", to=tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()


def test_an_export_is_private_to_its_user(engine: Engine, tmp_path: Path) -> None:
    ingest_numbered(engine, 1)
    engine.export(to=tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o077 == 0


def test_an_export_of_nothing_leaves_no_file(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    with pytest.raises(NotFoundError):
        engine.export(session_key="nobody", to=folder / "out.jsonl")
    assert list(folder.iterdir()) == []


def test_a_failed_export_leaves_what_was_there(engine: Engine, tmp_path: Path) -> None:
    ingest_numbered(engine, 1)
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(OSError, match="folder"):
        engine.export(to=target)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_export_can_be_stopped_half_way(engine: Engine) -> None:
    ingest_numbered(engine, 20)
    entries = engine.export_entries()
    next(entries)
    entries.close()
    ingest_numbered(engine, 1)
    assert len(list(engine.export_entries())) == 21
