"""The `text` kernel equals its twin on text of every script."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from unicodedata import decomposition, normalize

import numpy as np
import pytest
from differential.outcomes import outcome
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lcm_fast.kernels.reference import text as twin

kernel = pytest.importorskip("lcm_fast.kernels._text", reason="no binary of the text kernel")

ALPHABETS = (
    "abcdeABCDs12_-./:@#\\ ",
    "?=&%+~://http aB",
    "数据库カナ한글ーﾊﾟ々〇 a",
    "éÉßſKİıǅ̣́ ٣ـ‍️",
    "аБвГ .",
    "ａＢ１．：／＿\u3000\u00a0，中 a…\u0301",
)
texts = st.one_of(
    st.text(st.characters(codec=None), max_size=40),
    *(st.text(st.sampled_from(alphabet), max_size=40) for alphabet in ALPHABETS),
    st.text(st.sampled_from("".join(ALPHABETS)), max_size=40),
)
words = st.builds(
    str.__add__,
    st.text(st.sampled_from("aeiouystrnlcdgpmbhvzkxuq"), max_size=7),
    st.sampled_from(
        ("s", "es", "ies", "ed", "ing", "ied", "ings", "sses", "xes", "ches", "eed", "d", "g")
    ),
)


@settings(max_examples=400)
@given(texts)
@example("a" * 65 + ".b")
@example("ß" * 40 + ".b")
@example("aB" * 33)
@example("\u0301\u0323" * 700)
@example("x" * 511 + "é\u0301" * 600)
def test_terms_are_those_of_the_twin(text: str) -> None:
    assert kernel.analyse_terms(text) == twin.analyse_terms(text)


@settings(max_examples=400)
@given(words)
def test_stems_are_those_of_the_twin(word: str) -> None:
    assert kernel.analyse_terms(word) == [twin.stem(word)]


def columns(counted: tuple[np.ndarray, ...]) -> list[tuple[str, list[int]]]:
    return [(column.dtype.name, column.tolist()) for column in counted]


@settings(max_examples=400)
@given(st.lists(st.one_of(texts, words), max_size=6))
@example(["caf\u00e9s" * 2, "Kelvin \u212a straßeAbc", "walking", "walk walk walks"])
@example([" ".join(f"w{n}" for n in range(3000)), "w1"])
def test_counted_terms_are_those_of_the_twin(several: list[str]) -> None:
    assert columns(kernel.count_terms(several)) == columns(twin.count_terms(several))


@pytest.mark.parametrize("value", [None, "text", ("a",), ["a", None], ["a", b"b"]])
def test_what_is_no_list_of_texts_has_the_error_of_the_twin(value: object) -> None:
    assert outcome(kernel.count_terms, value) == outcome(twin.count_terms, value)


@pytest.mark.parametrize("plane", range(17))
def test_every_character_is_classified_as_by_the_twin(plane: int) -> None:
    text = " a".join(chr(plane * 0x10000 + i) for i in range(0, 0x10000, 7))
    assert kernel.analyse_terms(text) == twin.analyse_terms(text)


def compositions() -> Iterator[tuple[str, str]]:
    """Yield every two characters that normalisation makes one."""
    for point in range(0x110000):
        made_of = decomposition(chr(point)).split()
        if len(made_of) == 2 and not made_of[0].startswith("<"):
            yield chr(int(made_of[0], 16)), chr(int(made_of[1], 16))
    for syllable in range(0xAC00, 0xD7A4):
        yield from pairwise(normalize("NFD", chr(syllable)))


def test_what_joins_the_character_before_it_is_not_read_without_it() -> None:
    for first, second in set(compositions()):
        text = f"x {first}{second} {first} {second}y"
        assert kernel.analyse_terms(text) == twin.analyse_terms(text)


@pytest.mark.parametrize("around", ["", "a", "中", "\u0301", "…", "\u00ad"])
def test_wide_forms_are_read_as_ascii(around: str) -> None:
    for wide, narrow in twin.WIDE_FORMS.items():
        text = f"{around}{chr(wide)}{around}"
        terms = kernel.analyse_terms(text)
        assert terms == twin.analyse_terms(text)
        assert terms == twin.analyse_terms(f"{around}{narrow}{around}")


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["text"]])
def test_what_is_no_text_has_the_error_of_the_twin(value: object) -> None:
    assert outcome(kernel.analyse_terms, value) == outcome(twin.analyse_terms, value)
