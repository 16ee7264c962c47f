"""The `bpe` kernel counts what tiktoken counts, on text of every script and shape."""

from __future__ import annotations

import itertools
import json
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from differential.outcomes import outcome
from hypothesis import example, given, settings
from hypothesis import strategies as st
from unit.vocabularies import vocabulary

from lcm_fast.kernels.reference import bpe as twin

kernel = pytest.importorskip("lcm_fast.kernels._bpe", reason="no binary of the bpe kernel")

ENCODINGS = ("o200k_base", "cl100k_base")
ALPHABETS = (
    "abcdeABCDs'tTreLlvVmd  \n\r/",
    "azAZ`{@[z",
    "\u017f'sSx 1٣Ⅷ½",
    "数据库カナ한글ー々 aA",
    "éÉßſKİıǅ\u0323\u0301 ٣ـ\u200d\ufe0fa'm",
    "  \t\n\r\u3000\u00a0\u2028\x1cx!",
    "!?/\n\r #'s-=_",
    "🔥👨\u200d👩ᾈῼǲ\u1c89\u1c8a",
    "аБвГ'll .",
    "\ud800\udfff\ud83dab \udc00",
)
texts = st.one_of(
    st.text(st.characters(codec=None), max_size=40),
    *(st.text(st.sampled_from(alphabet), max_size=40) for alphabet in ALPHABETS),
    st.text(st.sampled_from("".join(ALPHABETS)), max_size=60),
)
WIDE = "中文字数あー 語a"
BYTES = [bytes([byte]) for byte in range(256)]


def lines(tokens: list[bytes]) -> bytes:
    return b"\n".join(b"%s %d" % (b64encode(token), rank) for rank, token in enumerate(tokens))


@pytest.fixture(scope="module", params=ENCODINGS)
def counters(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """The kernel's and the twin's counter of one encoding."""
    name = request.param
    return (
        kernel.TokenCounter(name, vocabulary(name)),
        twin.TokenCounter(name, vocabulary(name)),
    )


@settings(max_examples=1000, deadline=None)
@given(text=texts)
@example("HTTPServer's 日本ABC's DON'T 'Re")
@example("\u0301ABC!\u0301abc !!\u0301\n/\n x")
@example(" \n \n  x")
@example(" \n \n  ")
@example("<|endoftext|>")
@example("\ufeffa\ud83d\udd25\ud83d")
def test_counts_are_those_of_tiktoken(counters: tuple[Any, Any], text: str) -> None:
    ours, theirs = counters
    assert ours.count(text) == theirs.count(text)


@pytest.mark.parametrize("letter", "azAZ")
def test_a_word_ends_at_the_same_character_wherever_it_stands(
    counters: tuple[Any, Any], letter: str
) -> None:
    ours, theirs = counters
    for after in [*map(chr, range(128)), "\u0080", "é", "Ǳ", "中", "\u00a0", "🔥"]:
        for length in range(18):
            text = f"{letter * length}{after}zzaaZZAAz"
            assert ours.count(text) == theirs.count(text), text
            assert ours.count(text[: length + 1]) == theirs.count(text[: length + 1]), text


@settings(max_examples=200, deadline=None)
@given(unit=st.text(st.sampled_from("".join(ALPHABETS)), min_size=1, max_size=6))
@example("a")
@example("-")
@example("中")
def test_counts_of_long_pieces_are_those_of_tiktoken(counters: tuple[Any, Any], unit: str) -> None:
    ours, theirs = counters
    text = unit * 100
    assert ours.count(text) == theirs.count(text)


@pytest.mark.parametrize("length", range(100, 140))
def test_pieces_about_the_longest_token_and_the_short_loop(
    counters: tuple[Any, Any], length: int
) -> None:
    ours, theirs = counters
    text = "qz" * (length // 2) + "q" * (length % 2)
    assert ours.count(text) == theirs.count(text)


@pytest.mark.parametrize("plane", [0, 1, 2, 3, 14, 16])
def test_every_character_is_of_tiktokens_class(counters: tuple[Any, Any], plane: int) -> None:
    ours, theirs = counters
    first = plane * 0x10000
    for start in range(first, first + 0x10000, 64):
        text = "".join(
            f"A{chr(point)}a1{chr(point)}1 {chr(point)}\n" for point in range(start, start + 64)
        )
        assert ours.count(text) == theirs.count(text), hex(start)


@pytest.mark.parametrize("after", ["", "x", " \nx"])
@pytest.mark.parametrize("before", ["x", "!\u0301\n\n"])
def test_runs_of_blanks_that_tiktoken_cannot_take(
    counters: tuple[Any, Any], before: str, after: str
) -> None:
    ours, theirs = counters
    text = before + "\u2003 " * 50_001 + after
    assert ours.count(text) == theirs.count(text)


def test_a_list_is_counted_text_by_text(counters: tuple[Any, Any]) -> None:
    ours, theirs = counters
    listed = ["Hello world", "", "数据库", "x" * 5000]
    assert ours.count_many(listed).tolist() == theirs.count_many(listed).tolist()


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["text"]])
def test_what_is_no_text_has_the_error_of_the_twin(counters: tuple[Any, Any], value: Any) -> None:
    ours, theirs = counters
    assert outcome(ours.count, value) == outcome(theirs.count, value)


@pytest.mark.parametrize("value", [None, ("a",), ["a", 3], [b"a"]])
def test_what_is_no_list_of_texts_has_the_error_of_the_twin(
    counters: tuple[Any, Any], value: Any
) -> None:
    ours, theirs = counters
    assert outcome(ours.count_many, value) == outcome(theirs.count_many, value)


@st.composite
def vocabularies(draw: st.DrawFn) -> bytes:
    """All bytes, and parts of a text in any order: characters before or behind what has them."""
    encoded = draw(st.text(st.sampled_from(WIDE), min_size=3, max_size=12)).encode()
    places = st.integers(0, len(encoded))
    parts = draw(st.lists(st.tuples(places, places), min_size=1, max_size=60))
    tokens = dict.fromkeys(encoded[begin:end] for begin, end in parts if end - begin > 1)
    return lines([*BYTES, *tokens])


@settings(max_examples=500, deadline=None)
@given(source=vocabularies(), text=st.text(st.sampled_from(WIDE), max_size=30))
def test_any_ranks_of_wide_characters_give_the_counts_of_tiktoken(source: bytes, text: str) -> None:
    ours, theirs = (module.TokenCounter("o200k_base", source) for module in (kernel, twin))
    assert ours.count(text) == theirs.count(text)


def test_a_vocabulary_that_cuts_characters_is_counted_as_tiktoken_does() -> None:
    first, second, third = (character.encode() for character in "中文字")
    pairs = [character[:2] for character in (first, second, third)]
    cut = [first + second[:2], second[2:] + third, first[2:] + second]
    for tokens in itertools.permutations([first, second, third, *cut]):
        source = lines([*BYTES, *pairs, *tokens])
        ours, theirs = (module.TokenCounter("o200k_base", source) for module in (kernel, twin))
        for text in ("中文", "文字", "中文字", "字中文字中"):
            assert ours.count(text) == theirs.count(text), (tokens, text)


def test_a_piece_counts_the_same_when_it_comes_again(counters: tuple[Any, Any]) -> None:
    ours, theirs = counters
    words = [f"qzx{number:05}vkj" for number in range(10_000)]
    text = " ".join(words)
    assert ours.count(text) == ours.count(text) == theirs.count(text)
    assert ours.count_many(words).tolist() == theirs.count_many(words).tolist()


def test_threads_that_share_a_counter_count_as_one(counters: tuple[Any, Any]) -> None:
    ours, _ = counters
    texts = [f"qzx{number:05}vkj " * 2000 for number in range(64)]
    alone = [ours.count(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ours.count, texts)) == alone


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (3, b""),
        ("o200k_base", "text"),
        ("p50k_base", b""),
        ("o200k_base", b""),
        ("o200k_base", lines(BYTES[:-1])),
        ("o200k_base", lines(BYTES) + b"\nYQ"),
        ("o200k_base", lines(BYTES) + b"\nYQ== "),
        ("o200k_base", lines(BYTES) + b"\nYQ==  1"),
        ("o200k_base", lines(BYTES) + b"\nYQ= 300"),
        ("o200k_base", lines(BYTES) + b"\nY=== 300"),
        ("o200k_base", lines(BYTES) + b"\nYWE=YWE= 300"),
        ("o200k_base", lines(BYTES) + b"\nYW!= 300"),
        ("o200k_base", lines(BYTES) + b"\nYWE= 3x"),
        ("o200k_base", lines(BYTES) + b"\n 300"),
        ("o200k_base", lines(BYTES) + b"\nYWE= 4194304"),
        ("o200k_base", b"\n\n" + lines(BYTES) + b"\n" + b64encode(b"a" * 256) + b" 300"),
    ],
)
def test_a_bad_vocabulary_has_the_error_of_the_twin(name: Any, source: Any) -> None:
    ours = outcome(kernel.TokenCounter, name, source)
    assert ours == outcome(twin.TokenCounter, name, source)
    assert isinstance(ours, tuple)


@pytest.mark.parametrize("text", ["abab", "aab", "ababab", "a" * 300, "ab" * 200])
def test_merges_go_by_rank_and_then_by_place(text: str) -> None:
    source = lines([*BYTES, b"ab", b"aa", b"abab", b"aaa", b"ba"]) + b"\n\n"
    ours, theirs = (module.TokenCounter("o200k_base", source) for module in (kernel, twin))
    assert ours.count(text) == theirs.count(text)


@pytest.mark.parametrize(
    "unit", [" ", "a", "A", "中", "\n", "!", "\t ", "\u0301", "Aあ", "1", "'s"]
)
def test_the_steps_of_a_long_run_grow_no_faster_than_n_log_n(unit: str) -> None:
    counter = kernel.TokenCounter("o200k_base", vocabulary("o200k_base"))
    small, large = (counter.count_steps(unit * times) for times in (20_000, 160_000))
    assert large <= 8 * 1.5 * small


@pytest.mark.corpus
@pytest.mark.parametrize("encoding_name", ENCODINGS)
def test_every_text_of_the_real_conversations_has_the_count_of_tiktoken(
    corpus: Path, encoding_name: str
) -> None:
    ours, theirs = (
        module.TokenCounter(encoding_name, vocabulary(encoding_name)) for module in (kernel, twin)
    )
    found = set(corpus_texts(corpus))
    assert [text for text in found if ours.count(text) != theirs.count(text)] == []


def corpus_texts(folder: Path) -> Iterator[str]:
    """Yield every string of the JSON files, and the lines that are no JSON."""
    for path in sorted(folder.rglob("*.json*")):
        for line in path.read_text(encoding="utf-8", errors="surrogateescape").split("\n"):
            try:
                yield from strings_of(json.loads(line))
            except ValueError:
                yield line


def strings_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings_of(part)
