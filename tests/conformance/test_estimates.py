"""Token estimates have the documented values (specs: compaction AB1, storage 2.1.4)."""

from __future__ import annotations

import pytest

from lcm_fast.kernels import estimate_tokens, estimate_tokens_many, truncate_tokens

DOCUMENTED = [
    ("", 0),
    ("a", 1),
    ("abcd", 1),
    ("abcde", 2),
    ("é", 1),
    ("Hello world", 3),
    ("你好世界", 6),
    ("日本", 3),
    ("日本語", 5),
    ("こんにちは", 8),
    ("カタカナ", 6),
    ("안녕하세요", 8),
    ("ＡＢＣ", 5),
    ("、。！", 5),
    ("🔥🎉💯", 6),
    ("Hello 你好 🔥", 7),
    ("👨‍👩‍👧", 7),
    ("𠮷", 2),
    ("\U00030000", 2),
    ("\U0002f800", 2),
    ("\ud800", 1),
]
# Bopomofo, Hangul jamo, radicals and compatibility forms cost a quarter like Latin letters.
QUARTERS = [
    "ㄅㄆㄇㄈ",
    "\u1100\u1161\u11a8\u1100",
    "⺀⺁⼀⼁",
    "\uf900\uf901\uf902\uf903",
    "㌀㌁㍘㏿",
]


@pytest.mark.parametrize(("text", "tokens"), DOCUMENTED)
def test_a_text_costs_what_is_documented(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize("text", QUARTERS)
def test_four_letters_outside_the_cjk_ranges_cost_one_token(text: str) -> None:
    assert estimate_tokens(text) == 1


def test_a_list_costs_what_is_documented() -> None:
    texts = [text for text, _ in DOCUMENTED]
    assert estimate_tokens_many(texts).tolist() == [tokens for _, tokens in DOCUMENTED]


@pytest.mark.parametrize(
    ("text", "max_tokens", "prefix"),
    [
        ("Hello world", 2, "Hello wo"),
        ("Hello world", 3, "Hello world"),
        ("你好世界", 5, "你好世"),
        ("你好世界", 4, "你好"),
        ("🔥🎉💯", 5, "🔥🎉"),
        ("a🔥", 2, "a"),
        ("", 5, ""),
        ("Hello", 0, ""),
    ],
)
def test_truncation_keeps_the_longest_prefix_that_fits(
    text: str, max_tokens: int, prefix: str
) -> None:
    assert truncate_tokens(text, max_tokens) == prefix
