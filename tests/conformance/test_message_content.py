"""Stored content and token count of each message of the golden table (spec storage 2.5.6)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from lcm_fast.ingest import message_from_entry
from lcm_fast.kernels import estimate_tokens
from lcm_fast.transcripts import shapes
from lcm_fast.transcripts.picture_tokens import MOST_TOKENS
from lcm_fast.types import SessionEntry

SECRET = {"type": "thinking", "thinking": "secret", "thinkingSignature": "sig"}
CALL = {"type": "toolCall", "id": "call_1", "name": "exec", "arguments": {"cmd": "ls"}}
PICTURE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
VENDOR = {"type": "vendor_payload", "blob": "zzz", "status": "ok"}


class Golden(NamedTuple):
    """A message with the content and the tokens the table gives it."""

    body: dict[str, Any]
    content: str
    tokens: int


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def result(content: Any) -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": "call_1", "toolName": "exec", "content": content}


def answer(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "call_1", **fields}


AS_THE_TABLE = [
    Golden(user("hello"), "hello", 2),
    Golden(user([text("hello")]), "hello", 2),
    Golden(user([text("a"), text("b")]), "a\nb", 14),
    Golden(assistant("hello"), "hello", 8),
    Golden(assistant([text("hello")]), "hello", 8),
    Golden(assistant([]), "", 0),
    Golden(assistant([SECRET, text("hi"), CALL]), "hi", 36),
    Golden(
        assistant(
            [{"type": "reasoning", "summary": [{"text": " a "}, {"text": "b"}, {"text": "a"}]}]
        ),
        "",
        19,
    ),
    Golden(result([text("out")]), "out", 8),
    Golden(result("out"), "out", 8),
    Golden(result([answer(output={"ok": True})]), "", 17),
    Golden({"role": "tool", "content": '{"status": "ok"}'}, '{"status": "ok"}', 12),
    Golden({"role": "tool", "content": '{"text": "inner"}'}, "inner", 12),
    Golden(user('[{"type":"text","text":"json inner"}]'), "json inner", 10),
    Golden(user({"status": "ok", "count": 2}), '{"status":"ok","count":2}', 7),
    Golden(user({"text": "obj text"}), "obj text", 6),
    Golden(user(42), "42", 1),
    Golden({"role": "system", "content": "sys"}, "sys", 1),
    Golden({"role": "user", "command": "ls", "output": "a\nb"}, "$ ls\na\nb", 2),
    Golden(user([{"type": "tool_call", "id": "x", "name": "n"}]), "", 11),
    Golden(assistant([VENDOR]), '[{"type":"vendor_payload","blob":"zzz","status":"ok"}]', 14),
    Golden(user("你好🔥"), "你好🔥", 5),
]

# body, what the table says, what we do, why
ON_PURPOSE = {
    "the parts of an empty list are not put together again: only the reasoning is counted": (
        Golden(assistant([], reasoning_content="think hard"), "", 9),
        Golden({}, "", 3),
    ),
    "a signature never reaches a model as text, so it is not counted (decision 4)": (
        Golden(
            assistant(
                [SECRET, text("hi")], provider="anthropic", api="anthropic-messages", model="m"
            ),
            "hi",
            24,
        ),
        Golden({}, "hi", 18),
    ),
    "readable thinking is counted, whatever its signature says": (
        Golden(
            assistant([{**SECRET, "thinkingSignature": "reasoning_content"}, text("hi")]), "hi", 8
        ),
        Golden({}, "hi", 18),
    ),
    "the text of a tool result is text: search and summaries need it": (
        Golden(result([answer(content=[text("nested")])]), "", 23),
        Golden({}, "nested", 23),
    ),
    "a message without anything in it costs nothing": (
        Golden(user(None), "", 16),
        Golden({}, "", 0),
    ),
    "the base64 of a picture is no text, and one of unknown size costs as much as the largest": (
        Golden(user([PICTURE]), "AAAA", 14),
        Golden({}, "", 14 + MOST_TOKENS),
    ),
    "the same holds for a picture beside text": (
        Golden(user([text("see"), PICTURE]), "see\nAAAA", 21),
        Golden({}, "see", 21 + MOST_TOKENS),
    ),
    "a bare string in a list is counted as it stands, not wrapped in host metadata": (
        Golden(assistant(["plain", text("x")]), "plain\nx", 32),
        Golden({}, "plain\nx", 9),
    ),
}


def stored(body: dict[str, Any]) -> tuple[str, int]:
    message = message_from_entry(SessionEntry("message", b"", 0, message=body), estimate_tokens)
    assert message is not None
    return message.content, message.token_count


@pytest.mark.parametrize("golden", AS_THE_TABLE, ids=lambda golden: repr(golden.body)[:60])
def test_content_and_tokens_are_those_of_the_table(golden: Golden) -> None:
    assert stored(golden.body) == (golden.content, golden.tokens)


@pytest.mark.parametrize("reason", ON_PURPOSE)
def test_a_difference_from_the_table_is_one_made_on_purpose(reason: str) -> None:
    table, ours = ON_PURPOSE[reason]
    assert stored(table.body) == (ours.content, ours.tokens) != (table.content, table.tokens)


def test_a_role_no_model_is_sent_makes_no_message() -> None:
    assert shapes.role_of({"role": "custom", "content": "x"}) is None
