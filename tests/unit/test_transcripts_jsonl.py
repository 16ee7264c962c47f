"""Lines and the objects on them: what ends a line, what is read, what is reported."""

from __future__ import annotations

import io
import math

import pytest

from lcm_fast.transcripts.jsonl import Piece, parse_objects, read_lines


def lines_of(data: bytes, **options: int) -> list[Piece]:
    return list(read_lines(io.BytesIO(data), len(data), **options))


def values_of(data: bytes) -> list[dict[str, object]]:
    return [found.value for found in parse_objects(data, 0)[0]]


@pytest.mark.parametrize("separator", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_a_line_feed_ends_a_line(separator: str) -> None:
    data = f'{{"a": "one{separator}two"}}\n{{"b": 1}}\n'.encode()
    assert len(lines_of(data)) == 2


def test_lines_cover_the_file_without_gaps() -> None:
    data = b'{"a":1}\r\n\n  \n{"b":2}'
    assert b"".join(line.data or b"" for line in lines_of(data)) == data


def test_a_last_line_without_line_feed_is_not_terminated() -> None:
    assert [line.terminated for line in lines_of(b"{}\n{}")] == [True, False]


def test_a_line_longer_than_the_limit_is_skipped_and_the_next_one_read() -> None:
    data = b"x" * 50 + b"\n{}\n"
    assert lines_of(data, limit=20) == [Piece(0, 51, None, True), Piece(51, 3, b"{}\n", True)]


def test_a_line_as_long_as_the_limit_is_read() -> None:
    assert lines_of(b"x" * 20 + b"\n", limit=20)[0].data == b"x" * 20 + b"\n"


def test_an_unterminated_line_longer_than_the_limit_reaches_to_the_end() -> None:
    assert lines_of(b"x" * 50, limit=20) == [Piece(0, 50, None, False)]


def test_reading_stops_at_the_given_end() -> None:
    assert list(read_lines(io.BytesIO(b"{}\n{}\n"), 4)) == [
        Piece(0, 3, b"{}\n", True),
        Piece(3, 1, b"{", False),
    ]


def test_several_objects_on_one_line_are_all_read() -> None:
    assert values_of(b'{"a":1}{"b":2} {"c":3}') == [{"a": 1}, {"b": 2}, {"c": 3}]


def test_bytes_and_offsets_of_each_object_are_exact() -> None:
    data = ' {"a":"é"}\t{ "b" : 2 } \r\n'.encode()
    found, _ = parse_objects(data, 1000)
    assert [(one.offset - 1000, one.raw) for one in found] == [
        (1, '{"a":"é"}'.encode()),
        (12, b'{ "b" : 2 }'),
    ]


def test_what_follows_the_last_readable_object_is_reported_with_its_place() -> None:
    _, rest = parse_objects(b'{"a":1} {"b":  \r\n', 100)
    assert (rest.offset, rest.length, rest.reason) == (108, 5, "broken JSON")


@pytest.mark.parametrize("data", [b"", b"   ", b"\t\r\n", b"\xef\xbb\xbf \n"])
def test_blanks_hold_nothing_and_nothing_unreadable(data: bytes) -> None:
    assert parse_objects(data, 0) == ([], None)


@pytest.mark.parametrize("data", [b"[1, 2]", b"12", b'"text"', b"null", b"plain text"])
def test_what_is_no_object_is_reported(data: bytes) -> None:
    assert parse_objects(data, 0)[1].reason == "not a JSON object"


def test_invalid_utf8_in_a_string_keeps_the_object_and_its_bytes() -> None:
    found, _ = parse_objects(b'{"a":"\xff\xfe"}', 0)
    assert found[0].raw == b'{"a":"\xff\xfe"}'


def test_an_escaped_lone_surrogate_is_read() -> None:
    assert values_of(rb'{"a":"x\ud800y"}') == [{"a": "x\ud800y"}]


def test_encoded_surrogates_keep_the_object_and_its_bytes() -> None:
    found, _ = parse_objects(b'{"a":"\xed\xa0\x80"}', 0)
    assert found[0].raw == b'{"a":"\xed\xa0\x80"}'


def test_raw_control_characters_in_a_string_are_read() -> None:
    assert values_of(b'{"a":"x\x01\ty\x00"}') == [{"a": "x\x01\ty\x00"}]


def test_nan_and_infinity_are_read() -> None:
    (value,) = values_of(b'{"a":NaN,"b":-Infinity,"c":1e999}')
    assert math.isnan(value["a"])
    assert (value["b"], value["c"]) == (-math.inf, math.inf)


def test_integers_of_any_size_stay_integers() -> None:
    assert values_of(b'{"a":123456789012345678901234567890}') == [
        {"a": 123456789012345678901234567890}
    ]


def test_an_object_nested_beyond_reason_is_reported() -> None:
    _, rest = parse_objects(b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", 0)
    assert rest.reason == "nested too deeply"
