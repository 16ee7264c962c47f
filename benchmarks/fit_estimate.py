"""Fit the calibrated estimate against o200k_base, and print its weights and its errors.

Least squares of the relative error of each message, kinds of text weighing alike, pulled towards a
guess where the texts say nothing. Three tenths of the texts are held back to test on.

    python benchmarks/fit_estimate.py
"""

from __future__ import annotations

import textwrap
from hashlib import sha256

import numpy as np
import numpy.typing as npt
from kinds_of_text import texts_by_kind

from lcm_fast.config import Config
from lcm_fast.counting import choose_counter
from lcm_fast.kernels.calibration import CHARACTERS, OTHER, RANGES, RUN, SCALE, START

Vector = npt.NDArray[np.float64]

CLASSES = START + 1
STRENGTH = 0.3
TOTALS = 20.0
TESTED = 0.3
# Tokens of a character, by class, where the texts have too few of it.
GUESS = np.array(
    [0.5]  # other scripts
    + [0.2] * 4  # lower case
    + [0.35] * 2  # upper case
    + [0.34, 0.1, 0.4, 0.4]  # digit, space, line end, tab
    + [0.5] * 9  # punctuation
    + [0.7, 0.35]  # Latin with accents, Greek and Cyrillic
    + [0.7, 0.7, 0.75, 0.6]  # hiragana, katakana, Han, Hangul
    + [0.8, 1.0, 1.2, 1.5, 1.0]  # CJK and other punctuation, symbols, emoji, joiners
    + [0.0]
)


def main() -> None:
    """Fit, print the weights as they stand in `calibration.py`, then the errors."""
    train, test = split()
    weights = fit(train)
    show("AFTER", weights[: CLASSES * CLASSES].reshape(CLASSES, CLASSES))
    show("IN_RUN", weights[CLASSES * CLASSES :].reshape(CLASSES, RUN))
    for name, part in (("train", train), ("test", test)):
        for kind, (features, tokens) in part.items():
            estimates = features @ weights
            errors = np.abs(estimates / tokens - 1)
            total = estimates.sum() / tokens.sum() - 1
            print(
                f"# {name} {kind}: {len(tokens)} texts, total {total:+.1%},"
                f" 95th percentile {np.quantile(errors, 0.95):.1%}"
            )


def split() -> tuple[dict[str, tuple[Vector, Vector]], dict[str, tuple[Vector, Vector]]]:
    """Return features and token counts by kind, of the texts to fit on and of those to test on."""
    count = choose_counter(Config(token_counter="o200k_base")).count
    parts: tuple[dict[str, tuple[Vector, Vector]], ...] = ({}, {})
    for kind, texts in texts_by_kind().items():
        for held_back, part in enumerate(parts):
            chosen = [text for text in texts if is_held_back(text) == bool(held_back)]
            part[kind] = (
                np.array([features_of(text) for text in chosen]),
                np.array([float(count(text)) for text in chosen]),
            )
    return parts[0], parts[1]


def is_held_back(text: str) -> bool:
    return sha256(text.encode("utf-8", "replace")).digest()[0] < 256 * TESTED


def class_table() -> npt.NDArray[np.int64]:
    table = np.full(0x110000, OTHER)
    for number, characters in enumerate(CHARACTERS, OTHER + 1):
        table[[ord(character) for character in characters]] = number
    for first, last, number in RANGES:
        table[first : last + 1] = number
    return table


TABLE = class_table()


def features_of(text: str) -> Vector:
    """Return how often each class follows each class, and stands at each place of its runs."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    classes = TABLE[points]
    before = np.concatenate([[START], classes[:-1]])
    places = np.arange(len(classes))
    begins = np.maximum.accumulate(np.where(classes == before, 0, places))
    runs = np.minimum(places - begins, RUN - 1)
    after = np.bincount(before * CLASSES + classes, minlength=CLASSES * CLASSES)
    in_run = np.bincount(classes * RUN + runs, minlength=CLASSES * RUN)
    return np.concatenate([after, in_run]).astype(float)


def fit(train: dict[str, tuple[Vector, Vector]]) -> Vector:
    guess = np.concatenate([np.tile(GUESS, CLASSES), np.zeros(CLASSES * RUN)])
    rows, goals = [], []
    for features, tokens in train.values():
        scale = 50 / tokens / np.sqrt(len(tokens))
        rows += [features * scale[:, None], TOTALS * features.sum(0)[None] / tokens.sum()]
        goals += [tokens * scale, np.array([TOTALS])]
    matrix = np.vstack(rows)
    rest = np.concatenate(goals) - matrix @ guess
    normal = matrix.T @ matrix + STRENGTH * np.eye(len(guess))
    solved: Vector = guess + np.linalg.solve(normal, matrix.T @ rest)
    return solved


def show(name: str, weights: Vector) -> None:
    print(f"{name} = (")
    for row in np.rint(weights * SCALE).astype(int).tolist():
        numbers = textwrap.wrap(f"({', '.join(map(str, row))}),", 95)
        print(textwrap.indent("\n ".join(numbers), "    "))
    print(")")


if __name__ == "__main__":
    main()
