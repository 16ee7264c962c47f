"""What ingest leaves in the record, however messages arrive."""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import chain, entry, make_engine, said, texts, violations, write_session
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.engine import Engine

Batches = list[list[dict[str, Any]]]

words = st.sampled_from(["ok", "yes", "go on", "好", "😀"])
session_keys = (f"session {n}" for n in itertools.count())


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One engine for all examples; each takes a session of its own."""
    with make_engine(tmp_path_factory.mktemp("ingest") / "memory.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def session_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for session files, written anew by each example."""
    return tmp_path_factory.mktemp("sessions") / "session.jsonl"


@st.composite
def overlapping_batches(draw: st.DrawFn) -> tuple[list[dict[str, Any]], Batches]:
    """Timed messages, no two alike, and batches that cover them in order with repeats."""
    drawn = draw(st.lists(words, min_size=1, max_size=12))
    truth = [said(text, at) for at, text in enumerate(drawn)]
    batches: Batches = []
    end = 0
    while end < len(truth):
        begin = draw(st.integers(0, end))
        end = draw(st.integers(end + 1, len(truth)))
        batches.append(truth[begin:end])
    return truth, batches


@settings(max_examples=80, deadline=None)
@given(overlapping_batches())
def test_timed_messages_are_stored_once_however_they_are_cut_into_batches(
    memory: Engine, drawn: tuple[list[dict[str, Any]], Batches]
) -> None:
    truth, batches = drawn
    key = next(session_keys)
    for batch in batches:
        memory.ingest(batch, session_key=key)
    assert [json.loads(raw) for raw in memory.export_entries(session_key=key)] == truth


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(words, max_size=4), min_size=1, max_size=5))
def test_untimed_batches_lose_nothing_that_is_not_the_whole_record_again(
    memory: Engine, batches: list[list[str]]
) -> None:
    key = next(session_keys)
    memory.ingest([said("a beginning that no batch repeats")], session_key=key)
    set_aside = 0
    for batch in batches:
        set_aside += memory.ingest([said(t) for t in batch], session_key=key).quarantined
    for waiting in memory.quarantined(session_key=key):
        set_aside -= memory.admit(waiting.batch_id).ingested
    said_in_all = [text for batch in batches for text in batch]
    assert (Counter(texts(memory, session_key=key)[1:]), set_aside) == (Counter(said_in_all), 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(words, min_size=2, max_size=8), st.data())
def test_a_history_sent_whole_each_turn_adds_only_what_is_new(
    memory: Engine, history: list[str], data: st.DataObject
) -> None:
    key = next(session_keys)
    turns = sorted(data.draw(st.sets(st.integers(2, len(history)), max_size=4)) | {len(history)})
    for turn in turns:
        memory.ingest([said(text) for text in history[:turn]], session_key=key)
    assert texts(memory, session_key=key) == history


@st.composite
def session_entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Entries of a session: with ids or without, with times or without, some carrying nothing."""
    drawn = draw(st.lists(st.tuples(words, st.none() | st.integers(0, 2)), min_size=1, max_size=8))
    messages = [said(text, at) for text, at in drawn]
    if draw(st.booleans()):
        return [{"type": "message", "message": message} for message in messages]
    custom = draw(st.lists(st.integers(0, len(messages)), max_size=3))
    entries = chain(*messages)
    for n in custom:
        entries.insert(n, {"type": "custom", "customType": "mark", "data": n % 2})
    return entries


@settings(max_examples=60, deadline=None)
@given(session_entries(), st.data())
def test_a_file_that_grew_adds_exactly_the_new_and_comes_back_whole(
    memory: Engine, session_file: Path, entries: list[dict[str, Any]], data: st.DataObject
) -> None:
    key = next(session_keys)
    added = []
    for end in sorted({data.draw(st.integers(0, len(entries))), len(entries)}):
        write_session(session_file, entries[:end])
        added.append(memory.bootstrap(session_file, session_key=key).ingested)
    exported = [json.loads(raw) for raw in memory.export_entries(session_key=key)]
    count = sum(one["type"] == "message" for one in entries)
    assert (sum(added), exported[1:]) == (count, entries)


@settings(max_examples=60, deadline=None)
@given(session_entries(), st.integers(2, 4))
def test_a_file_read_again_adds_nothing(
    memory: Engine, session_file: Path, entries: list[dict[str, Any]], times: int
) -> None:
    key = next(session_keys)
    write_session(session_file, entries)
    again = []
    for n in range(times):
        os.utime(session_file, (n, n))
        again.append(memory.bootstrap(session_file, session_key=key).ingested)
    assert again[1:] == [0] * (times - 1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(words, st.none() | st.integers(0, 3)), min_size=1, max_size=8), st.data())
def test_live_messages_are_adopted_by_the_file_that_brings_their_ids(
    memory: Engine,
    session_file: Path,
    drawn: list[tuple[str, int | None]],
    data: st.DataObject,
) -> None:
    key = next(session_keys)
    messages = [said(text, at) for text, at in drawn]
    live = data.draw(st.integers(0, len(messages)))
    memory.ingest(messages[:live], session_key=key)
    held = memory.conversation(session_key=key).message_count if live else 0
    memory.bootstrap(write_session(session_file, chain(*messages)), session_key=key)
    assert Counter(texts(memory, session_key=key)) == Counter(text for text, _ in drawn)
    assert held == live


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Entries of a session whose leaf moved from branch to branch."""
    size = draw(st.integers(1, 8))
    parents = [None, *(f"e{draw(st.integers(0, n - 1))}" for n in range(1, size))]
    return [
        entry(f"e{n}", parent, said(draw(words) + str(n), n)) for n, parent in enumerate(parents)
    ]


arrivals = st.lists(
    st.one_of(
        st.tuples(st.just("live"), st.lists(st.builds(said, words), max_size=3)),
        st.tuples(st.just("live"), st.lists(st.builds(said, words, st.integers(0, 3)), max_size=3)),
        st.tuples(st.just("file"), session_entries() | trees()),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=80, deadline=None)
@given(arrivals)
def test_the_invariants_hold_after_any_sequence_of_batches_and_files(
    tmp_path_factory: pytest.TempPathFactory, sequence: list[tuple[str, list[dict[str, Any]]]]
) -> None:
    folder = tmp_path_factory.mktemp("sequence")
    with make_engine(folder / "memory.db") as engine:
        for kind, items in sequence:
            if kind == "live":
                engine.ingest(items)
            else:
                file = write_session(folder / "session.jsonl", items)
                engine.bootstrap(file, session_key="default")
        assert violations(engine.store) == []


@settings(max_examples=60, deadline=None)
@given(trees(), st.data())
def test_the_view_shows_the_path_to_the_leaf_whatever_was_shown_before(
    memory: Engine, session_file: Path, tree: list[dict[str, Any]], data: st.DataObject
) -> None:
    key = next(session_keys)
    for end in sorted({data.draw(st.integers(1, len(tree))), len(tree)}):
        memory.bootstrap(write_session(session_file, tree[:end]), session_key=key)
    rows = memory.messages(session_key=key, limit=100)
    in_view = [row.entry_id for row in rows if row.excluded is None]
    assert in_view == path_to_leaf(tree)


def path_to_leaf(tree: list[dict[str, Any]]) -> list[str]:
    by_id = {one["id"]: one for one in tree}
    path = []
    at: str | None = tree[-1]["id"]
    while at is not None:
        path.append(at)
        at = by_id[at]["parentId"]
    return path[::-1]
