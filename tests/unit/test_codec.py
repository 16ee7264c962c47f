"""The packed form of a message's bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.errors import DatabaseError
from lcm_fast.store.codec import DEFAULT_DICTIONARY, RecordCodec

CODEC = RecordCodec(DEFAULT_DICTIONARY)
LONG = "a text long enough to be taken out, with é, 漢 and 😀"


def packed_size(raw: bytes, content: str) -> int:
    return len(CODEC.pack(raw, content)[1])


@settings(max_examples=150)
@given(st.binary(max_size=400), st.text(max_size=60))
def test_any_bytes_come_back_with_any_content(raw: bytes, content: str) -> None:
    flags, blob = CODEC.pack(raw, content)
    assert CODEC.unpack(flags, blob, content) == raw


@settings(max_examples=150)
@given(st.text(min_size=24, max_size=80), st.booleans(), st.integers(0, 3))
def test_the_bytes_of_a_message_come_back_however_often_its_text_stands_there(
    content: str, ascii_only: bool, copies: int
) -> None:
    body = {"role": "user", "content": [content] * copies, "x": content + content}
    raw = json.dumps(body, ensure_ascii=ascii_only).encode()
    flags, blob = CODEC.pack(raw, content)
    assert CODEC.unpack(flags, blob, content) == raw


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_text_that_the_row_holds_already_is_not_kept_twice(ascii_only: bool) -> None:
    raw = json.dumps({"role": "user", "content": LONG}, ensure_ascii=ascii_only).encode()
    assert packed_size(raw, LONG) < len(LONG.encode())


def test_a_text_that_stands_several_times_is_taken_out_each_time() -> None:
    once = json.dumps({"role": "user", "content": LONG}).encode()
    thrice = json.dumps({"role": "user", "content": [LONG, LONG, LONG]}).encode()
    assert packed_size(thrice, LONG) < packed_size(once, LONG) + 16


def test_bytes_that_do_not_compress_are_kept_as_they_are() -> None:
    raw = bytes(range(256))
    assert CODEC.pack(raw, "") == (0, raw)


def test_a_mark_in_the_bytes_themselves_is_not_taken_for_a_text() -> None:
    raw = b'\0{"content":"' + LONG.encode() + b'"}\0'
    flags, blob = CODEC.pack(raw, LONG)
    assert CODEC.unpack(flags, blob, LONG) == raw


def test_the_dictionary_saves_more_than_half_of_a_short_message() -> None:
    raw = b'{"role":"assistant","content":[{"type":"text","text":"ok"}],"provider":"anthropic"}'
    assert packed_size(raw, "ok") < len(raw) / 2


def test_damaged_bytes_are_an_error_of_the_database() -> None:
    raw = json.dumps({"role": "user", "content": LONG * 9}).encode()
    flags, blob = CODEC.pack(raw, "")
    with pytest.raises(DatabaseError, match="cannot be unpacked") as caught:
        CODEC.unpack(flags, blob[:-3], "")
    assert caught.value.code == "damaged"
