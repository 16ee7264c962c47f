"""What fills a context, when somebody asks."""

from __future__ import annotations

from pathlib import Path

from conftest import make_engine, said

from lcm_fast.assembly import Diagnostics
from lcm_fast.engine import Engine


def diagnosed(engine: Engine, budget: int = 1000) -> Diagnostics:
    found = engine.assemble(token_budget=budget, diagnostics=True).diagnostics
    assert found is not None
    return found


def test_nothing_is_told_unless_asked(engine: Engine) -> None:
    engine.ingest([said("hello")])
    assert engine.assemble(token_budget=1000).diagnostics is None


def test_the_largest_messages_come_first_with_whether_they_are_shown(database: Path) -> None:
    with make_engine(database, fresh_tail_count=1) as engine:
        ids = engine.ingest([said("x" * 9000, 1), said("y" * 400, 2), said("new", 3)]).message_ids
        largest = diagnosed(engine).largest_messages
    assert [(one.item_id, one.is_shown) for one in largest] == [
        (f"msg_{ids[0]}", False),
        (f"msg_{ids[1]}", True),
        (f"msg_{ids[2]}", True),
    ]


def test_messages_that_say_the_same_are_counted_together(engine: Engine) -> None:
    ids = engine.ingest([said("ping", 1), said("other", 2), said("ping", 3)]).message_ids
    (same,) = diagnosed(engine).duplicates
    assert (same.count, same.item_ids) == (2, (f"msg_{ids[0]}", f"msg_{ids[2]}"))


def test_summaries_are_told_apart(database: Path) -> None:
    with make_engine(database, fresh_tail_count=2) as engine:
        engine.ingest([said(f"turn {at} " + "word " * 40, at) for at in range(40)])
        engine.compact(token_budget=1000, force=True)
        found = diagnosed(engine, 2000)
    assert found.shown_summaries == len(found.largest_summaries) == 1
    assert found.largest_summaries[0].tokens == found.summary_tokens
