"""Pictures in base64, in blocks and as text (spec: storage 2.9.3 to 2.9.5, 8.14)."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from unit.payload_messages import (
    LARGE_PNG,
    PNG,
    SHAPES,
    assistant,
    encoded,
    image,
    only_payload,
    result,
    shown,
    text,
    user,
    with_result,
)

from lcm_fast.kernels import estimate_tokens


def picture_blocks(content: bytes) -> list[dict[str, Any]]:
    url = f"data:image/png;base64,{encoded(content)}"
    source = {"type": "base64", "media_type": "image/png", "data": encoded(content)}
    return [
        image(content),
        {"type": "image", "data": url},
        {"type": "image", "source": source},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "input_image", "image_url": url},
    ]


@pytest.mark.parametrize("block", picture_blocks(PNG))
def test_a_pasted_picture_is_still_seen_by_the_model(block: dict[str, Any]) -> None:
    body = user([text("what is this?"), block])
    form = shown(body)
    assert form.body is body
    assert only_payload(form).content == PNG


@pytest.mark.parametrize("block", picture_blocks(PNG))
def test_a_picture_that_aged_out_is_a_text_reference(block: dict[str, Any]) -> None:
    form = shown(user([text("what is this?"), block]), replace_images=True)
    kind = "input_text" if block["type"] == "input_image" else "text"
    assert form.body["content"][1] == text(only_payload(form).reference, kind)


def test_a_picture_is_known_by_the_digest_of_its_bytes() -> None:
    payload = only_payload(shown(user([image()])))
    assert payload.file_id == "file_" + hashlib.sha256(PNG).hexdigest()[:16]
    assert (payload.line_count, payload.exploration_summary) == (
        None,
        f"Image file (PNG, {len(PNG)} bytes) — user-image.png",
    )


@pytest.mark.parametrize(
    "body",
    [
        user(encoded(LARGE_PNG)),
        user([text(encoded(LARGE_PNG))]),
        user(f"data:image/png;base64,{encoded(LARGE_PNG)}"),
        result(encoded(LARGE_PNG)),
        result([text(encoded(LARGE_PNG))]),
        *(with_result(shape, encoded(LARGE_PNG)) for shape in SHAPES),
    ],
    ids=range(9),
)
def test_base64_images_in_any_role_are_not_kept_inline(body: dict[str, Any]) -> None:
    form = shown(body)
    payload = only_payload(form)
    assert (payload.kind, payload.content) == ("image", LARGE_PNG)
    assert payload.reference in json.dumps(form.body)
    assert estimate_tokens(json.dumps(form.body)) <= 200


def test_a_picture_inside_a_result_is_listed_and_kept() -> None:
    body = with_result("anthropic", [text("a screenshot"), picture_blocks(PNG)[2]])
    form = shown(body)
    assert form.body is body
    assert only_payload(form).reference.startswith("[Tool image: tool-image.png (image/png, ")


@pytest.mark.parametrize(
    ("body", "label"),
    [
        (user([image()]), "[User image: user-image.png "),
        (assistant([image()]), "[Assistant image: assistant-image.png "),
        ({"role": "system", "content": [image()]}, "[System image: system-image.png "),
        (result([image()]), "[Tool image: tool-image.png "),
    ],
    ids=["user", "assistant", "system", "tool"],
)
def test_pictures_of_every_role_are_externalised_under_one_id(
    body: dict[str, Any], label: str
) -> None:
    payload = only_payload(shown(body))
    assert payload.file_id == only_payload(shown(user([image()]))).file_id
    assert payload.reference.startswith(label)


@pytest.mark.parametrize(
    ("content", "declared", "mime_type", "extension"),
    [
        (b"\xff\xd8\xff\xe0 jpeg", "image/png", "image/jpeg", "jpg"),
        (b"GIF89a", None, "image/gif", "gif"),
        (b"RIFF\x04\x00\x00\x00WEBPVP8 ", None, "image/webp", "webp"),
        (b"<svg xmlns='x'/>", None, "image/svg+xml", "svg"),
        (b"\x00\x00\x00\x18ftypheic", "application/octet-stream", "image/heic", "heic"),
        (b"\x00\x00\x00\x18ftypavif", "image/avif", "image/avif", "avif"),
        (b"BM\x00\x00", "image/bmp", "image/bmp", "bmp"),
    ],
)
def test_a_picture_is_typed_by_its_bytes_else_as_declared(
    content: bytes, declared: str | None, mime_type: str, extension: str
) -> None:
    block = {"type": "image", "data": encoded(content), "media_type": declared}
    payload = only_payload(shown(user([block])))
    assert (payload.mime_type, payload.extension) == (mime_type, extension)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "not base64!", "mimeType": "image/png"},
        {"type": "image", "data": encoded(b"%PDF"), "mimeType": "application/pdf"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "data": ""},
        {"type": "image", "data": 7, "source": ["x"]},
    ],
)
def test_what_is_no_picture_in_base64_is_left_alone(block: dict[str, Any]) -> None:
    body = user([block])
    assert shown(body, replace_images=True) == (body, ())


def test_a_picture_bears_the_name_it_was_attached_under() -> None:
    note = text("[media attached 1/1: /inbox/My photo (1).png (image/png)] look")
    assert only_payload(shown(user([note, image()]))).file_name == "My_photo__1_.png"


def test_base64_below_a_note_of_its_attachment_is_replaced_below_the_note() -> None:
    note = "[media attached: /inbox/photo.png (image/png)]"
    form = shown(user(f"{note}\n{encoded(LARGE_PNG)}\n"))
    payload = only_payload(form)
    assert payload.reference.startswith("[User image: photo.png (image/png, ")
    assert form.body["content"] == f"{note}\n\n{payload.reference}"


def test_words_behind_a_picture_in_base64_stay() -> None:
    form = shown(result(encoded(LARGE_PNG) + "\n[output was cut]"))
    assert form.body["content"] == only_payload(form).reference + "\n\n[output was cut]"


def test_wrapped_base64_is_the_same_picture() -> None:
    wrapped = base64.encodebytes(LARGE_PNG).decode()
    assert only_payload(shown(result(wrapped))).content == LARGE_PNG


def test_a_short_text_that_begins_like_a_picture_is_text() -> None:
    body = user("iVBOR is how a PNG begins in base64")
    assert shown(body) == (body, ())


def test_the_same_picture_twice_is_one_payload() -> None:
    assert len(shown(user([image(), image()])).payloads) == 1
