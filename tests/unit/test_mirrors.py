"""A host's copies of delivered replies: shown once, stored always (spec: storage 8.12)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import chain, said, shown, texts, write_session

from lcm_fast.engine import Engine

THINKING = {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}
REPLY: dict[str, Any] = {
    "role": "assistant",
    "content": [THINKING, {"type": "text", "text": "done"}],
    "timestamp": 1_700_000_002_000,
}
PLAIN_REPLY = said("done", 2, role="assistant")
MIRROR = {**said("done", 3, role="assistant"), "model": "delivery-mirror"}


@pytest.mark.parametrize(
    "reply", [REPLY, {**PLAIN_REPLY, "reasoning_content": "hm"}], ids=["block", "field"]
)
def test_a_mirror_behind_its_reply_is_not_shown_again(
    engine: Engine, reply: dict[str, Any]
) -> None:
    engine.ingest([said("go", 1), reply, MIRROR])
    assert (shown(engine), len(texts(engine))) == (["go", "done"], 3)


def test_a_mirror_in_the_next_batch_is_not_shown_again(engine: Engine) -> None:
    engine.ingest([said("go", 1), REPLY])
    engine.ingest([MIRROR])
    assert shown(engine) == ["go", "done"]


def test_a_mirror_in_a_session_file_is_not_shown_again(engine: Engine, tmp_path: Path) -> None:
    file = write_session(tmp_path / "session.jsonl", chain(said("go", 1), REPLY, MIRROR))
    engine.bootstrap(file)
    assert shown(engine, "session") == ["go", "done"]


@pytest.mark.parametrize(
    "messages",
    [
        [MIRROR],
        [MIRROR, {**MIRROR, "timestamp": 1_700_000_009_000}],
        [REPLY, said("thanks", 3), MIRROR],
        [REPLY, said("done", 4, role="assistant")],
        [PLAIN_REPLY, MIRROR],
        [REPLY, {**MIRROR, "content": "another text"}],
    ],
    ids=["alone", "two", "after a turn", "no mirror", "no reasoning", "another text"],
)
def test_anything_else_is_shown(engine: Engine, messages: list[dict[str, Any]]) -> None:
    engine.ingest(messages)
    assert len(shown(engine)) == len(messages)
