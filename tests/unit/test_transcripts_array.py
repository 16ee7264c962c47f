"""Elements of a JSON array: boundaries, bytes, offsets, and what a broken array leaves readable."""

from __future__ import annotations

import io

import pytest

from lcm_fast.transcripts.array import read_elements, starts_array
from lcm_fast.transcripts.jsonl import Piece


def elements_of(data: bytes, *, read_bytes: int = 7, limit: int = 1 << 20) -> list[Piece]:
    return list(read_elements(io.BytesIO(data), len(data), read_bytes=read_bytes, limit=limit))


def contents_of(data: bytes) -> list[bytes | None]:
    return [piece.data and piece.data.strip() for piece in elements_of(data)]


@pytest.mark.parametrize("head", [b'[{"role"', b"[ \r\n\t{", b"[]", b"[ ]"])
def test_a_bracket_before_an_object_starts_an_array(head: bytes) -> None:
    assert starts_array(head)


@pytest.mark.parametrize("head", [b"[2026-01-05] started", b'["a"', b"{}", b"[", b""])
def test_other_beginnings_start_lines(head: bytes) -> None:
    assert not starts_array(head)


def test_elements_keep_their_exact_bytes() -> None:
    assert contents_of(b'[{"a": 1},\n {"b":[{}, {"c":2}]}]') == [
        b'{"a": 1}',
        b'{"b":[{}, {"c":2}]}',
    ]


def test_offsets_point_into_the_file() -> None:
    data = b'  [ {"a":1} ,{"b":2}]'
    stream = io.BytesIO(data)
    stream.seek(2)
    pieces = list(read_elements(stream, len(data), read_bytes=3))
    assert [data[piece.offset :][: piece.length] for piece in pieces] == [b' {"a":1} ', b'{"b":2}']


@pytest.mark.parametrize("text", [r"],[", r"{{{", r"\"],", r"\\", r"\\\"}", "x" * 100])
def test_brackets_and_quotes_inside_strings_end_nothing(text: str) -> None:
    element = f'{{"a":"{text}"}}'.encode()
    assert contents_of(b"[" + element + b"," + element + b"]") == [element, element]


@pytest.mark.parametrize("read_bytes", [1, 2, 3, 5, 8, 1000])
def test_the_size_of_reads_does_not_matter(read_bytes: int) -> None:
    data = rb'[{"a":"\\\"]"},{"b":[1,{"c":"}"}]} , {}]'
    assert elements_of(data, read_bytes=read_bytes) == elements_of(data, read_bytes=4096)


def test_a_broken_element_does_not_hide_the_next() -> None:
    assert contents_of(b'[{"a":},{"b":2}]') == [b'{"a":}', b'{"b":2}']


def test_an_array_that_is_still_being_written_leaves_an_unterminated_piece() -> None:
    assert elements_of(b'[{"a":1},{"b":')[-1] == Piece(9, 5, b'{"b":', False)


def test_an_array_cut_after_a_comma_leaves_nothing() -> None:
    assert contents_of(b'[{"a":1},\n') == [b'{"a":1}']


def test_an_element_without_end_in_a_closed_array_is_not_waited_for() -> None:
    assert elements_of(b'[{"a":1},{"b":[1}]\n')[-1].terminated


def test_what_follows_the_array_is_a_piece_of_its_own() -> None:
    assert contents_of(b'[{"a":1}]\n{"b":2}\n') == [b'{"a":1}', b'{"b":2}']


def test_blanks_after_the_array_are_nothing() -> None:
    assert contents_of(b'[{"a":1}] \n\n') == [b'{"a":1}']


def test_an_element_longer_than_the_limit_ends_the_reading() -> None:
    data = b'[{"a":1},{"b":"' + b"x" * 500 + b'"}]'
    assert elements_of(data, limit=50)[-1] == Piece(9, len(data) - 9, None, True)


def test_reading_stops_at_the_given_end() -> None:
    data = b'[{"a":1},{"b":2}]'
    pieces = list(read_elements(io.BytesIO(data), 13))
    assert pieces[-1] == Piece(9, 4, b'{"b"', False)
