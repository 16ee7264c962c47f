"""Which sessions are left alone: glob patterns over session keys.

Only ``*`` and ``**`` are special (spec: storage 4.2; decision 10).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["SessionPolicy", "matches"]

_STARS = re.compile(r"\*+")


def matches(pattern: str, text: str) -> bool:
    """Tell whether a pattern matches a whole text.

    ``**`` stands for any characters, ``*`` for any without a colon; all others for themselves.

    Notes
    -----
    Complexity: O(pattern times text), whatever the stars.

    Examples
    --------
    >>> matches("agent:*:cron:*", "agent:main:cron:nightly")
    True
    >>> matches("agent:*:cron:*", "agent:main:cron:nightly:run:1")
    False
    >>> matches("agent:*:cron:**", "agent:main:cron:nightly:run:1")
    True
    """
    reached = {0}
    at = 0
    for stars in _STARS.finditer(pattern):
        reached = _after_literal(reached, pattern[at : stars.start()], text)
        reached = _after_stars(reached, text, crosses_colon=len(stars.group()) > 1)
        at = stars.end()
    return len(text) in _after_literal(reached, pattern[at:], text)


class SessionPolicy:
    """Which sessions are ignored, and which are read from and never written to.

    Parameters
    ----------
    ignore, stateless
        Patterns; blank ones match nothing.
    skip_stateless
        Whether the second list is obeyed.
    """

    def __init__(
        self, ignore: Iterable[str], stateless: Iterable[str], *, skip_stateless: bool
    ) -> None:
        self._ignore = [pattern for pattern in ignore if pattern.strip()]
        self._stateless = [pattern for pattern in stateless if pattern.strip()]
        self._skip_stateless = skip_stateless

    def is_ignored(self, session_key: str | None, session_id: str | None) -> bool:
        """Tell whether a session is not touched at all: by its key, else by its id."""
        name = (session_key or "").strip() or (session_id or "").strip()
        return bool(name) and any(matches(pattern, name) for pattern in self._ignore)

    def is_stateless(self, session_key: str | None) -> bool:
        """Tell whether a session is never written to."""
        key = (session_key or "").strip()
        if not key or not self._skip_stateless:
            return False
        return any(matches(pattern, key) for pattern in self._stateless)

    def why_not_stored(self, session_key: str | None, session_id: str | None) -> str | None:
        """Return why nothing of a session is stored, None when it is."""
        if self.is_ignored(session_key, session_id):
            return "session excluded by pattern"
        return "stateless session" if self.is_stateless(session_key) else None


def _after_literal(reached: set[int], literal: str, text: str) -> set[int]:
    return {at + len(literal) for at in reached if text.startswith(literal, at)}


def _after_stars(reached: set[int], text: str, *, crosses_colon: bool) -> set[int]:
    """Return every place that stars lead to from the places reached."""
    found: set[int] = set()
    last = len(text)
    for at in sorted(reached):
        if at in found:
            continue  # a run that began earlier goes through here
        end = last if crosses_colon else text.find(":", at)
        found.update(range(at, (last if end < 0 else end) + 1))
    return found
