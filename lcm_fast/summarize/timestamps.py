"""Renders ISO 8601 times for prompts and notes, in one IANA zone.

Carries rule F5 of the compaction behaviour: ``YYYY-MM-DD HH:mm ZZZ``, midnight written 00, an
unknown zone rendered as UTC. Knows nothing of messages or summaries.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["format_range", "format_time", "local_time", "zone_label"]

_NORTH_AMERICAN = re.compile(r"(?:E|C|M|P|AK|H|A|N)[SD]T")
# As the store keeps times; no other is rendered without being read.
_STORED_TIME = re.compile(
    r"[12]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z",
    re.ASCII,
)
_ALIASES_OF_UTC = frozenset(["", "UTC", "GMT", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Zulu", "Etc/Zulu"])


def local_time(iso: str | None, zone: str) -> datetime | None:
    """Return an ISO 8601 time as a datetime in `zone`.

    Parameters
    ----------
    iso
        ISO 8601 text; without an offset it is taken as UTC. None stays None.
    zone
        IANA zone name; an unknown one is read as UTC.

    Returns
    -------
    datetime or None
        None when `iso` is None, is not a time, or lies outside the years a datetime can hold.
    """
    if iso is None:
        return None
    try:
        moment = datetime.fromisoformat(iso)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(_zone(zone))
    except (ValueError, OverflowError):
        return None


def format_time(iso: str | None, zone: str) -> str | None:
    """Render a time as ``YYYY-MM-DD HH:mm ZZZ``; None when there is no time to render.

    Examples
    --------
    >>> format_time("2026-03-01T00:05:00Z", "UTC")
    '2026-03-01 00:05 UTC'
    >>> format_time("2026-03-01T00:05:00Z", "Asia/Shanghai")
    '2026-03-01 08:05 GMT+8'
    """
    if iso is not None and zone == "UTC" and _STORED_TIME.fullmatch(iso):
        return f"{iso[:10]} {iso[11:16]} UTC"
    moment = local_time(iso, zone)
    return None if moment is None else f"{_minute(moment)} {zone_label(moment)}"


def format_range(first: datetime, last: datetime) -> str:
    """Render a span of time, naming the day once when both ends share it.

    Examples
    --------
    >>> begin = datetime(2026, 3, 1, 10, 2, tzinfo=UTC)
    >>> format_range(begin, begin + timedelta(minutes=3))
    '2026-03-01 10:02–10:05 UTC'
    """
    label = zone_label(last)
    if _minute(first) == _minute(last):
        return f"{_minute(first)} {label}"
    if first.date() == last.date():
        return f"{_minute(first)}–{last:%H:%M} {label}"
    return f"{_minute(first)} – {_minute(last)} {label}"


def zone_label(moment: datetime) -> str:
    """Return the zone's short name: ``UTC``, ``EST``, or ``GMT+8`` where names are ambiguous."""
    key = getattr(moment.tzinfo, "key", "UTC")
    if moment.tzinfo is UTC or key in _ALIASES_OF_UTC:
        return "UTC"
    name = moment.tzname() or ""
    if _NORTH_AMERICAN.fullmatch(name) and key.startswith(
        ("America/", "US/", "Canada/", "Pacific/")
    ):
        return name
    return _offset_label(moment.utcoffset() or timedelta())


def _offset_label(offset: timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    if minutes == 0:
        return "GMT"
    hours, rest = divmod(abs(minutes), 60)
    return f"GMT{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02d}" if rest else "")


def _minute(moment: datetime) -> str:
    # strftime("%Y") does not pad years below 1000 on every platform.
    return moment.isoformat(sep=" ", timespec="minutes")[:16]


@lru_cache(maxsize=16)
def _zone(name: str) -> tzinfo:
    if name in _ALIASES_OF_UTC:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
