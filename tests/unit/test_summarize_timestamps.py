"""Times in prompts and notes are days and minutes in the configured zone, with a short name."""

from __future__ import annotations

from datetime import datetime

import pytest

from lcm_fast.summarize.timestamps import format_range, format_time, local_time


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2026-03-01 00:05 UTC"),
        ("GMT", "2026-03-01 00:05 UTC"),
        ("Etc/UTC", "2026-03-01 00:05 UTC"),
        ("Europe/London", "2026-03-01 00:05 GMT"),
        ("Asia/Shanghai", "2026-03-01 08:05 GMT+8"),
        ("Asia/Kolkata", "2026-03-01 05:35 GMT+5:30"),
        ("America/New_York", "2026-02-28 19:05 EST"),
        ("America/Sao_Paulo", "2026-02-28 21:05 GMT-3"),
    ],
)
def test_a_time_is_shown_in_its_zone(zone: str, shown: str) -> None:
    assert format_time("2026-03-01T00:05:00.000Z", zone) == shown


@pytest.mark.parametrize("zone", ["", "Nowhere/City", "../etc/passwd", "America", "a\0b", "\ud800"])
def test_an_unknown_zone_is_shown_as_utc(zone: str) -> None:
    assert format_time("2026-03-01T00:05:00Z", zone) == "2026-03-01 00:05 UTC"


def test_midnight_is_written_as_hour_zero() -> None:
    assert format_time("2026-03-01T00:00:00Z", "UTC") == "2026-03-01 00:00 UTC"


def test_summer_time_has_its_own_name() -> None:
    assert format_time("2026-07-01T12:00:00Z", "America/New_York") == "2026-07-01 08:00 EDT"


def test_a_time_without_offset_is_utc() -> None:
    assert format_time("2026-03-01 10:02:00", "UTC") == "2026-03-01 10:02 UTC"


def test_an_early_year_keeps_four_digits() -> None:
    assert format_time("0987-03-01T10:02:00Z", "UTC") == "0987-03-01 10:02 UTC"


@pytest.mark.parametrize("text", [None, "", "yesterday", "0001-01-01T00:00:00+23:00"])
def test_what_is_no_time_has_no_rendering(text: str | None) -> None:
    assert format_time(text, "UTC") is None


@pytest.mark.parametrize(
    ("last", "shown"),
    [
        ("2026-03-01T10:02:59Z", "2026-03-01 10:02 UTC"),
        ("2026-03-01T10:05:00Z", "2026-03-01 10:02–10:05 UTC"),
        ("2026-03-02T09:00:00Z", "2026-03-01 10:02 – 2026-03-02 09:00 UTC"),
    ],
)
def test_a_span_names_what_its_ends_do_not_share(last: str, shown: str) -> None:
    assert format_range(moment("2026-03-01T10:02:00Z"), moment(last)) == shown


def moment(iso: str) -> datetime:
    local = local_time(iso, "UTC")
    assert local is not None
    return local
