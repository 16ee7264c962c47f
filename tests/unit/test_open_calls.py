"""What is still running is named in summaries, so that it is not started again (case 134)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lcm_fast
from lcm_fast.summarize import SummaryRequest


def spawn(number: int) -> dict[str, Any]:
    call = {
        "type": "toolCall",
        "id": f"call_{number}",
        "name": "sessions_spawn",
        "arguments": {"task": f"look through archive {number}"},
    }
    return {"role": "assistant", "content": [{"type": "text", "text": "On it."}, call]}


def result_of(number: int) -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": f"call_{number}", "content": "found nothing"}


def conversation() -> list[dict[str, Any]]:
    said = {"role": "user", "content": "Search every archive. " + "Be thorough about it. " * 60}
    messages = [said]
    for number in range(6):
        messages.append(spawn(number))
        if number < 2:
            messages.append(result_of(number))
    return [*messages, {"role": "user", "content": "and meanwhile?"}]


def test_a_summariser_is_told_which_calls_have_no_result(database: Path) -> None:
    requests: list[SummaryRequest] = []

    def summarise(request: SummaryRequest) -> str:
        requests.append(request)
        return "in brief"

    config = {"fresh_tail_count": 1, "timezone": "UTC"}
    with lcm_fast.open(database, config=config, summarizer=summarise) as engine:
        engine.ingest(conversation())
        engine.compact(force=True)
    (request,) = requests
    assert named_in(request.text) == [2, 3, 4, 5]
    assert named_in(request.prompt.user) == [2, 3, 4, 5]


def test_the_offline_summariser_keeps_them_at_every_depth(database: Path) -> None:
    config = {
        "fresh_tail_count": 1,
        "timezone": "UTC",
        "leaf_min_fanout": 2,
        "condensed_target_tokens": 512,
        "summary_prefix_target_tokens": 1,
        "leaf_chunk_tokens": 4000,
    }
    filler = [
        {"role": "user", "content": f"Step {n} moved module_{n}.py to the archive. " * 40}
        for n in range(30)
    ]
    with lcm_fast.open(database, config=config) as engine:
        engine.ingest([*conversation(), *filler, {"role": "user", "content": "done?"}])
        engine.compact(token_budget=10_000, force=True)
        loaded = engine.store.frontier_of(1, None)
        assert loaded is not None
        (top,) = engine.store.summaries([name for name in loaded[1].summary_ids if name])
    assert top.depth > 0
    assert named_in(top.content) == [2, 3, 4, 5]


def named_in(text: str) -> list[int]:
    """Which calls are named as having no result."""
    lines = [line for line in text.split("\n") if line.startswith("No result yet: ")]
    return [n for n in range(6) if any(f"sessions_spawn (call_{n})" in line for line in lines)]
