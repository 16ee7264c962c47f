"""Notes on any text never raise, stay in their budget, repeat themselves and quote exactly."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.kernels import estimate_tokens
from lcm_fast.summarize import ExtractiveSummarizer, SourceItem, SummaryRequest
from lcm_fast.summarize.salience import find_identifiers

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
WORDS = st.sampled_from(
    [
        *("decided", "failed", "use", "never", "please", "错误", "决定使用数据库", "配置文件"),
        *("エラーが出た", "오류", "ошибка", "الخطأ", "त्रुटि", "।", "؟", "。", "！", ".", "?", "!"),
        *("src/app.py", "getUserById", "E1234", "snake_case", "v2.1", "a.b@c.org", ",", ";", ":"),
        *("https://x.dev/y?z=1", "```", "|", "-", "#", "→", "…", "[10:02", '{"a":', "(x)"),
        *("\x1b[31m", "\0", "\ud800", "\u2028", "Tool input (exec):\ncommand:"),
    ]
)
SENTENCES = st.lists(WORDS, max_size=30).map(" ".join)
LONG_LINE = st.builds(lambda word, count: word * count, WORDS, st.integers(1, 400))
TEXTS = st.lists(ANY_TEXT | SENTENCES | LONG_LINE, max_size=4).map("\n".join)
TIMES = st.none() | st.datetimes().map(lambda moment: moment.isoformat() + "Z") | ANY_TEXT
ITEMS = st.builds(
    SourceItem,
    id=st.just("x"),
    role=st.sampled_from(["system", "user", "assistant", "tool", "summary"]),
    text=TEXTS,
    created_at=TIMES,
    latest_at=TIMES,
    sender=st.none() | ANY_TEXT,
    tool_name=st.none() | ANY_TEXT,
    is_error=st.booleans(),
)
REQUESTS = st.builds(
    SummaryRequest,
    kind=st.sampled_from(["leaf", "condensed"]),
    depth=st.just(1),
    items=st.lists(ITEMS, min_size=1, max_size=8).map(tuple),
    target_tokens=st.integers(0, 600),
    level=st.sampled_from(["normal", "aggressive"]),
    timezone=st.sampled_from(["UTC", "Asia/Tokyo", "nowhere"]),
)


def notes(request: SummaryRequest) -> str:
    return ExtractiveSummarizer().summarize(request).text


@given(REQUESTS)
@settings(max_examples=150, deadline=None)
def test_notes_stay_within_their_target_or_are_one_header_line(request: SummaryRequest) -> None:
    text = notes(request)
    assert estimate_tokens(text) <= request.target_tokens or "\n" not in text


@given(REQUESTS)
@settings(max_examples=100, deadline=None)
def test_notes_are_shorter_than_any_source_worth_summarising(request: SummaryRequest) -> None:
    source_tokens = estimate_tokens(request.text)
    assert source_tokens <= 60 or estimate_tokens(notes(request)) < source_tokens


@given(REQUESTS)
@settings(max_examples=60, deadline=None)
def test_the_same_request_gives_the_same_notes(request: SummaryRequest) -> None:
    assert notes(request) == notes(request)


@given(REQUESTS)
@settings(max_examples=100, deadline=None)
def test_notes_are_valid_text_without_control_characters(request: SummaryRequest) -> None:
    text = notes(request)
    text.encode("utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", text)


@given(REQUESTS)
@settings(max_examples=100, deadline=None)
def test_every_line_of_notes_has_its_place_in_the_format(request: SummaryRequest) -> None:
    kinds = ("Notes on ", "- [", "Also mentioned: ", "Expand for details about: ")
    assert all(line.startswith(kinds) for line in notes(request).split("\n"))


@given(REQUESTS)
@settings(max_examples=150, deadline=None)
def test_exact_names_in_notes_stand_in_the_source(request: SummaryRequest) -> None:
    source = "\n".join(item.text for item in request.items)
    for line in notes(request).split("\n"):
        quote = re.sub(r"^- \[[^\]]*\] ", "", line)
        if quote != line:
            assert all(name in source for name in find_identifiers(quote))
