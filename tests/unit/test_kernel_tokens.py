"""Truncation by tokens, and the errors of the estimates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.kernels import (
    estimate_tokens,
    estimate_tokens_calibrated,
    estimate_tokens_many,
    truncate_tokens,
)

texts = st.text(st.one_of(st.characters(codec=None), st.sampled_from("ab数カ🔥𠮷")), max_size=50)


@given(texts, st.integers(0, 40))
def test_a_truncated_text_is_a_prefix_within_the_limit(text: str, max_tokens: int) -> None:
    prefix = truncate_tokens(text, max_tokens)
    assert text.startswith(prefix)
    assert estimate_tokens(prefix) <= max_tokens


@given(texts, st.integers(0, 40))
def test_one_more_character_would_not_fit(text: str, max_tokens: int) -> None:
    prefix = truncate_tokens(text, max_tokens)
    longer = text[: len(prefix) + 1]
    assert prefix == text or estimate_tokens(longer) > max_tokens


@given(texts)
def test_a_text_within_its_estimate_is_kept_whole(text: str) -> None:
    assert truncate_tokens(text, estimate_tokens(text)) == text


@pytest.mark.parametrize("max_tokens", [0, -1, -(10**9)])
def test_a_limit_of_nothing_leaves_nothing(max_tokens: int) -> None:
    assert truncate_tokens("Hello", max_tokens) == ""


@given(texts)
def test_the_calibrated_estimate_of_a_text_is_at_least_one_token(text: str) -> None:
    assert estimate_tokens_calibrated(text) >= (1 if text else 0)


@given(st.lists(texts, max_size=6))
def test_a_list_has_the_estimates_of_its_texts(values: list[str]) -> None:
    assert estimate_tokens_many(values).tolist() == [estimate_tokens(text) for text in values]


def test_estimates_of_a_list_are_64_bit_integers() -> None:
    assert estimate_tokens_many([]).dtype == "int64"


def test_an_item_that_is_no_text_is_named_by_its_index() -> None:
    with pytest.raises(TypeError, match=r"^texts\[2\] must be a str, not int$"):
        estimate_tokens_many(["a", "b", 3])  # type: ignore[list-item]


def test_a_tuple_of_texts_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^texts must be a list, not tuple$"):
        estimate_tokens_many(("a",))  # type: ignore[arg-type]
