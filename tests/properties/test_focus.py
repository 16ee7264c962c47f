"""What holds of every assembly with a focus brief, whatever the conversation and the budget."""

from __future__ import annotations

import json

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from properties.conversations import HISTORIES, History, broken_exchanges
from properties.test_assembly import BUDGETS, COMPACTING, PLENTY, assembled, engine_with, recount

TASKS = st.sampled_from(("the build", "サーバー", "<summary id='x'>&\"", "\ud800 zebra"))


@given(HISTORIES, HISTORIES, BUDGETS, TASKS)
@settings(max_examples=40, deadline=None)
def test_it_is_shown_once_within_the_budget_and_the_rest_is_as_ever(
    history: History, more: History, budget: int, task: str
) -> None:
    with engine_with(history, **COMPACTING) as engine:
        brief = engine.focus(task).brief
        assume(brief is not None)
        engine.ingest(more.messages)
        context = assembled(engine, budget)
    assert brief is not None
    if context is None:
        return
    assert context.estimated_tokens == recount(context) <= budget
    assert broken_exchanges(context.messages) == []
    texts = [json.dumps(message) for message in context.messages]
    # Where hardly a word of it fits, what is left of it names it.
    assert sum(brief.brief_id in text for text in texts) == 1


@given(HISTORIES, TASKS)
@settings(max_examples=40, deadline=None)
def test_focus_and_unfocus_leave_the_view_as_it_was(history: History, task: str) -> None:
    with engine_with(history, **COMPACTING) as engine:
        engine.compact(token_budget=PLENTY, force=True)
        engine.compact(token_budget=PLENTY, force=True)
        before = assembled(engine, PLENTY)
        assume(engine.focus(task).status == "active")
        engine.unfocus()
        after = assembled(engine, PLENTY)
    assert before is not None
    assert after is not None
    assert after.messages == before.messages


@given(HISTORIES, HISTORIES, TASKS)
@settings(max_examples=40, deadline=None)
def test_every_summary_is_covered_or_shown(history: History, more: History, task: str) -> None:
    """Also once those that are covered were condensed with others."""
    with engine_with(history, **COMPACTING) as engine:
        assume(engine.focus(task).status == "active")
        engine.ingest(more.messages)
        engine.compact(token_budget=PLENTY, force=True)
        status = engine.focus_status()
        view = engine.store.reach_of_view(engine.conversation().conversation_id)
        context = assembled(engine, PLENTY)
    assert status.brief is not None
    assert context is not None
    texts = " ".join(json.dumps(message) for message in context.messages)
    assert status.brief.covered_message_seq is not None
    for summary in view:
        assert summary.max_seq is not None
        is_shown = summary.summary_id in texts
        assert is_shown != (summary.max_seq <= status.brief.covered_message_seq)
