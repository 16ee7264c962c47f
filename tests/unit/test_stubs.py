"""Old tool results that are large are stubs where that is asked for (spec R11)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import make_engine, said
from unit.payload_messages import OUTPUT, image, result, text, with_result

from lcm_fast.engine import Engine
from lcm_fast.ingest.payloads import stub_form
from lcm_fast.kernels import estimate_tokens

LARGE = OUTPUT[:20_000]
THRESHOLD = 2_500


def stub(body: dict[str, Any]) -> dict[str, Any]:
    return stub_form(body, "msg_7", THRESHOLD, estimate_tokens)


class TestStubForm:
    @pytest.mark.parametrize("shape", ["openclaw", "openai", "responses", "anthropic"])
    def test_a_large_result_is_a_stub_in_every_shape(self, shape: str) -> None:
        written = json.dumps(stub(with_result(shape, LARGE)))
        assert "[LCM Tool Output: msg_7 | tool=" in written
        assert "20,000 bytes" in written
        assert "msg_7 has the whole output." in written
        assert len(written) < 3_000

    def test_it_keeps_all_that_ties_it_to_its_call(self) -> None:
        whole = result(LARGE)
        assert {**stub(whole), "content": ""} == {**whole, "content": ""}

    @pytest.mark.parametrize(
        "body",
        [
            result("row\n" * 20),
            result(LARGE, tool_name="lcm_grep"),
            result([text("see"), image()]),
            said(LARGE),
            said(f'<file name="a.txt">{LARGE}</file>'),
            said(LARGE, role="assistant"),
            said(LARGE, role="system"),
        ],
        ids=["small", "recalled", "picture", "user", "file", "assistant", "system"],
    )
    def test_nothing_else_is(self, body: dict[str, Any]) -> None:
        assert stub(body) == body


def history(*, size: int = 20_000, rounds: int = 12) -> list[dict[str, Any]]:
    """Return rounds of a question, a call, its large result and an answer."""
    messages = []
    for n in range(rounds):
        call = {"type": "toolCall", "id": f"c{n}", "name": "exec", "arguments": {"n": n}}
        output = {**result(f"round {n}\n{OUTPUT[:size]}"), "toolCallId": f"c{n}"}
        messages += [
            said(f"question {n}", 4 * n),
            {"role": "assistant", "content": [call]},
            output,
            said(f"answer {n}", 4 * n + 3, role="assistant"),
        ]
    return messages


def stubbed(database: Path, **settings: object) -> Engine:
    return make_engine(
        database,
        **{"stub_large_tool_payloads": True, "fresh_tail_count": 8, "eviction_step": 0.0}
        | settings,
    )


def stubs_of(messages: list[dict[str, Any]]) -> list[bool]:
    return ["[LCM Tool Output: msg_" in json.dumps(one) for one in messages]


def test_results_before_the_tail_are_stubs_and_those_in_it_whole(database: Path) -> None:
    with stubbed(database) as engine:
        engine.ingest(history())
        assembly = engine.assemble(token_budget=128_000)
    assert [n for n, is_stub in enumerate(stubs_of(assembly.messages)) if is_stub] == [
        4 * n + 2 for n in range(10)
    ]
    assert assembly.messages[-2] == history()[-2]
    assert assembly.stats.stubs == 10
    assert "large tool results of 10 older ones are stubs" in assembly.stats.reason


def test_without_it_none_are(database: Path) -> None:
    with stubbed(database, stub_large_tool_payloads=False) as engine:
        engine.ingest(history())
        assert not any(stubs_of(engine.assemble(token_budget=128_000).messages))


def test_stubs_make_room_for_more(database: Path) -> None:
    with stubbed(database) as engine:
        engine.ingest(history())
        assembly = engine.assemble(token_budget=20_000)
    assert assembly.stats.dropped == 0
    assert assembly.estimated_tokens <= 20_000


@pytest.mark.parametrize("form", [None, "openclaw", "openai", "responses", "anthropic"])
def test_the_same_input_gives_the_same_bytes(database: Path, form: Any) -> None:
    with stubbed(database) as engine:
        engine.ingest([*history(), said("lone \ud800", 99)])
        shown = [engine.assemble(token_budget=60_000, format=form) for _ in range(3)]
    assert len({json.dumps(one.messages) for one in shown}) == 1
    assert any(stubs_of(shown[0].messages))


def test_an_output_changes_in_steps(database: Path) -> None:
    changes = 0
    before: list[dict[str, Any]] = []
    with stubbed(database, eviction_step=0.2) as engine:
        for start in range(0, 48, 4):
            engine.ingest(history()[: start + 4])
            messages = engine.assemble(token_budget=128_000).messages
            changes += messages[: len(before)] != before
            before = messages
    assert 0 < changes <= 4


def test_what_was_a_stub_once_costs_no_more_reads(database: Path) -> None:
    with stubbed(database) as engine:
        engine.ingest(history())
        engine.assemble(token_budget=128_000)
        engine.store.messages = None  # type: ignore[method-assign, assignment]
        engine.assemble(token_budget=128_000)
