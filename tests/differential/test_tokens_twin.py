"""The `tokens` kernel equals its twin in values, exception classes and messages."""

from __future__ import annotations

import pytest
from differential.outcomes import outcome
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lcm_fast.kernels.reference import tokens as twin

kernel = pytest.importorskip("lcm_fast.kernels._tokens", reason="no binary of the tokens kernel")

EDGES = "".join(
    chr(edge + step)
    for edge in (
        *(0x3000, 0x30FF, 0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xAC00, 0xD7AF, 0xFF00, 0xFFEF),
        *(0xFFFF, 0x10000, 0x20000, 0x2A6DF, 0x2A700, 0x2B73F, 0x2CEAF, 0x2EBEF, 0x10FFFE),
    )
    for step in (-1, 0, 1)
)
texts = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(codec=None), max_size=60),
    st.text(st.sampled_from(EDGES + "a é\ud800"), max_size=60),
)
not_texts = st.sampled_from((None, 3, b"bytes", ["text"], ("text",)))


class Name(str):
    """A str of a class of its own."""

    __slots__ = ()


@given(texts)
@example(EDGES)
@example(Name("name 数"))
def test_one_text_has_the_estimate_of_the_twin(text: str) -> None:
    assert kernel.estimate_tokens(text) == twin.estimate_tokens(text)


@pytest.mark.parametrize("unit", ["a", "é", "数", "a数", "🔥", "𠮷a", EDGES])
@pytest.mark.parametrize("length", [255, 256, 257, 4095, 4096, 4097, 70_000])
def test_texts_around_a_block_have_the_estimate_of_the_twin(unit: str, length: int) -> None:
    text = (unit * length)[:length]
    assert kernel.estimate_tokens(text) == twin.estimate_tokens(text)


@given(texts)
@example(EDGES)
@example("aaaaaaaaaa bbb 12345678901 ----------\n\n\n\t{}")
@example("数据库カナかな한글éЖ🔥\u200d\U00020000٣ह")
def test_one_text_has_the_calibrated_estimate_of_the_twin(text: str) -> None:
    assert kernel.estimate_tokens_calibrated(text) == twin.estimate_tokens_calibrated(text)


@pytest.mark.parametrize("unit", ["ab 12", "é", "数\n", "🔥", EDGES])
def test_a_long_text_has_the_calibrated_estimate_of_the_twin(unit: str) -> None:
    text = unit * 5000
    assert kernel.estimate_tokens_calibrated(text) == twin.estimate_tokens_calibrated(text)


@given(not_texts)
def test_what_is_no_text_has_the_error_of_the_twin_when_calibrated(value: object) -> None:
    assert outcome(kernel.estimate_tokens_calibrated, value) == outcome(
        twin.estimate_tokens_calibrated, value
    )


@given(st.one_of(st.lists(st.one_of(texts, texts, not_texts), max_size=8), not_texts))
def test_a_list_has_the_estimates_or_the_error_of_the_twin(values: object) -> None:
    assert outcome(kernel.estimate_tokens_many, values) == outcome(
        twin.estimate_tokens_many, values
    )


@given(texts, st.integers(-2, 60))
def test_a_prefix_is_that_of_the_twin(text: str, max_tokens: int) -> None:
    assert kernel.truncate_tokens(text, max_tokens) == twin.truncate_tokens(text, max_tokens)


@settings(max_examples=25)
@given(st.sampled_from(("数a", "🔥b", "é", EDGES)), st.integers(0, 3000))
def test_a_long_prefix_is_that_of_the_twin(unit: str, max_tokens: int) -> None:
    text = unit * (1600 // len(unit))
    assert kernel.truncate_tokens(text, max_tokens) == twin.truncate_tokens(text, max_tokens)


@given(
    st.one_of(texts, not_texts),
    st.sampled_from((0, 2**61, 2**63 - 1, 2**63, -(2**70), 1.0, "1", None)),
)
def test_odd_arguments_of_truncation_have_the_outcome_of_the_twin(
    text: object, max_tokens: object
) -> None:
    assert outcome(kernel.truncate_tokens, text, max_tokens) == outcome(
        twin.truncate_tokens, text, max_tokens
    )


@given(not_texts)
def test_what_is_no_text_has_the_error_of_the_twin(value: object) -> None:
    assert outcome(kernel.estimate_tokens, value) == outcome(twin.estimate_tokens, value)
