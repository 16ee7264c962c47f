"""A context with summaries says how to read them."""

from __future__ import annotations

from pathlib import Path

from conftest import make_engine, said

from lcm_fast.engine import Engine


def compacted(database: Path) -> Engine:
    engine = make_engine(database, fresh_tail_count=2, leaf_chunk_tokens=1000)
    engine.ingest([said(f"message {n}: " + "words of it " * 30, n) for n in range(60)])
    engine.compact(token_budget=4000, force=True)
    return engine


def test_it_is_there_with_summaries_where_there_is_room(database: Path) -> None:
    with compacted(database) as engine:
        assembly = engine.assemble(token_budget=8000)
        bare = engine.assemble(token_budget=600)
    assert assembly.stats.summaries > 0
    assert assembly.system_prompt_addition is not None
    assert bare.system_prompt_addition is None


def test_it_is_the_same_from_turn_to_turn(database: Path) -> None:
    with compacted(database) as engine:
        before = engine.assemble(token_budget=8000)
        engine.ingest([said("another", 900)])
        after = engine.assemble(token_budget=8000)
    assert before.system_prompt_addition == after.system_prompt_addition


def test_a_history_without_summaries_needs_none(engine: Engine) -> None:
    engine.ingest([said("hello", 1)])
    assert engine.assemble(token_budget=8000).system_prompt_addition is None
