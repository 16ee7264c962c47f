"""How a message that is too large is shown in part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lcm_fast.assembly.cutting import cut_piece
from lcm_fast.assembly.pieces import Piece, count_message
from lcm_fast.kernels import estimate_tokens

Message = dict[str, Any]
LONG = "head " + "middle " * 3000 + "tail"


def cut(message: Message, allowance: int) -> Piece:
    digest, tokens = count_message(message, estimate_tokens)
    piece = Piece(1, 1, "msg_7", message, tokens, digest)
    cut_piece(piece, allowance, estimate_tokens)
    return piece


def test_a_message_within_its_allowance_is_left_alone() -> None:
    message = {"role": "user", "content": "short"}
    piece = cut(message, 100)
    assert piece.message is message
    assert not piece.cut


def test_head_and_tail_stay_around_a_marker_that_names_the_whole() -> None:
    content = cut({"role": "user", "content": LONG}, 100).message["content"]
    head, marker, tail = content.split("\n")
    assert head.startswith("head middle")
    assert marker.endswith("characters left out; msg_7 has the whole …]")
    assert tail.endswith("middle tail")


@pytest.mark.parametrize("allowance", [50, 100, 1000, 5000])
def test_nearly_all_of_the_allowance_is_used(allowance: int) -> None:
    piece = cut({"role": "user", "content": LONG}, allowance)
    assert allowance - 3 <= piece.tokens <= allowance


def test_the_piece_counts_what_it_shows() -> None:
    piece = cut({"role": "user", "content": LONG}, 200)
    assert (piece.digest, piece.tokens) == count_message(piece.message, estimate_tokens)


def test_a_picture_gives_way_before_text_does() -> None:
    picture = {"type": "image", "data": "iVBORw0KGgo" * 600, "mimeType": "image/png"}
    text = {"type": "text", "text": "what is this? " * 10}
    message = cut({"role": "user", "content": [text, picture]}, 100).message
    assert message["content"] == [
        text,
        {"type": "text", "text": "[picture left out for lack of room]"},
    ]


def test_a_picture_inside_a_result_gives_way_too() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 600}
    block = {
        "type": "tool_result",
        "tool_use_id": "A",
        "content": [{"type": "image", "source": source}],
    }
    assert "iVBOR" not in json.dumps(cut({"role": "user", "content": [block]}, 100).message)


def test_reasoning_gives_way_whole_with_its_signature() -> None:
    thinking = {"type": "thinking", "thinking": LONG, "thinkingSignature": "abc" * 100}
    said = {"type": "text", "text": "done"}
    message = cut({"role": "assistant", "content": [thinking, said]}, 100).message
    assert message["content"] == [said]


def test_arguments_that_are_json_in_a_string_stay_json() -> None:
    function = {"name": "write", "arguments": json.dumps({"path": "a.py", "text": LONG})}
    calls = [{"id": "A", "type": "function", "function": function}]
    message = cut({"role": "assistant", "content": None, "tool_calls": calls}, 100).message
    shown = json.loads(message["tool_calls"][0]["function"]["arguments"])
    assert shown["path"] == "a.py"
    assert "msg_7 has the whole" in shown["text"]


def test_ids_and_names_stay_whole() -> None:
    call = {"type": "toolCall", "id": "c" * 100, "name": "n" * 90, "arguments": {"text": LONG}}
    block = cut({"role": "assistant", "content": [call]}, 200).message["content"][0]
    assert (block["id"], block["name"]) == ("c" * 100, "n" * 90)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "text", "text": f"line {n}"} for n in range(999)]},
        {
            "role": "assistant",
            "content": [
                {"type": "toolCall", "id": "A", "name": "f", "arguments": {"n": [1] * 9999}}
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "A",
                    "content": [{"type": "text", "text": "row"}] * 999,
                }
            ],
        },
    ],
    ids=["many texts", "many numbers", "many result blocks"],
)
def test_a_message_of_many_small_parts_is_shown_as_one_text(message: Message) -> None:
    piece = cut(message, 120)
    assert piece.tokens <= 120
    assert "msg_7 has the whole" in json.dumps(piece.message, ensure_ascii=False)


def test_lone_surrogates_are_survived() -> None:
    assert cut({"role": "user", "content": "\ud800" * 9000}, 100).tokens <= 100
