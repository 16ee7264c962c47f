"""Which turns are heartbeats, beyond the golden case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.ingest.heartbeats import heartbeat_positions

POLL = "[OpenClaw heartbeat poll]"
Turn = tuple[str, str]

turns = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "tool"]),
        st.sampled_from([POLL, "HEARTBEAT_OK", "see heartbeat.md", "hi"]),
    ),
    max_size=12,
)


@given(turns)
def test_a_turn_reaches_from_the_nearest_user_message_to_its_acknowledgement(
    sequence: list[Turn],
) -> None:
    removed = {n for n, one in enumerate(sequence) if one == ("user", POLL)}
    for end, one in enumerate(sequence):
        users = [n for n in range(end) if sequence[n][0] == "user"]
        if one == ("assistant", "HEARTBEAT_OK") and users:
            names = [n for n in range(users[-1], end) if "heartbeat.md" in sequence[n][1]]
            removed |= set(range(users[-1], end + 1)) if names else set()
    assert heartbeat_positions(sequence) == sorted(removed)


def test_a_poll_takes_its_tool_calls_and_its_acknowledgement_along() -> None:
    sequence = [("user", POLL), ("tool", "HEARTBEAT.md: nothing"), ("assistant", "HEARTBEAT_OK")]
    assert heartbeat_positions(sequence) == [0, 1, 2]


def test_what_a_user_asked_about_the_heartbeat_file_before_a_poll_is_none() -> None:
    sequence = [
        ("user", "Add backups to HEARTBEAT.md"),
        ("assistant", "Added."),
        ("user", POLL),
        ("assistant", "HEARTBEAT_OK"),
    ]
    assert heartbeat_positions(sequence) == [2]


@pytest.mark.parametrize(
    "sequence",
    [
        [],
        [("assistant", "see HEARTBEAT.md"), ("assistant", "HEARTBEAT_OK")],
        [("user", "see HEARTBEAT.md"), ("user", "HEARTBEAT_OK")],
        [("user", "see HEARTBEAT.md"), ("assistant", "HEARTBEAT_OK, and two mails")],
        [("user", "hi"), ("assistant", "HEARTBEAT_OK")],
        [("assistant", POLL)],
        [("user", POLL + " again")],
    ],
)
def test_what_only_looks_like_a_heartbeat_is_none(sequence: list[Turn]) -> None:
    assert heartbeat_positions(sequence) == []
