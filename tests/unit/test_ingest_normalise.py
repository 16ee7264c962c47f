"""One message made of what was received: its time, its identity, its sizes."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import entry, said

from lcm_fast.ingest.normalise import iso_time, message_from_entry, message_from_object, storable
from lcm_fast.kernels import estimate_tokens
from lcm_fast.types import UNTIMED, Message, SessionEntry


def made(value: dict[str, Any]) -> Message:
    return message_from_object(value, 0, estimate_tokens)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000, "2023-11-14T22:13:20.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        ("2026-01-05T09:00:00Z", "2026-01-05T09:00:00.000Z"),
        ("2026-01-05 09:00:00", "2026-01-05T09:00:00.000Z"),
        (" 2026-01-05T09:00:00+09:00 ", "2026-01-05T00:00:00.000Z"),
    ],
)
def test_a_time_is_kept_in_utc_with_milliseconds(given: Any, expected: str) -> None:
    assert iso_time(given) == expected


@pytest.mark.parametrize(
    "given",
    ["soon", "", None, True, [], float("nan"), float("inf"), 10**400, "0001-01-01T00:00+14"],
)
def test_what_is_no_time_is_none(given: Any) -> None:
    assert iso_time(given) is None


@pytest.mark.parametrize("key", ["timestamp", "createdAt", "created_at"])
def test_a_message_is_dated_by_any_of_its_time_fields(key: str) -> None:
    assert made({**said("hi"), key: 0}).created_at == "1970-01-01T00:00:00.000Z"


def test_the_time_of_a_message_counts_before_that_of_its_envelope() -> None:
    value = {**entry("a", None, said("hi", 0)), "timestamp": "2026-01-05T09:00:00Z"}
    assert made(value).created_at == "2023-11-14T22:13:20.000Z"


def test_the_identity_ignores_what_no_model_reads() -> None:
    plain = said("hi", 1)
    assert made({**plain, "usage": {"input": 3}}).identity == made(plain).identity


@pytest.mark.parametrize("other", [said("ho", 1), said("hi", 1, role="system")])
def test_the_identity_tells_text_and_role_apart(other: dict[str, Any]) -> None:
    assert made(other).identity != made(said("hi", 1)).identity


def test_the_identity_is_one_at_any_time_and_the_time_is_kept_beside_it() -> None:
    first, second = made(said("hi", 1)), made(said("hi", 2))
    assert first.identity == second.identity
    assert (first.created_at, first.timed) != (second.created_at, UNTIMED)


def test_the_identity_of_a_text_is_one_in_a_string_and_in_a_block() -> None:
    block = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert made(block).identity == made(said("hi")).identity


def test_equal_results_of_two_calls_have_two_identities() -> None:
    results = [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in ("a", "b")]
    assert made(results[0]).identity != made(results[1]).identity


def test_the_identity_does_not_depend_on_the_order_of_fields() -> None:
    message = said("hi", 1)
    assert made(dict(reversed(message.items()))).identity == made(message).identity


def test_the_identity_of_an_entry_is_that_of_the_message_inside() -> None:
    assert made(entry("a", None, said("hi"))).identity == made(said("hi")).identity


def test_a_picture_costs_the_same_however_large_it_is() -> None:
    sizes = [
        made({"role": "user", "content": [{"type": "image", "data": "iVBORw0KGgo1" * n}]})
        for n in (400, 4000)
    ]
    assert sizes[0].wire_tokens == sizes[1].wire_tokens


def test_the_wire_tokens_cover_the_envelope_of_the_content() -> None:
    message = made(said("hello"))
    assert (message.token_count, message.wire_tokens) == (2, 9)


def test_an_entry_without_a_message_makes_none() -> None:
    assert message_from_entry(SessionEntry("custom", b"{}", 0), estimate_tokens) is None


def test_an_entry_off_the_leaf_path_is_kept_out_of_the_view() -> None:
    off = SessionEntry("message", b"{}", 0, message=said("hi"), on_leaf_path=False)
    message = message_from_entry(off, estimate_tokens)
    assert message is not None
    assert message.excluded == "abandoned-branch"


@pytest.mark.parametrize("text", ["plain", "漢字 😀", ""])
def test_a_text_that_utf8_has_is_stored_as_it_is(text: str) -> None:
    assert storable(text) == text


def test_ids_with_lone_surrogates_can_be_stored() -> None:
    call = {"type": "toolCall", "id": "c\ud800", "name": "n\ud800"}
    message = made(entry("a\ud800", "b\ud800", {"role": "assistant", "content": [call]}))
    (made_call,) = message.calls
    names = [message.entry_id, message.parent_id, made_call.call_id, made_call.name]
    assert names == ["a\ufffd", "b\ufffd", "c\ufffd", "n\ufffd"]
