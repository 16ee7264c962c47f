"""The time zone of this machine, by its IANA name."""

from __future__ import annotations

from pathlib import Path

from .values import is_zone

__all__ = ["system_zone"]

_LOCALTIME = Path("/etc/localtime")


def system_zone(localtime: Path = _LOCALTIME) -> str:
    """Return the zone that `localtime` links to; UTC where it does not say."""
    try:
        parts = localtime.resolve(strict=True).parts
    except OSError:
        return "UTC"
    if "zoneinfo" not in parts:
        return "UTC"
    name = "/".join(parts[parts.index("zoneinfo") + 1 :])
    return name if is_zone(name) else "UTC"
