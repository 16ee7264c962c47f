"""Rules Z6 and Z8 to Z10: where the text of an answer is found, and what is no text (cases 118, 121
to 123)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.errors import SummarizerError, SummarizerOutageError
from lcm_fast.summarize.models.answers import UnusableAnswerError, read_answer

SHAPES: dict[str, Any] = {
    "a text": "S",
    "a completion": {"choices": [{"message": {"content": "S"}}]},
    "blocks in a completion": {"choices": [{"message": {"content": [{"text": "S"}]}}]},
    "an older completion": {"choices": [{"text": "S"}]},
    "a streamed piece": {"choices": [{"delta": {"content": "S"}}]},
    "a list of blocks": {"content": [{"type": "text", "text": "S"}]},
    "a bare list": [{"type": "text", "text": "S"}],
    "a wrapped text": {"content": [{"type": "text", "text": {"value": "S"}}]},
    "a list of texts": {"content": ["S"]},
    "output_text": {"output_text": "S"},
    "a wrapped output_text": {"output_text": [{"value": "S"}]},
    "nested output": {
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Let me think"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "S"}]},
        ]
    },
    "a message": {"message": {"role": "assistant", "content": "S"}},
    "a response": {"response": "S"},
    "a summary": {"content": [], "summary": "S"},
    "an empty list beside it": {"content": [], "output": [{"content": [{"text": "S"}]}]},
    "reasoning beside it": {
        "choices": [{"message": {"reasoning_content": "Let me think", "content": "S"}}]
    },
    "a thinking block before it": {
        "content": [{"type": "thinking", "thinking": "Let me think"}, {"type": "text", "text": "S"}]
    },
    "a raw type of reasoning before it": {
        "content": [{"rawType": "reasoning", "text": "Let me think"}, {"text": "S"}]
    },
    "reasoning in its text": {"content": "<think>Let me think</think>\nS"},
    "the same twice": {"output_text": "S", "output": [{"content": [{"text": "S"}]}]},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_text_is_found(shape: Any) -> None:
    assert read_answer(shape, "m").text == "S"


def test_several_texts_are_joined_by_lines() -> None:
    assert read_answer({"content": [{"text": "One. "}, {"text": "Two."}]}, "m").text == "One.\nTwo."


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("", "empty"),
        ([], "empty"),
        (None, "empty"),
        ({"content": []}, "empty"),
        ({"choices": []}, "empty"),
        ({"choices": [{"message": {"content": " \n"}}]}, "empty"),
        ({"choices": [{"message": {"reasoning": "Hm", "content": ""}}]}, "reasoning_only"),
        ({"choices": [{"message": {"reasoning_content": "Hm"}}]}, "reasoning_only"),
        ({"content": [{"type": "thinking", "thinking": "Hm"}, {"text": ""}]}, "reasoning_only"),
        ({"content": [{"type": "redacted_thinking", "data": "x"}]}, "reasoning_only"),
        ({"content": "<think>Hm</think>"}, "reasoning_only"),
        ({"content": "<think>Hm"}, "reasoning_only"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}, "truncated"),
        (
            {"content": [{"type": "thinking", "thinking": "Hm"}], "stop_reason": "max_tokens"},
            "truncated",
        ),
        ({"choices": [{"message": {"content": None, "refusal": "I cannot."}}]}, "refused"),
        ({"content": [{"type": "refusal", "refusal": "I cannot."}]}, "refused"),
        (
            {"choices": [{"message": {"content": "S"}, "finish_reason": "content_filter"}]},
            "refused",
        ),
        ({"content": [{"text": "S"}], "stop_reason": "refusal"}, "refused"),
    ],
)
def test_what_is_no_text_is_told_by_its_code(answer: Any, code: str) -> None:
    with pytest.raises(UnusableAnswerError, match=r"^openai/gpt: ") as caught:
        read_answer(answer, "openai/gpt")
    assert caught.value.code == code


def test_what_is_no_text_tells_its_cost() -> None:
    with pytest.raises(UnusableAnswerError) as caught:
        read_answer({"content": [], "usage": {"input_tokens": 9, "output_tokens": 4}}, "m")
    assert (caught.value.input_tokens, caught.value.output_tokens) == (9, 4)


@pytest.mark.parametrize(
    "ending",
    [
        {"choices": [{"text": "S", "finish_reason": "length"}]},
        {"content": "S", "stop_reason": "max_tokens"},
        {"content": "S", "stop_reason": "model_context_window_exceeded"},
        {"output_text": "S", "status": "incomplete"},
        {"output_text": "S", "incomplete_details": {"reason": "max_output_tokens"}},
        {"output": [{"content": [{"text": "S"}], "status": "incomplete"}]},
        {"message": {"content": "S"}, "done_reason": "length"},
        {"choices": [{"text": "S", "finish_reason": "model_length"}]},
    ],
)
def test_an_answer_that_was_cut_off_says_so(ending: Any) -> None:
    answer = read_answer(ending, "m")
    assert (answer.text, answer.is_incomplete) == ("S", True)


def test_a_whole_answer_is_not_cut_off() -> None:
    assert not read_answer({"content": "S", "stop_reason": "end_turn"}, "m").is_incomplete


@pytest.mark.parametrize(
    "failure",
    [
        {"choices": [{"text": "S", "finish_reason": "error"}]},
        {"output_text": "S", "status": "failed"},
        {"output_text": "S", "status": "cancelled"},
        {"error": {"message": "crashed", "code": "server_error"}},
    ],
)
def test_a_failure_told_in_a_success_is_an_outage(failure: Any) -> None:
    with pytest.raises(SummarizerOutageError, match="reported a failure"):
        read_answer(failure, "m")


def test_a_null_error_beside_the_answer_is_no_error() -> None:
    assert read_answer({"error": None, "output_text": "S"}, "m").text == "S"


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, (5, 2)),
        ({"input_tokens": 5, "output_tokens": 2}, (5, 2)),
        ({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 2}, (95, 2)),
        ({"input_tokens": "5"}, (None, None)),
        (None, (None, None)),
    ],
)
def test_the_cost_is_read_in_every_spelling(
    usage: Any, counts: tuple[int | None, int | None]
) -> None:
    answer = read_answer({"content": "S", "usage": usage}, "m")
    assert (answer.input_tokens, answer.output_tokens) == counts


def test_an_answer_without_a_model_is_of_the_one_that_was_asked() -> None:
    assert read_answer({"content": "S", "model": ""}, "ollama/llama3").model == "ollama/llama3"


def test_half_a_character_does_not_make_the_text_invalid() -> None:
    assert read_answer({"content": "cut \ud83d"}, "m").text == "cut ?"


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
keys = st.sampled_from(
    ["content", "text", "choices", "message", "error", "status", "type", "usage"]
)
answers = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4)
)


@given(answers)
def test_whatever_is_answered_is_a_text_or_an_error_that_names_the_model(answer: Any) -> None:
    try:
        told = f"m: {read_answer(answer, 'm').text.strip()}"
    except SummarizerError as error:
        told = error.detail
    assert len(told) > len("m: ")
    assert told.startswith("m: ")
