"""Rows of payloads that are files of their own, and which messages hold them.

In the caller's transaction. The files are written before, by `payload_files`: a row always has its
file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import apsw

from ..types import LargeFile
from .rows import StoredFile

__all__ = ["file_ids_of", "get", "insert", "listed"]


def insert(
    db: apsw.Connection,
    conversation_id: int,
    files: Iterable[tuple[int, LargeFile]],
    now: str,
) -> None:
    """Note files, given with the ids of the messages that hold them."""
    pairs = list(files)
    db.executemany(
        "INSERT INTO large_files (file_id, conversation_id, file_name, mime_type, byte_size,"
        " line_count, storage_uri, exploration_summary, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (
                file.file_id,
                conversation_id,
                file.file_name,
                file.mime_type,
                file.byte_size,
                file.line_count,
                file.storage_uri,
                file.exploration_summary,
                now,
            )
            for _, file in pairs
        ],
    )
    db.executemany(
        "INSERT INTO message_files (message_id, file_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(message_id, file.file_id) for message_id, file in pairs],
    )


def file_ids_of(db: apsw.Connection, message_ids: Sequence[int]) -> list[str]:
    """Return the ids of the files that messages hold, in the order of the messages."""
    rows = db.execute(
        "SELECT file_id FROM json_each(?) CROSS JOIN message_files ON message_id = value"
        " ORDER BY key, file_id",
        (json.dumps(list(message_ids)),),
    )
    return list(dict.fromkeys(file_id for (file_id,) in rows))


def get(db: apsw.Connection, file_id: str) -> StoredFile | None:
    """Return a file and the messages that hold it."""
    columns = ", ".join(LargeFile.__struct_fields__)
    rows = db.execute(f"SELECT {columns} FROM large_files WHERE file_id = ?", (file_id,))
    found = next((LargeFile(*row) for row in rows), None)
    if found is None:
        return None
    holders = db.execute(
        "SELECT message_id FROM message_files WHERE file_id = ? ORDER BY message_id", (file_id,)
    )
    return StoredFile(found, [int(message_id) for (message_id,) in holders])


def listed(db: apsw.Connection) -> list[tuple[str, str, int]]:
    """Return (file id, place, bytes) of all files."""
    rows = db.execute("SELECT file_id, storage_uri, byte_size FROM large_files")
    return [(str(file_id), str(uri), int(size)) for file_id, uri, size in rows]
