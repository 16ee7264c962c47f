"""What the known message shapes mean: roles, calls, answers, what a model reads."""

from __future__ import annotations

from typing import Any

import pytest

from lcm_fast.transcripts import shapes
from lcm_fast.types import ToolCall

OPENCLAW_CALL = {"type": "toolCall", "id": "c1", "name": "exec", "arguments": {"cmd": "ls"}}
ANTHROPIC_CALL = {"type": "tool_use", "id": "c1", "name": "exec", "input": {"cmd": "ls"}}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "exec", "arguments": "{}"}}
RESPONSES_CALL = {"type": "function_call", "call_id": "c1", "name": "exec", "arguments": "{}"}
ANTHROPIC_RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "out"}

CALLING = {
    "openclaw": {"role": "assistant", "content": [OPENCLAW_CALL]},
    "anthropic": {"role": "assistant", "content": [ANTHROPIC_CALL]},
    "openai": {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
    "responses": RESPONSES_CALL,
}
ANSWERING = {
    "openclaw": {"role": "toolResult", "toolCallId": "c1", "content": [{"type": "text"}]},
    "anthropic": {"role": "user", "content": [ANTHROPIC_RESULT]},
    "openai": {"role": "tool", "tool_call_id": "c1", "content": "out"},
    "responses": {"type": "function_call_output", "call_id": "c1", "output": "out"},
}


@pytest.mark.parametrize("shape", CALLING)
def test_a_call_is_found_in_every_shape(shape: str) -> None:
    assert shapes.tool_calls(CALLING[shape]) == (ToolCall("c1", "exec"),)


@pytest.mark.parametrize("shape", CALLING)
def test_an_answer_is_found_in_every_shape(shape: str) -> None:
    assert shapes.tool_answers(ANSWERING[shape]) == ("c1",)


@pytest.mark.parametrize("shape", CALLING)
def test_a_call_comes_from_the_assistant_and_an_answer_from_the_tool(shape: str) -> None:
    roles = shapes.role_of(CALLING[shape]), shapes.role_of(ANSWERING[shape])
    assert roles == ("assistant", "tool")


@pytest.mark.parametrize("shape", CALLING)
def test_the_shape_of_a_partner_is_that_of_the_message(shape: str) -> None:
    assert {shapes.shape_of(CALLING[shape]), shapes.shape_of(ANSWERING[shape])} == {shape}


def test_results_beside_text_stay_a_user_message() -> None:
    content = [ANTHROPIC_RESULT, {"type": "text", "text": "and now?"}]
    assert shapes.role_of({"role": "user", "content": content}) == "user"


@pytest.mark.parametrize("key", ["signature", "partialJson", "cache_control", "encrypted_content"])
def test_a_model_reads_nothing_of_fields_kept_for_hosts(key: str) -> None:
    block = {"type": "text", "text": "hi", key: "x" * 99}
    face, _ = shapes.model_face({"role": "assistant", "content": [block]})
    assert face["content"] == [{"type": "text", "text": "hi"}]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "iVBORw0KGgo1" * 400},
        {"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo1" * 400}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A1" * 2100}},
        {"type": "tool_result", "content": [{"type": "image", "data": "iVBORw0KGgo1" * 400}]},
    ],
    ids=["plain", "source", "url", "in a result"],
)
def test_a_binary_payload_is_counted_once_and_not_by_its_length(block: dict[str, Any]) -> None:
    face, tokens = shapes.model_face({"role": "user", "content": [block]})
    assert tokens in (1445, 1600)
    assert len(shapes.encode_face(face)) < 200


def test_long_prose_under_a_payload_key_is_prose() -> None:
    block = {"type": "note", "data": "words of a person, in sentences. " * 200}
    assert shapes.model_face({"role": "user", "content": [block]})[1] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": " \n"},
        {"role": "assistant", "content": [{"type": "text", "text": " "}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
    ],
)
def test_a_message_with_nothing_to_say_is_empty(body: dict[str, Any]) -> None:
    assert shapes.is_empty(body)


@pytest.mark.parametrize(
    "body",
    [
        *CALLING.values(),
        *ANSWERING.values(),
        {"role": "assistant", "content": None, "refusal": "I will not"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
        {"role": "assistant", "content": [], "reasoning_content": "hm"},
        {"role": "user", "content": [{"type": "image", "data": "AA"}]},
        {"role": "bashExecution", "command": "ls", "output": ""},
    ],
    ids=repr,
)
def test_a_message_a_model_is_sent_something_of_is_not_empty(body: dict[str, Any]) -> None:
    assert not shapes.is_empty(body)


def test_a_refusal_is_the_text_of_a_message_without_content() -> None:
    body = {"role": "assistant", "content": None, "refusal": "I will not"}
    assert shapes.content_of(body) == "I will not"


@pytest.mark.parametrize("odd", [["text"], {"a": 1}, 7, None, True])
def test_a_type_that_is_no_string_is_no_known_type(odd: Any) -> None:
    body = {"role": "user", "type": odd, "content": [{"type": odd, "text": "hi"}]}
    face, _ = shapes.model_face(body)
    found = (shapes.tool_calls(body), shapes.tool_answers(body), shapes.content_of(body))
    assert (found, shapes.role_of(body), face["content"]) == (
        ((), (), "hi"),
        "user",
        body["content"],
    )


def test_calls_that_are_no_list_are_no_calls() -> None:
    body = {"role": "assistant", "content": "hi", "tool_calls": 3}
    assert (shapes.tool_calls(body), shapes.call_arguments(body)) == ((), [])


def test_the_wire_form_leaves_out_what_hosts_show_and_changes_nothing_else() -> None:
    body = {
        "role": "toolResult",
        "toolCallId": "c1",
        "details": {"diff": "x"},
        "content": [{"type": "text", "text": "hi", "partialJson": "{"}],
    }
    content = [{"type": "text", "text": "hi"}]
    assert shapes.wire_form(body) == {
        "role": "toolResult",
        "toolCallId": "c1",
        "content": content,
    }


def test_reasoning_items_with_other_summaries_read_differently() -> None:
    items = [{"type": "reasoning", "summary": [{"text": word}]} for word in ("one", "two")]
    faces = [shapes.encode_face(shapes.model_face(item)[0]) for item in items]
    assert faces[0] != faces[1]


@pytest.mark.parametrize(
    "body",
    [
        {"type": "function_call", "name": "exec", "arguments": "{}"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "exec"}}]},
    ],
)
def test_a_call_without_an_id_is_something_to_send(body: dict[str, Any]) -> None:
    assert not shapes.is_empty(body)
