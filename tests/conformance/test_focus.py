"""Values and rules of focus briefs as documented (spec W, AB52, AB62)."""

from __future__ import annotations

import re

import pytest

from lcm_fast.focus import LEAST_TOKENS, TARGET_TOKENS, evidence_limit_tokens, timeout_s
from lcm_fast.store import FocusBrief, SummaryReach
from lcm_fast.store.focus import covered_by, source_hash


def brief(seq: int | None = None, time: str | None = None) -> FocusBrief:
    return FocusBrief(
        brief_id="focus_0",
        conversation_id=1,
        session_key=None,
        prompt="p",
        covered_message_seq=seq,
        covered_latest_at=time,
        created_at="",
        updated_at="",
    )


def test_a_brief_aims_at_12_000_tokens_and_has_at_least_7_200() -> None:
    assert (TARGET_TOKENS, LEAST_TOKENS) == (12_000, 7_200)


@pytest.mark.parametrize(
    ("configured_ms", "seconds"),
    [(120_000, 600), (300_000, 600), (660_000, 660), (1_000_000, 900)],
)
def test_it_may_take_ten_to_fifteen_minutes(configured_ms: int, seconds: float) -> None:
    assert timeout_s(configured_ms) == seconds


@pytest.mark.parametrize(
    ("summary_tokens", "limit"),
    [(0, 40_000), (4_000, 40_000), (6_000, 60_000), (12_001, 120_000)],
)
def test_the_evidence_is_bounded(summary_tokens: int, limit: int) -> None:
    assert evidence_limit_tokens(summary_tokens) == limit


@pytest.mark.parametrize(
    ("seq", "time", "reach", "is_covered"),
    [
        (10, "2026-01-01", (10, "2027-01-01"), True),
        (10, "2026-01-01", (11, "2025-01-01"), False),
        (None, "2026-01-01", (11, "2026-01-01"), True),
        (10, "2026-01-01", (None, "2026-01-02"), False),
        (10, None, (None, "2026-01-02"), False),
        (None, None, (1, "2026-01-02"), False),
    ],
)
def test_a_summary_is_covered_by_message_else_by_time(
    seq: int | None, time: str | None, reach: tuple[int | None, str], is_covered: bool
) -> None:
    summary = SummaryReach(1, "sum_a", 5, reach[1], reach[0])
    assert bool(covered_by(brief(seq, time), [summary])) == is_covered


def test_the_source_hash_is_that_of_places_ids_sizes_and_times() -> None:
    one = SummaryReach(3, "sum_a", 7, "2026-01-01", 9)
    assert re.fullmatch("[0-9a-f]{64}", source_hash([one]))
    changed = [
        SummaryReach(4, "sum_a", 7, "2026-01-01", 9),
        SummaryReach(3, "sum_b", 7, "2026-01-01", 9),
        SummaryReach(3, "sum_a", 8, "2026-01-01", 9),
        SummaryReach(3, "sum_a", 7, None, 9),
    ]
    assert source_hash([one]) not in [source_hash([other]) for other in changed]
