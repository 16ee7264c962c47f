"""Sentences of any script are found from punctuation and lines, and never cut inside a name."""

from __future__ import annotations

import pytest

from lcm_fast.kernels import estimate_tokens
from lcm_fast.summarize.salience import find_identifiers
from lcm_fast.summarize.sentences import cut_fragment, printable, split_fragments


def sentences(text: str, max_tokens: int = 80) -> list[str]:
    return [piece.text for piece in split_fragments(printable(text), max_tokens) if piece.quotable]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("决定使用它。不要改！真的吗？", ["决定使用它。", "不要改！", "真的吗？"]),
        ("“好的。”他说。", ["“好的。”", "他说。"]),
        ("هل هذا صحيح؟ نعم هو.", ["هل هذا صحيح؟", "نعم هو."]),
        ("यह ठीक है। हाँ जी॥", ["यह ठीक है।", "हाँ जी॥"]),
        ("Use e.g. app.py here. Then go.", ["Use e.g. app.py here.", "Then go."]),
        ("Mr. Smith came at 3.5 s.", ["Mr. Smith came at 3.5 s."]),
        ("- first item\n* second item\n## Head", ["first item", "second item", "Head"]),
        ("1. First do it\n2. Second do it", ["1. First do it", "2. Second do it"]),
        ("Wait... go on. Yes", ["Wait... go on.", "Yes"]),
        ("-----\n|---|---|\n。。。", []),
    ],
)
def test_text_is_split_where_a_reader_would(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_long_sentence_is_cut_between_clauses() -> None:
    text = "The first clause stands here, " * 2 + "and the second one follows it, then ends."
    pieces = list(cut_fragment(text, 16))
    assert pieces[0].endswith(",…")
    assert pieces[1].startswith("…")


def test_no_piece_of_a_long_sentence_is_above_the_limit() -> None:
    text = "这是一个很长的句子，里面有配置文件abc.py和函数getUserById，然后继续，" * 5
    assert all(estimate_tokens(piece) <= 24 for piece in cut_fragment(text, 24))


def test_a_cut_never_divides_a_name() -> None:
    names = [f"src/module_{n}/file.py" for n in range(40)]
    found = find_identifiers(" ".join(cut_fragment(" and ".join(names), 16)))
    assert [name.strip("…") for name in found] == names


def test_terminal_colours_and_control_characters_become_blanks() -> None:
    assert printable("\x1b[31mred\x1b[0m\x00\ttext\u2028x") == " red  text x"


def test_a_lone_surrogate_is_replaced() -> None:
    assert printable("a\ud800b") == "a\ufffdb"


def test_a_program_is_not_quoted() -> None:
    assert sentences("x = f(1);\ny = g(2);\nif (x) {\nplain words here\n} else {\nz();") == []


def test_a_short_command_block_is_quoted() -> None:
    assert sentences("Run this:\n```\nmake all\n```") == ["Run this:", "make all"]


@pytest.mark.parametrize("unit", [".", "?", " ", "a. ", " .", "1. ", '"', "```\n", "- ", "字", "ก"])
def test_a_hundred_kilobytes_of_one_pattern_are_survived(unit: str) -> None:
    text = unit * (100_000 // len(unit)) + "x"
    assert sum(map(len, sentences(text))) <= 2 * len(text)
