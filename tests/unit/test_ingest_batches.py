"""Live batches: what is new, what was there, what is refused."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import apsw
import pytest
from conftest import chain, entry, said, texts, violations

from lcm_fast.engine import Engine
from lcm_fast.errors import MessageError
from lcm_fast.store import Address

CALL = {"type": "toolCall", "id": "call_1", "name": "exec", "arguments": {}}
CALLING = {"role": "assistant", "content": [CALL]}


def answer(text: str) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": "call_1",
        "content": [{"type": "text", "text": text}],
    }


def openers(engine: Engine) -> list[int]:
    found = engine.store.frontier(Address("default"), {})
    assert found is not None
    return [int(opener) for opener in found[1].openers]


def noted_calls(engine: Engine) -> list[tuple[Any, ...]]:
    with closing(apsw.Connection(engine.store.path)) as db:
        rows = db.execute("SELECT call_id, call_seq, result_seq FROM tool_calls")
        return rows.fetchall()


def test_the_result_counts_what_is_new_and_what_was_there(engine: Engine) -> None:
    engine.ingest([said("one", 1), said("two", 2)])
    result = engine.ingest([said("two", 2), said("three", 3)])
    assert (result.ingested, result.duplicates, len(result.message_ids)) == (1, 1, 1)


def test_the_ids_of_new_messages_are_those_they_are_read_by(engine: Engine) -> None:
    result = engine.ingest([said("one"), said("two")])
    rows = engine.store.messages(result.message_ids)
    assert [row.content for row in rows] == ["one", "two"]


def test_an_empty_batch_makes_a_conversation_and_stores_nothing(engine: Engine) -> None:
    engine.ingest([])
    assert engine.conversation().message_count == 0


def test_equal_messages_without_a_time_are_all_kept(engine: Engine) -> None:
    for _ in range(3):
        engine.ingest([said("ok")])
    assert texts(engine) == ["ok", "ok", "ok"]


def test_equal_messages_at_one_time_in_one_batch_are_all_kept(engine: Engine) -> None:
    engine.ingest([said("ok", 1), said("ok", 1)])
    assert texts(engine) == ["ok", "ok"]


def test_equal_messages_at_other_times_are_other_messages(engine: Engine) -> None:
    engine.ingest([said("ok", 1)])
    engine.ingest([said("ok", 2)])
    assert texts(engine) == ["ok", "ok"]


def test_the_time_of_an_envelope_tells_messages_apart_like_their_own(engine: Engine) -> None:
    for second in (1, 2, 2):
        stamp = f"2026-01-05T09:00:0{second}Z"
        engine.ingest([{"type": "message", "timestamp": stamp, "message": said("ok")}])
    assert texts(engine) == ["ok", "ok"]


def test_one_time_written_in_two_ways_is_one_time(engine: Engine) -> None:
    engine.ingest([{**said("ok"), "timestamp": 1_767_603_600_000}])
    engine.ingest([{**said("ok"), "timestamp": "2026-01-05T10:00:00+01:00"}])
    assert texts(engine) == ["ok"]


def test_an_entry_is_known_again_by_its_id(engine: Engine) -> None:
    engine.ingest(chain(said("ok"), said("ok")))
    engine.ingest(chain(said("ok"), said("ok"), said("ok")))
    assert texts(engine) == ["ok", "ok", "ok"]


def test_an_entry_id_with_other_content_is_another_message(engine: Engine) -> None:
    engine.ingest([entry("a", None, said("first"))])
    engine.ingest([entry("a", None, said("second"))])
    again = engine.ingest([entry("a", None, said("second")), entry("a", None, said("first"))])
    assert (texts(engine), again.ingested) == (["first", "second"], 0)


def test_two_ids_that_change_to_the_same_content_are_both_kept(engine: Engine) -> None:
    engine.ingest([entry("a", None, said("one")), entry("b", "a", said("two"))])
    engine.ingest([entry("a", None, said("ok"))])
    engine.ingest([entry("b", "a", said("ok"))])
    assert texts(engine) == ["one", "two", "ok", "ok"]


def test_an_id_that_changes_to_the_content_of_another_is_kept(engine: Engine) -> None:
    engine.ingest([entry("a", None, said("one")), entry("b", "a", said("ok"))])
    engine.ingest([entry("a", None, said("ok"))])
    assert texts(engine) == ["one", "ok", "ok"]


def test_conversations_do_not_share_messages(engine: Engine) -> None:
    for key in ("one", "two"):
        engine.ingest([said("ok", 1)], session_key=key)
    assert (texts(engine, session_key="one"), texts(engine, session_key="two")) == (["ok"], ["ok"])


def test_a_result_stands_with_the_call_it_answers(engine: Engine) -> None:
    engine.ingest([said("go"), CALLING])
    engine.ingest([answer("done")])
    assert openers(engine) == [1, 2, 2]


def test_a_call_id_used_again_leads_to_the_newest_call(engine: Engine) -> None:
    engine.ingest([CALLING, answer("one"), CALLING, answer("two")])
    engine.ingest([CALLING])
    engine.ingest([answer("three")])
    assert openers(engine) == [1, 1, 3, 3, 5, 5]


def test_the_first_result_of_a_call_is_the_one_noted(engine: Engine) -> None:
    engine.ingest([CALLING, answer("one"), answer("two")])
    engine.ingest([answer("three")])
    assert noted_calls(engine) == [("call_1", 1, 2)]


def test_a_result_that_comes_in_a_later_batch_is_noted(engine: Engine) -> None:
    engine.ingest([CALLING])
    engine.ingest([answer("one")])
    assert noted_calls(engine) == [("call_1", 1, 2)]


def test_a_message_does_not_answer_its_own_call(engine: Engine) -> None:
    content = [CALL, {"type": "tool_result", "tool_use_id": "call_1", "content": "out"}]
    engine.ingest([{"role": "assistant", "content": content}])
    assert noted_calls(engine) == [("call_1", 1, None)]


def test_equal_calls_with_one_id_are_all_kept(engine: Engine) -> None:
    for _ in range(2):
        engine.ingest([CALLING, answer("same")])
        engine.ingest([said("next")])
    assert engine.conversation().message_count == 6


def test_the_whole_record_sent_again_without_times_is_counted_as_known(engine: Engine) -> None:
    for _ in range(2):
        result = engine.ingest([said("one"), said("two")])
    assert (result.ingested, result.duplicates) == (0, 2)


def test_a_result_before_its_call_stands_alone(engine: Engine) -> None:
    engine.ingest([answer("early"), CALLING])
    assert openers(engine) == [1, 2]


def test_a_message_with_nothing_to_say_is_stored_and_not_shown(engine: Engine) -> None:
    engine.ingest([said("hi"), {"role": "assistant", "content": []}])
    conversation = engine.conversation()
    assert (conversation.message_count, conversation.frontier_items) == (2, 1)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ("text", r"messages\[1\] is str"),
        (None, r"messages\[1\] is NoneType"),
        ({"content": "hi"}, r"messages\[1\] has no role"),
        ({"role": "wizard", "content": "hi"}, r"messages\[1\]\.role is 'wizard'"),
        ({"role": "user", "content": 42}, r"messages\[1\]\.content is int"),
        ({"role": "user", "content": "hi", "x": object()}, r"messages\[1\] cannot be written"),
        ({"role": "user", "content": [{1: 2, "a": 3}]}, r"messages\[1\] cannot be written"),
        ({"role": "user", "content": "\ud800", "x": {1, 2}}, r"messages\[1\] cannot be written"),
    ],
    ids=["text", "none", "no role", "role", "content", "object", "keys", "set"],
)
def test_a_bad_message_is_named_and_nothing_of_its_batch_is_stored(
    engine: Engine, bad: Any, named: str
) -> None:
    engine.ingest([said("before")])
    with pytest.raises(MessageError, match=named):
        engine.ingest([said("good"), bad, said("good too")])
    assert (texts(engine), violations(engine.store)) == (["before"], [])


def test_numbers_of_any_size_are_kept(engine: Engine) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "n", "n": 2**80}]}
    engine.ingest([message])
    assert [json.loads(raw) for raw in engine.export_entries()] == [message]


def test_a_text_with_lone_surrogates_is_readable_and_its_bytes_are_exact(engine: Engine) -> None:
    engine.ingest([said("a\ud800b")])
    (raw,) = engine.export_entries()
    assert (texts(engine), raw) == (["a\ufffdb"], b'{"role":"user","content":"a\\ud800b"}')


def test_messages_are_dated_by_themselves_or_by_their_receipt(engine: Engine) -> None:
    engine.ingest([said("dated", 0), said("received")])
    dates = [row.created_at for row in engine.messages()]
    assert dates == ["2023-11-14T22:13:20.000Z", "2026-01-01T00:00:00.000Z"]
