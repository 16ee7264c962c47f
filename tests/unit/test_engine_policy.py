"""What the engine decides before any layer works: conversations, switches, budgets, counters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import make_engine, texts

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import BudgetTooSmallError, ConfigError, NotFoundError
from lcm_fast.summarize import SummaryRequest

HELLO = [{"role": "user", "content": "hello"}]
LONG = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " * 200} for n in range(200)]


def test_leaving_the_block_closes_the_database(database: Path) -> None:
    log = database.with_name(database.name + "-wal")
    with make_engine(database) as engine:
        engine.ingest(HELLO)
        assert log.exists()
    assert not log.exists()


def test_closing_twice_does_nothing(engine: Engine) -> None:
    engine.close()
    engine.close()


def test_without_a_name_the_default_conversation_is_meant(engine: Engine) -> None:
    engine.ingest(HELLO)
    assert engine.conversation().session_key == "default"


def test_the_key_goes_before_the_id(engine: Engine) -> None:
    engine.ingest(HELLO, session_key="k", session_id="one")
    engine.ingest(HELLO, session_key="k", session_id="two")
    assert texts(engine, session_key="k") == ["hello", "hello"]


def test_a_conversation_is_found_by_its_id_alone(engine: Engine) -> None:
    engine.ingest(HELLO, session_key="k", session_id="one")
    assert engine.conversation(session_id="one").session_key == "k"


def test_conversations_are_kept_apart(engine: Engine) -> None:
    engine.ingest(HELLO, session_key="a")
    assert engine.assemble(session_key="b", token_budget=1000).messages == []


def test_an_assembly_of_nothing_says_so(engine: Engine) -> None:
    assert engine.assemble(token_budget=1000).stats.reason == "no such conversation yet"


def test_an_unknown_conversation_is_not_found(engine: Engine) -> None:
    with pytest.raises(NotFoundError, match="'nobody'"):
        engine.conversation(session_key="nobody")


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("ingest", {"messages": HELLO}),
        ("bootstrap", {"session_file": "session.jsonl"}),
        ("assemble", {"token_budget": 1000}),
        ("compact", {"token_budget": 1000}),
    ],
)
def test_a_disabled_engine_refuses_to_work(
    database: Path, method: str, arguments: dict[str, Any]
) -> None:
    with (
        make_engine(database, enabled=False) as engine,
        pytest.raises(ConfigError, match="enabled is false") as raised,
    ):
        getattr(engine, method)(**arguments)
    assert raised.value.code == "disabled"


def test_a_token_counter_of_ones_own_counts_what_is_stored_and_shown(database: Path) -> None:
    with lcm_fast.open(database, token_counter=len) as engine:
        engine.ingest(HELLO)
        assembly = engine.assemble(token_budget=1000)
    assert assembly.estimated_tokens == len('{"content":"hello","role":"user"}')


def test_a_summarizer_of_ones_own_writes_the_summaries(database: Path) -> None:
    def two_words(request: SummaryRequest) -> str:
        return "my words"

    with lcm_fast.open(database, summarizer=two_words) as engine:
        engine.ingest(LONG)
        engine.compact(token_budget=20_000)
        summary, *_ = engine.summaries()
    assert (summary.content, summary.model) == ("my words", "two_words")


def test_something_that_cannot_summarise_is_refused_before_anything_is_opened(
    database: Path,
) -> None:
    with pytest.raises(ConfigError, match="summarizer"):
        lcm_fast.open(database, summarizer=42)
    assert not database.exists()


def test_the_configured_cap_holds_for_compaction(database: Path) -> None:
    with make_engine(database, max_assembly_token_budget=4000) as engine:
        engine.ingest(HELLO)
        assert engine.compact(token_budget=100_000).target_tokens == 3000


def test_compaction_without_a_budget_works_for_the_documented_one(engine: Engine) -> None:
    engine.ingest(HELLO)
    assert engine.compact().target_tokens == 96_000


def test_compaction_refuses_a_budget_below_256(engine: Engine) -> None:
    with pytest.raises(BudgetTooSmallError):
        engine.compact(token_budget=255)


def test_an_unknown_target_is_refused_by_name(engine: Engine) -> None:
    with pytest.raises(ConfigError, match="target is 'half'"):
        engine.compact(token_budget=1000, target="half")


def test_instructions_replace_the_configured_ones(database: Path) -> None:
    asked: list[str] = []

    def summarise(request: SummaryRequest) -> str:
        asked.append(request.instructions)
        return "notes"

    config = {"customInstructions": "be formal"}
    with lcm_fast.open(database, config=config, summarizer=summarise) as engine:
        engine.ingest(LONG)
        engine.compact(token_budget=20_000, instructions="")
    assert set(asked) == {""}


def test_room_for_the_prompt_is_kept_free(engine: Engine) -> None:
    engine.ingest(LONG)
    assembly = engine.assemble(token_budget=5000, prompt="word " * 1600)
    assert assembly.estimated_tokens <= 3000
    assert "2,000 more are kept free for the prompt" in assembly.stats.reason


def test_a_prompt_that_leaves_no_room_is_refused(engine: Engine) -> None:
    with pytest.raises(BudgetTooSmallError, match="the prompt alone takes 900"):
        engine.assemble(token_budget=1000, prompt="x" * 3600)


def test_a_compaction_shrinks_what_the_next_assembly_can_take_over(engine: Engine) -> None:
    engine.ingest(LONG)
    before = engine.assemble(token_budget=100_000)
    assert engine.assemble(token_budget=100_000).prefix.stable_tokens == before.estimated_tokens
    engine.compact(token_budget=20_000)
    assert engine.assemble(token_budget=100_000).prefix.stable_tokens == 0
