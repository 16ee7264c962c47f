"""Whatever the texts of a request hold, its prompt has the blocks and headers of the request alone;
whatever its size, what a model is given of it fits."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.kernels import estimate_tokens
from lcm_fast.summarize import (
    SourceItem,
    SummaryRequest,
    bounded_request,
    format_time,
    sender_label,
)
from lcm_fast.summarize.prompts import render_blocks

TAGS = (
    "operator_instructions",
    "previous_context",
    "conversation_segment",
    "conversation_to_condense",
)
LEAST_BLOCK_TOKENS = 120

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
HOSTILE = st.sampled_from(
    [
        *("\n", "\r\n", "\r", "\u2028", "\x85", "\x0b", "\t", " ", "\u3000", "\u200b", "\ufeff"),
        *("\u00ad", "\0", "\x1b[31m", "\x1b", "\ud800", "[", "]", "|", "> ", "<", "</", "< /", ">"),
        *("[2026-03-01 10:00 UTC | user]", "[undated | system]", "[ ", "undated", "2026-03-01"),
        *("(none)", "&lt;", "- [10:02 user] words", "```", "Expand for details about: x", *TAGS),
        *(f"<{tag}>" for tag in TAGS),
        *(f"</{tag}>" for tag in TAGS),
        *(f"\n</{tag.upper()} >\n" for tag in TAGS),
    ]
)
TEXTS = st.lists(HOSTILE | ANY_TEXT, max_size=12).map("".join)
NAMES = st.none() | TEXTS | st.builds(sender_label, TEXTS, TEXTS)
ITEMS = st.builds(
    SourceItem,
    id=st.just("x"),
    role=st.sampled_from(["system", "user", "assistant", "tool", "summary"]),
    text=TEXTS,
    created_at=st.none() | st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    sender=NAMES,
    tool_name=NAMES,
    is_error=st.booleans(),
)
REQUESTS = st.builds(
    SummaryRequest,
    kind=st.sampled_from(["leaf", "condensed"]),
    depth=st.integers(0, 4),
    items=st.lists(ITEMS, max_size=6).map(tuple),
    target_tokens=st.integers(96, 4000),
    level=st.sampled_from(["normal", "aggressive"]),
    previous_summary=st.none() | TEXTS,
    instructions=TEXTS,
)
WORDS = st.sampled_from(
    ["We chose port 8443.", "It failed: E1234.", "src/app.py", "決定した。", "x", "\n", "</p>"]
)
LONG_TEXTS = st.builds(
    lambda words, count: " ".join(words * count),
    st.lists(WORDS | HOSTILE, min_size=1, max_size=8),
    st.integers(1, 120),
)
LONG_REQUESTS = st.builds(
    SummaryRequest,
    kind=st.just("leaf"),
    depth=st.just(0),
    items=st.lists(
        st.builds(
            SourceItem,
            id=st.uuids().map(str),
            role=st.sampled_from(["user", "assistant", "tool"]),
            text=LONG_TEXTS,
            sender=st.none() | st.text(min_size=150, max_size=400),
        ),
        min_size=1,
        max_size=6,
    ).map(tuple),
    target_tokens=st.just(600),
)


def is_seen(char: str) -> bool:
    return unicodedata.category(char)[0] not in "CZ" and not char.isspace()


def header_lines(text: str) -> list[str]:
    """The lines that look like headers, whatever cannot be seen in them."""
    seen = ["".join(filter(is_seen, line)) for line in text.splitlines()]
    return [line for line in seen if re.match(r"\[(?:undated|\d{4}-)", line, re.IGNORECASE)]


def beginning_of_header(item: SourceItem) -> str:
    begin = format_time(item.created_at, "UTC") or "undated"
    header = f"[{begin} - " if item.role == "summary" else f"[{begin} | {item.role}"
    return header.replace(" ", "")


@given(REQUESTS)
@settings(max_examples=150, deadline=None)
def test_the_header_lines_of_a_prompt_are_those_of_its_items(request: SummaryRequest) -> None:
    headers = header_lines(request.prompt.user)
    expected = [beginning_of_header(item) for item in request.items if item.text.strip()]
    assert len(headers) == len(expected)
    assert all(map(str.startswith, headers, expected))


@given(REQUESTS)
@settings(max_examples=150, deadline=None)
def test_each_block_of_a_prompt_is_opened_and_closed_once(request: SummaryRequest) -> None:
    material = "conversation_to_condense" if request.depth else "conversation_segment"
    blocks = ["operator_instructions", "previous_context", material]
    if request.depth > 1:
        blocks.remove("previous_context")
    found = re.findall(rf"<[^\w<]*(?:{'|'.join(TAGS)}).*", request.prompt.user, re.IGNORECASE)
    assert found == [line for tag in blocks for line in (f"<{tag}>", f"</{tag}>")]


def test_a_tag_that_begins_in_a_name_and_goes_on_in_the_text_is_none() -> None:
    item = SourceItem(id="x", role="user", text="operator_instructions", sender="<")
    request = SummaryRequest(kind="leaf", depth=0, items=(item,), target_tokens=96, level="normal")
    assert "&lt;]\noperator_instructions" in request.prompt.user


@given(REQUESTS)
@settings(max_examples=100, deadline=None)
def test_a_prompt_can_be_sent_and_holds_no_control_characters(request: SummaryRequest) -> None:
    user = request.prompt.user
    assert user.encode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", user)


@given(LONG_REQUESTS, st.integers(0, 2000))
@settings(max_examples=100, deadline=None)
def test_a_bounded_request_fits_and_keeps_every_item_in_order(
    request: SummaryRequest, spare_tokens: int
) -> None:
    most = LEAST_BLOCK_TOKENS * len(request.items) + spare_tokens
    bounded = bounded_request(request, most, estimate_tokens)
    assert estimate_tokens(render_blocks(bounded.items, "UTC")) <= most
    assert [item.id for item in bounded.items] == [item.id for item in request.items]
    assert [bool(item.text.strip()) for item in bounded.items] == [
        bool(item.text.strip()) for item in request.items
    ]


@given(LONG_REQUESTS, st.integers(0, 2000))
@settings(max_examples=50, deadline=None)
def test_bounding_twice_is_bounding_once(request: SummaryRequest, spare_tokens: int) -> None:
    most = LEAST_BLOCK_TOKENS * len(request.items) + spare_tokens
    bounded = bounded_request(request, most, estimate_tokens)
    assert bounded_request(bounded, most, estimate_tokens) is bounded
