"""A payload: bytes too large or too binary to stand in a prompt, under an id that is their digest
(spec: storage 2.9; design: architecture, section 4)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from ...types import Role
from ..exploration import explore, extension_of
from .pictures import Picture
from .references import (
    file_reference,
    image_reference,
    raw_reference,
    safe_mime_type,
    safe_name,
    tool_reference,
)

__all__ = [
    "Payload",
    "explored_result",
    "file_payload",
    "image_payload",
    "raw_payload",
    "tool_payload",
]

_UNNAMED_TOOL = "tool-result"
_RAW_REASON = "large_raw_message"

# What tools leave where they stopped; a result with it is not all there was.
_CUT_BY_TOOL = re.compile(r"\[(?:Read output capped at|Truncated:)", re.IGNORECASE)


class Payload(msgspec.Struct, frozen=True):
    """One payload, ready to be written and listed.

    Attributes
    ----------
    file_id
        ``file_`` and the first 16 hexadecimal digits of the content's SHA-256: the same bytes have
        the same id wherever they come from.
    content
        The bytes: text as UTF-8, pictures decoded.
    kind
        A block a user attached, a tool's result, a message's whole content, or a picture.
    file_name, mime_type
        As declared, without folders and control characters; None when nothing was.
    extension
        Of the file to be written, without the dot.
    reference
        The text that stands for it in a prompt.
    exploration_summary
        What it holds.
    line_count
        None for pictures.
    tool_name, call_id
        Of the tool call it is the result of, where it is one and says so.
    """

    file_id: str
    content: bytes
    kind: Literal["file", "tool_output", "raw", "image"]
    file_name: str | None
    mime_type: str | None
    extension: str
    reference: str
    exploration_summary: str
    line_count: int | None
    tool_name: str | None = None
    call_id: str | None = None

    @property
    def byte_size(self) -> int:
        """The size of the content."""
        return len(self.content)


def file_payload(
    text: str, name: str | None, mime_type: str | None, summaries: Mapping[str, str]
) -> Payload:
    """Return the payload of a ``<file>`` block."""
    name, mime_type = safe_name(name), safe_mime_type(mime_type)
    content = _utf8(text)
    file_id = _id_of(content)
    summary = summaries.get(file_id) or explore(text, name, mime_type)
    return Payload(
        file_id=file_id,
        content=content,
        kind="file",
        file_name=name,
        mime_type=mime_type,
        extension=extension_of(name, mime_type),
        reference=file_reference(file_id, name, mime_type, len(content), summary),
        exploration_summary=summary,
        line_count=_line_count(text),
    )


def tool_payload(
    text: str, tool_name: str | None, call_id: str | None, summaries: Mapping[str, str]
) -> Payload:
    """Return the payload of a tool's result; its reference says when the tool itself cut it."""
    tool_name = safe_name(tool_name)
    shown_name = tool_name or _UNNAMED_TOOL
    file_name = f"{shown_name}.txt"
    content = _utf8(text)
    file_id = _id_of(content)
    summary = summaries.get(file_id) or explore(text, file_name, "text/plain")
    return Payload(
        file_id=file_id,
        content=content,
        kind="tool_output",
        file_name=file_name,
        mime_type="text/plain",
        extension="txt",
        reference=tool_reference(
            file_id,
            shown_name,
            len(content),
            summary,
            is_truncated_at_source=_CUT_BY_TOOL.search(text) is not None,
        ),
        exploration_summary=summary,
        line_count=_line_count(text),
        tool_name=tool_name,
        call_id=call_id,
    )


def explored_result(text: str, tool_name: str | None) -> tuple[str, int, str]:
    """Return of a tool's result the tool's name, the size in bytes, and what it holds."""
    name = safe_name(tool_name) or _UNNAMED_TOOL
    return name, len(_utf8(text)), explore(text, f"{name}.txt", "text/plain")


def raw_payload(text: str, role: Role, summaries: Mapping[str, str], *, is_json: bool) -> Payload:
    """Return the payload of a message's whole content: its text, or its blocks as JSON."""
    extension, mime_type = ("json", "application/json") if is_json else ("txt", "text/plain")
    file_name = f"raw-{role}-payload.{extension}"
    content = _utf8(text)
    file_id = _id_of(content)
    summary = summaries.get(file_id) or explore(text, file_name, mime_type)
    return Payload(
        file_id=file_id,
        content=content,
        kind="raw",
        file_name=file_name,
        mime_type=mime_type,
        extension=extension,
        reference=raw_reference(file_id, role, _RAW_REASON, len(content), summary),
        exploration_summary=summary,
        line_count=_line_count(text),
    )


def image_payload(picture: Picture, label: str, name: str) -> Payload:
    """Return the payload of a picture."""
    name = safe_name(name) or f"image.{picture.extension}"
    size = len(picture.content)
    file_id = _id_of(picture.content)
    return Payload(
        file_id=file_id,
        content=picture.content,
        kind="image",
        file_name=name,
        mime_type=picture.mime_type,
        extension=picture.extension,
        reference=image_reference(label, file_id, name, picture.mime_type, size),
        exploration_summary=f"Image file ({picture.extension.upper()}, {size:,} bytes) — {name}",
        line_count=None,
    )


def _id_of(content: bytes) -> str:
    return f"file_{hashlib.sha256(content).hexdigest()[:16]}"


def _line_count(text: str) -> int:
    return text.count("\n") + 1


def _utf8(text: str) -> bytes:
    """Return a text as UTF-8; lone surrogates, which it has no form for, are replaced."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
