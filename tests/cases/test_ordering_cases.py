"""What users of such engines reported about the order of messages, one test a report.

Each test is named after the symptom and holds the reproduction, scaled down. Must not test how it
is done: the unit tests do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import chain, entry, make_engine, said, texts, write_session

from lcm_fast.engine import Engine

Message = dict[str, Any]


def call(*call_ids: str, at: int | None = None, text: str = "") -> Message:
    blocks: list[Message] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "toolCall", "id": one, "name": "exec", "arguments": {}} for one in call_ids]
    return {**said("", at, role="assistant"), "content": blocks}


def result(call_id: str, text: str, at: int | None = None) -> Message:
    content = [{"type": "text", "text": text}]
    return {**said("", at, role="toolResult"), "toolCallId": call_id, "content": content}


def sent(engine: Engine, token_budget: int = 100_000) -> list[Message]:
    """Return what a model is sent of the conversation."""
    return engine.assemble(token_budget=token_budget).messages


def outline(messages: Sequence[Message]) -> list[str]:
    """Name each message by its calls, by the call it answers, or by its text."""
    named = []
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        ids = [block["id"] for block in blocks if block["type"] == "toolCall"]
        if ids:
            named.append("call " + " ".join(ids))
        elif message["role"] == "toolResult":
            named.append(f"result {message['toolCallId']}: {blocks[0]['text']}")
        else:
            named.append(blocks[0]["text"] if blocks else message["content"])
    return named


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def read(engine: Engine, path: Path, entries: Sequence[object]) -> int:
    """Read a session file into the default conversation; return how many messages were new."""
    return engine.bootstrap(write_session(path, entries), session_key="default").ingested


def test_a_result_stored_before_its_call_is_not_replaced_by_an_invented_error(
    engine: Engine,
) -> None:
    for message in (said("look"), result("X", "found"), call("X"), said("and?")):
        engine.ingest([message])
    assembly = engine.assemble(token_budget=100_000)
    assert outline(assembly.messages) == ["look", "call X", "result X: found", "and?"]
    assert assembly.stats.placeholders == 0


def test_results_of_several_calls_stored_before_them_are_each_found(engine: Engine) -> None:
    before = [result("B", "two"), result("A", "one")]
    engine.ingest([said("look"), *before, call("A", "B")])
    assert outline(sent(engine)) == ["look", "call A B", "result A: one", "result B: two"]


def test_a_mirror_line_between_a_call_and_its_result_does_not_brick_the_session(
    engine: Engine, session: Path
) -> None:
    mirror = {**said("checking now", 2, role="assistant"), "model": "delivery-mirror"}
    file = [said("look", 1), call("X", at=2), mirror, result("X", "found", 3), said("thanks", 4)]
    read(engine, session, chain(*file))
    found = outline(sent(engine))
    assert found[found.index("call X") + 1] == "result X: found"
    assert (found[0], found[-1], "checking now" in texts(engine)) == ("look", "thanks", True)


def test_fields_that_nobody_knows_reach_the_model_as_they_came(engine: Engine) -> None:
    thinking = {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmVk"}
    reasoning = {
        **call("X", text="looking"),
        "reasoning_content": "the user wants it found",
        "provider_specific": {"nested": [1, 2.5, None, "\u00e9"]},
    }
    reasoning["content"].insert(0, thinking)
    turn = [said("look"), reasoning, {**result("X", "found"), "extra": {"exit": 0}}]
    engine.ingest(turn)
    assert json.dumps(sent(engine)) == json.dumps(turn)


def test_a_notice_between_parallel_results_comes_after_all_of_them(engine: Engine) -> None:
    ids = ["toolu_1", "toolu_2", "toolu_3"]
    calls = [{"type": "tool_use", "id": one, "name": "exec", "input": {}} for one in ids]
    results = [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in ids]
    notice = {"type": "text", "text": "the build has finished"}
    engine.ingest(
        [
            said("run all three"),
            {"role": "assistant", "content": calls},
            {"role": "user", "content": [results[0], notice, *results[1:]]},
        ]
    )
    blocks = [block for message in sent(engine)[2:] for block in message["content"]]
    assert blocks == [*results, notice]


def test_a_notice_in_a_message_between_parallel_results_comes_after_all_of_them(
    engine: Engine,
) -> None:
    results = [result(one, "ok") for one in "ABC"]
    turn = [said("run"), call("A", "B", "C"), results[0], said("a notice"), *results[1:]]
    engine.ingest(turn)
    assert sent(engine) == [turn[0], turn[1], *results, said("a notice")]


def test_each_new_prompt_is_the_last_message_of_its_context(engine: Engine) -> None:
    last = []
    for n in range(5):
        engine.ingest([said(f"question {n}", 10 * n)])
        last.append(sent(engine)[-1]["content"])
        engine.ingest([said(f"answer {n}", 10 * n + 1, role="assistant")])
    assert last == [f"question {n}" for n in range(5)]


def test_what_the_host_adds_to_a_live_message_is_kept_when_its_bare_body_is_read(
    engine: Engine, session: Path
) -> None:
    history = chain(said("hello", 1), said("hi", 2, role="assistant"))
    read(engine, session, history)
    recalled = {"type": "recalled_memory", "items": [{"text": "likes tea"}], "source": "notes"}
    bare = said("what do I like?", 3)
    live = {**bare, "content": [recalled, {"type": "text", "text": bare["content"]}]}
    engine.ingest([live])
    assert sent(engine)[-1] == live
    added = read(engine, session, [*history, entry("e2", "e1", bare)])
    assert (added, sent(engine)[-1]) == (0, live)


def test_an_old_payload_is_not_sent_as_the_newest_turn_again_and_again(engine: Engine) -> None:
    payload = "log line of the failed build\n" * 2600
    newest = [said("never mind the log", 20), said("just say hello", 30)]
    engine.ingest([said(payload, 1), said("seen", 2, role="assistant"), *newest])
    for budget in (100_000, 8_000, 1_000):
        assert sent(engine, budget)[-2:] == newest, budget
    assert payload not in json.dumps(sent(engine, 8_000))


def test_entries_of_one_coarse_second_keep_their_order(engine: Engine, session: Path) -> None:
    messages = [
        {"role": "user", "content": f"m{n}", "timestamp": 1_700_000_000_000 + 17 * n}
        for n in range(50)
    ]
    entries = [{**one, "timestamp": "2023-11-14T22:13:20Z"} for one in chain(*messages)]
    order = [one["content"] for one in messages]
    read(engine, session, entries)
    assert texts(engine) == [one["content"] for one in sent(engine)] == order


def test_entries_of_one_coarse_second_that_were_missing_are_filled_in_in_their_order(
    engine: Engine, session: Path
) -> None:
    entries = [
        {**one, "timestamp": "2023-11-14T22:13:20Z"}
        for one in chain(*(said(f"m{n}") for n in range(50)))
    ]
    read(engine, session, entries[:10] + entries[40:])
    read(engine, session, entries)
    assert texts(engine) == [f"m{n}" for n in range(50)]


def test_a_call_that_a_replay_stored_twice_is_sent_once_with_one_result(engine: Engine) -> None:
    exchange = [call("X"), result("X", "found")]
    engine.ingest([said("look"), *exchange, said("good"), call("X"), said("and now?")])
    found = outline(sent(engine))
    ids = [name.split()[1].rstrip(":") for name in found if name.startswith(("call", "result"))]
    calls, results = ids[::2], ids[1::2]
    assert calls == results
    assert len(set(calls)) == len(calls)


def test_an_old_file_is_imported_with_its_original_times(engine: Engine, session: Path) -> None:
    year_ago = "2025-01-05T09:30:00.250Z"
    own = {"role": "user", "content": "own time", "timestamp": 1_736_069_399_125}
    entries = chain(own, said("time of its entry"))
    entries[1]["timestamp"] = year_ago
    read(engine, session, entries)
    times = [row.created_at for row in engine.messages()]
    assert times == ["2025-01-05T09:29:59.125Z", year_ago]


@pytest.mark.parametrize("role", ["system", "user", "assistant", "toolResult"])
@pytest.mark.parametrize("content", [[], "", None, [{"type": "text", "text": ""}]])
def test_a_message_without_content_is_not_sent_to_the_model(
    engine: Engine, role: str, content: Any
) -> None:
    empty = {"role": role, "content": content}
    engine.ingest([said("begin"), empty, said("go on")])
    assert sent(engine) == [said("begin"), said("go on")]
    assert engine.conversation().message_count == 3


@pytest.mark.parametrize("content", [[], "", None, [{"type": "text", "text": ""}]])
def test_a_result_without_content_keeps_its_call_valid(engine: Engine, content: Any) -> None:
    silent = {"role": "toolResult", "toolCallId": "X", "content": content}
    engine.ingest([said("run"), call("X"), silent, said("and?")])
    assembly = engine.assemble(token_budget=10_000)
    assert [one["role"] for one in assembly.messages] == [
        "user",
        "assistant",
        "toolResult",
        "user",
    ]
    assert all(one["content"] for one in assembly.messages)


def test_progress_between_a_call_and_its_result_does_not_break_the_pair(engine: Engine) -> None:
    progress = [said(f"{n} of 3", role="assistant") for n in (1, 2, 3)]
    turn = [said("run"), call("X"), *progress, result("X", "done"), said("thanks")]
    engine.ingest(turn)
    assert sent(engine) == [turn[0], turn[1], turn[5], *progress, turn[6]]
    assert [text for text in texts(engine) if "of 3" in text] == ["1 of 3", "2 of 3", "3 of 3"]


TIMES = {
    "offset": ("2026-01-05T11:00:00.250+02:00", "2026-01-05T09:00:00.250Z"),
    "zulu": ("2026-01-05T09:00:01.5Z", "2026-01-05T09:00:01.500Z"),
    "bare": ("2026-01-05T09:00:02", "2026-01-05T09:00:02.000Z"),
    "milliseconds": (1_767_603_603_125, "2026-01-05T09:00:03.125Z"),
    "seconds": (1_767_603_604, "2026-01-05T09:00:04.000Z"),
    "west": ("2026-01-05T01:00:05-08:00", "2026-01-05T09:00:05.000Z"),
}


def test_times_written_in_any_way_are_stored_in_one_that_sorts(engine: Engine) -> None:
    engine.ingest([{**said(name), "timestamp": time} for name, (time, _) in TIMES.items()])
    stored = {row.content: row.created_at for row in engine.messages()}
    assert stored == {name: utc for name, (_, utc) in TIMES.items()}


def test_a_message_goes_by_its_time_whatever_offset_it_is_written_with(
    engine: Engine, session: Path
) -> None:
    first = said("first")
    engine.ingest([{**said("later"), "timestamp": "2026-01-05T09:00:02Z"}])
    times = ["2026-01-05T11:00:00+02:00", "2026-01-05T01:00:01-08:00"]
    file = [{**first, "timestamp": times[0]}, {**said("second"), "timestamp": times[1]}]
    read(engine, session, chain(*file))
    assert texts(engine) == ["first", "second", "later"]


def test_a_call_without_a_result_takes_neither_the_text_nor_the_other_calls_with_it(
    engine: Engine,
) -> None:
    asking = call("A", "B", "C", text="I look in three places")
    turn = [said("look"), asking, result("A", "one"), result("C", "three"), said("and?")]
    engine.ingest(turn)
    messages = sent(engine)
    assert messages[1] == asking
    assert outline(messages)[2:4] == ["result A: one", "result C: three"]
    assert [one["toolCallId"] for one in messages[2:-1]] == ["A", "C", "B"]


def test_a_call_of_a_cut_off_turn_takes_neither_the_text_nor_the_other_calls_with_it(
    engine: Engine,
) -> None:
    asking = {**call("A", "B", "C", text="I look in three places"), "stopReason": "aborted"}
    turn = [said("look"), asking, result("A", "one"), result("C", "three"), said("and?")]
    engine.ingest(turn)
    messages = sent(engine)
    assert messages[1]["content"] == [
        block for block in asking["content"] if block.get("id") != "B"
    ]
    assert messages[2:] == turn[2:]


def test_a_second_assembly_of_a_turn_is_equal_to_the_first(database: Path) -> None:
    with make_engine(database, fresh_tail_count=2, leaf_chunk_tokens=300) as engine:
        step = "moves /srv/app to its place and writes down why. " * 10
        engine.ingest([said(f"step {n} {step}", n) for n in range(20)])
        engine.compact(token_budget=1000, force=True)
        engine.ingest([said("the only request", 100), call("X", at=101), result("X", "ok", 102)])
        first, *again = (sent(engine, 1000) for _ in range(3))
        assert [first, first] == again
        assert said("the only request", 100) in first
