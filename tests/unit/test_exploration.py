"""What a large text is said to hold, by its kind (spec: storage 2.9.2 and 2.9.10)."""

from __future__ import annotations

import json

import pytest

from lcm_fast.ingest.exploration import MAX_SUMMARY_CHARS, explore, extension_of, kind_of
from lcm_fast.ingest.exploration.prose import word_count

EXTENSIONS = (
    "json",
    "jsonl",
    "csv",
    "tsv",
    "xml",
    "yaml",
    "py",
    "ts",
    "go",
    "c",
    "log",
    "md",
    "txt",
)


@pytest.mark.parametrize(
    ("name", "mime_type", "extension"),
    [
        ("report.csv", "text/plain", "csv"),
        (None, "application/json", "json"),
        (None, None, "txt"),
        ("/in/Photo.JPG", None, "jpg"),
        ("archive.", "text/markdown", "md"),
        (".env", None, "txt"),
        ("x.overlongextension", None, "txt"),
        ("x.a-b", "text/x-rust; charset=utf-8", "rs"),
        ("a.b/c", None, "txt"),
    ],
)
def test_the_extension_is_the_names_else_the_types_else_txt(
    name: str | None, mime_type: str | None, extension: str
) -> None:
    assert extension_of(name, mime_type) == extension


@pytest.mark.parametrize(
    ("name", "mime_type", "kind"),
    [
        ("dump.bin", "text/csv", "csv"),
        ("notes.txt", "application/json", "json"),
        ("run.py", "text/plain", "code"),
        ("records", "application/x-ndjson", "json-lines"),
        ("feed", "application/atom+xml", "xml"),
        ("notes.md", None, "text"),
        (None, "text/plain", "undeclared"),
    ],
)
def test_a_telling_name_or_type_decides_the_kind(
    name: str, mime_type: str | None, kind: str
) -> None:
    assert kind_of(name, mime_type) == kind


def test_json_is_summed_up_by_type_and_shape() -> None:
    assert explore('{"users": [{"id": 1}], "count": 1}', "a.json", None) == (
        "Structured summary (JSON):\nTop-level type: object.\nShape: object(keys=2: users, count)."
    )


def test_json_samples_three_items_and_two_levels() -> None:
    shape = explore('[1, "a", {"b": 2}, [3]]', None, "application/json").splitlines()[2]
    assert shape == "Shape: array(len=4, sample=[number, string, object(keys=1: b)])."


def test_json_deeper_than_two_levels_is_dots() -> None:
    shape = explore("[[1, 2]]", "a.json", None).splitlines()[2]
    assert shape == "Shape: array(len=1, sample=[array(len=2, sample=[..., ...])])."


def test_json_shows_ten_keys() -> None:
    shape = explore(json.dumps(dict.fromkeys("abcdefghijkl")), "a.json", None).splitlines()[2]
    assert shape == "Shape: object(keys=12: a, b, c, d, e, f, g, h, i, j, ...)."


def test_json_counts_the_rows_inside_an_object() -> None:
    text = json.dumps({"rows": [{"id": n} for n in range(500)], "page": 1})
    assert (
        explore(text, "a.json", None)
        .splitlines()[3]
        .startswith("Parts: rows = array(len=500, sample=[object(keys=1: id)")
    )


def test_what_is_declared_json_and_is_not_says_so() -> None:
    assert explore("{oops", "a.json", None) == (
        "Structured summary (JSON): failed to parse as valid JSON."
    )


def test_json_with_a_lone_surrogate_is_still_json() -> None:
    assert "Top-level type: array." in explore('["\ud800"]', "a.json", None)


def test_json_nested_without_end_is_survived() -> None:
    assert explore("[" * 200_000 + "]" * 200_000, "a.json", None) == (
        "Structured summary (JSON): nested too deep to be explored."
    )


def test_json_lines_count_records_and_broken_lines() -> None:
    assert explore('{"a": 1}\n\n{"a": 2}\nbroken\n', "a.jsonl", None) == (
        "Structured summary (JSON lines):\nRecords: 2.\nLines that are not JSON: 1.\n"
        "First record: object(keys=1: a)."
    )


def test_csv_counts_rows_and_names_columns() -> None:
    assert explore("a,b\n1,2\n3,4", "a.csv", None) == (
        "Structured summary (CSV):\nRows: 2.\nColumns (2): a, b.\nFirst row sample: 1,2."
    )


def test_a_quoted_line_end_does_not_end_a_csv_row() -> None:
    assert "Rows: 1." in explore('a,b\n"x\ny",2\n', "a.csv", None)


def test_a_csv_quote_that_never_closes_is_reported_as_malformed() -> None:
    summary = explore('a,b\n"' + "x,y\n" * 100_000, "a.csv", None)
    assert summary.startswith("Structured summary (CSV): malformed at line ")


def test_tsv_columns_are_split_at_tabs() -> None:
    assert "Columns (2): a b, c." in explore("a b\tc\n1\t2\n", None, "text/tab-separated-values")


def test_an_empty_csv_has_no_rows_and_no_columns() -> None:
    assert explore("", "a.csv", None).splitlines()[1:] == ["Rows: 0.", "Columns (0): (none)."]


def test_yaml_lists_keys_under_which_something_is_nested() -> None:
    text = "top:\n  inner:\n    k: v\nk: v\nother: # note\n"
    assert explore(text, "a.yml", None) == (
        "Structured summary (YAML):\nTop-level keys (2): top, other."
    )


def test_xml_names_its_root_and_other_elements() -> None:
    text = (
        '<?xml version="1.0"?>\n<feed xmlns="x"><entry id="1"><b/></entry><entry>2</entry></feed>'
    )
    assert explore(text, "a.xml", None) == (
        "Structured summary (XML):\nRoot element: feed.\nOther elements (1): entry."
    )


@pytest.mark.parametrize(
    ("name", "source", "imports", "definitions"),
    [
        (
            "a.py",
            "import os\nclass A(B):\n    def m(self): ...\nasync def run(\n    x: int,\n) -> A:\n",
            "import os",
            "class A(B) | async def run( x: int, ) -> A",
        ),
        (
            "a.ts",
            'import {\n  a,\n} from "b";\nexport const f = async (x: T) => {\nexport class C {\n',
            'import { a, } from "b"',
            "export const f = async (x: T) => | export class C",
        ),
        (
            "a.go",
            'import (\n\t"fmt"\n)\ntype T struct {\nfunc (t *T) Run() error {\n',
            'import ( "fmt" )',
            "type T struct | func (t *T) Run() error",
        ),
        (
            "a.rs",
            "use std::io;\npub(crate) async fn run<T>(x: T) -> T {\nimpl A for B {\n",
            "use std::io",
            "pub(crate) async fn run<T>(x: T) -> T | impl A for B",
        ),
        (
            "a.c",
            "#include <stdio.h>\nint declared(int);\nstatic int add(int a)\n{\nstruct P {\n",
            "#include <stdio.h>",
            "static int add(int a) | struct P",
        ),
        (
            "A.java",
            "import java.util.List;\npublic final class A extends B {\n  void m() {}\n}\n",
            "import java.util.List",
            "public final class A extends B",
        ),
        ("a.rb", "require 'x'\nmodule M\nclass A\n", "require 'x'", "module M | class A"),
        ("a.sh", "source ./x\nrun() {\nfunction go {\n", "source ./x", "run() | function go"),
    ],
)
def test_code_lists_imports_and_top_level_signatures(
    name: str, source: str, imports: str, definitions: str
) -> None:
    assert explore(source, name, None).splitlines()[2:] == [
        f"Imports/dependencies: {imports}.",
        f"Top-level definitions: {definitions}.",
    ]


def test_sql_lists_what_it_creates() -> None:
    text = "CREATE TABLE t (a);\ninsert into t values (1);\ncreate or replace view v as select 1;\n"
    assert explore(text, "a.sql", None).splitlines()[-1] == (
        "Top-level definitions: CREATE TABLE t (a); | create or replace view v as select 1;."
    )


def test_definitions_beyond_the_bound_are_counted() -> None:
    text = "".join(f"def function_{n}():\n    pass\n" for n in range(40))
    assert explore(text, "a.py", None).endswith("def function_23() (+16 more).")


def test_prose_is_outlined() -> None:
    text = "# Plan\n\nfirst words\n\nALL CAPITALS\nShort\n## Next step\n" + "x " * 400 + "the end\n"
    assert explore(text, "a.md", None).splitlines() == [
        "Text summary:",
        f"Characters: {len(text):,}.",
        "Words: 412.",
        "Lines: 9.",
        "Section headers: # Plan | ALL CAPITALS | ## Next step.",
        "Opening excerpt: " + " ".join(text[:500].split()),
        "Closing excerpt: " + " ".join(text[-500:].split()),
    ]


@pytest.mark.parametrize("position", [65_534, 65_535, 65_536, 65_537])
def test_words_are_counted_alike_across_pieces(position: int) -> None:
    text = "x" * position + " " + "y" * 70_000
    assert word_count(text) == 2


def log_of(lines: int) -> str:
    return "".join(
        f"2026-03-0{1 + n // 600}T10:{n // 60 % 60:02}:{n % 60:02}Z "
        f"{'ERROR' if n % 100 == 7 else 'INFO'} request {n} "
        f"{'timed out after' if n % 100 == 7 else 'took'} {n % 13} ms\n"
        for n in range(lines)
    )


def test_a_log_is_known_by_its_looks_and_summed_up_by_its_errors() -> None:
    assert explore(log_of(1000), "exec.txt", "text/plain") == (
        "Log summary:\nLines: 1,001.\nLevels: INFO 990, ERROR 10.\n"
        "Time range: 2026-03-01T10:00:00Z to 2026-03-02T10:16:39Z.\n"
        "Error lines: 10; the first distinct ones:\n"
        "- 2026-03-01T10:00:07Z ERROR request 7 timed out after 7 ms (10x)"
    )


def test_error_lines_of_another_kind_are_listed_in_order() -> None:
    text = log_of(200) + "ValueError: no such key\n" + "[error] disk gone\n" * 3
    assert explore(text, "a.log", None).splitlines()[-2:] == [
        "- ValueError: no such key (1x)",
        "- [error] disk gone (3x)",
    ]


def test_logs_of_json_lines_show_their_levels() -> None:
    text = '{"level": "info", "n": 1}\n' * 30 + '{"level": "error", "n": 2}\n'
    assert "Levels: INFO 30, ERROR 1." in explore(text, "exec.txt", "text/plain")


def test_prose_that_mentions_a_time_is_no_log() -> None:
    text = "We met at 10:30:00 and talked.\n" + "Then nothing happened for long.\n" * 40
    assert explore(text, None, None).startswith("Text summary:")


def test_json_of_no_declared_type_is_known_by_its_looks() -> None:
    assert explore(' {"a": 1}\n', "exec.txt", "text/plain").startswith("Structured summary (JSON):")


def test_braces_alone_do_not_make_json_of_prose() -> None:
    assert explore("{not json}", None, None).startswith("Text summary:")


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize(
    "text", ["", "\n" * 50_000, "a:" * 50_000, "def f(" * 20_000, "<a " * 9_000]
)
def test_a_summary_is_bounded_whatever_the_text(extension: str, text: str) -> None:
    assert 0 < len(explore(text, f"a.{extension}", None)) <= MAX_SUMMARY_CHARS


def test_a_summary_of_one_line_keeps_to_its_line() -> None:
    summary = explore(json.dumps({"a\n\nCall describe(": 1}), "a.json", None)
    assert summary.splitlines()[2] == "Shape: object(keys=1: a Call describe()."
