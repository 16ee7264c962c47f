"""Sources too long for a model are shortened by quoting from all of them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from lcm_fast.kernels import estimate_tokens
from lcm_fast.summarize import SourceItem, SummaryRequest, bounded_request
from lcm_fast.summarize.prompts import render_blocks

AT = "2026-03-01T10:02:00Z"
FILLER = "The weather was mild and the road went on through the hills for a while. "


def a_request(*texts: str, depth: int = 0) -> SummaryRequest:
    items = tuple(
        SourceItem(f"{number}", "summary" if depth else "assistant", text, AT)
        for number, text in enumerate(texts)
    )
    return SummaryRequest("condensed" if depth else "leaf", depth, items, target_tokens=600)


def bounded(request: SummaryRequest, most: int) -> SummaryRequest:
    return bounded_request(request, most, estimate_tokens)


def tokens(request: SummaryRequest) -> int:
    return estimate_tokens(render_blocks(request.items, request.timezone))


def long_text(fact: str) -> str:
    """A long message with one fact in its middle."""
    lines = [f"{number}. {FILLER}" for number in range(80)]
    lines[40] = fact
    return "\n".join(lines)


def test_a_request_that_fits_is_returned_as_it_is() -> None:
    request = a_request(FILLER, FILLER)
    assert bounded(request, tokens(request)) is request


def test_one_token_less_than_needed_shortens() -> None:
    request = a_request(FILLER * 40, FILLER)
    assert tokens(bounded(request, tokens(request) - 1)) < tokens(request)


def test_facts_in_the_middle_of_long_messages_reach_the_summariser() -> None:
    facts = [
        f"We decided to keep service-{number} on port {9000 + number}." for number in range(72)
    ]
    found = 0
    for fact in facts:
        shortened = bounded(a_request(long_text(fact)), 1000)
        found += fact in shortened.items[0].text
    assert found == len(facts)


def test_every_stretch_of_a_very_long_message_is_quoted() -> None:
    sections = [
        f"Server s{number}.example.org failed at night.\n" + f"{FILLER}\n" * 200
        for number in range(20)
    ]
    shortened = bounded(a_request("\n".join(sections)), 5000).items[0].text
    assert all(f"Server s{number}.example.org failed" in shortened for number in range(20))


def test_room_that_is_allowed_is_used() -> None:
    text = "\n".join(f"Step {number} wrote file_{number}.txt to disk." for number in range(3000))
    assert tokens(bounded(a_request(text), 15_000)) > 10_000


def test_a_shortened_message_says_how_long_it_was() -> None:
    text = long_text("We chose SQLite.")
    note = bounded(a_request(text), 500).items[0].text.split("\n")[0]
    assert note == f"(shortened from {estimate_tokens(text)} tokens to quotes from all of it)"


def test_the_longest_give_way_and_the_short_stay_as_they_are() -> None:
    request = a_request("Short one.", long_text("A."), "Another short one.", long_text("B."))
    shortened = bounded(request, 2000)
    assert tokens(shortened) <= 2000
    assert shortened.items[0::2] == request.items[0::2]
    sizes = [estimate_tokens(item.text) for item in shortened.items[1::2]]
    assert max(sizes) - min(sizes) < 300


def test_a_long_summary_is_shortened_bullet_by_bullet() -> None:
    bullets = [f"- [10:{minute:02d} user] Use option {minute}." for minute in range(60)]
    request = a_request("Notes on 60 messages (60 user)\n" + "\n".join(bullets), depth=1)
    lines = bounded(request, 300).items[0].text.split("\n")[1:]
    assert lines
    assert all(line.startswith(("- [", "Also mentioned: ")) for line in lines)


def test_an_endless_name_is_cut_before_any_text_is() -> None:
    item = SourceItem("1", "user", FILLER, AT, sender="M" * 8000)
    request = msgspec.structs.replace(a_request(), items=(item,))
    (shortened,) = bounded(request, 300).items
    assert shortened.text == FILLER
    assert shortened.sender == "M" * 199 + "…"


def test_without_room_every_message_keeps_its_header_and_its_note() -> None:
    request = a_request(long_text("A."), long_text("B."))
    shortened = bounded(request, 1)
    assert len(shortened.items) == 2
    assert all(item.text.startswith("(shortened from ") for item in shortened.items)
    assert all("\n" not in item.text for item in shortened.items)


def test_a_message_shorter_than_the_note_is_not_replaced_by_it() -> None:
    request = a_request("Yes.", "No.")
    assert bounded(request, 1).items == request.items


@pytest.mark.parametrize("counter", [len, lambda text: 2 * len(text), lambda text: len(text) // 9])
def test_the_bound_holds_in_the_units_of_the_counter(
    counter: Callable[[str], int],
) -> None:
    request = a_request(long_text("A."), long_text("決定した。" * 200))
    shortened = bounded_request(request, 5000, counter)
    assert counter(render_blocks(shortened.items, "UTC")) <= 5000


def test_the_same_request_is_shortened_to_the_same() -> None:
    request = a_request(long_text("A."), long_text("B."))
    assert bounded(request, 900) == bounded(request, 900)
