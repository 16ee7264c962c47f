"""Messages that hold payloads, in every shape, and their shown forms."""

from __future__ import annotations

import base64
from typing import Any

from lcm_fast.ingest.payloads import Payload, ShownForm, shown_form
from lcm_fast.kernels import estimate_tokens

DEFAULT_THRESHOLD = 25_000
LOW_THRESHOLD = 1_000

PAPER = "".join(f"Line {n}: a lossless memory keeps what it was told.\n" for n in range(160))
OUTPUT = "".join(f"row {n} of the output of a tool\n" for n in range(4_000))
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR4nGNgAAIAAAUAAXpeqz8AAAAASUVORK5CYII="
)
LARGE_PNG = PNG + bytes(n * n % 251 for n in range(3_000_000))


def shown(body: dict[str, Any], threshold: int = DEFAULT_THRESHOLD, **options: Any) -> ShownForm:
    return shown_form(body, threshold, estimate_tokens, **options)


def only_payload(form: ShownForm) -> Payload:
    (payload,) = form.payloads
    return payload


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def text(value: str, kind: str = "text") -> dict[str, str]:
    return {"type": kind, "text": value}


def image(content: bytes = PNG, mime_type: str = "image/png") -> dict[str, str]:
    return {"type": "image", "data": encoded(content), "mimeType": mime_type}


def result(content: Any, tool_name: str = "exec") -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": "call_1",
        "toolName": tool_name,
        "content": content,
    }


def with_result(shape: str, value: Any) -> dict[str, Any]:
    """Return a tool's message of a shape, with a result in it."""
    if shape == "openclaw":
        return result([text(value)] if isinstance(value, str) else value)
    if shape == "openai":
        return {"role": "tool", "tool_call_id": "call_1", "content": value}
    if shape == "responses":
        return {"type": "function_call_output", "call_id": "call_1", "output": value}
    block = {"type": "tool_result", "tool_use_id": "call_1", "content": value}
    return user([block])


SHAPES = ("openclaw", "openai", "responses", "anthropic")
