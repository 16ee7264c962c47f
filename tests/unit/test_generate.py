"""The benchmark conversation: the same for everyone, and as the benchmark notes describe it."""

from __future__ import annotations

import importlib.util
import itertools
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lcm_fast.transcripts.reader import open_transcript

SOURCE = Path(__file__).parents[2] / "benchmarks" / "generate.py"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def conversation(generate: ModuleType) -> list[dict[str, Any]]:
    return list(generate.messages(6000, seed=3))


def text_of(message: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in message["content"])


def share_of(conversation: list[dict[str, Any]], pattern: str) -> float:
    return sum(bool(re.search(pattern, text_of(one))) for one in conversation) / len(conversation)


def test_one_seed_gives_one_conversation(generate: ModuleType) -> None:
    assert list(generate.messages(300, seed=5)) == list(generate.messages(300, seed=5))


def test_another_seed_gives_another_conversation(generate: ModuleType) -> None:
    assert list(generate.messages(10, seed=5)) != list(generate.messages(10, seed=6))


def test_a_shorter_conversation_is_the_beginning_of_a_longer_one(generate: ModuleType) -> None:
    longer = list(generate.messages(200, seed=5))
    assert list(generate.messages(77, seed=5)) == longer[:77]


def test_texts_are_416_characters_long_on_average(conversation: list[dict[str, Any]]) -> None:
    mean = sum(len(text_of(one)) for one in conversation) / len(conversation)
    assert mean == pytest.approx(416, rel=0.08)


def test_no_text_is_longer_than_2000_characters(conversation: list[dict[str, Any]]) -> None:
    assert max(len(text_of(one)) for one in conversation) <= 2000


def test_27_percent_are_tool_results(conversation: list[dict[str, Any]]) -> None:
    results = sum(one["role"] == "toolResult" for one in conversation)
    assert results / len(conversation) == pytest.approx(0.27, abs=0.02)


def test_8_percent_of_the_prose_is_east_asian(conversation: list[dict[str, Any]]) -> None:
    prose = [one for one in conversation if one["role"] != "toolResult"]
    assert share_of(prose, "[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]") == pytest.approx(
        0.08, abs=0.02
    )


def test_2_percent_of_the_prose_has_emoji(conversation: list[dict[str, Any]]) -> None:
    prose = [one for one in conversation if one["role"] != "toolResult"]
    assert share_of(prose, "[\U0001f600-\U0001f640]") == pytest.approx(0.02, abs=0.01)


def test_every_tool_result_answers_the_call_before_it(
    conversation: list[dict[str, Any]],
) -> None:
    pairs = itertools.pairwise(conversation)
    assert all(
        before["content"][-1]["id"] == result["toolCallId"]
        for before, result in pairs
        if result["role"] == "toolResult"
    )


def test_times_are_increasing_milliseconds(conversation: list[dict[str, Any]]) -> None:
    times = [one["timestamp"] for one in conversation]
    assert times == sorted(set(times))


def test_topic_words_are_spread_through_their_part_of_the_conversation(
    generate: ModuleType, conversation: list[dict[str, Any]]
) -> None:
    first_part = " ".join(text_of(one).lower() for one in conversation[:120])
    assert all(word in first_part for word in generate.topics(seed=3)[0])


def test_the_file_reads_back_as_a_linear_session(generate: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    generate.main(["50", str(path), "--seed", "5"])
    entries = list(open_transcript(path))
    assert [one.message for one in entries[1:]] == list(generate.messages(50, seed=5))
    assert all(one.on_leaf_path for one in entries)
