"""A provider's own name of an event (spec: storage 2.7.1, 2.7.2, 8.9)."""

from __future__ import annotations

from typing import Any

import pytest

from lcm_fast.ingest.event_keys import stable_event_key

CALL_ID = "toolu_01ABCDEFGHIJKLMN"
OTHER_ID = "call_abcdefghijklmnop"


def block(call_id: str = CALL_ID) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "out"}


@pytest.mark.parametrize(
    "body",
    [
        {"role": "assistant", "responseId": "resp_1"},
        {"role": "assistant", "response_id": "resp_1"},
        {"role": "assistant", "responseId": 7, "response_id": "resp_1"},
        {"role": "assistant", "responseId": "resp_1", "response_id": "resp_2"},
    ],
)
def test_a_response_is_named_by_its_id(body: dict[str, Any]) -> None:
    assert stable_event_key(body) == "assistant-response:resp_1"


@pytest.mark.parametrize("response", [None, "", " ", 7, ["resp_1"], "resp_\ud800"])
def test_a_response_without_an_id_has_no_key(response: object) -> None:
    assert stable_event_key({"role": "assistant", "responseId": response}) is None


@pytest.mark.parametrize(
    "body",
    [
        {"role": "toolResult", "toolCallId": CALL_ID, "content": "out"},
        {"role": "tool", "tool_call_id": CALL_ID, "content": "out"},
        {"role": "tool", "toolUseId": CALL_ID, "content": []},
        {"role": "tool", "id": CALL_ID, "content": "out"},
        {"role": "tool", "toolCallId": 7, "tool_call_id": CALL_ID},
        {"type": "function_call_output", "call_id": CALL_ID, "output": "out"},
        {"role": "user", "content": [block()]},
        {"role": "tool", "content": [{"type": "text", "text": "see"}, block()]},
        {"role": "toolResult", "toolCallId": CALL_ID, "content": [block()]},
    ],
    ids=str,
)
def test_a_result_is_named_by_the_call_it_answers(body: dict[str, Any]) -> None:
    assert stable_event_key(body) == f"tool-result:{CALL_ID}"


@pytest.mark.parametrize(
    "call_id",
    ["exec:101", "call_1", "call_abcdefghijk", "toolu_01ABCDEFGHI-KLMN", f"{CALL_ID}\n", "", None],
)
def test_a_call_id_that_can_be_used_again_makes_no_key(call_id: str | None) -> None:
    body = {"role": "toolResult", "toolCallId": call_id, "content": "out"}
    assert stable_event_key(body) is None


@pytest.mark.parametrize(
    "body",
    [
        {"role": "user", "content": [block(), block(OTHER_ID)]},
        {"role": "user", "content": [block(), block()]},
        {"role": "toolResult", "toolCallId": OTHER_ID, "content": [block()]},
    ],
    ids=["two calls", "one call twice", "places that disagree"],
)
def test_a_result_of_no_single_call_has_no_key(body: dict[str, Any]) -> None:
    assert stable_event_key(body) is None


@pytest.mark.parametrize(
    "body",
    [
        {"role": "user", "content": "hi", "responseId": "resp_1"},
        {"role": "user", "content": "hi", "toolCallId": CALL_ID},
        {"role": "user", "content": [block(), {"type": "text", "text": "and then?"}]},
        {"role": "system", "content": "hi", "responseId": "resp_1"},
        {"role": "custom", "responseId": "resp_1"},
    ],
    ids=str,
)
def test_nobody_else_has_a_key(body: dict[str, Any]) -> None:
    assert stable_event_key(body) is None
