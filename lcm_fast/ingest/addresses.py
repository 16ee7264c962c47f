"""Which conversation messages belong to: by session key first, then by session id.

Runs of a scheduled job share a key and are kept apart by their ids (spec: storage 4.1, 4.5).
"""

from __future__ import annotations

from pathlib import Path

from ..store import Address, Store
from ..transcripts import AnyTranscript
from .normalise import storable
from .session_keys import is_cron_key, normalised_key

__all__ = ["DEFAULT_SESSION_KEY", "address", "address_of"]

DEFAULT_SESSION_KEY = "default"


def address(session_key: str | None, session_id: str | None) -> Address:
    """Return which conversation a host speaks of; without any name, the default one."""
    key, identity = normalised_key(session_key), normalised_key(session_id)
    if key is None and identity is None:
        return Address(session_key=DEFAULT_SESSION_KEY)
    return Address(key, identity, is_isolated=key is not None and is_cron_key(key))


def address_of(
    store: Store, transcript: AnyTranscript, session_key: str | None, session_id: str | None
) -> Address:
    """Return which conversation a session file belongs to.

    Without a key given it is the file's name; two files of one name with different session ids are
    kept apart.
    """
    name = Path(transcript.path).name
    stem = storable(name.split(".json", 1)[0] or name)
    session_id = session_id or (transcript.session_id and storable(transcript.session_id))
    if normalised_key(session_key) is not None:
        return address(session_key, session_id or stem)
    there = store.find_conversation(Address(stem))
    if there and session_id and there.session_id not in (session_id, stem):
        return Address(f"{stem}#{session_id}", session_id)
    return Address(stem, session_id or (there.session_id if there else stem))
