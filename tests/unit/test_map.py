"""One prompt over many items: results in order, each asked for once, whatever happens between."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upkeep import Clock, memory, turns

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import (
    ConfigError,
    JobConflictError,
    SummarizerAuthError,
    SummarizerContentError,
    SummarizerRateLimitError,
)
from lcm_fast.mapping import in_order
from lcm_fast.mapping.answers import read_answer
from lcm_fast.mapping.prompts import item_prompt
from lcm_fast.summarize.models import ModelAnswer, ModelCall

COLOUR = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
}


class Model:
    """Answers by a function of the prompt, and remembers what it was asked."""

    name = "test/model"

    def __init__(self, answer: Callable[[str], str]) -> None:
        self._answer = answer
        self.asked: list[str] = []

    def complete(self, call: ModelCall) -> ModelAnswer:
        self.asked.append(call.user)
        return ModelAnswer(self._answer(call.user), "model-1", input_tokens=10, output_tokens=2)


def item_in(prompt: str) -> str:
    return prompt.partition("<item>\n")[2].partition("\n</item>")[0]


def shout(prompt: str) -> str:
    return item_in(prompt).upper()


@pytest.fixture
def engine(database: Path) -> Any:
    with memory(database, lambda request: "¤", Clock(), summary_concurrency=3) as opened:
        yield opened


class TestResults:
    def test_they_come_in_the_order_of_the_items(self, engine: Engine) -> None:
        result = engine.map(list("abcdefgh"), "Shout it.", model=Model(shout))
        assert (result.status, result.results) == ("done", list("ABCDEFGH"))
        assert (result.calls, result.input_tokens, result.output_tokens) == (8, 80, 16)

    def test_of_no_items_there_are_none(self, engine: Engine) -> None:
        assert engine.map([], "Shout it.", model=Model(shout)).status == "done"

    def test_stored_messages_summaries_and_files_are_read(self, engine: Engine) -> None:
        engine.ingest([*turns(6, tokens=300), {"role": "user", "content": "a log ¤ " * 30_000}])
        engine.compact(token_budget=10**6, force=True)
        (summary, *_) = engine.summaries()
        ((file_id, _, _),) = engine.store.large_files()
        result = engine.map(
            ["msg_1", summary.summary_id, file_id, "plain"], "Shout it.", model=Model(shout)
        )
        assert result.results[0].startswith("TURN 0 ¤")
        assert (result.results[1], result.results[3]) == ("¤", "PLAIN")
        assert result.results[2].startswith("A LOG ¤ A LOG")

    def test_an_item_that_is_not_there_fails_alone(self, engine: Engine) -> None:
        result = engine.map(["msg_999", "here"], "Shout it.", model=Model(shout))
        assert (result.status, result.results) == ("partial", [None, "HERE"])
        assert result.items[0].error == "no item 'msg_999'"

    def test_so_many_items_are_worked_on_at_once(self, engine: Engine) -> None:
        barrier = threading.Barrier(3, timeout=30)

        def meet(prompt: str) -> str:
            barrier.wait()
            return "met"

        assert engine.map(list("abcdef"), "Meet.", model=Model(meet)).results == ["met"] * 6

    def test_usage_is_counted_by_model(self, engine: Engine) -> None:
        engine.map(list("abc"), "Shout it.", model=Model(shout))
        (usage,) = lcm_fast.status(engine).summarizer["usage"]
        assert (usage["model"], usage["calls"], usage["input_tokens"]) == ("test/model", 3, 30)

    def test_a_batch_uses_up_nothing_that_compaction_may_spend(self, database: Path) -> None:
        config = {"summary_max_calls_per_window": 2}
        with memory(database, lambda request: "¤", Clock(), **config) as engine:
            engine.ingest(turns(6), token_budget=10**6)
            items = list("abcdef")
            done = engine.map(items, "Shout.", model=Model(shout), session_key="default")
            assert done.status == "done"
            assert engine.compact(token_budget=10**6, force=False).failure_code is None
            assert engine.compact(token_budget=500).summaries_created == 2


class TestSchema:
    def test_answers_are_decoded_values(self, engine: Engine) -> None:
        model = Model(lambda prompt: '```json\n{"colour": "red"}\n```')
        result = engine.map(["a rose"], "Which colour?", schema=COLOUR, model=model)
        assert result.results == [{"colour": "red"}]
        assert json.dumps(COLOUR) in model.asked[0]

    def test_one_that_breaks_the_schema_is_asked_for_again_with_the_reason(
        self, engine: Engine
    ) -> None:
        def learns(prompt: str) -> str:
            return '{"colour": "blue"}' if "could not be used" in prompt else '{"colour": 7}'

        model = Model(learns)
        result = engine.map(["the sea"], "Which colour?", schema=COLOUR, model=model)
        assert result.results == [{"colour": "blue"}]
        assert "at $.colour: 7 is not one of" in model.asked[1]

    def test_after_so_many_attempts_the_item_has_failed(self, engine: Engine) -> None:
        model = Model(lambda prompt: "I would rather not")
        result = engine.map(["x"], "Which?", schema=COLOUR, model=model, max_attempts=2)
        assert (result.status, len(model.asked)) == ("partial", 2)
        assert result.items[0].error == "at $: the answer holds no JSON value"

    def test_what_is_no_schema_is_refused_before_anything_is_asked(self, engine: Engine) -> None:
        model = Model(shout)
        with pytest.raises(ConfigError, match=r"schema: .* at"):
            engine.map(["x"], "Which?", schema={"type": 7}, model=model)
        assert model.asked == []

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ('{"colour": "red"}', '{"colour":"red"}'),
            ('Here it is: {"colour": "red"} as asked', '{"colour":"red"}'),
            ('```\n{"colour": "red"}\n```', '{"colour":"red"}'),
            ('{not json} {"colour": "red"}', '{"colour":"red"}'),
        ],
    )
    def test_the_first_json_value_counts(self, text: str, value: str) -> None:
        assert read_answer(text, COLOUR) == value


class TestStops:
    @pytest.mark.parametrize(
        "error",
        [SummarizerRateLimitError("429"), SummarizerAuthError("401"), ConnectionError("gone")],
    )
    def test_a_model_that_fails_pauses_the_batch_and_the_same_call_goes_on(
        self, engine: Engine, error: Exception
    ) -> None:
        left = 2

        def fails_after_two(prompt: str) -> str:
            nonlocal left
            left -= 1
            if left < 0:
                raise error
            return shout(prompt)

        first = engine.map(list("abcd"), "Shout it.", model=Model(fails_after_two), concurrency=1)
        assert (first.status, first.results) == ("paused", ["A", "B", None, None])
        model = Model(shout)
        again = engine.map(list("abcd"), "Shout it.", model=model)
        assert (again.status, again.results) == ("done", list("ABCD"))
        assert sorted(map(item_in, model.asked)) == ["c", "d"]
        assert [item.attempts for item in again.items] == [1, 1, 1, 1]

    def test_a_caller_that_stops_it_finds_what_was_done(self, engine: Engine) -> None:
        stop = threading.Event()

        def stops(prompt: str) -> str:
            if item_in(prompt) == "b":
                stop.set()
            return shout(prompt)

        result = engine.map(list("abcd"), "Shout.", model=Model(stops), concurrency=1, cancel=stop)
        assert (result.status, result.results) == ("paused", ["A", "B", None, None])

    def test_what_is_done_is_not_asked_again(self, engine: Engine) -> None:
        model = Model(shout)
        for _ in range(2):
            assert engine.map(list("abc"), "Shout it.", model=model).status == "done"
        assert len(model.asked) == 3

    def test_what_a_dead_process_had_leased_is_taken_up(self, engine: Engine) -> None:
        host = lcm_fast.store.owner_name().rsplit(":", 2)[0]
        engine.map(list("ab"), "Shout.", model=Model(refuses), job_id="job")
        now, later = "2026-03-01T12:00:00.000Z", "2026-03-01T12:09:00.000Z"
        engine.store.lease_item("job", f"{host}:999999999:1", now=now, until=later)
        result = engine.map(list("ab"), "Shout.", model=Model(shout), job_id="job")
        assert result.results == ["A", "B"]

    def test_two_that_work_on_one_job_ask_for_each_item_once(
        self, engine: Engine, database: Path
    ) -> None:
        items = [f"item {n}" for n in range(40)]
        model = Model(shout)
        with memory(database, lambda request: "¤", Clock()) as other:
            threads = [
                threading.Thread(target=one.map, args=(items, "Shout it."), kwargs={"model": model})
                for one in (engine, other)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        assert sorted(map(item_in, model.asked)) == sorted(items)

    def test_another_batch_s_id_is_refused(self, engine: Engine) -> None:
        engine.map(["a"], "Shout it.", model=Model(shout), job_id="job")
        for items, prompt in ((["b"], "Shout it."), (["a"], "Whisper it.")):
            with pytest.raises(JobConflictError, match="'job'"):
                engine.map(items, prompt, model=Model(shout), job_id="job")


class TestModels:
    def test_the_offline_summariser_answers_no_prompts(self, database: Path) -> None:
        with lcm_fast.open(database) as engine, pytest.raises(ConfigError, match="no prompts"):
            engine.map(["a"], "Shout it.")

    def test_what_has_no_method_complete_is_no_model(self, engine: Engine) -> None:
        with pytest.raises(ConfigError, match="complete"):
            engine.map(["a"], "Shout it.", model="gpt")

    def test_the_summariser_s_models_are_asked_in_their_order(self, database: Path) -> None:
        program = {"summaryCommand": "cat"}
        with lcm_fast.open(database, config=program) as engine:
            (answer,) = engine.map(["a rose"], "Say it.").results
        assert "a rose" in answer


def refuses(prompt: str) -> str:
    raise SummarizerAuthError("401")


@given(st.text(max_size=60), st.text(max_size=60))
def test_an_item_cannot_leave_its_block(before: str, after: str) -> None:
    item = f"{before}</item>{after}< / ITEM >"
    user = item_prompt("Do it.", item, None, None).user
    assert user.startswith("Do it.\n\n<item>\n")
    assert user.endswith("\n</item>")
    assert user.count("</item>") == 1


@given(st.lists(st.integers(), max_size=20), st.integers(1, 5))
def test_in_order_is_in_order(values: list[int], concurrency: int) -> None:
    assert list(in_order(lambda value: -value, values, concurrency=concurrency)) == [
        -value for value in values
    ]


def test_in_order_takes_inputs_only_when_they_can_begin() -> None:
    taken: list[int] = []

    def inputs() -> Any:
        for n in range(10):
            taken.append(n)
            yield n

    results = in_order(abs, inputs(), concurrency=2)
    assert next(results) == 0
    assert len(taken) == 2


def test_in_order_raises_in_its_place() -> None:
    results = in_order(lambda n: 1 // n, [1, 0, 1], concurrency=1)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_an_answer_without_a_schema_is_its_text() -> None:
    assert read_answer("  as it is \n", None) == "as it is"
    with pytest.raises(SummarizerContentError):
        read_answer("none", COLOUR)
