"""What the host holds and has not stored yet is part of an assembly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import make_engine, said
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.engine import Engine
from lcm_fast.errors import MessageError

HISTORY = [said("one"), said("two", role="assistant"), said("three")]


def contents(engine: Engine, live: list[dict[str, Any]], budget: int = 10_000) -> list[Any]:
    messages = engine.assemble(token_budget=budget, live_messages=live).messages
    return [message["content"] for message in messages]


def test_what_is_stored_is_shown_once(engine: Engine) -> None:
    engine.ingest(HISTORY)
    assert contents(engine, HISTORY) == ["one", "two", "three"]


def test_a_turn_that_is_not_stored_yet_is_shown(engine: Engine) -> None:
    engine.ingest(HISTORY)
    live = [*HISTORY, said("four", role="assistant"), said("five")]
    assert contents(engine, live) == ["one", "two", "three", "four", "five"]


def test_nothing_live_is_stored(engine: Engine) -> None:
    engine.ingest(HISTORY)
    contents(engine, [*HISTORY, said("four", role="assistant")])
    assert contents(engine, HISTORY) == ["one", "two", "three"]


def test_a_list_that_is_only_the_end_of_the_history_is_known_again(engine: Engine) -> None:
    engine.ingest(HISTORY)
    live = [*HISTORY[1:], said("four", role="assistant")]
    assert contents(engine, live) == ["one", "two", "three", "four"]


def test_what_a_user_says_once_more_is_new(engine: Engine) -> None:
    engine.ingest([said("go on"), said("done", role="assistant")])
    assert contents(engine, [said("go on")]) == ["go on", "done", "go on"]


def test_a_message_that_was_just_stored_is_not_new(engine: Engine) -> None:
    engine.ingest([*HISTORY, said("done", role="assistant"), said("go on")])
    assert contents(engine, [said("go on")])[-2:] == ["done", "go on"]


def test_one_between_two_stored_ones_has_its_place(engine: Engine) -> None:
    engine.ingest([said("one", 1), said("three", 3)])
    live = [said("one", 1), said("two", 2, role="assistant"), said("three", 3)]
    assert contents(engine, live) == ["one", "two", "three"]


def test_a_live_result_stands_behind_its_stored_call(engine: Engine) -> None:
    call = {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}}
    engine.ingest([said("list"), {"role": "assistant", "content": [call]}])
    result = {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "ls",
        "content": [{"type": "text", "text": "a.py"}],
    }
    live = [said("list"), {"role": "assistant", "content": [call]}, result]
    assembly = engine.assemble(token_budget=1000, live_messages=live)
    assert [message["role"] for message in assembly.messages] == ["user", "assistant", "toolResult"]
    assert (assembly.stats.live, assembly.stats.placeholders) == (1, 0)


def test_the_newest_user_message_is_shown_as_the_host_has_it(engine: Engine) -> None:
    bare = said("what is the deadline for the tax return this year?")
    engine.ingest([*HISTORY[:2], bare])
    decorated = said(
        "<relevant-memories>\nlikes tea\n</relevant-memories>\n\n" + str(bare["content"])
    )
    assert contents(engine, [*HISTORY[:2], decorated])[-1] == decorated["content"]


def test_a_conversation_that_is_not_stored_is_shown_as_far_as_it_fits(engine: Engine) -> None:
    live = [said(f"{n} " + "word " * 200) for n in range(20)]
    shown = contents(engine, live, budget=1000)
    assert shown == [message["content"] for message in live[-len(shown) :]]


def test_a_large_live_message_is_cut_and_keeps_the_budget(engine: Engine) -> None:
    engine.ingest(HISTORY)
    assembly = engine.assemble(token_budget=500, live_messages=[*HISTORY, said("word " * 2000)])
    assert assembly.stats.cut == 1
    assert assembly.estimated_tokens <= 500


def test_the_newest_stored_message_gives_way_to_what_came_after_it(engine: Engine) -> None:
    stored = [*HISTORY, said("word " * 200)]
    engine.ingest(stored)
    live = [said("four"), said("five"), said("six")]
    shown = contents(engine, [*stored, *live], budget=256)
    assert shown[-3:] == ["four", "five", "six"]
    assert stored[-1]["content"] not in shown


def test_the_newest_stored_message_stays_beside_what_came_before_it(engine: Engine) -> None:
    stored = [said("one", 1), said("word " * 400, 3)]
    engine.ingest(stored)
    shown = contents(engine, [stored[0], said("two", 2), stored[1]], budget=256)
    assert shown[-2] == "two"
    assert shown[-1].startswith("word ")


def test_results_alone_are_not_what_the_user_said_last(database: Path) -> None:
    blocks = [{"type": "tool_use", "id": "c", "name": "ls", "input": {}}]
    result = {"type": "tool_result", "tool_use_id": "c", "content": "the weather is fine"}
    live = [
        said("which port has the staging database?"),
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [result]},
    ]
    with make_engine(database, prompt_aware_eviction=True, fresh_tail_count=2) as engine:
        engine.ingest([said("the staging database moved to port 5544")])
        engine.ingest([said("the weather was bad " * 5 + str(n)) for n in range(60)])
        shown = contents(engine, live, budget=400)
    assert shown[0] == "the staging database moved to port 5544"


def test_a_malformed_live_message_is_named(engine: Engine) -> None:
    with pytest.raises(MessageError, match=r"messages\[1\].role"):
        engine.assemble(token_budget=500, live_messages=[said("a"), {"role": "wizard"}])


turns = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(("user", "assistant"))), max_size=12
)


@given(turns, st.integers(0, 12), st.integers(0, 12))
def test_every_live_message_is_shown_and_the_record_with_it(
    tmp_path_factory: pytest.TempPathFactory,
    said_so: list[tuple[str, str]],
    stored: int,
    start: int,
) -> None:
    path: Path = tmp_path_factory.mktemp("live") / "m.db"
    live = [said(text, at, role) for at, (text, role) in enumerate(said_so)]
    with make_engine(path) as engine:
        engine.ingest(live[:stored])
        shown = contents(engine, live[min(start, stored) :], budget=100_000)
    assert [text for text in shown if not text.startswith("[lcm_fast]")] == [
        message["content"] for message in live
    ]
