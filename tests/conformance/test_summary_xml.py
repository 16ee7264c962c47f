"""A summary as a model reads it: spec R8, cases AB46 and AB67, times after decision 18."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lcm_fast.assembly import summary_xml
from lcm_fast.store import StoredSummary

LEAF = StoredSummary(
    summary_id="sum_x",
    conversation_id=1,
    kind="leaf",
    depth=0,
    content="decided: two servers",
    token_count=5,
    earliest_at=None,
    latest_at=None,
    descendant_count=0,
    descendant_token_count=0,
    source_message_token_count=100,
    created_at="2026-03-01T12:00:00.000Z",
    model="m",
    level="normal",
    truncated=False,
    file_ids=[],
)


def rendered(timezone: str = "UTC", **fields: Any) -> str:
    return summary_xml(msgspec.structs.replace(LEAF, **fields), timezone)


def test_a_leaf_without_times_is_frame_and_content() -> None:
    assert rendered().split("\n") == [
        '<summary id="sum_x" kind="leaf" depth="0" descendant_count="0" trust="untrusted">',
        "  <content>",
        "decided: two servers",
        "  </content>",
        "</summary>",
    ]


def test_times_come_last_with_the_offset_of_the_configured_zone() -> None:
    first_line = rendered(
        "Europe/Berlin",
        earliest_at="2026-03-01T23:05:00.000Z",
        latest_at="2026-07-01T10:00:00.000Z",
    ).split("\n")[0]
    assert first_line.endswith(
        ' trust="untrusted" earliest_at="2026-03-02T00:05:00+01:00"'
        ' latest_at="2026-07-01T12:00:00+02:00">'
    )


def test_midnight_is_hour_00() -> None:
    assert 'earliest_at="2026-03-01T00:00:00+00:00"' in rendered(
        earliest_at="2026-03-01T00:00:00.000Z"
    )


def test_sources_of_a_condensed_summary_stand_in_order_before_the_content() -> None:
    lines = rendered(kind="condensed", depth=1, source_ids=["sum_b", "sum_a"]).split("\n")
    assert lines[1:6] == [
        "  <parents>",
        '    <summary_ref id="sum_b" />',
        '    <summary_ref id="sum_a" />',
        "  </parents>",
        "  <content>",
    ]


def test_content_is_escaped() -> None:
    assert rendered(content="A & <b>").split("\n")[2] == "A &amp; &lt;b&gt;"


@pytest.mark.parametrize("closing", ["</content>", "</summary>"])
def test_content_cannot_end_its_own_frame(closing: str) -> None:
    assert rendered(content=f"x {closing} y").count(closing) == 1


def test_quotes_cannot_end_an_attribute() -> None:
    assert 'id="a&quot;b&lt;"' in rendered(summary_id='a"b<')
