"""Kernels against their twins, 10,000 items each, in groups whose ratio is the figure.

Every case first asserts that both sides give the same answer. Inputs are seeded; sizes follow the
conversation of the design's benchmark page (mean 416 characters, 8 % CJK).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from lcm_fast.kernels.reference import chunking as chunking_twin
from lcm_fast.kernels.reference import frontier as frontier_twin
from lcm_fast.kernels.reference import relevance as relevance_twin
from lcm_fast.kernels.reference import replay as replay_twin
from lcm_fast.kernels.reference import text as text_twin
from lcm_fast.kernels.reference import tokens as tokens_twin

tokens_kernel = pytest.importorskip("lcm_fast.kernels._tokens")
frontier_kernel = pytest.importorskip("lcm_fast.kernels._frontier")
chunking_kernel = pytest.importorskip("lcm_fast.kernels._chunking")
relevance_kernel = pytest.importorskip("lcm_fast.kernels._relevance")
text_kernel = pytest.importorskip("lcm_fast.kernels._text")
replay_kernel = pytest.importorskip("lcm_fast.kernels._replay")

ITEMS = 10_000
TAIL = 64
SEED = 20_260_319
SIDES = ("kernel", "twin")

WORDS = (
    "the",
    "cache",
    "of",
    "getUserById",
    "failed",
    "in",
    "src/store/writer.py",
    "E1234",
    "while",
)
HAN = "我们决定使用数据库连接失败了再试一次"


def make_text(rng: random.Random) -> str:
    """Return one message: prose and identifiers, or Chinese in 8 of 100 cases."""
    length = max(1, int(rng.expovariate(1 / 416)))
    if rng.random() < 0.08:
        return "".join(rng.choices(HAN, k=length))
    return " ".join(rng.choices(WORDS, k=1 + length // 6))[:length]


def make_frontier(rng: random.Random) -> dict[str, Any]:
    """Return 10,000 items: fifty summaries, then turns of a message and up to three results."""
    openers = list(range(ITEMS))
    i = 50
    while i < ITEMS - 5:
        for result in range(i + 1, i + 1 + rng.randint(0, 3)):
            openers[result] = i
        i += 5
    return {
        "kinds": np.array([1] * 50 + [0] * (ITEMS - 50), dtype=np.uint8),
        "ordinals": np.arange(ITEMS),
        "openers": np.array(openers),
        "tokens": np.array([rng.randint(5, 400) for _ in range(ITEMS)]),
    }


def compare(
    benchmark: BenchmarkFixture,
    side: str,
    kernel: Callable[..., Any],
    twin: Callable[..., Any],
    *arguments: Any,
) -> None:
    """Assert that both sides agree, then time one of them."""
    ours, theirs = kernel(*arguments), twin(*arguments)
    np.testing.assert_equal(ours, theirs)
    benchmark.group = kernel.__name__
    benchmark.pedantic(kernel if side == "kernel" else twin, arguments, rounds=7, warmup_rounds=1)


@pytest.mark.parametrize("side", SIDES)
def test_estimates_over_a_list(benchmark: BenchmarkFixture, side: str) -> None:
    rng = random.Random(SEED)
    texts = [make_text(rng) for _ in range(ITEMS)]
    compare(
        benchmark,
        side,
        tokens_kernel.estimate_tokens_many,
        tokens_twin.estimate_tokens_many,
        texts,
    )


@pytest.mark.parametrize("side", SIDES)
def test_a_walk_over_the_whole_tail(benchmark: BenchmarkFixture, side: str) -> None:
    compare(
        benchmark,
        side,
        frontier_kernel.select_fresh_tail,
        frontier_twin.select_fresh_tail,
        *make_frontier(random.Random(SEED)).values(),
        ITEMS,
    )


@pytest.mark.parametrize("side", SIDES)
def test_a_choice_within_a_budget(benchmark: BenchmarkFixture, side: str) -> None:
    frontier = make_frontier(random.Random(SEED))
    compare(
        benchmark,
        side,
        frontier_kernel.select_context,
        frontier_twin.select_context,
        frontier["ordinals"],
        frontier["openers"],
        frontier["tokens"],
        np.zeros(ITEMS, dtype=np.uint8),
        frontier_twin.select_fresh_tail(*frontier.values(), TAIL),
        100_000,
    )


@pytest.mark.parametrize("side", SIDES)
def test_leaf_chunks(benchmark: BenchmarkFixture, side: str) -> None:
    compare(
        benchmark,
        side,
        chunking_kernel.plan_leaf_chunks,
        chunking_twin.plan_leaf_chunks,
        *make_frontier(random.Random(SEED)).values(),
        0,
        ITEMS - TAIL,
        20_000,
    )


@pytest.mark.parametrize("side", SIDES)
def test_condensation_that_finds_nothing(benchmark: BenchmarkFixture, side: str) -> None:
    rng = random.Random(SEED)
    summaries = np.ones(ITEMS, dtype=np.uint8)
    depths = np.array([rng.choice((0, 0, 0, 0, 0, 1)) for _ in range(ITEMS)])
    compare(
        benchmark,
        side,
        chunking_kernel.plan_condensation,
        chunking_twin.plan_condensation,
        summaries,
        depths,
        np.full(ITEMS, 600),
        summaries,
        ITEMS,
        100,
        100,
        2_000,
        20_000,
    )


@pytest.mark.parametrize("side", SIDES)
def test_terms_of_a_long_text(benchmark: BenchmarkFixture, side: str) -> None:
    rng = random.Random(SEED)
    text = "\n".join(make_text(rng) for _ in range(ITEMS // 20))
    compare(benchmark, side, text_kernel.analyse_terms, text_twin.analyse_terms, text)


@pytest.mark.parametrize("side", SIDES)
def test_counted_terms_of_messages(benchmark: BenchmarkFixture, side: str) -> None:
    rng = random.Random(SEED)
    texts = [make_text(rng) for _ in range(ITEMS // 20)]
    compare(benchmark, side, text_kernel.count_terms, text_twin.count_terms, texts)


@pytest.mark.parametrize("side", SIDES)
def test_scores_of_all_messages(benchmark: BenchmarkFixture, side: str) -> None:
    rng = random.Random(SEED)
    texts = [make_text(rng) for _ in range(ITEMS)]
    _, prompt_terms, prompt_counts = text_kernel.count_terms(["why has the cache failed? 失败"])
    offsets, terms, counts = text_kernel.count_terms(texts)
    lengths = np.add.reduceat(counts, offsets[:-1]).astype(np.int64)
    compare(
        benchmark,
        side,
        relevance_kernel.score_items,
        relevance_twin.score_items,
        prompt_terms,
        prompt_counts,
        offsets,
        terms,
        counts,
        lengths,
        np.arange(ITEMS),
        1.2,
        0.75,
    )


@pytest.mark.parametrize("side", SIDES)
def test_a_history_sent_again_with_a_hundredth_changed(
    benchmark: BenchmarkFixture, side: str
) -> None:
    rng = random.Random(SEED)
    stored = np.array([rng.getrandbits(63) for _ in range(ITEMS)])
    batch = stored.copy()
    for i in rng.sample(range(ITEMS), ITEMS // 100):
        batch[i] = rng.getrandbits(63)
    compare(benchmark, side, replay_kernel.align, replay_twin.align, stored, batch)


@pytest.mark.parametrize("side", SIDES)
def test_floods_of_a_batch_of_repeats(benchmark: BenchmarkFixture, side: str) -> None:
    rng = random.Random(SEED)
    compare(
        benchmark,
        side,
        replay_kernel.find_floods,
        replay_twin.find_floods,
        np.array([rng.randrange(4) for _ in range(ITEMS)], dtype=np.uint8),
        np.array([rng.randrange(ITEMS // 20) for _ in range(ITEMS)]),
        np.array([rng.getrandbits(63) for _ in range(ITEMS)]),
        np.ones(ITEMS, dtype=np.uint8),
        np.zeros(ITEMS, dtype=np.int64),
        3,
        32,
    )
