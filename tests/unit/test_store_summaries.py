"""Summaries take the place of what they were made from, or nothing happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import chain, entry, make_engine, said, violations, write_session

from lcm_fast.engine import Engine
from lcm_fast.errors import PlanStaleError
from lcm_fast.store import Address, Frontier, NewSummary, Store, StoredSummary

ADDRESS = Address("default")


def summary_of(
    engine: Engine, first: int, last: int, *, name: str = "sum_1", **fields: Any
) -> NewSummary:
    """Plan a summary of the items at these ordinals of the frontier as it is now."""
    frontier = frontier_of(engine.store)
    chosen = [n for n in range(len(frontier)) if first <= frontier.ordinals[n] <= last]
    sources = [one for n in chosen if (one := frontier.summary_ids[n]) is not None]
    rows = engine.store.summaries(sources)
    row: dict[str, Any] = {
        "summary_id": name,
        "conversation_id": 1,
        "kind": "condensed" if sources else "leaf",
        "depth": int(bool(sources)),
        "content": "what was said",
        "token_count": 4,
        "earliest_at": min((one.created_at for one in rows), default=None),
        "latest_at": max((one.created_at for one in rows), default=None),
        "descendant_count": len(sources),
        "descendant_token_count": sum(one.token_count for one in rows),
        "source_message_token_count": sum(one.source_message_token_count for one in rows)
        or int(frontier.tokens[chosen].sum()),
        "created_at": "2026-01-01T01:00:00.000Z",
        "model": "test",
        "level": "normal",
        "truncated": False,
        "file_ids": [],
        "source_ids": sources,
    }
    return NewSummary(
        summary=StoredSummary(**{**row, **fields}),
        wire_tokens=7,
        first_ordinal=first,
        last_ordinal=last,
        message_ids=[] if sources else [int(frontier.message_ids[n]) for n in chosen],
    )


def frontier_of(store: Store, known: Frontier | None = None) -> Frontier:
    found = store.frontier(ADDRESS, {1: known} if known is not None else {})
    assert found is not None
    return found[1]


def same(one: Frontier, other: Frontier) -> bool:
    columns = ("ordinals", "kinds", "roles", "depths", "tokens", "openers", "message_ids")
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)
    return equal and (one.summary_ids, one.revision) == (other.summary_ids, other.revision)


@pytest.fixture
def talk(engine: Engine) -> Engine:
    """An engine with eight messages."""
    engine.ingest([said(f"message {n}", n) for n in range(8)])
    return engine


class TestPublishing:
    def test_a_summary_stands_at_the_first_ordinal_it_replaces(self, talk: Engine) -> None:
        talk.store.publish_summary(1, summary_of(talk, 2, 4))
        frontier = frontier_of(talk.store)
        assert (list(frontier.ordinals), frontier.summary_ids[1]) == ([1, 2, 5, 6, 7, 8], "sum_1")

    def test_summaries_of_summaries_keep_every_invariant(self, talk: Engine) -> None:
        talk.store.publish_summary(1, summary_of(talk, 1, 3))
        talk.store.publish_summary(1, summary_of(talk, 4, 6, name="sum_2"))
        talk.store.publish_summary(1, summary_of(talk, 1, 4, name="sum_3"))
        assert violations(talk.store) == []

    def test_the_tokens_and_revision_returned_are_those_of_the_row(self, talk: Engine) -> None:
        returned = talk.store.publish_summary(1, summary_of(talk, 1, 3))
        conversation = talk.conversation()
        assert returned == (conversation.frontier_tokens, conversation.view_revision)

    def test_a_summary_is_read_as_it_was_written(self, talk: Engine) -> None:
        new = summary_of(talk, 1, 3, truncated=True, file_ids=["file_1"], level="fallback")
        talk.store.publish_summary(1, new)
        assert talk.store.summaries(["unknown", "sum_1"]) == [new.summary]

    def test_pages_of_summaries_follow_one_another(self, talk: Engine) -> None:
        for n in range(4):
            talk.store.publish_summary(1, summary_of(talk, n + 1, n + 1, name=f"sum_{n}"))
        first = talk.store.summaries_page(1, limit=3)
        after = (first[-1].created_at, first[-1].summary_id)
        rest = talk.store.summaries_page(1, after=after, limit=3)
        assert [one.summary_id for one in first + rest] == ["sum_0", "sum_1", "sum_2", "sum_3"]


class TestStalePlans:
    def test_a_range_that_was_replaced_meanwhile_is_refused(self, talk: Engine) -> None:
        late = summary_of(talk, 3, 5, name="late")
        talk.store.publish_summary(1, summary_of(talk, 2, 4))
        with pytest.raises(PlanStaleError, match="nothing was published"):
            talk.store.publish_summary(1, late)
        assert (talk.store.summaries(["late"]), violations(talk.store)) == ([], [])

    def test_a_message_that_came_back_into_the_range_is_noticed(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        file = tmp_path / "session.jsonl"
        tree = [*chain(said("a"), said("b")), entry("e2", "e0", said("c"))]
        engine.bootstrap(write_session(file, tree), session_key="default")
        plan = summary_of(engine, 1, 3)
        resumed = [*tree, entry("e3", "e1", said("d"))]
        engine.bootstrap(write_session(file, resumed), session_key="default")
        with pytest.raises(PlanStaleError):
            engine.store.publish_summary(1, plan)

    def test_messages_that_arrive_after_the_range_do_not_matter(self, talk: Engine) -> None:
        plan = summary_of(talk, 1, 8)
        talk.ingest([said("meanwhile", 99)])
        talk.store.publish_summary(1, plan)
        assert len(frontier_of(talk.store)) == 2


class TestFrontier:
    def test_what_is_extended_equals_what_is_read_anew(self, talk: Engine) -> None:
        known = frontier_of(talk.store)
        talk.ingest([said("more", 50), said("and more", 51)])
        assert same(frontier_of(talk.store, known), frontier_of(talk.store))

    def test_what_changed_is_read_anew(self, talk: Engine) -> None:
        known = frontier_of(talk.store)
        talk.store.publish_summary(1, summary_of(talk, 1, 3))
        assert same(frontier_of(talk.store, known), frontier_of(talk.store))

    def test_a_summary_put_in_place_in_memory_equals_the_published_one(self, talk: Engine) -> None:
        known = frontier_of(talk.store)
        _, revision = talk.store.publish_summary(1, summary_of(talk, 2, 4))
        replaced = known.with_summary(
            1, 4, summary_id="sum_1", depth=0, tokens=7, revision=revision
        )
        assert same(replaced, frontier_of(talk.store))

    def test_a_conversation_without_messages_has_an_empty_frontier(self, engine: Engine) -> None:
        engine.ingest([])
        frontier = frontier_of(engine.store)
        assert (len(frontier), frontier.last_ordinal, frontier.newest_user_index) == (0, 0, None)

    def test_the_tokens_of_the_frontier_add_up_to_the_counter(self, talk: Engine) -> None:
        talk.store.publish_summary(1, summary_of(talk, 2, 4))
        total = int(frontier_of(talk.store).tokens.sum())
        assert total == talk.conversation().frontier_tokens

    def test_system_messages_at_the_head_are_counted(self, engine: Engine) -> None:
        engine.ingest([said("be kind", role="system"), said("hi"), said("late", role="system")])
        assert frontier_of(engine.store).leading_system_count == 1


def test_a_summary_covers_a_message_whose_branch_is_left_later(
    engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    tree = chain(said("a"), said("b"))
    engine.bootstrap(write_session(file, tree), session_key="default")
    engine.store.publish_summary(1, summary_of(engine, 1, 2))
    engine.bootstrap(
        write_session(file, [*tree, entry("e2", "e0", said("c"))]), session_key="default"
    )
    assert violations(engine.store) == []


def test_conversations_are_paged_in_the_order_they_were_made(database: Path) -> None:
    with make_engine(database) as engine:
        for n in range(5):
            engine.ingest([said("hi")], session_key=f"s{n}")
        first = engine.conversations(limit=3)
        rest = engine.conversations(limit=3, cursor=first[-1].conversation_id)
    assert [one.session_key for one in first + rest] == ["s0", "s1", "s2", "s3", "s4"]
