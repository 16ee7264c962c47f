"""What holds of payloads and summaries whatever the message."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from properties.conversations import HISTORIES, History

from lcm_fast.ingest.exploration import MAX_SUMMARY_CHARS, explore
from lcm_fast.ingest.payloads import reference_ids, shown_form
from lcm_fast.kernels import estimate_tokens
from lcm_fast.transcripts import shapes

ROLES = ["user", "assistant", "system", "tool", "toolResult", "bashExecution", "custom", None, 7]
TYPES = ["text", "image", "image_url", "tool_result", "toolCall", "thinking", "vendor", None, 7]
KEYS = [
    "type",
    "text",
    "content",
    "output",
    "data",
    "source",
    "image_url",
    "url",
    "id",
    "name",
    "x",
]
NAMES = ["a.json", "a.jsonl", "a.csv", "a.tsv", "a.xml", "a.yaml", "a.py", "a.ts", "a.c", "a.log"]
SYNTAX = "{}[]<>\"'\\,:;#=()/-\n\r\t 0aA\ud800é好😀"

texts = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from(SYNTAX), max_size=200),
    st.text(st.sampled_from(SYNTAX), min_size=1, max_size=20).map(lambda text: text * 60),
    st.sampled_from(
        ["iVBORw0KGgo" * 60, "<file name=a>" + "x " * 90 + "</file>", "file_" + "0" * 16]
    ),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
        st.builds(
            lambda kind, rest: {**rest, "type": kind},
            st.sampled_from(TYPES),
            st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
        ),
    ),
    max_leaves=12,
)
bodies = st.builds(
    lambda role, rest: {**rest, "role": role},
    st.sampled_from(ROLES),
    st.dictionaries(
        st.sampled_from(["content", "output", "command", "type", "toolName", "tool_call_id"]),
        values,
        max_size=4,
    ),
)


@settings(max_examples=300, deadline=None)
@given(bodies, st.integers(-1, 60), st.booleans())
def test_no_message_is_changed_or_refused_and_its_form_is_always_the_same(
    body: dict[str, Any], threshold: int, replace_images: bool
) -> None:
    before = copy.deepcopy(body)
    first = shown_form(body, threshold, estimate_tokens, replace_images=replace_images)
    assert body == before
    assert shown_form(before, threshold, estimate_tokens, replace_images=replace_images) == first


@settings(max_examples=150, deadline=None)
@given(HISTORIES, st.sampled_from([60, 400, 2_000]))
def test_a_shown_form_keeps_role_calls_and_answers(history: History, threshold: int) -> None:
    for body in history.messages:
        shown = shown_form(body, threshold, estimate_tokens, replace_images=True).body
        assert shapes.role_of(shown) == shapes.role_of(body)
        assert shapes.tool_calls(shown) == shapes.tool_calls(body)
        assert shapes.tool_answers(shown) == shapes.tool_answers(body)


@settings(max_examples=150, deadline=None)
@given(HISTORIES, st.sampled_from([400, 2_000]))
def test_every_payload_is_named_where_it_was_and_holds_what_stood_there(
    history: History, threshold: int
) -> None:
    for body in history.messages:
        form = shown_form(body, threshold, estimate_tokens, replace_images=True)
        texts_shown = list(strings_in(form.body))
        named = [name for text in texts_shown for name in reference_ids(text)]
        assert {payload.file_id for payload in form.payloads} <= set(named)
        said = well_formed("\n".join(strings_in(body)))
        for payload in form.payloads:
            if payload.mime_type == "text/plain":
                assert payload.content.decode() in said


@settings(max_examples=150, deadline=None)
@given(HISTORIES, st.sampled_from([60, 400, 2_000]))
def test_a_shown_form_has_nothing_left_to_replace(history: History, threshold: int) -> None:
    for body in history.messages:
        once = shown_form(body, threshold, estimate_tokens, replace_images=True).body
        again = shown_form(once, threshold, estimate_tokens, replace_images=True)
        assert again == (once, ())


@settings(max_examples=400, deadline=None)
@given(texts, st.sampled_from([*NAMES, "a.md", "a.txt", None]))
def test_every_text_has_a_bounded_summary_that_depends_on_it_alone(
    text: str, name: str | None
) -> None:
    summary = explore(text, name, None)
    assert 0 < len(summary) <= MAX_SUMMARY_CHARS
    assert explore(text, name, None) == summary


@settings(max_examples=100, deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), st.lists, max_leaves=30))
def test_whatever_is_json_is_summed_up_as_json(value: Any) -> None:
    assert "Top-level type: " in explore(json.dumps(value), "a.json", None)


def strings_in(value: Any) -> list[str]:
    """Return all texts in a value, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings_in(item)]
    return [text for item in value for text in strings_in(item)] if isinstance(value, list) else []


def well_formed(text: str) -> str:
    """Return a text with its lone surrogates replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
