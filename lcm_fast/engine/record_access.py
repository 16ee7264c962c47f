"""What an engine tells of its record: conversations, messages, summaries, exports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import NotFoundError
from ..ingest import address
from ..store import Conversation, Store, StoredMessage, StoredSummary, private_file

__all__ = ["RecordAccess"]


class RecordAccess:
    """The reading half of an engine.

    Attributes
    ----------
    store
        What it reads.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def export(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        to: str | os.PathLike[str],
    ) -> int:
        """Write a conversation to a file, each entry's bytes as received, one a line.

        The file appears whole or not at all, and is private to the user.

        Returns
        -------
        int
            How many entries were written.

        Raises
        ------
        NotFoundError
            No such conversation.
        OSError
            The file cannot be written.
        """
        entries = self.export_entries(session_key=session_key, session_id=session_id)
        count = 0
        with private_file(Path(to)) as stream:
            for raw in entries:
                stream.write(raw + b"\n")
                count += 1
        return count

    def export_entries(
        self, *, session_key: str | None = None, session_id: str | None = None
    ) -> Iterator[bytes]:
        """Return an iterator over the bytes of each entry of a conversation as received, in order.

        Raises
        ------
        NotFoundError
            No such conversation.
        """
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        return self.store.export(conversation.conversation_id)

    def conversation(
        self, *, session_key: str | None = None, session_id: str | None = None
    ) -> Conversation:
        """Return a conversation's names and counters.

        Raises
        ------
        NotFoundError
            No such conversation.
        """
        wanted = address(session_key, session_id)
        found = self.store.find_conversation(wanted)
        if found is None:
            name = wanted.session_key or wanted.session_id
            raise NotFoundError(
                f"no conversation with session key or id {name!r} in {self.store.path}",
                hint="`lcm-fast conversations` lists them",
            )
        return found

    def conversations(self, *, limit: int = 50, cursor: int = 0) -> list[Conversation]:
        """Return a page of conversations, oldest first.

        The next page's cursor is the last one's id.
        """
        return self.store.conversations_page(after_id=cursor, limit=limit)

    def messages(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        limit: int = 50,
        cursor: int = 0,
    ) -> list[StoredMessage]:
        """Return a page of a conversation's messages in order.

        The next page's cursor is the last one's seq.
        """
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        return self.store.messages_page(conversation.conversation_id, after_seq=cursor, limit=limit)

    def summaries(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        limit: int = 50,
        cursor: str = "",
    ) -> list[StoredSummary]:
        """Return a page of a conversation's summaries, oldest first.

        The next page's cursor is the last one's id.

        Raises
        ------
        NotFoundError
            No such conversation, or no summary with the cursor's id.
        """
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        after = ("", "")
        if cursor:
            rows = self.store.summaries([cursor])
            if not rows:
                raise NotFoundError(f"no summary {cursor!r}", hint="the cursor is a summary's id")
            after = (rows[0].created_at, cursor)
        return self.store.summaries_page(conversation.conversation_id, after=after, limit=limit)
