"""Pairing of tool calls and results: spec S, cases AB45, AB53, AB54 and AB71, with decision 5."""

from __future__ import annotations

from typing import Any

import pytest

from lcm_fast.assembly.fitting import OPENS_WITH_ASSISTANT
from lcm_fast.assembly.tool_blocks import MISSING_CALL, MISSING_RESULT
from lcm_fast.engine import Engine

Message = dict[str, Any]


def call(*ids: str, text: str = "", **fields: Any) -> Message:
    blocks: list[Message] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "toolCall", "id": i, "name": "look", "arguments": {}} for i in ids]
    return {"role": "assistant", "content": blocks, **fields}


def result(call_id: str, text: str = "found") -> Message:
    content = [{"type": "text", "text": text}]
    return {"role": "toolResult", "toolCallId": call_id, "toolName": "look", "content": content}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assembled(engine: Engine, *messages: Message) -> list[Message]:
    """What comes out for a conversation that the user begins."""
    engine.ingest([user("begin"), *messages])
    first, *rest = engine.assemble(token_budget=100_000).messages
    assert first == user("begin")
    return rest


def outline(messages: list[Message]) -> list[str]:
    """Name each message: ``call A``, ``result A``, ``missing A``, or its text."""
    named: list[str] = []
    for message in messages:
        if message["role"] == "toolResult":
            text = message["content"][0]["text"]
            kind = "missing" if text == MISSING_RESULT else "result"
            named.append(f"{kind} {message['toolCallId']}")
        elif isinstance(message["content"], str):
            named.append(message["content"])
        else:
            ids = [block["id"] for block in message["content"] if block["type"] == "toolCall"]
            said = [block["text"] for block in message["content"] if block["type"] == "text"]
            named.append(" ".join([*said, *(f"call {i}" for i in ids)]))
    return named


def test_each_result_moves_behind_its_call(engine: Engine) -> None:
    messages = assembled(engine, call("A"), call("B"), result("A"), result("B"))
    assert outline(messages) == ["call A", "result A", "call B", "result B"]


def test_text_between_a_call_and_its_result_comes_after_the_result(engine: Engine) -> None:
    messages = assembled(engine, call("A"), user("wait"), result("A"))
    assert outline(messages) == ["call A", "result A", "wait"]


def test_results_come_in_the_order_of_their_calls(engine: Engine) -> None:
    messages = assembled(engine, call("A", "B"), result("B"), result("A"))
    assert outline(messages) == ["call A call B", "result A", "result B"]


def test_a_missing_result_is_stood_in_for(engine: Engine) -> None:
    messages = assembled(engine, call("A", "B"), result("B"), user("go on"))
    assert outline(messages) == ["call A call B", "result B", "missing A", "go on"]


def test_a_stand_in_for_a_result_is_marked_as_an_error(engine: Engine) -> None:
    _, stand_in = assembled(engine, call("A"))
    assert stand_in["isError"] is True


def test_a_second_result_of_a_call_is_left_out(engine: Engine) -> None:
    messages = assembled(engine, call("A"), result("A", "first"), result("A", "second"))
    assert messages[1:] == [result("A", "first")]


STAND_INS = (
    MISSING_RESULT,
    "[openclaw] missing tool result in session history;"
    " inserted synthetic error result for transcript repair.",
    "[lossless-claw] missing tool result in session history;"
    " inserted synthetic error result for transcript repair.",
)


@pytest.mark.parametrize("text", STAND_INS)
@pytest.mark.parametrize("between", [(), (user("are you there?"),)])
def test_ab53_a_real_result_takes_the_place_of_a_stand_in(
    engine: Engine, text: str, between: tuple[Message, ...]
) -> None:
    messages = assembled(engine, call("A"), result("A", text), *between, result("A", "real"))
    assert messages == [call("A"), result("A", "real"), *between]


@pytest.mark.parametrize("text", STAND_INS)
def test_ab53_a_stand_in_never_takes_the_place_of_a_real_result(engine: Engine, text: str) -> None:
    messages = assembled(engine, call("A"), result("A", "real"), result("A", text))
    assert messages[1:] == [result("A", "real")]


def test_ab53_a_text_that_quotes_a_stand_in_is_real(engine: Engine) -> None:
    quoting = result("A", f"the log says: {MISSING_RESULT}")
    assert assembled(engine, call("A"), quoting, result("A", "second"))[1:] == [quoting]


def test_ab53_a_stand_in_alone_stays(engine: Engine) -> None:
    only = result("A", STAND_INS[1])
    assert assembled(engine, call("A"), only, user("go on")) == [call("A"), only, user("go on")]


THOUGHT: Message = {"type": "reasoning", "id": "rs_1", "summary": []}


def function_call(call_id: str) -> Message:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}


class TestReasoning:
    """AB54: OpenAI takes reasoning before the function call it led to."""

    def blocks_sent(self, engine: Engine, blocks: list[Message], *ids: str) -> list[Message]:
        caller = {"role": "assistant", "content": blocks}
        sent: list[Message] = assembled(engine, caller, *map(result, ids))[0]["content"]
        return sent

    @pytest.mark.parametrize("kind", ["function_call", "functionCall"])
    def test_it_is_moved_before_the_one_call(self, engine: Engine, kind: str) -> None:
        one = function_call("F") | {"type": kind}
        if kind == "functionCall":
            one["id"] = one.pop("call_id")
        assert self.blocks_sent(engine, [one, THOUGHT], "F") == [THOUGHT, one]

    def test_between_two_calls_it_stays(self, engine: Engine) -> None:
        blocks = [function_call("F"), THOUGHT, function_call("G"), THOUGHT]
        assert self.blocks_sent(engine, blocks, "F", "G") == blocks

    def test_beside_text_it_stays(self, engine: Engine) -> None:
        blocks = [function_call("F"), THOUGHT, {"type": "text", "text": "so I looked"}]
        assert self.blocks_sent(engine, blocks, "F") == blocks


def test_a_call_repeated_before_it_was_answered_is_one_call(engine: Engine) -> None:
    messages = assembled(engine, call("X"), call("X", "Y"), result("X"), result("Y"))
    assert outline(messages) == ["call X", "result X", "call Y", "result Y"]


def test_a_message_that_only_repeats_an_open_call_is_left_out(engine: Engine) -> None:
    again = call("X")
    again["content"].insert(0, {"type": "thinking", "thinking": "once more"})
    messages = assembled(engine, call("X"), again, result("X"))
    assert outline(messages) == ["call X", "result X"]


def test_a_call_item_repeated_before_it_was_answered_is_left_out(engine: Engine) -> None:
    output = {"type": "function_call_output", "call_id": "F", "output": "found"}
    messages = assembled(engine, function_call("F"), function_call("F"), output)
    assert messages == [function_call("F"), output]


def test_an_id_used_again_after_its_answer_is_renamed_with_its_result(engine: Engine) -> None:
    messages = assembled(engine, call("X"), result("X", "one"), call("X"), result("X", "two"))
    assert outline(messages) == ["call X", "result X", "call X_4", "result X_4"]


@pytest.mark.parametrize("key", ["stopReason", "stop_reason"])
def test_calls_of_a_turn_that_was_cut_off_are_left_out(engine: Engine, key: str) -> None:
    aborted = call("X", text="let me see", **{key: "aborted"})
    messages = assembled(engine, aborted, user("go on"))
    assert outline(messages) == ["let me see", "go on"]


@pytest.mark.parametrize("form", ["openai", "responses", "anthropic"])
def test_calls_of_a_turn_that_was_cut_off_are_left_out_in_every_form(
    engine: Engine, form: Any
) -> None:
    aborted = call("X", text="let me see", stopReason="aborted")
    engine.ingest([user("begin"), aborted, user("again"), call("X"), result("X")])
    messages = engine.assemble(token_budget=100_000, format=form).messages
    assert MISSING_RESULT not in str(messages)
    assert str(messages).count("'look'") == 1


def test_a_call_made_again_after_a_cut_off_turn_keeps_its_result(engine: Engine) -> None:
    messages = assembled(engine, call("X", stopReason="error"), call("X"), result("X"))
    assert outline(messages) == ["call X", "result X"]


def test_an_answered_call_of_a_turn_that_was_cut_off_stays(engine: Engine) -> None:
    messages = assembled(engine, call("A", "B", stopReason="aborted"), result("A"))
    assert outline(messages) == ["call A", "result A"]


def test_a_result_without_a_call_gets_one_that_says_so(engine: Engine) -> None:
    messages = assembled(engine, result("lost"))
    assert outline(messages) == [f"{MISSING_CALL} call lost", "result lost"]


def test_a_result_without_an_id_becomes_text_of_the_assistant(engine: Engine) -> None:
    nameless = {"role": "toolResult", "content": [{"type": "text", "text": "done"}]}
    (message,) = assembled(engine, nameless)
    assert message == {"role": "assistant", "content": [{"type": "text", "text": "done"}]}


def test_calls_and_results_without_ids_pair_in_order_and_get_ids(engine: Engine) -> None:
    look = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = {"role": "assistant", "content": "two calls", "tool_calls": [look, look]}
    one, two = ({"role": "tool", "content": text} for text in ("one", "two"))
    made, *answers = assembled(engine, asked, one, two)
    ids = [made_call["id"] for made_call in made["tool_calls"]]
    assert [(answer["tool_call_id"], answer["content"]) for answer in answers] == [
        (ids[0], "one"),
        (ids[1], "two"),
    ]


def test_a_conversation_that_opens_with_the_assistant_gets_a_user_message(engine: Engine) -> None:
    engine.ingest([{"role": "assistant", "content": "hello"}])
    first = engine.assemble(token_budget=1000).messages[0]
    assert first == {"role": "user", "content": OPENS_WITH_ASSISTANT}


def test_growth_leaves_what_was_paired_before_as_it_was(engine: Engine) -> None:
    engine.ingest([result("X"), call("X", text="now"), user("go on")])
    before = engine.assemble(token_budget=100_000).messages
    engine.ingest([user("and on")])
    after = engine.assemble(token_budget=100_000).messages
    assert after == [*before, user("and on")]


class TestAnthropicShape:
    """Results are blocks of user messages, several in one, and text may stand beside them."""

    @staticmethod
    def call(*ids: str) -> Message:
        blocks = [{"type": "tool_use", "id": i, "name": "look", "input": {}} for i in ids]
        return {"role": "assistant", "content": blocks}

    @staticmethod
    def answer(*ids: str, text: str = "") -> Message:
        blocks = [{"type": "tool_result", "tool_use_id": i, "content": "found"} for i in ids]
        said = [{"type": "text", "text": text}] if text else []
        return {"role": "user", "content": [*blocks, *said]}

    def test_text_beside_a_result_stays_with_it_when_it_follows_its_call(
        self, engine: Engine
    ) -> None:
        exchange = [self.call("A"), self.answer("A", text="thanks")]
        assert assembled(engine, *exchange) == exchange

    def test_text_beside_a_late_result_stays_where_it_was_said(self, engine: Engine) -> None:
        messages = assembled(engine, self.call("A"), user("wait"), self.answer("A", text="thanks"))
        assert messages == [
            self.call("A"),
            self.answer("A"),
            user("wait"),
            {"role": "user", "content": [{"type": "text", "text": "thanks"}]},
        ]

    def test_results_of_two_turns_in_one_message_are_taken_apart(self, engine: Engine) -> None:
        messages = assembled(engine, self.call("A"), self.call("B"), self.answer("A", "B"))
        assert messages == [self.call("A"), self.answer("A"), self.call("B"), self.answer("B")]

    def test_a_missing_result_joins_the_message_of_the_others(self, engine: Engine) -> None:
        _, answers = assembled(engine, self.call("A", "B"), self.answer("A"))
        assert [block["tool_use_id"] for block in answers["content"]] == ["A", "B"]


def test_a_responses_call_gets_a_responses_stand_in(engine: Engine) -> None:
    item = {"type": "function_call", "call_id": "A", "name": "look", "arguments": "{}"}
    messages = assembled(engine, item)
    assert messages == [
        item,
        {"type": "function_call_output", "call_id": "A", "output": MISSING_RESULT},
    ]


def test_a_chat_call_gets_a_chat_stand_in(engine: Engine) -> None:
    function = {"name": "look", "arguments": "{}"}
    made = [{"id": "A", "type": "function", "function": function}]
    asked = {"role": "assistant", "content": None, "tool_calls": made}
    messages = assembled(engine, asked)
    assert messages == [
        asked,
        {"role": "tool", "tool_call_id": "A", "content": MISSING_RESULT},
    ]
