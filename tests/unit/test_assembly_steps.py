"""What is left out goes in steps, so that in between an output only grows at its end."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from conftest import make_engine, said
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.assembly.selection import Choice, Ranking, Room, choose
from lcm_fast.store import Frontier

BUDGET, STEP = 200, 40


def frontier(tokens: list[int]) -> Frontier:
    """Return a frontier of assistant messages of these sizes."""
    size = len(tokens)
    return Frontier(
        revision=0,
        ordinals=np.arange(1, size + 1),
        kinds=np.zeros(size, np.uint8),
        roles=np.full(size, 2, np.uint8),
        depths=np.full(size, -1),
        tokens=np.array(tokens, np.int64),
        openers=np.arange(1, size + 1),
        message_ids=np.arange(1, size + 1),
        summary_ids=[None] * size,
    )


def choice(tokens: list[int], *, tail: int = 1, cap: int = 50, step: int = STEP) -> list[int]:
    room = Room(BUDGET, step, tail, cap)
    return choose(frontier(tokens), room).indexes


def ranked(
    tokens: list[int], scores: list[float], shown_before: list[int], *, step: int = STEP
) -> Choice:
    was_shown = np.zeros(len(tokens), np.bool_)
    was_shown[shown_before] = True
    ranking = Ranking(np.array(scores, np.float64), was_shown)
    return choose(frontier(tokens), Room(BUDGET, step, 1, None), lambda: ranking)


small = st.lists(st.integers(1, STEP), min_size=1, max_size=60)


class TestNewest:
    @given(small)
    def test_an_output_is_the_newest_items_without_a_gap(self, tokens: list[int]) -> None:
        chosen = choice(tokens)
        assert chosen == list(range(chosen[0], len(tokens)))

    @given(small)
    def test_an_output_is_within_the_budget_and_lacks_less_than_two_steps(
        self, tokens: list[int]
    ) -> None:
        chosen = choice(tokens)
        taken = sum(tokens[index] for index in chosen)
        assert taken <= BUDGET
        assert taken > BUDGET - 2 * STEP or len(chosen) == len(tokens)

    @given(small)
    def test_a_growing_history_moves_its_beginning_once_a_step(self, tokens: list[int]) -> None:
        begins = {choice(tokens[:end])[0] for end in range(1, len(tokens) + 1)}
        assert len(begins) <= 1 + sum(tokens) // STEP

    @given(small)
    def test_the_beginning_never_moves_back(self, tokens: list[int]) -> None:
        begins = [choice(tokens[:end])[0] for end in range(1, len(tokens) + 1)]
        assert begins == sorted(begins)

    @given(small)
    def test_a_tail_that_yields_yields_in_steps(self, tokens: list[int]) -> None:
        begins = [choice(tokens[:end], tail=60, cap=1000)[0] for end in range(1, len(tokens) + 1)]
        assert begins == sorted(begins)
        assert len(set(begins)) <= 1 + sum(tokens) // STEP

    def test_an_item_larger_than_a_step_hides_nothing_behind_it(self) -> None:
        assert choice([30, 30, 180, 30, 30]) == [0, 1, 3, 4]

    def test_an_item_larger_than_a_step_that_a_tail_yields_takes_nothing_with_it(self) -> None:
        assert choice([5 * BUDGET, 3, 4, 5], tail=4, cap=10 * BUDGET) == [1, 2, 3]

    def test_without_a_step_the_budget_is_filled(self) -> None:
        assert choice([10, 60, 60, 60, 60], step=0) == [0, 2, 3, 4]


class TestBest:
    def test_the_highest_scores_fill_the_room(self) -> None:
        chosen = ranked([90, 90, 90, 90], [1, 0, 2, 0], []).indexes
        assert chosen == [2, 3]

    def test_ties_keep_the_newer(self) -> None:
        assert ranked([90, 90, 90, 20], [1, 1, 1, 0], []).indexes == [1, 2, 3]

    def test_without_any_score_the_newest_stay(self) -> None:
        outcome = ranked([90, 90, 90, 90], [0, 0, 0, 0], [])
        assert (outcome.indexes, outcome.is_ranked) == ([2, 3], False)

    def test_what_was_shown_stays_when_others_score_alike(self) -> None:
        scores = [1.0, 1.1, 1.2, 1.3, 1.4, 0.0]
        assert ranked([45] * 5 + [20], scores, [0, 3, 4]).indexes == [0, 3, 4, 5]

    def test_the_best_is_shown_even_if_it_was_not(self) -> None:
        assert 0 in ranked([45] * 5 + [20], [9, 1, 1, 1, 1, 0], [1, 2, 3]).indexes

    def test_a_step_is_freed_when_what_was_shown_no_longer_fits(self) -> None:
        tokens = [20] * 12
        outcome = ranked(tokens, [1.0] * 11 + [0], list(range(11)))
        assert sum(tokens[index] for index in outcome.indexes) <= BUDGET - STEP

    def test_room_that_became_free_is_filled(self) -> None:
        outcome = ranked([20] * 12, [1.0] * 11 + [0], [10], step=20)
        assert len(outcome.indexes) == 10

    @given(
        st.lists(st.tuples(st.integers(1, STEP), st.integers(0, 3)), min_size=2, max_size=40),
        st.sets(st.integers(0, 39)),
    )
    def test_the_same_prompt_again_changes_nothing(
        self, items: list[tuple[int, int]], before: set[int]
    ) -> None:
        tokens, scores = [list(column) for column in zip(*items, strict=True)]
        first = ranked(tokens, scores, [i for i in before if i < len(tokens)]).indexes
        assert ranked(tokens, scores, first).indexes == first


def test_turns_between_two_evictions_only_add_to_the_end(database: Path) -> None:
    with make_engine(database, fresh_tail_count=2) as engine:
        outputs = []
        for at in range(120):
            engine.ingest([said(f"turn {at} " + "word " * 20, at)])
            engine.assemble(token_budget=1000)
            outputs.append([one["content"] for one in engine.assemble(token_budget=1000).messages])
    moves = sum(later[: len(earlier)] != earlier for earlier, later in itertools.pairwise(outputs))
    assert 0 < moves <= 120 * 30 // 100
