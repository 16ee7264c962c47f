"""What holds of faces of messages whatever the text."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lcm_fast.ingest.event_keys import stable_event_key
from lcm_fast.ingest.likeness import identity_text, is_revision
from lcm_fast.ingest.preamble import (
    canonical_content,
    is_decorated_face,
    matches_body,
    reduced_body,
)

INFO = 'Conversation info (untrusted metadata):\n```json\n{"chat_id": "c"}\n```'
MASKS = ["***", "*****", "••••", "[REDACTED]", "[redacted: a key]", "<redacted>", "…***"]
ROLES = ["user", "assistant", "system", "tool", "toolResult", "custom", None, 7]

words = st.text(st.sampled_from("ab c\n\tE.é好-=[]<>*"), max_size=30)
plain = st.text(st.sampled_from("abcdefg hijk\n=:é好"), min_size=1, max_size=60)
fields = st.dictionaries(
    st.sampled_from(["chat_id", "message_id", "timestamp", "history_count", "Name", "_x", "x  y"]),
    st.one_of(words, st.integers(-1, 3), st.booleans(), st.lists(words, max_size=2)),
    max_size=5,
)
blocks = st.one_of(
    fields.map(
        lambda value: f"Conversation info (untrusted metadata):\n```json\n{json.dumps(value)}\n```"
    ),
    st.fixed_dictionaries({"id": words}).map(
        lambda value: f"Sender (untrusted metadata):\n```json\n{json.dumps(value)}\n```"
    ),
    st.sampled_from(
        [
            'Thread starter (untrusted, for context):\n```json\n{"body": "x"}\n```',
            "Chat history since last reply (untrusted, for context):\n#1 Ann: yes",
            'Chat history since last reply (untrusted, for context):\n```json\n[{"body": ""}]\n```',
            "Delivery: now",
            "[Sun 2026-01-04 12:00 GMT+0] ",
            "[OpenClaw room event]",
            "<relevant-memories>tea</relevant-memories>",
            '<summary id="sum_1">\nold\n</summary>',
            "```",
            "#2 Bo: no",
        ]
    ),
    words,
)
contents = st.lists(
    st.tuples(blocks, st.sampled_from(["", "\n", "\n\n", "\r\n\r\n", "\n\n\n", " "])), max_size=6
).map(lambda parts: "".join(block + between for block, between in parts))

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), words, contents),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "text", "content", "id", "tool_use_id", "arguments", "name"]),
            st.one_of(inner, st.sampled_from(["text", "tool_result", "toolCall", "image"])),
            max_size=4,
        ),
    ),
    max_leaves=8,
)
bodies = st.fixed_dictionaries(
    {"role": st.sampled_from(ROLES)},
    optional={
        "content": values,
        "output": values,
        "tool_calls": values,
        "toolCallId": st.sampled_from(["c1", "c2", 7]),
        "model": st.sampled_from(["m", "delivery-mirror"]),
        "timestamp": st.integers(),
    },
)


def result(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "call_1", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@settings(max_examples=400, deadline=None)
@given(contents)
def test_a_canonical_text_is_its_own_canonical_form(content: str) -> None:
    once = canonical_content("user", content)
    assert canonical_content("user", once) == once


@settings(max_examples=200, deadline=None)
@given(contents, words)
def test_a_body_found_in_a_text_is_its_end(content: str, bare: str) -> None:
    body = reduced_body(content + bare)
    assert body is None or (content + bare).endswith(body)


@settings(max_examples=200, deadline=None)
@given(words, st.sampled_from(["[Sun 2026-01-04 12:00 GMT+0] ", f"{INFO}\n\n"]))
def test_the_words_behind_a_decoration_are_recognised(text: str, decoration: str) -> None:
    bare = f"so: {text}"
    live = decoration + bare
    assert is_decorated_face(live, bare) or matches_body(live, bare)
    assert is_revision(said(bare), said(live)) == "decorated"


@given(words)
def test_the_host_collapsing_spaces_changes_no_identity(text: str) -> None:
    collapsed = " ".join(part for part in text.split(" ") if part)
    assert identity_text("user", text) == identity_text("user", collapsed)


@settings(max_examples=300, deadline=None)
@given(bodies, bodies)
def test_any_two_messages_are_compared_whichever_comes_first(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert is_revision(one, other) == is_revision(other, one)


@settings(max_examples=200, deadline=None)
@given(bodies)
def test_a_message_is_never_a_changed_form_of_itself(body: dict[str, Any]) -> None:
    assert is_revision(body, json.loads(json.dumps(body))) == ""


@settings(max_examples=200, deadline=None)
@given(bodies)
def test_equal_words_are_at_most_a_change_of_metadata(body: dict[str, Any]) -> None:
    assert is_revision(body, {**body, "other": 1}) in ("metadata", None)


@settings(max_examples=200, deadline=None)
@given(bodies)
def test_any_message_can_be_asked_about(body: dict[str, Any]) -> None:
    key = stable_event_key(body)
    assert key is None or key.startswith(("assistant-response:", "tool-result:"))


@st.composite
def masked_texts(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a text, and the same with spans of it masked."""
    pieces = draw(st.lists(plain, min_size=2, max_size=7))
    offset = draw(st.integers(0, 1))
    mask = draw(st.sampled_from(MASKS))
    masked = [mask if n % 2 == offset else piece for n, piece in enumerate(pieces)]
    return "".join(pieces), "".join(masked)


@settings(max_examples=400, deadline=None)
@given(masked_texts())
def test_masking_spans_of_a_result_is_recognised(texts: tuple[str, str]) -> None:
    whole, masked = (result(f"({text})") for text in texts)
    assert is_revision(whole, masked) == "redacted"


@settings(max_examples=400, deadline=None)
@given(masked_texts())
def test_masking_spans_of_a_users_words_is_recognised(texts: tuple[str, str]) -> None:
    whole, masked = (said(f"my key: {text}.") for text in texts)
    assert is_revision(whole, masked) == "redacted"


@settings(max_examples=400, deadline=None)
@given(plain, plain)
def test_unrelated_words_are_different_messages(one: str, other: str) -> None:
    assume(identity_text("user", one) != identity_text("user", other))
    assert is_revision(said(one), said(other)) is None


@settings(max_examples=400, deadline=None)
@given(plain, plain)
def test_unrelated_results_of_one_call_are_different_messages(one: str, other: str) -> None:
    assume(" ".join(one.split(" ")) != " ".join(other.split(" ")))
    assert is_revision(result(f"1 {one} 1"), result(f"2 {other} 2")) is None


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.sampled_from("abcde\n[.]"), min_size=100, max_size=300),
    st.integers(20, 40),
    st.integers(0, 8),
    st.sampled_from(["\n...\n", "[... 99 chars truncated ...]", "\n\n(output omitted)\n\n", " …"]),
)
def test_cutting_a_result_in_the_middle_is_recognised(
    text: str, head: int, tail: int, marker: str
) -> None:
    whole = f"|{text}|"
    cut = whole[:head] + marker + (whole[-tail:] if tail else "")
    assert is_revision(result(whole), result(cut)) == "pruned"
