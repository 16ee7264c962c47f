"""Which sessions are left alone, by glob patterns over their keys (spec: storage 4.2)."""

from __future__ import annotations

from collections.abc import Iterable

from ..config import matches

__all__ = ["SessionPolicy"]


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
