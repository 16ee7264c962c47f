"""What providers count for prompts corrects our counts, model by model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import said
from hypothesis import given
from hypothesis import strategies as st
from upkeep import Scripted, memory

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.store import ModelCalibration, in_model_tokens, in_stored_tokens
from lcm_fast.store.model_calls import learnt

OVERHEAD = 9_000
UNKNOWN = ModelCalibration(model="m", counter="count_marks", updated_at="")


def marks(count: int, role: str = "assistant") -> dict[str, Any]:
    """A message of so many tokens, none of them like another message's."""
    marks.number += 1  # type: ignore[attr-defined]
    return {"role": role, "content": f"{marks.number} " + "¤" * count}  # type: ignore[attr-defined]


marks.number = 0  # type: ignore[attr-defined]


@contextmanager
def opened(database: Path, **config: Any) -> Iterator[Engine]:
    config = {"context_threshold": 1, **config}
    with memory(database, Scripted(), **config) as engine:
        yield engine


def call(engine: Engine, ratio: float, *, size: int = 1_000, **turn: Any) -> lcm_fast.Assembly:
    """Assemble, answer, and report what a model counts that makes `ratio` of a token of ours."""
    context = engine.assemble(token_budget=10**6, model=turn.get("model"))
    counted = context.estimated_tokens / context.token_ratio
    usage = {"prompt_tokens": OVERHEAD + round(ratio * counted)}
    turn = {"model": "m", "usage": usage, "token_budget": 10**6, **turn}
    engine.after_turn([marks(size)], **turn)
    return context


def ratio_now(engine: Engine, **options: Any) -> float:
    return engine.assemble(token_budget=10**6, **options).token_ratio


class TestARatioIsLearnt:
    @pytest.mark.parametrize("ratio", [0.8, 1.2, 2.0])
    def test_from_what_prompts_differ_by(self, database: Path, ratio: float) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, ratio)
            assert ratio_now(engine) == pytest.approx(ratio, rel=0.01)

    def test_not_before_three_pairs_of_prompts_were_compared(self, database: Path) -> None:
        with opened(database) as engine:
            seen = [call(engine, 1.2).token_ratio for _ in range(6)]
        assert seen[:4] == [1, 1, 1, 1]
        assert seen[4:] == pytest.approx([1.2, 1.2], rel=0.01)

    def test_for_that_model_alone(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, 1.2)
            assert ratio_now(engine, model="another") == 1

    def test_and_kept_over_a_restart(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, 1.2)
            before = ratio_now(engine)
        with opened(database) as engine:
            assert ratio_now(engine) == before

    def test_in_every_conversation(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, 1.2)
            engine.ingest([said("hello")], session_key="another")
            assert ratio_now(engine, session_key="another", model="m") > 1.1

    def test_with_what_the_prompt_and_a_tool_loop_add_after_the_assembly(
        self, database: Path
    ) -> None:
        with opened(database) as engine:
            total = 0
            for _ in range(8):
                question = marks(700, "user")
                engine.assemble(token_budget=10**6, prompt=question["content"])
                loop = [question, marks(300), marks(900, "user")]
                total += 1_900
                usage = OVERHEAD + round(1.2 * total)
                answer = marks(200)
                engine.after_turn([*loop, answer], usage=usage, model="m", token_budget=10**6)
                total += 200
            assert ratio_now(engine) == pytest.approx(1.2, rel=0.01)

    def test_with_what_only_the_host_had_at_the_assembly(self, database: Path) -> None:
        with opened(database) as engine:
            total = 0
            for _ in range(8):
                question = marks(700, "user")
                engine.assemble(token_budget=10**6, live_messages=[question])
                total += 700
                usage = OVERHEAD + round(1.2 * total)
                engine.after_turn(
                    [question, marks(200)], usage=usage, model="m", token_budget=10**6
                )
                total += 200
            assert ratio_now(engine) == pytest.approx(1.2, rel=0.01)

    def test_by_turns_committed_under_a_key(self, database: Path) -> None:
        with opened(database) as engine:
            for number in range(6):
                counted = engine.assemble(token_budget=10**6).estimated_tokens
                usage = OVERHEAD + round(1.2 * counted)
                engine.commit_turn(
                    f"turn-{number}", [marks(1_000)], usage=usage, model="m", token_budget=10**6
                )
                if ratio_now(engine) != 1:
                    break
            assert ratio_now(engine) == pytest.approx(1.2, rel=0.01)


class TestNothingIsLearnt:
    def test_where_no_model_was_ever_named(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, 1.2, model=None)
            assert engine.store.calibrations() == []

    def test_from_prompts_that_hardly_differ(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, 1.2, size=20)
            assert engine.store.calibrations() == []

    def test_but_many_small_differences_add_up(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(40):
                call(engine, 1.2, size=200)
            assert ratio_now(engine) == pytest.approx(1.2, rel=0.01)

    def test_from_a_turn_whose_prompt_was_not_assembled_here(self, database: Path) -> None:
        with opened(database) as engine:
            for number in range(8):
                engine.after_turn(
                    [marks(1_000)], usage=20_000 * (number + 1), model="m", token_budget=10**6
                )
            assert engine.store.calibrations() == []

    def test_from_a_difference_that_is_the_hosts(self, database: Path) -> None:
        with opened(database) as engine:
            for number in range(6):
                engine.assemble(token_budget=10**6)
                usage = OVERHEAD + 50_000 * number
                engine.after_turn([marks(1_000)], usage=usage, model="m", token_budget=10**6)
            assert engine.store.calibrations() == []

    def test_where_it_is_turned_off(self, database: Path) -> None:
        with opened(database, usage_calibration=False) as engine:
            for _ in range(6):
                call(engine, 1.2)
            assert (ratio_now(engine), engine.store.calibrations()) == (1, [])


class TestTheRatio:
    def test_keeps_the_output_within_the_budget_of_the_model(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(12):
                call(engine, 1.5)
            context = engine.assemble(token_budget=8_000)
        assert context.stats.dropped > 0
        assert 6_000 < context.estimated_tokens <= context.token_budget == 8_000
        ours = sum(message["content"].count("¤") for message in context.messages)
        assert ours * 1.5 <= 8_000 < (ours + 1_000) * 1.5

    def test_makes_a_conversation_cross_its_threshold_earlier(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, 2.0)
            engine.ingest([marks(10)], token_budget=20_000)
            assert engine.store.debts() == []
            engine.ingest([marks(10)], token_budget=12_000)
            (debt,) = engine.store.debts()
        assert debt.current_token_count == pytest.approx(2 * 6_020, rel=0.01)

    def test_makes_a_compaction_go_as_far_as_the_model_needs(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(8):
                call(engine, 2.0)
            result = engine.compact(token_budget=10_000)
        assert result.status == "done"
        assert 2 * result.tokens_after <= 10_000

    def test_settles_a_debt_once_it_is_under_in_the_models_tokens(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(8):
                call(engine, 2.0)
            engine.ingest([marks(10)], token_budget=10_000)
            assert [debt.pending for debt in engine.store.debts()] == [True]
            engine.compact(token_budget=10_000)
            assert engine.store.debts() == []

    def test_stays_while_it_is_not_off_by_more_than_a_little(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, 1.2)
            before = ratio_now(engine)
            for _ in range(6):
                call(engine, 1.22)
            assert ratio_now(engine) == before

    def test_follows_a_model_that_counts_otherwise_now(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, 1.2)
            for _ in range(300):
                call(engine, 1.6, size=600)
            assert ratio_now(engine) == pytest.approx(1.6, rel=0.04)

    def test_is_shown_by_status(self, database: Path) -> None:
        with opened(database) as engine:
            for _ in range(6):
                call(engine, 1.2)
            (found,) = lcm_fast.status(engine).token_counter["calibrations"]
        assert (found["model"], found["counter"], found["samples"]) == ("m", "count_marks", 5)
        assert found["ratio"] == pytest.approx(1.2, rel=0.01)


@given(
    st.lists(st.tuples(st.integers(-(10**7), 10**7), st.integers(500, 10**7)), max_size=20),
)
def test_a_ratio_stays_within_bounds_whatever_is_reported(pairs: list[tuple[int, int]]) -> None:
    known = UNKNOWN
    for observed, counted in pairs:
        known = learnt(known, observed, counted)
    assert 0.4 <= known.ratio <= 2.5


@given(st.integers(0, 10**9), st.floats(0.4, 2.5))
def test_what_fits_in_our_tokens_fits_in_the_models(budget: int, ratio: float) -> None:
    assert in_model_tokens(in_stored_tokens(budget, ratio), ratio) <= budget
