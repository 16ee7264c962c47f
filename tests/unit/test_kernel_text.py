"""Which terms the analyser makes of prose, code and numbers in many scripts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.kernels import analyse_terms

any_text = st.text(st.characters(codec=None), max_size=80)


def terms(text: str) -> str:
    return " ".join(analyse_terms(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We decided to use the queue.", "we decide to use the queue"),
        ("queries query; matches match", "query query match match"),
        ("caches cached caching cache", "cache cache cache cache"),
        ("stopped stopping stops stop", "stop stop stop stop"),
        ("updated updates updating update", "update update update update"),
        ("stored storing configured handled", "store store configure handle"),
        ("copied copies copying copy", "copy copy copy copy"),
        ("added calling running used using", "add call run use use"),
        ("status analysis class string need speed", "status analysis class string need speed"),
        ("embedding embedded embed", "embed embed embed"),
        ("don't", "don t"),
    ],
)
def test_english(text: str, expected: str) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserById", "getuserbyid get user by id"),
        ("HTTPServer", "httpserver http server"),
        ("version2Beta SHA256SUM 3D", "version2beta version2 beta sha256sum 3d"),
        ("URLs and IDs", "url and ids"),
        ("snake_case", "snake_case snake case"),
        ("well-known __init__ --dry-run", "well-known well known init dry-run dry run"),
        ("std::vector", "std::vector std vector"),
        ("load_user_files()", "load_user_files load user file"),
        ("a.getUser(x)", "a.getuser a getuser get user x"),
    ],
)
def test_identifiers(text: str, expected: str) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b.py", "a/b.py a b py"),
        ("/usr/lib/", "usr/lib usr lib"),
        (r"C:\Temp\x.log", r"c:\temp\x.log c temp x log"),
        (".gitignore, ./run", "gitignore run"),
        (
            "see https://example.com/a?b=c&d=1.",
            "see https://example.com/a?b=c&d=1 http example com a b c d 1",
        ),
        ("ann@example.com #general", "ann@example.com ann example com general"),
        ("a?b=c", "a b c"),
    ],
)
def test_paths_and_addresses(text: str, expected: str) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("E1234 ENOENT", "e1234 enoent"),
        ("ERR_CONN_RESET", "err_conn_reset err conn reset"),
        ("2026-03-19", "2026-03-19 2026 03 19"),
        ("3.14 and -2.5", "3.14 and 2.5"),
        ("v1.2.3", "v1.2.3 v1 2 3"),
        ("1.2.3", "1.2.3 1 2 3"),
        ("10:30", "10:30 10 30"),
        ("1,000", "1 000"),
    ],
)
def test_error_codes_numbers_and_dates(text: str, expected: str) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("数据库", "数 数据 据 据库 库"),
        ("用SQLite3。", "用 sqlite3 sq lite3"),
        ("エラー", "エ エラ ラ ラー ー"),
        ("ｴﾗｰ", "エ エラ ラ ラー ー"),
        ("東京へ", "東 東京 京 京へ へ"),
        ("안녕 세계", "안 안녕 녕 세 세계 계"),
        ("\u1112\u1161\u11ab", "한"),
        ("字", "字"),
        ("辻\U000e0100町", "辻 辻町 町"),
    ],
)
def test_chinese_japanese_and_korean(text: str, expected: str) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Привет, МИР", "привет мир"),
        ("السلام عليكم", "السلام عليكم"),
        ("الســـلام", "السلام"),
        ("Straße STRASSE", "strasse strasse"),
        ("Häuser Ha\u0308user", "häuser häuser"),
        ("ﬁnden ＡＢＣ", "finden abc"),
        ("Trenn\u00adstelle", "trennstelle"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("naïveté", "naïveté"),
    ],
)
def test_other_scripts(text: str, expected: str) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", " \t\n", "...", "--- *** ???", "🔥🎉👨‍👩‍👧", "→ ∑ ©", "\ud800\udfff", "\0", "\u0301"],
)
def test_punctuation_symbols_and_strays_yield_nothing(text: str) -> None:
    assert analyse_terms(text) == []


def test_duplicates_and_order_are_kept() -> None:
    assert analyse_terms("b a b") == ["b", "a", "b"]


def test_a_whole_of_64_characters_is_kept() -> None:
    whole = "a" * 31 + "_" + "b" * 32
    assert analyse_terms(whole) == [whole, "a" * 31, "b" * 32]


def test_a_whole_above_64_characters_yields_its_parts_alone() -> None:
    assert analyse_terms("a" * 32 + "_" + "b" * 32) == ["a" * 32, "b" * 32]


def test_a_word_above_64_characters_is_cut_to_them() -> None:
    assert analyse_terms("a" * 128) == ["a" * 64]


@given(any_text)
def test_no_text_is_refused_and_the_same_text_has_the_same_terms(text: str) -> None:
    assert analyse_terms(text) == analyse_terms(text)


@given(any_text)
def test_terms_are_folded_and_within_64_characters(text: str) -> None:
    assert all(0 < len(term) <= 64 and term == term.casefold() for term in analyse_terms(text))


@given(any_text, any_text)
def test_lines_are_analysed_independently(first: str, second: str) -> None:
    assert analyse_terms(f"{first}\n{second}") == analyse_terms(first) + analyse_terms(second)


@pytest.mark.parametrize("unit", ["a", "aB", "_", "é", "字", "://", "a-", "\u0301\u0323", "\xad"])
def test_the_terms_of_a_long_run_grow_no_faster_than_the_run(unit: str) -> None:
    assert len(analyse_terms(unit * 20_000)) <= 2 * 20_000 * len(unit)
