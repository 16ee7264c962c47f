"""Read a large payload back: from its file, or from the record when the file is lost.

Source: spec storage 2.9.9 (the call a reference names), cases of large files; decision 16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import NotFoundError
from ..store import PayloadFolder, Store, StoredFile
from ..transcripts import body_of
from .payloads import Payload, reference_ids, shown_form

__all__ = ["FileDescription", "describe_file"]


@dataclass(frozen=True, slots=True)
class FileDescription:
    """A payload that is a file of its own.

    Attributes
    ----------
    used_in
        Ids of the messages that hold it, ``msg_<n>``.
    content
        Its bytes, when they were asked for.
    """

    file_id: str
    file_name: str | None
    mime_type: str | None
    byte_size: int
    line_count: int | None
    exploration_summary: str
    used_in: list[str]
    content: bytes | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values; content as text, what is no UTF-8 as surrogates."""
        fields = asdict(self)
        if self.content is not None:
            fields["content"] = self.content.decode("utf-8", "surrogateescape")
        return fields


def describe_file(
    store: Store,
    folder: PayloadFolder,
    named: str,
    *,
    expand_file: bool,
    threshold_tokens: int,
    count_tokens: Callable[[str], int],
) -> FileDescription:
    """Return what is known of a payload, and its bytes where they are asked for.

    Parameters
    ----------
    named
        A file id, or a whole reference to one.

    Raises
    ------
    NotFoundError
        It names no file, more than one, or one the record does not know.
    """
    ids = reference_ids(named)
    if len(ids) != 1:
        found = f"names {len(ids)} files" if ids else "is no file id"
        raise NotFoundError(f"{named!r} {found}", hint="give one id, such as file_0123456789abcdef")
    stored = store.large_file(ids[0])
    if stored is None:
        raise NotFoundError(
            f"no file {ids[0]!r} in {store.path}", hint="ids stand in the references of messages"
        )
    content = None
    if expand_file:
        try:
            content = folder.read(stored.file.storage_uri)
        except NotFoundError:
            content = _from_record(store, stored, (threshold_tokens, 1), count_tokens)
            if content is None:
                raise
            extension = stored.file.storage_uri.rsplit(".", 1)[-1]
            folder.write(content, stored.file.file_id, extension)
    file = stored.file
    return FileDescription(
        file_id=file.file_id,
        file_name=file.file_name,
        mime_type=file.mime_type,
        byte_size=file.byte_size,
        line_count=file.line_count,
        exploration_summary=file.exploration_summary,
        used_in=[f"msg_{number}" for number in stored.message_ids],
        content=content,
    )


def _from_record(
    store: Store,
    stored: StoredFile,
    thresholds: tuple[int, ...],
    count_tokens: Callable[[str], int],
) -> bytes | None:
    """Return a lost file's bytes from a message that holds it."""
    for row in store.messages(stored.message_ids[:1]):
        for threshold in thresholds:
            for payload in _payloads(row.raw, threshold, count_tokens):
                if payload.file_id == stored.file.file_id:
                    return payload.content
    return None


def _payloads(raw: bytes, threshold: int, count_tokens: Callable[[str], int]) -> Iterator[Payload]:
    yield from shown_form(body_of(raw), threshold, count_tokens).payloads
