"""A session forked from another: how much of its parent's history is shown, and that all is kept.

(spec: storage 3.7, made lossless)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import chain, entry, make_engine, said, shown, texts, violations

from lcm_fast.engine import Engine
from lcm_fast.ingest import BootstrapResult, reading

KEY = "fork"
LIMIT = 300
HISTORY = chain(*(said(f"turn {n} " + "word " * 40, n) for n in range(30)))


@pytest.fixture
def engine(database: Path) -> Iterator[Engine]:
    """An engine that shows at most 300 tokens of a parent's history."""
    with make_engine(database, bootstrap_max_tokens=LIMIT) as opened:
        yield opened


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return tmp_path / "fork.jsonl"


def write(path: Path, entries: Sequence[object], **header: object) -> Path:
    head = {"type": "session", "version": 3, "id": "child", **header}
    path.write_text("".join(json.dumps(one) + "\n" for one in (head, *entries)))
    return path


def read(engine: Engine, path: Path, entries: Sequence[object]) -> BootstrapResult:
    """Read a session that was forked from another and holds these entries."""
    return engine.bootstrap(write(path, entries, parentSession="/sessions/parent.jsonl"))


def hidden(engine: Engine) -> list[str]:
    rows = engine.messages(session_key=KEY, limit=1000)
    return [row.content for row in rows if row.excluded == "before-fork"]


def said_in(entries: Sequence[dict[str, Any]]) -> list[str]:
    return [one["message"]["content"] for one in entries]


class TestTheHistoryOfTheParent:
    def test_is_stored_whole(self, engine: Engine, fork: Path) -> None:
        result = read(engine, fork, HISTORY)
        assert (result.ingested, texts(engine, session_key=KEY)) == (30, said_in(HISTORY))

    def test_is_shown_from_as_far_back_as_the_limit_allows(
        self, engine: Engine, fork: Path
    ) -> None:
        read(engine, fork, HISTORY)
        costs = [row.wire_tokens for row in engine.messages(session_key=KEY, limit=1000)]
        count = len(shown(engine, KEY))
        assert sum(costs[-count:]) <= LIMIT < sum(costs[-count - 1 :])

    def test_is_left_out_of_the_view_as_before_the_fork_where_it_is_older(
        self, engine: Engine, fork: Path
    ) -> None:
        read(engine, fork, HISTORY)
        assert [*hidden(engine), *shown(engine, KEY)] == said_in(HISTORY)

    def test_is_counted_as_excluded(self, engine: Engine, fork: Path) -> None:
        read(engine, fork, HISTORY)
        counted = engine.conversation(session_key=KEY).excluded_count
        assert (counted, violations(engine.store)) == (len(hidden(engine)), [])

    def test_is_given_back_byte_for_byte_with_the_name_of_the_parent(
        self, engine: Engine, fork: Path
    ) -> None:
        read(engine, fork, HISTORY)
        assert list(engine.export_entries(session_key=KEY)) == fork.read_bytes().splitlines()

    def test_is_not_in_what_a_model_is_sent(self, engine: Engine, fork: Path) -> None:
        read(engine, fork, HISTORY)
        sent = engine.assemble(session_key=KEY, token_budget=100_000).messages
        assert [message["content"] for message in sent] == shown(engine, KEY)

    def test_stays_as_it_is_in_the_conversation_of_the_parent(
        self, engine: Engine, fork: Path
    ) -> None:
        engine.bootstrap(write(fork.with_name("parent.jsonl"), HISTORY))
        read(engine, fork, HISTORY)
        assert shown(engine, "parent") == said_in(HISTORY)

    def test_is_told_as_the_reason(self, engine: Engine, fork: Path) -> None:
        assert read(engine, fork, HISTORY).reason == "fork-bounded bootstrap import"

    def test_that_is_within_the_limit_is_shown_whole_and_not_remarked_on(
        self, engine: Engine, fork: Path
    ) -> None:
        result = read(engine, fork, HISTORY[:3])
        assert (result.reason, hidden(engine)) == (None, [])

    def test_is_limited_to_the_share_of_a_chunk_where_nothing_is_configured(
        self, database: Path, fork: Path
    ) -> None:
        history = chain(*(said("word " * 800, n) for n in range(20)))
        with make_engine(database) as engine:
            read(engine, fork, history)
            cost = engine.messages(session_key=KEY)[0].wire_tokens
            assert len(shown(engine, KEY)) == 6000 // cost

    def test_that_was_left_does_not_use_up_the_limit(self, engine: Engine, fork: Path) -> None:
        left = [entry(f"x{n}", "e19", said("left " * 60, 50 + n)) for n in range(5)]
        read(engine, fork, [*HISTORY[:28], *left, entry("y", "e27", said("on", 60))])
        assert shown(engine, KEY)[-3:] == [*said_in(HISTORY[26:28]), "on"]


class TestWhereTheViewBegins:
    def test_the_newest_message_is_shown_even_where_it_alone_is_more(
        self, engine: Engine, fork: Path
    ) -> None:
        read(engine, fork, chain(*(said("word " * 1000 + str(n), n) for n in range(3))))
        assert shown(engine, KEY) == ["word " * 1000 + "2"]

    def test_it_is_never_a_result_without_its_call(self, engine: Engine, fork: Path) -> None:
        call = {"type": "toolCall", "id": "call_1", "name": "exec", "arguments": {}}
        answer = {"type": "text", "text": "found " * 20}
        entries = chain(
            said("go " * 100, 0),
            {"role": "assistant", "content": [call, {"type": "text", "text": "let me see " * 100}]},
            {"role": "toolResult", "toolCallId": "call_1", "content": [answer]},
            said("thanks", 3),
        )
        read(engine, fork, entries)
        assert shown(engine, KEY) == ["thanks"]

    def test_a_session_without_a_parent_shows_all(self, engine: Engine, fork: Path) -> None:
        result = engine.bootstrap(write(fork, HISTORY))
        assert (result.reason, shown(engine, KEY)) == (None, said_in(HISTORY))

    def test_it_does_not_depend_on_the_batches_of_the_reading(
        self, engine: Engine, fork: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read(engine, fork, HISTORY)
        monkeypatch.setattr(reading, "_BATCH_MESSAGES", 2)
        engine.bootstrap(fork, session_key="in batches")
        assert shown(engine, "in batches") == shown(engine, KEY)

    def test_it_does_not_depend_on_an_interruption(
        self, engine: Engine, fork: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(done: int, total: int) -> None:
            raise KeyboardInterrupt

        read(engine, fork, HISTORY)
        monkeypatch.setattr(reading, "_BATCH_MESSAGES", 4)
        with pytest.raises(KeyboardInterrupt):
            engine.bootstrap(fork, session_key="interrupted", progress=interrupt)
        engine.bootstrap(fork, session_key="interrupted")
        assert shown(engine, "interrupted") == shown(engine, KEY)

    def test_it_does_not_depend_on_a_message_that_came_live_before_the_file_was_read(
        self, engine: Engine, fork: Path
    ) -> None:
        engine.ingest([said("on", 60)], session_key=KEY)
        read(engine, fork, [*HISTORY, entry("y", "e29", said("on", 60))])
        assert 0 < len(hidden(engine)) < len(HISTORY)


class TestAForkThatIsReadAgain:
    def test_is_not_read_where_it_is_unchanged(self, engine: Engine, fork: Path) -> None:
        read(engine, fork, HISTORY)
        revision = engine.conversation(session_key=KEY).view_revision
        again = engine.bootstrap(fork)
        assert (again.bytes_read, engine.conversation(session_key=KEY).view_revision) == (
            0,
            revision,
        )

    def test_shows_what_it_adds_and_reads_no_more_than_that(
        self, engine: Engine, fork: Path
    ) -> None:
        read(engine, fork, HISTORY)
        before = shown(engine, KEY)
        grown = [*HISTORY, entry("y", "e29", said("on", 60))]
        result = read(engine, fork, grown)
        added = len(fork.read_bytes().splitlines(keepends=True)[-1])
        assert (result.bytes_read, shown(engine, KEY)) == (added, [*before, "on"])

    def test_keeps_the_history_out_of_the_view_when_it_was_written_anew(
        self, engine: Engine, fork: Path
    ) -> None:
        read(engine, fork, HISTORY)
        before = shown(engine, KEY)
        read(engine, fork, HISTORY[20:])
        read(engine, fork, HISTORY)
        assert shown(engine, KEY) == before

    def test_takes_up_a_branch_without_the_history(self, engine: Engine, fork: Path) -> None:
        read(engine, fork, HISTORY)
        before = shown(engine, KEY)
        read(engine, fork, [*HISTORY, entry("y", "e28", said("another way", 60))])
        assert shown(engine, KEY) == [*before[:-1], "another way"]

    def test_does_not_show_history_that_was_missing(self, engine: Engine, fork: Path) -> None:
        read(engine, fork, [*HISTORY[:2], *HISTORY[4:]])
        before = shown(engine, KEY)
        read(engine, fork, HISTORY)
        assert (texts(engine, session_key=KEY), shown(engine, KEY)) == (said_in(HISTORY), before)
