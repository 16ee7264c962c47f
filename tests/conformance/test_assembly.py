"""Assembly: spec E, R and T, cases AB42, AB43, AB46, AB47, AB49, AB50, AB55, AB66 and AB67, with
decisions 1 to 5. AB44, how words are cut and scored, is decision 3's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conformance.frontiers import Recorder, ingest_turns, lay_out
from conformance.frontiers import open_engine as engine_with
from conftest import make_engine

from lcm_fast.assembly import Assembly
from lcm_fast.assembly.tool_blocks import MISSING_RESULT
from lcm_fast.engine import Engine
from lcm_fast.errors import BudgetTooSmallError


def turns_of(assembly: Assembly) -> list[int]:
    """Numbers of the turns shown; see `ingest_turns`."""
    texts = [str(message["content"]) for message in assembly.messages]
    return [int(found.group(1)) for text in texts if (found := re.search(r"turn (\d+)", text))]


def marked(tokens: int, name: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": f"{name} " + "¤" * tokens}


def names_of(assembly: Assembly) -> list[str]:
    return [str(message["content"]).split(" ")[0] for message in assembly.messages]


class TestSelection:
    def test_ab42_all_is_shown_while_it_fits(self, database: Path) -> None:
        with engine_with(database, Recorder(), fresh_tail_count=8) as engine:
            ingest_turns(engine, 3, 200)
            assembly = engine.assemble(token_budget=600)
        assert (turns_of(assembly), assembly.stats.selection) == ([0, 1, 2], "full-fit")

    def test_ab42_the_tail_is_cut_at_its_token_cap(self, database: Path) -> None:
        with engine_with(
            database, Recorder(), fresh_tail_count=4, fresh_tail_max_tokens=250
        ) as engine:
            ingest_turns(engine, 4, 100)
            assembly = engine.assemble(token_budget=10_000)
        assert assembly.fresh_tail.count == 2

    def test_ab42_the_tail_yields_from_its_old_end(self, database: Path) -> None:
        """Decision 1; upstream shows a tail that is over the budget."""
        with engine_with(database, Recorder(), fresh_tail_count=4) as engine:
            ingest_turns(engine, 10, 100)
            assembly = engine.assemble(token_budget=350)
        assert turns_of(assembly) == [7, 8, 9]
        assert "the fresh tail of 4 items alone was larger and gave up 1" in assembly.stats.reason

    def test_ab66_an_item_that_does_not_fit_is_passed_over(self, database: Path) -> None:
        """Decision 2; upstream stops at the first such item."""
        with engine_with(database, Recorder(), fresh_tail_count=2) as engine:
            engine.ingest(
                [
                    marked(10, "alpha"),
                    marked(400, "beta"),
                    marked(10, "gamma"),
                    marked(100, "t0"),
                    marked(100, "t1", "assistant"),
                ]
            )
            assembly = engine.assemble(token_budget=256)
        assert names_of(assembly) == ["alpha", "gamma", "t0", "t1"]

    def test_the_oldest_are_dropped_first(self, database: Path) -> None:
        with engine_with(database, Recorder(), fresh_tail_count=1) as engine:
            ingest_turns(engine, 9, 100)
            assert turns_of(engine.assemble(token_budget=450)) == [5, 6, 7, 8]

    def test_the_newest_user_message_stays_when_a_tool_run_pushes_it_out(
        self, database: Path
    ) -> None:
        with engine_with(database, Recorder(), fresh_tail_count=2) as engine:
            engine.ingest([marked(50, "task")])
            engine.ingest([marked(100, f"step{n}", "assistant") for n in range(9)])
            assembly = engine.assemble(token_budget=300)
        assert names_of(assembly) == ["task", "step7", "step8"]

    def test_a_leading_system_message_stays(self, database: Path) -> None:
        with engine_with(database, Recorder(), fresh_tail_count=1) as engine:
            engine.ingest([marked(20, "rules", "system")])
            ingest_turns(engine, 9, 100)
            assembly = engine.assemble(token_budget=300)
        assert names_of(assembly) == ["rules", "turn", "turn"]

    def test_summaries_and_messages_compete_for_the_same_room(self, database: Path) -> None:
        with engine_with(database, Recorder(), fresh_tail_count=1) as engine:
            lay_out(engine, [0, 0, 0], tokens=100, tail=1)
            assembly = engine.assemble(token_budget=256)
        assert (assembly.stats.summaries, assembly.stats.dropped) == (3, 1)


class TestByPrompt:
    """AB43 and AB66: what the prompt asks for is shown, the newest where it asks for nothing."""

    LOGIN = marked(200, "login: authentication needs a password", "assistant")
    CANVAS = marked(200, "canvas: painting in oil", "assistant")

    def shown(self, database: Path, *old: dict[str, Any], prompt: str | None, on: bool) -> str:
        with engine_with(
            database, Recorder(), fresh_tail_count=2, prompt_aware_eviction=on
        ) as engine:
            engine.ingest([*old, marked(10, "t0"), marked(10, "t1", "assistant")])
            return str(engine.assemble(token_budget=256, prompt=prompt).messages)

    @pytest.mark.parametrize("newest_first", [True, False])
    def test_ab43_the_one_it_asks_for_is_shown(self, database: Path, newest_first: bool) -> None:
        old = (self.LOGIN, self.CANVAS)[:: -1 if newest_first else 1]
        shown = self.shown(database, *old, prompt="how does authentication work", on=True)
        assert "login" in shown
        assert "canvas" not in shown

    @pytest.mark.parametrize("prompt", [None, "", "   "])
    def test_ab43_without_a_prompt_the_newest_is(self, database: Path, prompt: str | None) -> None:
        shown = self.shown(database, self.LOGIN, self.CANVAS, prompt=prompt, on=True)
        assert "canvas" in shown
        assert "login" not in shown

    def test_ab43_switched_off_the_newest_is(self, database: Path) -> None:
        prompt = "how does authentication work"
        assert "canvas" in self.shown(database, self.LOGIN, self.CANVAS, prompt=prompt, on=False)

    def test_ab66_what_does_not_fit_is_passed_over(self, database: Path) -> None:
        old = marked(10, "alpha"), marked(400, "beta"), marked(10, "gamma")
        shown = self.shown(database, *old, prompt="alpha beta", on=True)
        assert "alpha" in shown
        assert "gamma" in shown
        assert "beta" not in shown


class TestWhatIsSent:
    def test_ab46_a_tool_message_without_an_id_is_text_of_the_assistant(
        self, engine: Engine
    ) -> None:
        engine.ingest([{"role": "user", "content": "hi"}, {"role": "tool", "content": "loose"}])
        assembly = engine.assemble(token_budget=1000)
        assert assembly.messages[1] == {"role": "assistant", "content": "loose"}

    @pytest.mark.parametrize("role", ["user", "assistant"])
    @pytest.mark.parametrize(
        "content",
        [
            None,
            "",
            "  ",
            [],
            [{"type": "text", "text": " "}],
            [{"type": "thinking", "thinking": "hm"}],
        ],
    )
    def test_ab47_what_says_nothing_is_not_sent(
        self, engine: Engine, role: str, content: Any
    ) -> None:
        engine.ingest([{"role": "user", "content": "hi"}, {"role": role, "content": content}])
        engine.ingest([{"role": "user", "content": "still there?"}])
        sent = [message["content"] for message in engine.assemble(token_budget=1000).messages]
        assert sent == ["hi", "still there?"]


class TestLiveMessages:
    """AB55: what the host holds is known again by what it is, not by what it says somewhere."""

    def test_ab55_a_summary_that_quotes_an_event_does_not_stand_for_it(
        self, database: Path
    ) -> None:
        event = "the nightly build has failed"
        with engine_with(database, lambda request: event, fresh_tail_count=1) as engine:
            ingest_turns(engine, 9, 100)
            engine.compact(token_budget=1000, force=True)
            live = [{"role": "user", "content": event}]
            messages = engine.assemble(token_budget=2000, live_messages=live).messages
        assert messages.count(live[0]) == 1
        assert event in messages[0]["content"]
        assert messages[0] != live[0]

    @pytest.mark.parametrize("name", [{}, {"toolName": "unknown"}])
    def test_ab55_a_result_is_known_again_without_its_tools_name(
        self, engine: Engine, name: dict[str, str]
    ) -> None:
        caller = {
            "role": "assistant",
            "content": [{"type": "toolCall", "id": "c", "name": "look", "arguments": {}}],
        }
        result = {
            "role": "toolResult",
            "toolCallId": "c",
            "content": [{"type": "text", "text": "x"}],
        }
        begin = {"role": "user", "content": "begin"}
        engine.ingest([begin, caller, result | {"toolName": "unknown"}])
        live = [begin, caller, result | name]
        assembly = engine.assemble(token_budget=1000, live_messages=live)
        assert [message["role"] for message in assembly.messages] == [
            "user",
            "assistant",
            "toolResult",
        ]

    def test_ab55_a_live_exchange_is_shown_whole_or_not_at_all(self, database: Path) -> None:
        caller = {
            "role": "assistant",
            "content": [{"type": "toolCall", "id": "c", "name": "look", "arguments": {}}],
        }
        result = {
            "role": "toolResult",
            "toolCallId": "c",
            "content": [{"type": "text", "text": "¤" * 150}],
        }
        with engine_with(database, Recorder(), fresh_tail_count=1) as engine:
            ingest_turns(engine, 2, 50)
            live = [caller, result, marked(150, "then")]
            for budget in range(256, 500, 20):
                assembly = engine.assemble(token_budget=budget, live_messages=live)
                assert MISSING_RESULT not in str(assembly.messages)
                assert (caller in assembly.messages) == ("toolCallId" in str(assembly.messages))

    def test_ab55_the_words_of_an_earlier_turn_are_a_new_turn(self, engine: Engine) -> None:
        engine.ingest(
            [
                {"role": "user", "content": "please fix the flaky parser test"},
                {"role": "assistant", "content": "done"},
                {"role": "user", "content": "and what about the docs?"},
            ]
        )
        again = {
            "role": "user",
            "content": "<relevant-memories>\nnone\n</relevant-memories>\n\n"
            "please fix the flaky parser test",
        }
        messages = engine.assemble(token_budget=1000, live_messages=[again]).messages
        assert [message["content"] for message in messages][:3] == [
            "please fix the flaky parser test",
            "done",
            "and what about the docs?",
        ]
        assert messages[3:] == [again]


class TestBudget:
    def test_ab49_a_heavy_conversation_is_held_within_the_budget(self, engine: Engine) -> None:
        engine.ingest(
            [{"role": ("user", "assistant")[n % 2], "content": "word " * 400} for n in range(60)]
        )
        assembly = engine.assemble(token_budget=8000)
        assert 7000 < assembly.estimated_tokens <= 8000

    def test_ab49_a_small_conversation_is_left_alone(self, engine: Engine) -> None:
        messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
        engine.ingest(messages)
        assembly = engine.assemble(token_budget=8000)
        assert assembly.messages == messages
        assert 0 < assembly.estimated_tokens < 1000

    def test_ab50_the_configured_cap_holds_for_every_budget(self, database: Path) -> None:
        with make_engine(database, max_assembly_token_budget=5000) as engine:
            assert engine.assemble(token_budget=200_000).token_budget == 5000

    @pytest.mark.parametrize("budget", [255, 0, -1])
    def test_a_budget_below_256_is_refused(self, engine: Engine, budget: int) -> None:
        with pytest.raises(BudgetTooSmallError, match=f"token_budget is {budget}"):
            engine.assemble(token_budget=budget)

    def test_a_newest_message_larger_than_the_budget_is_shown_cut(self, engine: Engine) -> None:
        text = "the beginning " + "middle " * 5000 + "the end"
        (message_id,) = engine.ingest([{"role": "user", "content": text}]).message_ids
        assembly = engine.assemble(token_budget=256)
        content = assembly.messages[0]["content"]
        assert content.startswith("the beginning")
        assert content.endswith("the end")
        assert f"msg_{message_id} has the whole" in content
        assert (assembly.stats.cut, assembly.stats.dropped) == (1, 0)


class TestFingerprint:
    def test_ab50_it_has_the_documented_form(self, engine: Engine) -> None:
        engine.ingest([{"role": "user", "content": "hello"}])
        fingerprint = engine.assemble(token_budget=1000).prefix.fingerprint
        assert re.fullmatch(r"summary-prefix-v1:\d+:[a-f0-9]{32}", fingerprint)

    def test_ab50_raw_growth_leaves_it(self, engine: Engine) -> None:
        engine.ingest([{"role": "user", "content": "hello"}])
        before = engine.assemble(token_budget=1000).prefix.fingerprint
        engine.ingest([{"role": "user", "content": "more"}])
        assert engine.assemble(token_budget=1000).prefix.fingerprint == before

    def test_ab50_a_summary_changes_it(self, database: Path) -> None:
        with engine_with(database, Recorder(), fresh_tail_count=1) as engine:
            ingest_turns(engine, 9, 100)
            before = engine.assemble(token_budget=1000).prefix.fingerprint
            engine.compact(token_budget=1000, force=True)
            assert engine.assemble(token_budget=1000).prefix.fingerprint != before
