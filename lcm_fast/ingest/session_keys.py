"""What the shape of a session key says (spec: storage 4.3)."""

from __future__ import annotations

__all__ = ["is_cron_key", "normalised_key"]

_LEAST_CRON_PARTS = 4


def normalised_key(name: str | None) -> str | None:
    """Return a session key or id without blanks around it, None for a blank one.

    >>> normalised_key(" agent:main:main "), normalised_key("  ")
    ('agent:main:main', None)
    """
    return (name or "").strip() or None


def is_cron_key(session_key: str) -> bool:
    """Tell whether a key is that of a scheduled job, whose runs are kept apart.

    >>> is_cron_key("agent:main:cron:nightly"), is_cron_key("agent:main:cron")
    (True, False)
    """
    parts = session_key.split(":")
    return len(parts) >= _LEAST_CRON_PARTS and (parts[0], parts[2]) == ("agent", "cron")
