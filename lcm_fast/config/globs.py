"""Glob patterns over session keys, in which only ``*`` and ``**`` are special.

Source: storage behaviour 4.2, compaction C1; decision 10.
"""

from __future__ import annotations

import re

__all__ = ["matches"]

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
