"""What holds of every assembly, whatever the conversation and the budget."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conftest import ticking_clock
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from properties.conversations import HISTORIES, WELL_FORMED, History, broken_exchanges

import lcm_fast
from lcm_fast.assembly import Assembly
from lcm_fast.engine import Engine
from lcm_fast.errors import BudgetTooSmallError
from lcm_fast.kernels import estimate_tokens
from lcm_fast.store import Store
from lcm_fast.summarize import ExtractiveSummarizer
from lcm_fast.transcripts.shapes import encode_face, model_face

BUDGETS = st.one_of(st.integers(256, 3000), st.sampled_from((256, 20_000, 200_000)))
PLENTY = 1_000_000
COMPACTING = {"fresh_tail_count": 2, "leaf_chunk_tokens": 600, "condensed_min_fanout_hard": 2}


@contextmanager
def engine_with(history: History, **config: object) -> Iterator[Engine]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine(
            Store.open(Path(folder, "memory.db"), durability="normal"),
            lcm_fast.Config(timezone="UTC", **config),  # type: ignore[arg-type]
            ExtractiveSummarizer(),
            estimate_tokens,
            now=ticking_clock(),
        ) as engine,
    ):
        engine.ingest(history.messages)
        yield engine


def assembled(engine: Engine, budget: int) -> Assembly | None:
    """The assembly; None where what must stay does not fit even cut down."""
    try:
        return engine.assemble(token_budget=budget)
    except BudgetTooSmallError:
        return None


def recount(assembly: Assembly) -> int:
    total = estimate_tokens(assembly.system_prompt_addition or "")
    for message in assembly.messages:
        face, payload_tokens = model_face(message)
        text = encode_face(face).decode("utf-8", "surrogatepass")
        total += estimate_tokens(text) + payload_tokens
    return total


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


@given(HISTORIES, BUDGETS)
@settings(max_examples=50, deadline=None)
def test_the_estimate_is_that_of_the_output_and_within_the_budget(
    history: History, budget: int
) -> None:
    with engine_with(history) as engine:
        assembly = assembled(engine, budget)
    if assembly is not None:
        assert assembly.estimated_tokens == recount(assembly)
        assert assembly.estimated_tokens <= budget


@given(HISTORIES, BUDGETS)
@settings(max_examples=50, deadline=None)
def test_every_call_has_its_result_right_after_it_and_every_result_its_call(
    history: History, budget: int
) -> None:
    with engine_with(history) as engine:
        assembly = assembled(engine, budget)
    assert broken_exchanges(assembly.messages if assembly else []) == []


@given(HISTORIES, BUDGETS)
@settings(max_examples=30, deadline=None)
def test_exchanges_stay_complete_after_compaction(history: History, budget: int) -> None:
    with engine_with(history, **COMPACTING) as engine:
        engine.compact(token_budget=budget, force=True)
        assembly = assembled(engine, budget)
    if assembly is not None:
        assert broken_exchanges(assembly.messages) == []
        assert assembly.estimated_tokens == recount(assembly) <= budget


@given(HISTORIES, BUDGETS)
@settings(max_examples=30, deadline=None)
def test_the_first_message_is_the_users_or_the_systems(history: History, budget: int) -> None:
    with engine_with(history) as engine:
        assembly = assembled(engine, budget)
    assert (
        assembly is None
        or not assembly.messages
        or (assembly.messages[0].get("role") in ("user", "system"))
    )


@given(HISTORIES, BUDGETS)
@settings(max_examples=50, deadline=None)
def test_the_newest_message_and_the_newest_user_message_are_shown_at_least_in_part(
    history: History, budget: int
) -> None:
    with engine_with(history) as engine:
        assembly = assembled(engine, budget)
        ids = [message.message_id for message in engine.messages(limit=1000)]
    if assembly is None:
        return
    shown = as_json(assembly.messages)
    must_be_there = {history.newest_user, *range(len(ids))[-1:]} - {None}
    for index in must_be_there - history.optional:
        assert history.mark(index) in shown or f"msg_{ids[index]} has the whole" in shown


@given(HISTORIES)
@settings(max_examples=30, deadline=None)
def test_only_what_must_stay_and_cannot_shrink_makes_a_budget_too_small(history: History) -> None:
    with engine_with(history) as engine:
        assert assembled(engine, 2_000) is not None


@given(HISTORIES, BUDGETS)
@settings(max_examples=25, deadline=None)
def test_the_same_input_gives_the_same_bytes(history: History, budget: int) -> None:
    outputs = []
    for _ in range(2):
        with engine_with(history, **COMPACTING) as engine:
            engine.compact(token_budget=budget)
            assembly = assembled(engine, budget)
            outputs.append(as_json(assembly and assembly.messages))
    assert outputs[0] == outputs[1]


@given(WELL_FORMED)
@settings(max_examples=50, deadline=None)
def test_messages_that_need_no_repair_come_back_as_they_went_in(history: History) -> None:
    with engine_with(history) as engine:
        messages = engine.assemble(token_budget=PLENTY).messages
    if not messages or messages[0].get("content") == (
        "[lcm_fast] the conversation begins with the assistant"
    ):
        messages = messages[1:]
    for message in history.messages:
        message.pop("details", None)
    assert as_json(messages) == as_json(history.messages)


@given(WELL_FORMED, WELL_FORMED)
@settings(max_examples=30, deadline=None)
def test_while_all_fits_the_output_only_grows_at_its_end(first: History, second: History) -> None:
    with engine_with(first) as engine:
        before = engine.assemble(token_budget=PLENTY)
        engine.ingest([{"role": "user", "content": "and now?"}, *second.messages])
        after = engine.assemble(token_budget=PLENTY)
    assert as_json(after.messages[: len(before.messages)]) == as_json(before.messages)
    assert after.prefix.stable_tokens == before.estimated_tokens


@given(HISTORIES, BUDGETS)
@settings(max_examples=30, deadline=None)
def test_shown_dropped_and_unsent_items_add_up_to_the_frontier(
    history: History, budget: int
) -> None:
    with engine_with(history) as engine:
        assembly = assembled(engine, budget)
    assume(assembly is not None)
    assert assembly is not None
    stats = assembly.stats
    assert stats.dropped >= 0
    assert stats.unsent >= 0
    assert stats.raw_messages + stats.summaries == stats.context_items
    assert stats.dropped + stats.unsent <= stats.context_items
