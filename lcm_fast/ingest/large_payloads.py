"""Give a message's large payloads files of their own, before its row is stored.

The record keeps the bytes as received; what is shown of the message, searched and counted, has
references in their place. A file that no row names after a crash is removed when the next one is
written (design: architecture 4; spec: storage 2.9).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..store import PayloadFolder, Store
from ..types import LargeFile, ToolCall
from .payloads import Payload, shown_form

__all__ = ["LargePayloads"]

_REMEMBERED_CALLS = 10_000
_MOST_TOKENS_PER_BYTE = 2
# How the text of a message begins that is a picture in base64, or has one behind its name.
_PICTURE_BEGINNINGS = ("/9j/", "iVBOR", "R0lGOD", "UklGR", "PHN2Zy", "[media attached")


class LargePayloads:
    """Writes payloads over a threshold into a folder.

    Threading: safe to share; tools are named by the calls it was shown last.
    """

    def __init__(
        self,
        store: Store,
        folder: PayloadFolder,
        threshold_tokens: int,
        count_tokens: Callable[[str], int],
    ) -> None:
        self._store = store
        self._folder = folder
        self._threshold_tokens = threshold_tokens
        self._count_tokens = count_tokens
        self._tool_names: dict[str, str] = {}
        self._lock = threading.Lock()
        self._is_tidy = False

    def __call__(
        self, body: dict[str, Any], raw: bytes, content: str, calls: tuple[ToolCall, ...]
    ) -> tuple[dict[str, Any], tuple[LargeFile, ...]]:
        """Return a message as it is shown, and its payloads, written; usually itself and none.

        Raises
        ------
        StoreFullError, StoreReadOnlyError, DatabaseError
            A payload cannot be written; no part of it is left.
        """
        for call in calls:
            self._note(call)
        is_small = _MOST_TOKENS_PER_BYTE * len(raw) < self._threshold_tokens
        if is_small and not _may_hold_picture(raw, content):
            return body, ()
        form = shown_form(
            body, self._threshold_tokens, self._count_tokens, tool_names=self._tool_names
        )
        if not form.payloads:
            return body, ()
        self._tidy_once()
        return form.body, tuple(self._written(payload) for payload in form.payloads)

    def _note(self, call: ToolCall) -> None:
        if len(self._tool_names) >= _REMEMBERED_CALLS:
            self._tool_names = {}
        self._tool_names[call.call_id] = call.name

    def _written(self, payload: Payload) -> LargeFile:
        return LargeFile(
            file_id=payload.file_id,
            file_name=payload.file_name,
            mime_type=payload.mime_type,
            byte_size=payload.byte_size,
            line_count=payload.line_count,
            storage_uri=self._folder.write(payload.content, payload.file_id, payload.extension),
            exploration_summary=payload.exploration_summary,
        )

    def _tidy_once(self) -> None:
        with self._lock:
            if not self._is_tidy:
                known = {uri for _, uri, _ in self._store.large_files()}
                self._folder.collect(known.__contains__)
                self._is_tidy = True


def _may_hold_picture(raw: bytes, content: str) -> bool:
    """Tell whether a message declares a picture, or is one in base64; a cheap test for all."""
    return b"image" in raw or b"base64," in raw or content.lstrip().startswith(_PICTURE_BEGINNINGS)
