"""What a host sees of an engine: addresses, settings, results, export, paging."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from conftest import chain, make_engine, said, write_session

import lcm_fast
from lcm_fast import Engine
from lcm_fast.errors import (
    BudgetTooSmallError,
    ConfigError,
    DatabaseError,
    MessageError,
    NotFoundError,
)
from lcm_fast.kernels import estimate_tokens


def talk(count: int, words: int = 40) -> list[dict[str, Any]]:
    """Return a conversation of alternating messages without ids or times."""
    return [
        said(f"message {n} " + "word " * words, role="assistant" if n % 2 else "user")
        for n in range(count)
    ]


class TestAddresses:
    def test_without_a_name_the_conversation_is_the_default_one(self, engine: Engine) -> None:
        engine.ingest([said("hello")])
        assert engine.conversation(session_key="default").message_count == 1

    def test_conversations_of_different_keys_are_kept_apart(self, engine: Engine) -> None:
        engine.ingest([said("one")], session_key="a")
        engine.ingest([said("two")], session_key="b")
        assert engine.assemble(session_key="a", token_budget=1000).messages == [said("one")]

    def test_a_key_takes_over_the_conversation_of_its_session_id(self, engine: Engine) -> None:
        engine.ingest([said("one")], session_id="s")
        engine.ingest([said("two")], session_key="k", session_id="s")
        assert engine.conversation(session_key="k").message_count == 2

    def test_a_key_follows_its_conversation_to_a_new_session_id(self, engine: Engine) -> None:
        engine.ingest([said("one")], session_key="k", session_id="s1")
        engine.ingest([said("two")], session_key="k", session_id="s2")
        conversation = engine.conversation(session_key="k")
        assert (conversation.message_count, conversation.session_id) == (2, "s2")

    def test_a_conversation_that_is_not_there_is_named(self, engine: Engine) -> None:
        with pytest.raises(NotFoundError, match="'nobody'"):
            engine.conversation(session_key="nobody")

    def test_an_assembly_of_a_new_conversation_is_empty(self, engine: Engine) -> None:
        assembly = engine.assemble(session_key="new", token_budget=1000)
        assert (assembly.messages, assembly.estimated_tokens) == ([], 0)

    def test_a_file_is_its_own_conversation_named_after_it(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        path = write_session(tmp_path / "monday.jsonl", chain(said("hello")))
        assert engine.bootstrap(path).session_key == "monday"

    def test_files_of_one_name_with_different_sessions_are_kept_apart(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        for number in (1, 2):
            folder = tmp_path / str(number)
            folder.mkdir()
            header = {"type": "session", "version": 3, "id": f"s-{number}"}
            lines = [header, *chain(said(f"hello {number}"))]
            (folder / "session.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
            engine.bootstrap(folder / "session.jsonl")
        keys = [conversation.session_key for conversation in engine.conversations()]
        assert keys == ["session", "session#s-2"]


class TestSettings:
    def test_a_disabled_engine_says_so_and_stores_nothing(self, database: Path) -> None:
        with make_engine(database, enabled=False) as engine:
            with pytest.raises(ConfigError, match="enabled is false"):
                engine.ingest([said("hello")])
            assert lcm_fast.status(engine).totals["messages"] == 0

    def test_the_cap_holds_for_every_budget(self, database: Path) -> None:
        with make_engine(database, max_assembly_token_budget=1000) as engine:
            engine.ingest(talk(100))
            assembly = engine.assemble(token_budget=50_000)
            assert (assembly.token_budget, assembly.estimated_tokens <= 1000) == (1000, True)

    def test_a_token_counter_of_ones_own_counts_everything(self, database: Path) -> None:
        with lcm_fast.open(database, token_counter=len) as engine:
            engine.ingest([said("x" * 100)])
            (message,) = engine.messages()
            assert message.token_count == 100
            assembly = engine.assemble(token_budget=1000)
            assert assembly.estimated_tokens == len(json.dumps(said("x" * 100), separators=",:"))

    def test_a_summariser_of_ones_own_is_named_in_its_summaries(self, database: Path) -> None:
        def in_brief(request: object) -> str:
            return "brief"

        with lcm_fast.open(database, summarizer=in_brief) as engine:
            engine.ingest(talk(100))
            assert engine.compact(token_budget=4000).summaries_created > 0
            assert {row.model for row in engine.summaries()} == {"in_brief"}

    def test_a_summariser_that_cannot_be_called_is_refused_at_once(self, database: Path) -> None:
        with pytest.raises(ConfigError):
            lcm_fast.open(database, summarizer=42)
        assert not database.exists()

    def test_settings_come_as_a_mapping_or_a_file(self, database: Path, tmp_path: Path) -> None:
        file = tmp_path / "settings.json"
        file.write_text('{"freshTailCount": 7}')
        for config in ({"fresh_tail_count": 7}, file):
            with lcm_fast.open(database, config=config) as engine:
                assert engine.config.fresh_tail_count == 7

    def test_an_unknown_target_is_refused(self, engine: Engine) -> None:
        with pytest.raises(ConfigError, match="'half'"):
            engine.compact(token_budget=1000, target="half")


class TestResults:
    def test_a_bad_message_is_named_and_nothing_of_its_batch_is_stored(
        self, engine: Engine
    ) -> None:
        with pytest.raises(MessageError, match=r"messages\[1\].role is 'wizard'"):
            engine.ingest([said("fine"), {"role": "wizard", "content": "?"}])
        assert engine.conversations() == []

    def test_room_for_the_prompt_is_kept_free(self, engine: Engine) -> None:
        engine.ingest(talk(200))
        prompt = "what was it? " * 40
        assembly = engine.assemble(token_budget=2000, prompt=prompt)
        assert assembly.estimated_tokens + estimate_tokens(prompt) <= 2000
        assert "kept free for the prompt" in assembly.stats.reason

    def test_a_prompt_that_leaves_no_room_is_refused(self, engine: Engine) -> None:
        with pytest.raises(BudgetTooSmallError, match="prompt alone takes"):
            engine.assemble(token_budget=400, prompt="x" * 1000)

    def test_results_become_plain_json(self, engine: Engine, tmp_path: Path) -> None:
        path = write_session(tmp_path / "s.jsonl", chain(said("hello")))
        results = (
            engine.ingest(talk(3)),
            engine.bootstrap(path),
            engine.compact(token_budget=1000),
            engine.assemble(token_budget=1000),
            lcm_fast.status(engine),
            lcm_fast.doctor(engine),
        )
        for result in results:
            assert json.loads(json.dumps(result.to_dict())) == result.to_dict()

    def test_the_stable_prefix_is_what_the_last_assembly_began_with(self, engine: Engine) -> None:
        engine.ingest(talk(4))
        first = engine.assemble(token_budget=10_000)
        engine.ingest([*talk(4), said("more")])
        second = engine.assemble(token_budget=10_000)
        assert first.prefix.stable_tokens == 0
        assert second.prefix.stable_tokens == first.estimated_tokens


class TestClosing:
    def test_closing_twice_does_nothing(self, database: Path) -> None:
        engine = make_engine(database)
        engine.close()
        engine.close()

    def test_calls_on_a_closed_engine_say_so(self, database: Path) -> None:
        engine = make_engine(database)
        engine.close()
        with pytest.raises(DatabaseError, match="closed"):
            engine.ingest([said("too late")])
        with pytest.raises(DatabaseError, match="closed"):
            engine.assemble(token_budget=1000)


class TestExport:
    def test_a_file_comes_back_byte_for_byte(self, engine: Engine, tmp_path: Path) -> None:
        path = write_session(tmp_path / "s.jsonl", chain(said("héllo ✅"), said("你好"), start=0))
        engine.bootstrap(path)
        assert engine.export(session_key="s", to=tmp_path / "copy.jsonl") == 3
        assert (tmp_path / "copy.jsonl").read_bytes() == path.read_bytes()

    def test_an_export_is_private_to_its_user(self, engine: Engine, tmp_path: Path) -> None:
        engine.ingest([said("secret")])
        engine.export(session_key="default", to=tmp_path / "copy.jsonl")
        assert stat.S_IMODE((tmp_path / "copy.jsonl").stat().st_mode) == 0o600

    def test_an_export_that_fails_leaves_the_old_file(self, engine: Engine, tmp_path: Path) -> None:
        target = tmp_path / "copy.jsonl"
        target.write_text("old")
        with pytest.raises(NotFoundError):
            engine.export(session_key="nobody", to=target)
        assert (target.read_text(), list(tmp_path.glob("*.partial"))) == ("old", [])


class TestPages:
    def test_cursors_visit_each_message_once(self, engine: Engine) -> None:
        engine.ingest(talk(7))
        seen: list[int] = []
        while page := engine.messages(limit=3, cursor=seen[-1] if seen else 0):
            seen += [row.seq for row in page]
        assert seen == [1, 2, 3, 4, 5, 6, 7]

    def test_cursors_visit_each_summary_once(self, database: Path) -> None:
        with make_engine(database, leaf_chunk_tokens=500, fresh_tail_count=4) as engine:
            engine.ingest(talk(60))
            engine.compact(token_budget=2000)
            everything = [row.summary_id for row in engine.summaries()]
            seen: list[str] = []
            while page := engine.summaries(limit=2, cursor=seen[-1] if seen else ""):
                seen += [row.summary_id for row in page]
        assert len(everything) > 2
        assert seen == everything

    def test_a_cursor_that_is_no_summary_is_refused(self, engine: Engine) -> None:
        engine.ingest([said("hello")])
        with pytest.raises(NotFoundError, match="sum_none"):
            engine.summaries(cursor="sum_none")
