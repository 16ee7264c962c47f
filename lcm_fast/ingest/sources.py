"""Open what a host keeps sessions in: a session file, or an OpenClaw agent's database.

Source: spec session formats; the sessions of a database are read as files of their own would be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import NotFoundError
from ..store import OpenClawAgentDatabase
from ..transcripts import AnyTranscript, EventTranscript, open_transcript

__all__ = ["open_source", "sessions_in"]

_MAGIC = b"SQLite format 3\0"
_NAMED = 10


@contextmanager
def open_source(
    path: str | os.PathLike[str], session_id: str | None = None
) -> Iterator[AnyTranscript]:
    """Lend the transcript of a session for the length of the block.

    Parameters
    ----------
    session_id
        Of a database: which session; not needed when it holds one alone.

    Raises
    ------
    NotFoundError
        No such file; no such session, or several and none is named.
    SessionFileError
        It can be read neither as a session file nor as such a database.
    """
    if not _is_database(path):
        yield open_transcript(path)
        return
    with OpenClawAgentDatabase(path) as database:
        yield EventTranscript(database, session_id or _only_session(database))


def sessions_in(path: str | os.PathLike[str]) -> list[str | None]:
    """Return the ids of a database's sessions; of a session file, which is one, None alone."""
    if not _is_database(path):
        return [None]
    with OpenClawAgentDatabase(path) as database:
        return [session.session_id for session in database.sessions()]


def _is_database(path: str | os.PathLike[str]) -> bool:
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return False  # whoever opens it says what is wrong


def _only_session(database: OpenClawAgentDatabase) -> str:
    sessions = [session.session_id for session in database.sessions()]
    if len(sessions) == 1:
        return sessions[0]
    more = len(sessions) - _NAMED
    listed = ", ".join(sessions[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    raise NotFoundError(
        f"{database.path} holds {len(sessions)} sessions and none is named",
        hint=f"name one as session id: {listed}" if sessions else "there is nothing to read",
    )
