"""The `relevance` kernel equals its twin, and scikit-learn where that has an answer."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from differential.frontiers import WAYS_TO_BREAK, break_array
from differential.outcomes import outcome
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.kernels import analyse_terms, count_terms
from lcm_fast.kernels.reference import relevance as twin

kernel = pytest.importorskip(
    "lcm_fast.kernels._relevance", reason="no binary of the relevance kernel"
)


class Corpus(NamedTuple):
    """A prompt and items, as the kernel takes them."""

    prompt_terms: npt.NDArray[np.uint32]
    prompt_counts: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    terms: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.int64]


def corpus(prompt: str, texts: list[str]) -> Corpus:
    _, prompt_terms, prompt_counts = count_terms([prompt])
    lengths = [len(analyse_terms(text)) for text in texts]
    return Corpus(
        prompt_terms, prompt_counts, *count_terms(texts), np.array(lengths, dtype=np.int64)
    )


words = st.lists(
    st.sampled_from(["tea", "milk", "cup", "the", "a_b", "数据", "42"]), max_size=12
).map(" ".join)
prompts_and_texts = st.tuples(words, st.lists(words, max_size=8))
SOUND = corpus("tea the", ["the tea", "milk", "tea tea the cup"])
ALL = np.arange(3)


@given(
    prompts_and_texts,
    st.lists(st.integers(-1, 8), max_size=9),
    st.sampled_from((0.3, 1.2, math.inf, 0.0, math.nan)),
    st.sampled_from((0.0, 0.75, 1.0, 1.5)),
)
def test_scores_are_those_of_the_twin(
    given_texts: tuple[str, list[str]], rows: list[int], saturation: float, share: float
) -> None:
    arguments = (*corpus(*given_texts), np.array(rows, dtype=np.int64), saturation, share)
    assert outcome(kernel.score_items, *arguments) == outcome(twin.score_items, *arguments)


@pytest.mark.parametrize("how", WAYS_TO_BREAK)
@pytest.mark.parametrize("position", range(7))
def test_a_malformed_array_has_the_error_of_the_twin(position: int, how: str) -> None:
    arrays: list[Any] = [*SOUND, ALL]
    arrays[position] = break_array(arrays[position], how)
    arguments = (*arrays, 1.2, 0.75)
    assert outcome(kernel.score_items, *arguments) == outcome(twin.score_items, *arguments)


@pytest.mark.parametrize(
    "changed",
    [
        {"offsets": np.array([0, 5, 3, 6])},
        {"offsets": np.array([-1, 2, 3, 6])},
        {"offsets": np.array([0, 2, 3, 99])},
        {"lengths": np.array([1, -1, 3])},
        {"prompt_terms": np.array([7, 7], dtype=np.uint32)},
    ],
)
def test_arrays_that_contradict_each_other_have_the_error_of_the_twin(
    changed: dict[str, Any],
) -> None:
    arguments = (*SOUND._replace(**changed), ALL, 1.2, 0.75)
    assert outcome(kernel.score_items, *arguments) == outcome(twin.score_items, *arguments)


def test_more_matches_than_there_is_room_for_at_first_are_all_counted() -> None:
    many = corpus("tea milk cup", ["tea milk cup"] * 2000)
    scores = kernel.score_items(*many, np.arange(2000), 1.2, 0.75)
    assert scores.min() == scores.max() == pytest.approx(3.0)


@pytest.fixture(scope="module")
def vectorizers() -> Any:
    """The module of scikit-learn that has the oracle; it takes a second to import."""
    return pytest.importorskip(
        "sklearn.feature_extraction.text", reason="scikit-learn is not installed"
    )


@given(given_texts=st.tuples(words, st.lists(words, min_size=1, max_size=8)))
def test_without_saturation_scores_are_those_of_scikit_learn(
    vectorizers: Any, given_texts: tuple[str, list[str]]
) -> None:
    prompt, texts = given_texts
    if not any(map(analyse_terms, texts)):
        return
    vectorizer = vectorizers.TfidfVectorizer(analyzer=analyse_terms, norm=None)
    items = vectorizer.fit_transform(texts)
    expected = (items @ vectorizer.transform([prompt]).T).toarray().ravel()
    ours = kernel.score_items(*corpus(prompt, texts), np.arange(len(texts)), math.inf, 0.0)
    np.testing.assert_allclose(ours, expected, rtol=1e-6)


@given(prompts_and_texts, st.randoms())
def test_items_in_another_order_have_the_same_scores(
    given_texts: tuple[str, list[str]], random: Any
) -> None:
    prompt, texts = given_texts
    rows = list(range(len(texts)))
    random.shuffle(rows)
    order = np.array(rows, dtype=np.int64)
    made = corpus(prompt, texts)
    straight = kernel.score_items(*made, np.arange(len(texts)), 1.2, 0.75)
    np.testing.assert_allclose(kernel.score_items(*made, order, 1.2, 0.75), straight[order])


@given(prompts_and_texts)
def test_only_items_with_a_term_of_the_prompt_have_a_score(
    given_texts: tuple[str, list[str]],
) -> None:
    prompt, texts = given_texts
    scores = kernel.score_items(*corpus(prompt, texts), np.arange(len(texts)), 1.2, 0.75)
    asked = set(analyse_terms(prompt))
    assert [score > 0 for score in scores] == [bool(asked & set(analyse_terms(t))) for t in texts]
