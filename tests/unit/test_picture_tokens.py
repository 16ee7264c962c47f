"""Pictures cost what their providers say."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any

import pytest

from lcm_fast.transcripts import shapes
from lcm_fast.transcripts.picture_tokens import picture_tokens


def png(width: int, height: int) -> str:
    """Return a picture in base64; its pixels are left out, which no reader of sizes misses."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    crc = struct.pack(">I", zlib.crc32(chunk))
    signature = b"\x89PNG\r\n\x1a\n"
    return b64encode(signature + struct.pack(">I", len(header)) + chunk + crc).decode()


def jpeg(width: int, height: int, preview: int) -> str:
    """Return a picture with a preview of so many bytes before its size."""
    segments = b""
    while preview > 0:
        part = min(preview, 65_000)
        segments += b"\xff\xe1" + struct.pack(">H", part + 2) + b"e" * part
        preview -= part
    frame = b"\xff\xc0" + struct.pack(">HBHH", 11, 8, height, width) + b"\x01\x01\x11\x00"
    return b64encode(b"\xff\xd8" + segments + frame + b"\xff\xd9").decode()


def openai(data: str, detail: str | None = None) -> dict[str, Any]:
    address = {"url": f"data:image/png;base64,{data}"}
    return {"type": "image_url", "image_url": address | ({"detail": detail} if detail else {})}


def anthropic(data: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (1024, 1024, 765),
        (2048, 4096, 1105),
        (4096, 8192, 1105),
        (128, 64, 255),
        (512, 512, 255),
        (513, 512, 425),
        (8000, 3000, 1445),
        (20_000, 1, 765),
    ],
)
def test_openai_counts_tiles(width: int, height: int, tokens: int) -> None:
    assert picture_tokens(openai(png(width, height))) == tokens


def test_openai_shows_little_of_a_picture_for_little() -> None:
    assert picture_tokens(openai(png(4096, 8192), "low")) == 85
    responses = {"type": "input_image", "image_url": "https://a.b/c.png", "detail": "low"}
    assert picture_tokens(responses) == 85


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (200, 200, 54),
        (1000, 1000, 1334),
        (1092, 1092, 1590),
        (1568, 200, 419),
        (3136, 400, 419),
        (8000, 8000, 1600),
    ],
)
def test_anthropic_counts_pixels(width: int, height: int, tokens: int) -> None:
    assert picture_tokens(anthropic(png(width, height))) == tokens


def test_a_picture_for_either_costs_the_more() -> None:
    assert picture_tokens({"type": "image", "data": png(1092, 1092)}) == 1590
    assert picture_tokens({"type": "image", "data": png(128, 64)}) == 255


def test_a_size_behind_a_long_preview_is_found() -> None:
    assert picture_tokens(anthropic(jpeg(1000, 1000, 150_000))) == 1334


@pytest.mark.parametrize(
    "data", ["iVBORw0KGgo", png(100, 100)[:20], "////", "€€€€", "R0lGODlh", "PHN2Zz4="]
)
def test_a_damaged_picture_counts_as_the_largest(data: str) -> None:
    assert picture_tokens(anthropic(data)) == 1600


def test_line_breaks_in_base64_are_survived() -> None:
    data = png(1000, 1000)
    assert picture_tokens(anthropic("\n".join((data[:7], data[7:30], data[30:])))) == 1334


@pytest.mark.parametrize("carrier", [openai, anthropic])
def test_a_small_picture_is_no_text_and_no_other_one(carrier: Any) -> None:
    blocks = [carrier(png(side, side)) for side in (64, 65)]
    faces = [shapes.model_face({"role": "user", "content": [block]}) for block in blocks]
    assert [tokens for _, tokens in faces] == [picture_tokens(block) for block in blocks]
    first, second = (shapes.encode_face(face) for face, _ in faces)
    assert first != second
    assert png(64, 64).encode() not in first
