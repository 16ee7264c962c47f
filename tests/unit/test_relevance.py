"""With prompt-aware eviction, the prompt decides which old items an assembly shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_engine, said
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.assembly.relevance import spread_scores
from lcm_fast.assembly.term_index import TermIndex
from lcm_fast.engine import Engine

FILLER = "we talked about the weather and about dinner for a while "
FACT = "the vault's passphrase hint is kept in file alpha_key.txt"


def prompt_aware(database: Path, **settings: Any) -> Engine:
    return make_engine(database, prompt_aware_eviction=True, fresh_tail_count=2, **settings)


def talk(engine: Engine, facts: dict[int, str], turns: int = 40) -> None:
    engine.ingest([said(facts.get(at, f"{FILLER}{at}"), at) for at in range(turns)])


def contents(engine: Engine, prompt: str | None, budget: int = 500) -> list[str]:
    return [one["content"] for one in engine.assemble(token_budget=budget, prompt=prompt).messages]


class TestAssembly:
    def test_what_the_prompt_asks_for_is_shown_however_old(self, database: Path) -> None:
        with prompt_aware(database) as engine:
            talk(engine, {3: FACT})
            assert FACT in contents(engine, "where is alpha_key.txt?")

    def test_without_the_setting_the_newest_are(self, database: Path) -> None:
        with make_engine(database, fresh_tail_count=2) as engine:
            talk(engine, {3: FACT})
            assert FACT not in contents(engine, "where is alpha_key.txt?")

    def test_the_output_is_in_order_of_time(self, database: Path) -> None:
        with prompt_aware(database) as engine:
            talk(engine, {3: FACT})
            assembly = engine.assemble(token_budget=500, prompt="where is alpha_key.txt?")
        times = [one["timestamp"] for one in assembly.messages]
        assert times == sorted(times)
        assert assembly.stats.selection == "prompt-aware"
        assert "nearest to the prompt" in assembly.stats.reason

    def test_a_prompt_without_a_known_term_keeps_the_newest_and_says_so(
        self, database: Path
    ) -> None:
        with prompt_aware(database) as engine:
            talk(engine, {})
            assembly = engine.assemble(token_budget=500, prompt="zzzz qqqq")
        assert assembly.stats.selection == "chronological"
        assert "no term of the prompt occurs" in assembly.stats.reason

    def test_a_prompt_in_chinese_finds_what_was_said_in_chinese(self, database: Path) -> None:
        fact = "数据库的密码提示放在保险箱里"
        with prompt_aware(database) as engine:
            talk(engine, {5: fact})
            assert fact in contents(engine, "密码提示在哪里")

    def test_without_a_prompt_what_the_user_said_last_decides(self, database: Path) -> None:
        with prompt_aware(database) as engine:
            talk(engine, {3: FACT})
            engine.ingest([said("where is alpha_key.txt?", 99)])
            assert FACT in contents(engine, None)

    def test_a_live_question_decides_before_it_is_stored(self, database: Path) -> None:
        with prompt_aware(database) as engine:
            talk(engine, {3: FACT})
            live = [said("where is alpha_key.txt?", 99)]
            messages = engine.assemble(token_budget=500, live_messages=live).messages
        assert FACT in [one["content"] for one in messages]

    def test_an_exchange_is_shown_whole_for_the_sake_of_its_result(self, database: Path) -> None:
        call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {}}
        result = {
            "role": "toolResult",
            "toolCallId": "c1",
            "content": [{"type": "text", "text": FACT}],
            "timestamp": 1_700_000_003_500,
        }
        with prompt_aware(database) as engine:
            engine.ingest([said(FILLER, 1)])
            engine.ingest(
                [{"role": "assistant", "content": [call], "timestamp": 1_700_000_003_000}, result]
            )
            engine.ingest([said(f"{FILLER}{at}", at) for at in range(5, 40)])
            assembly = engine.assemble(token_budget=500, prompt="alpha_key.txt")
        roles = [one["role"] for one in assembly.messages]
        assert roles.index("toolResult") == roles.index("assistant") + 1
        assert assembly.stats.placeholders == 0

    def test_a_summary_is_shown_for_what_it_says(self, database: Path) -> None:
        with prompt_aware(database, leaf_chunk_tokens=300, leaf_min_fanout=50) as engine:
            talk(engine, {3: FACT}, turns=120)
            engine.compact(token_budget=1500, force=True)
            shown = contents(engine, "alpha_key.txt", budget=900)
        assert any("alpha_key.txt" in text and "<summary" in text for text in shown)

    def test_the_same_question_again_has_the_same_answer(self, database: Path) -> None:
        with prompt_aware(database) as engine:
            talk(engine, {3: FACT})
            first = contents(engine, "where is alpha_key.txt?")
            assert contents(engine, "where is alpha_key.txt?") == first

    def test_an_engine_opened_anew_gives_the_answer_of_the_first(self, database: Path) -> None:
        with prompt_aware(database) as engine:
            talk(engine, {3: FACT})
            first = contents(engine, "where is alpha_key.txt?")
        with prompt_aware(database) as engine:
            assert contents(engine, "where is alpha_key.txt?") == first

    def test_what_was_shown_for_one_question_stays_for_a_like_one(self, database: Path) -> None:
        with prompt_aware(database) as engine:
            talk(engine, {at: f"note {at}: alpha beta gamma" for at in range(0, 40, 2)}, turns=80)
            first = contents(engine, "alpha gamma")
            assert contents(engine, "gamma beta alpha") == first

    def test_only_new_messages_are_read_for_the_next_question(
        self, database: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[int] = []
        with prompt_aware(database) as engine:
            talk(engine, {3: FACT})
            contents(engine, "alpha_key.txt")
            read = engine.store.texts
            monkeypatch.setattr(engine.store, "texts", lambda ids: asked.extend(ids) or read(ids))
            ids = engine.ingest([said("one more", 99)], token_budget=100_000).message_ids
            contents(engine, "alpha_key.txt")
        assert asked == ids


words = st.lists(st.sampled_from(["tea", "milk", "cup", "数据", "a/b.py"]), max_size=8).map(
    " ".join
)


class TestTermIndex:
    @given(st.lists(words, max_size=10), st.integers(0, 10), words)
    def test_adding_in_pieces_is_adding_at_once(
        self, texts: list[str], cut: int, prompt: str
    ) -> None:
        whole, pieces = TermIndex(), TermIndex()
        whole.add(range(len(texts)), texts)
        pieces.add(range(len(texts[:cut])), texts[:cut])
        pieces.add(range(len(pieces), len(texts)), texts[len(pieces) :])
        rows = np.arange(len(texts))
        assert whole.scores(prompt, rows).tolist() == pieces.scores(prompt, rows).tolist()

    def test_a_term_that_few_have_counts_more(self) -> None:
        index = TermIndex()
        index.add("abc", ["tea milk", "tea cup", "tea tea"])
        scores = index.scores("tea cup", index.rows("abc"))
        assert scores.argmax() == 1

    def test_weights_follow_the_items_that_are_asked_about(self) -> None:
        index = TermIndex()
        index.add("abcd", ["cup", "tea", "tea", "tea"])
        alone = index.scores("cup tea", index.rows("ab"))
        assert alone[0] == alone[1]


class TestSpread:
    def test_neighbours_of_a_hit_get_a_share(self) -> None:
        spread = spread_scores(np.array([0.0, 0, 8, 0, 0, 0]), np.ones(6, np.int64))
        assert spread.tolist() == [2, 4, 8, 4, 2, 0]

    def test_a_large_item_must_score_more(self) -> None:
        spread = spread_scores(np.array([4.0, 0, 0, 4.0]), np.array([10, 1, 1, 1000]))
        assert spread[0] > spread[3]

    @pytest.mark.parametrize("size", [0, 1, 2])
    def test_few_items_have_few_neighbours(self, size: int) -> None:
        assert len(spread_scores(np.ones(size), np.ones(size, np.int64))) == size
