"""Pictures in base64: in the blocks of every message shape, and as mere text (spec: storage 2.9.3
and 2.9.5)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...transcripts import text_at

__all__ = [
    "SHORTEST_INLINE",
    "InlinePicture",
    "Picture",
    "attached_name",
    "inline_picture",
    "may_be_inline_picture",
    "picture_of_block",
]

# 100 tokens, the least from which text in base64 is taken for a picture.
SHORTEST_INLINE = 400

_LEAST_SHARE_OF_BASE64 = 0.8

_MIME_KEYS = ("mimeType", "mime_type", "mediaType", "media_type")

_EXTENSIONS = {
    "image/jpeg": "jpg",
    "image/jpg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/svg+xml": "svg",
    "image/heic": "heic",
    "image/heif": "heic",
    "image/avif": "avif",
    "image/bmp": "bmp",
}
# Where the format says itself what it is: the bytes from an offset, and the type.
_SIGNATURES = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG", "image/png"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"<svg", "image/svg+xml"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftypavif", "image/avif"),
)

_DATA_URL = re.compile(r"data:([^;,\s]{0,100})(?:;[^;,\s]{0,100}){0,4};base64,")
_INLINE_START = re.compile(
    r"\s{0,100}(?:data:image/[\w.+-]{1,50};base64,\s?)?(?:/9j/|iVBOR|R0lGOD|UklGR|PHN2Zy)"
)
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")
_ATTACHED = re.compile(r"\[media attached(?: \d{1,4}/\d{1,4})?: ([^\[\]|\n]{1,1000})")
_DECLARED_TYPE = re.compile(r"\s\([^()\s]+/[^()\s]+\)\s*$")
_ATTACHMENT = "[media attached"
_LINE_OF_BASE64 = re.compile(r"\n(?=[^\S\n]{0,20}(?:data:image/|/9j/|iVBOR|R0lGOD|UklGR|PHN2Zy))")


class Picture(NamedTuple):
    """A picture's bytes, and what they are."""

    content: bytes
    mime_type: str
    extension: str


class InlinePicture(NamedTuple):
    """A picture that was text, with the text before and after it."""

    picture: Picture
    before: str
    after: str


def picture_of_block(block: Mapping[str, Any]) -> Picture | None:
    """Return the picture a block holds, None when it holds none or only an address of one."""
    for carrier, key in (
        (block, "data"),
        (block.get("source"), "data"),
        (block.get("image_url"), "url"),
        (block, "image_url"),
    ):
        if isinstance(carrier, Mapping) and isinstance(encoded := carrier.get(key), str):
            declared = text_at(carrier, *_MIME_KEYS) or text_at(block, *_MIME_KEYS)
            return _picture(encoded, declared)
    return None


def may_be_inline_picture(text: str) -> bool:
    """Tell cheaply whether `inline_picture` is worth asking."""
    return len(text) >= SHORTEST_INLINE and (
        _INLINE_START.match(text) is not None or text.startswith(_ATTACHMENT)
    )


def inline_picture(text: str) -> InlinePicture | None:
    """Return the picture that a text is in base64, alone or below a note of what was attached.

    A few words may stand behind it, such as a tool's note that it was cut.
    """
    if not may_be_inline_picture(text):
        return None
    before = ""
    if text.startswith(_ATTACHMENT):
        line = _LINE_OF_BASE64.search(text)
        if line is None:
            return None
        before, text = text[: line.start()].strip(), text[line.end() :]
    start = _DATA_URL.match(text.lstrip()[:300])
    text = text.lstrip()[start.end() if start else 0 :]
    run = _BASE64_RUN.match(text)
    if run is None or run.end() < max(SHORTEST_INLINE, _LEAST_SHARE_OF_BASE64 * len(text)):
        return None
    content = _decoded(run[0])
    mime_type = content and _mime_type_in(content)
    if not content or not mime_type:
        return None
    picture = Picture(content, mime_type, _EXTENSIONS[mime_type])
    return InlinePicture(picture, before, text[run.end() :].strip())


def attached_name(text: str) -> str | None:
    """Return the file name in a note of what was attached.

    >>> attached_name("[media attached 1/2: /tmp/in/my photo.png (image/png)] look")
    'my_photo.png'
    """
    note = _ATTACHED.search(text)
    if note is None:
        return None
    path = _DECLARED_TYPE.sub("", note[1]).strip()
    last = re.split(r"[/\\]", path)[-1]
    return re.sub(r"[^\w.@-]", "_", last) or None


def _picture(encoded: str, declared: str | None) -> Picture | None:
    url = _DATA_URL.match(encoded)
    if url:
        encoded = encoded[url.end() :]
        declared = url[1] or declared
    content = _decoded(encoded)
    if not content:
        return None
    mime_type = _mime_type_in(content) or (declared or "").strip().lower()
    extension = _EXTENSIONS.get(mime_type)
    return Picture(content, mime_type, extension) if extension else None


def _decoded(encoded: str) -> bytes | None:
    """Return the bytes of base64 text with any blanks in it; a missing end is made up for."""
    encoded = "".join(encoded.split()).rstrip("=")
    if len(encoded) % 4 == 1:
        encoded = encoded[:-1]
    encoded += "=" * (-len(encoded) % 4)
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None


def _mime_type_in(content: bytes) -> str | None:
    for offset, signature, mime_type in _SIGNATURES:
        if content.startswith(signature, offset):
            return mime_type
    return None
