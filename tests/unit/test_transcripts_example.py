"""The example session has what its README says it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcm_fast.transcripts.reader import open_transcript
from lcm_fast.types import SessionEntry

EXAMPLE = Path(__file__).parents[2] / "examples" / "session.jsonl"


@pytest.fixture(scope="module")
def entries() -> list[SessionEntry]:
    return list(open_transcript(EXAMPLE))


def texts(entries: list[SessionEntry], role: str) -> list[str]:
    messages = [one.message for one in entries if one.message and one.message["role"] == role]
    return [block["text"] for one in messages for block in one["content"] if "text" in block]


def test_it_is_an_openclaw_session_read_without_a_rest() -> None:
    transcript = open_transcript(EXAMPLE)
    assert len(list(transcript)) == 75
    assert (transcript.format, transcript.report.unreadable_count) == ("openclaw", 0)


def test_two_entries_were_abandoned(entries: list[SessionEntry]) -> None:
    assert sum(not one.on_leaf_path for one in entries) == 2


def test_one_tool_call_of_a_stopped_turn_has_no_result(entries: list[SessionEntry]) -> None:
    messages = [one.message for one in entries if one.message]
    blocks = [block for one in messages for block in one["content"]]
    calls = {block["id"] for block in blocks if block["type"] == "toolCall"}
    assert len(calls - {one.get("toolCallId") for one in messages}) == 1


def test_its_longest_tool_output_is_a_log_of_12_kilobytes(entries: list[SessionEntry]) -> None:
    assert max(map(len, texts(entries, "toolResult"))) == pytest.approx(12_000, rel=0.1)


def test_the_last_decision_is_the_one_of_the_second_day(entries: list[SessionEntry]) -> None:
    decisions = [text for text in texts(entries, "user") if "**Decision" in text]
    assert "cap 300 s and at most 28 attempts" in decisions[-1]
