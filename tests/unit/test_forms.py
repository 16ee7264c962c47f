"""Messages of any shape in the form of any API, checked by the types of the SDKs."""

from __future__ import annotations

import base64
import functools
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import make_engine, said
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.engine import Engine
from lcm_fast.errors import ConfigError
from lcm_fast.transcripts import shapes
from lcm_fast.transcripts.forms import FORMS, in_form

PIXEL = base64.b64encode(bytes(range(90))).decode()
ADDRESS = f"data:image/png;base64,{PIXEL}"
LONG_ID = "call_" + "x" * 90
ARGUMENTS = {"path": "a.py", "n": 3}

# One turn with everything in it, in each shape.
TURNS: dict[str, list[dict[str, Any]]] = {
    "openclaw": [
        {
            "role": "user",
            "timestamp": 1_700_000_000_000,
            "content": [
                {"type": "text", "text": "look at this"},
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            ],
        },
        {
            "role": "assistant",
            "provider": "anthropic",
            "content": [
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"},
                {"type": "text", "text": "reading"},
                {"type": "toolCall", "id": "toolu|1:2", "name": "read", "arguments": ARGUMENTS},
                {"type": "toolCall", "id": LONG_ID, "name": "ls", "arguments": {}},
            ],
        },
        {
            "role": "toolResult",
            "toolCallId": "toolu|1:2",
            "toolName": "read",
            "isError": True,
            "content": [{"type": "text", "text": "no such file"}],
        },
        {
            "role": "toolResult",
            "toolCallId": LONG_ID,
            "toolName": "ls",
            "content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}],
        },
    ],
    "openai": [
        {
            "role": "user",
            "name": "mira",
            "content": [
                {"type": "text", "text": "look at this"},
                {"type": "image_url", "image_url": {"url": ADDRESS}},
            ],
        },
        {
            "role": "assistant",
            "content": "reading",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "read", "arguments": json.dumps(ARGUMENTS)},
                },
                {
                    "id": LONG_ID,
                    "type": "function",
                    "function": {"name": "ls", "arguments": "not json"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "no such file"},
        {"role": "tool", "tool_call_id": LONG_ID, "content": ""},
    ],
    "responses": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look at this"},
                {"type": "input_image", "image_url": ADDRESS, "detail": "auto"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "reading"}]},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "read",
            "arguments": json.dumps(ARGUMENTS),
        },
        {"type": "function_call_output", "call_id": "c1", "output": "no such file"},
    ],
    "anthropic": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look at this"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "text", "text": "reading"},
                {"type": "tool_use", "id": "t1", "name": "read", "input": ARGUMENTS},
                {"type": "tool_use", "id": "t2", "name": "ls", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": "no such file",
                    "is_error": True,
                },
                {"type": "tool_result", "tool_use_id": "t2", "content": []},
                {"type": "text", "text": "go on"},
            ],
        },
    ],
}


@functools.cache
def adapter(form: str) -> Any:
    """Return what checks messages of a form by its SDK's own types."""
    pydantic = pytest.importorskip("pydantic")
    if form == "anthropic":
        types = pytest.importorskip("anthropic.types")
        return pydantic.TypeAdapter(list[types.MessageParam])
    if form == "openai":
        types = pytest.importorskip("openai.types.chat")
        return pydantic.TypeAdapter(list[types.ChatCompletionMessageParam])
    types = pytest.importorskip("openai.types.responses")
    return pydantic.TypeAdapter(list[types.ResponseInputItemParam])


ALLOWED_KEYS = {
    "openai": {"role", "content", "tool_calls", "tool_call_id"},
    "responses": {
        *("type", "role", "content", "call_id", "name", "arguments", "output"),
        *("id", "summary", "encrypted_content"),
    },
    "anthropic": {"role", "content"},
}


def check(messages: list[dict[str, Any]], form: str) -> None:
    """Fail unless the API of the form would take the messages."""
    if form == "openclaw":
        return
    adapter(form).validate_python(messages)
    assert set().union(*messages) <= ALLOWED_KEYS[form]


def converted(source: str, form: Any) -> list[dict[str, Any]]:
    return [made for message in TURNS[source] for made in in_form(message, form)]


PAIRS = list(itertools.product(TURNS, FORMS))


@pytest.mark.parametrize(("source", "form"), PAIRS)
def test_the_sdk_takes_every_message(source: str, form: str) -> None:
    check(converted(source, form), form)


@pytest.mark.parametrize(("source", "form"), PAIRS)
def test_no_text_is_lost(source: str, form: str) -> None:
    written = json.dumps(converted(source, form))
    assert all(text in written for text in ("look at this", "reading", "no such file"))


@pytest.mark.parametrize(("source", "form"), PAIRS)
def test_calls_keep_their_names_and_arguments(source: str, form: str) -> None:
    calls = [call for one in converted(source, form) for call in shapes.call_arguments(one)]
    name, arguments = calls[0]
    assert name == "read"
    assert (json.loads(arguments) if isinstance(arguments, str) else arguments) == ARGUMENTS


@pytest.mark.parametrize(("source", "form"), PAIRS)
def test_results_answer_the_calls_they_answered(source: str, form: str) -> None:
    messages = converted(source, form)
    called = [call.call_id for one in messages for call in shapes.tool_calls(one)]
    answered = [answer for one in messages for answer in shapes.tool_answers(one)]
    assert called == answered


@pytest.mark.parametrize(("source", "form"), PAIRS)
def test_what_is_in_the_form_already_stays_as_it_is(source: str, form: Any) -> None:
    once = converted(source, form)
    assert [made for message in once for made in in_form(message, form)] == once


@pytest.mark.parametrize("source", TURNS)
@pytest.mark.parametrize("form", ["openclaw", "responses", "anthropic"])
def test_pictures_stay_pictures(source: str, form: Any) -> None:
    assert PIXEL in json.dumps(in_form(TURNS[source][0], form))


def test_signed_thinking_stays_with_its_api() -> None:
    signed = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert in_form(TURNS["openclaw"][1], "anthropic")[0]["content"][0] == signed


@pytest.mark.parametrize("form", ["openai", "responses"])
def test_thinking_of_another_api_is_left_out(form: Any) -> None:
    assert "hm" not in json.dumps(in_form(TURNS["anthropic"][1], form)).split('"')


def test_a_reasoning_item_is_found_in_its_signature() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    block = {"type": "thinking", "thinking": "hm", "thinkingSignature": json.dumps(item)}
    assert in_form({"role": "assistant", "content": [block]}, "responses") == [item]


def test_an_error_without_a_flag_is_said_in_words() -> None:
    assert in_form(TURNS["openclaw"][2], "openai")[0]["content"] == "[error] no such file"


def test_ids_are_valid_for_the_api() -> None:
    ids = [call.call_id for call in shapes.tool_calls(converted("openclaw", "anthropic")[1])]
    assert all(one.replace("_", "").replace("-", "").isalnum() and len(one) <= 64 for one in ids)
    chat = [call.call_id for call in shapes.tool_calls(converted("openclaw", "openai")[1])]
    assert max(map(len, chat)) <= 40


@pytest.mark.parametrize("form", FORMS)
def test_a_block_that_no_form_knows_is_shown_as_its_json(form: Any) -> None:
    odd = {"type": "video", "frames": [1, 2]}
    assert "frames" in json.dumps(in_form({"role": "user", "content": [odd]}, form))


@pytest.mark.parametrize("form", FORMS)
def test_nothing_to_say_is_no_message(form: Any) -> None:
    assert in_form({"role": "assistant", "content": [{"type": "text", "text": " "}]}, form) == (
        [{"role": "assistant", "content": [{"type": "text", "text": " "}]}]
        if form == "openclaw"
        else []
    )


words = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), words),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(FORMS),
    st.sampled_from(FORMS),
    words,
    st.dictionaries(words, json_values, max_size=3),
)
def test_there_and_back_keeps_what_is_said_and_called(
    there: Any, back: Any, text: str, arguments: dict[str, Any]
) -> None:
    call = {"type": "toolCall", "id": "c1", "name": "do", "arguments": arguments}
    message = {"role": "assistant", "content": [{"type": "text", "text": text}, call]}
    gone = in_form(message, there)
    returned = [made for one in gone for made in in_form(one, back)]
    (found,) = [pair for one in returned for pair in shapes.call_arguments(one)]
    raw = json.loads(found[1]) if isinstance(found[1], str) else found[1]
    assert (found[0], raw) == ("do", arguments)
    assert text in "".join(shapes.content_of(one) for one in returned if shapes.content_of(one))


class TestAssembly:
    def talk(self, engine: Engine) -> None:
        engine.ingest([{"role": "system", "content": "be brief"}])
        for turn in TURNS.values():
            engine.ingest(turn)
        engine.ingest([said("thank you")])

    @pytest.mark.parametrize("form", FORMS)
    def test_an_output_is_what_the_api_takes(self, engine: Engine, form: Any) -> None:
        self.talk(engine)
        assembly = engine.assemble(token_budget=50_000, format=form)
        check(assembly.messages, form)
        called = [call.call_id for one in assembly.messages for call in shapes.tool_calls(one)]
        answered = [answer for one in assembly.messages for answer in shapes.tool_answers(one)]
        assert called == answered
        assert assembly.stats.placeholders == 0

    def test_all_results_of_a_turn_are_in_the_message_behind_it(self, engine: Engine) -> None:
        engine.ingest([said("go"), *TURNS["openclaw"][1:], said("thank you")])
        messages = engine.assemble(token_budget=50_000, format="anthropic").messages
        assert [len(one["content"]) for one in messages[2:3]] == [2]

    def test_the_system_prompt_stands_beside_the_messages(self, engine: Engine) -> None:
        self.talk(engine)
        assembly = engine.assemble(token_budget=50_000, format="anthropic")
        assert assembly.system == "be brief"
        assert {one["role"] for one in assembly.messages} == {"user", "assistant"}
        assert assembly.messages[0]["role"] == "user"

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("budget", [300, 600, 1200])
    def test_the_budget_holds_in_every_form(self, engine: Engine, form: Any, budget: int) -> None:
        self.talk(engine)
        assembly = engine.assemble(token_budget=budget, format=form)
        assert assembly.estimated_tokens <= budget
        check(assembly.messages, form)

    @pytest.mark.parametrize("form", FORMS)
    def test_a_second_assembly_is_the_first(self, engine: Engine, form: Any) -> None:
        self.talk(engine)
        outputs = [engine.assemble(token_budget=50_000, format=form) for _ in range(3)]
        assert outputs[0].messages == outputs[1].messages == outputs[2].messages
        assert outputs[1].prefix.stable_tokens == outputs[2].prefix.stable_tokens > 0

    @pytest.mark.parametrize("form", FORMS)
    def test_live_messages_are_sent_in_the_form(self, engine: Engine, form: Any) -> None:
        live = [said("go"), *TURNS["anthropic"][1:]]
        assembly = engine.assemble(token_budget=50_000, live_messages=live, format=form)
        check(assembly.messages, form)
        assert "no such file" in json.dumps(assembly.messages)

    def test_an_unknown_form_is_named(self, engine: Engine) -> None:
        with pytest.raises(ConfigError, match="one of: openclaw, openai, responses, anthropic"):
            engine.assemble(token_budget=1000, format="gemini")  # type: ignore[arg-type]


def messages_of_claude_code(path: Path) -> list[dict[str, Any]]:
    """Return the messages of the lines that hold one object each."""
    messages = []
    for line in path.read_text().split("\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("type") in ("user", "assistant"):
            messages.append(entry["message"])
    return messages


@pytest.mark.corpus
def test_real_sessions_are_taken_in_every_form(corpus: Path, tmp_path: Path) -> None:
    folders = ("openclaw-v3", "openclaw-v3-long", "pi-sessions-v1", "claude-code")
    paths = sorted(path for folder in folders for path in (corpus / folder).glob("*.jsonl"))
    assert paths
    for number, path in enumerate(paths):
        with make_engine(tmp_path / f"{number}.db") as engine:
            if path.parent.name == "claude-code":
                engine.ingest(messages_of_claude_code(path))
            else:
                engine.bootstrap(path, session_key="default")
            outputs = {form: engine.assemble(token_budget=30_000, format=form) for form in FORMS}
        for form, assembly in outputs.items():
            check(assembly.messages, form)
            assert assembly.estimated_tokens <= 30_000
            called = [call.call_id for one in assembly.messages for call in shapes.tool_calls(one)]
            answers = [answer for one in assembly.messages for answer in shapes.tool_answers(one)]
            assert sorted(called) == sorted(answers)
