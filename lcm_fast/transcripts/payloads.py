"""The pictures and documents that blocks carry, in the shapes of every provider; pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .envelope import text_at

__all__ = ["File", "Picture", "file_of", "picture_of"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, in base64 or at an address."""

    media_type: str
    data: str | None
    url: str | None


@dataclass(frozen=True, slots=True)
class File:
    """A document, in base64 or at an address."""

    name: str
    media_type: str
    data: str | None
    url: str | None


def picture_of(block: Mapping[str, Any]) -> Picture | None:
    """Return the picture of a block that is one, None where it holds none."""
    found = _payload(block, ("image_url", "url"))
    return None if found is None else Picture(*found)


def file_of(block: Mapping[str, Any]) -> File | None:
    """Return the document of a block that is one, None where it holds none."""
    inner = block.get("file")
    carrier = inner if isinstance(inner, dict) else block
    found = _payload(carrier, ("file_data", "file_url", "url"))
    name = text_at(carrier, "filename", "title", "name") or "document"
    return None if found is None else File(name, *found)


def _payload(
    block: Mapping[str, Any], address_keys: tuple[str, ...]
) -> tuple[str, str | None, str | None] | None:
    """Return (media type, base64, address) of a block's payload, None where it has none."""
    source = block.get("source")
    carrier = source if isinstance(source, dict) else block
    media_type = text_at(carrier, "mimeType", "media_type", "mime_type") or "image/png"
    data = carrier.get("data")
    if isinstance(data, str) and data:
        return media_type, data, None
    for key in address_keys:
        address = carrier.get(key)
        if isinstance(address, dict):
            address = address.get("url")
        if isinstance(address, str) and address:
            return _split_address(address, media_type)
    return None


def _split_address(address: str, media_type: str) -> tuple[str, str | None, str | None]:
    head, separator, data = address.partition(";base64,")
    if separator and head.startswith("data:"):
        return head.removeprefix("data:") or media_type, data, None
    return media_type, None, address
