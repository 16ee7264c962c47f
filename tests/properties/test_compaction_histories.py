"""Turns, sweeps, maintenance, failing summarisers, restarts and power cuts in any order.

Whatever happens, each message is in the view or under one reachable leaf, the DAG's edges and
counts are those of a recomputation, and no compaction leaves a longer frontier than it found.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from conftest import NIGHTLY_EXAMPLES, power_fails, violations
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from upkeep import Clock, memory, turns

from lcm_fast.engine import Engine
from lcm_fast.errors import SourceTooLongError, SummarizerAuthError, SummarizerRateLimitError
from lcm_fast.summarize import SummaryRequest

BUDGETS = st.sampled_from((300, 1000, 4000))
CONFIGS = st.fixed_dictionaries(
    {
        "fresh_tail_count": st.integers(1, 4),
        "leaf_chunk_tokens": st.sampled_from((150, 600)),
        "leaf_min_fanout": st.integers(2, 3),
        "condensed_min_fanout": st.just(2),
        "condensed_target_tokens": st.just(1),
        "summary_prefix_target_tokens": st.sampled_from((None, 100)),
        "max_sweep_iterations": st.integers(1, 8),
        "summary_concurrency": st.integers(1, 3),
        "summary_max_calls_per_window": st.sampled_from((3, 1000)),
        "circuit_breaker_threshold": st.just(2),
        "fallback_max_tokens": st.just(64),
    }
)


class Moods:
    """A summariser that takes turns between its moods."""

    NAMES = ("brief", "echo", "longer", "empty", "outage", "auth", "limit", "too long")

    def __init__(self) -> None:
        self.names: list[str] = ["brief"]
        self.calls = 0

    def __call__(self, request: SummaryRequest) -> str:
        mood = self.names[self.calls % len(self.names)]
        self.calls += 1
        match mood:
            case "echo":
                return request.text
            case "longer":
                return request.text * 2
            case "empty":
                return ""
            case "outage":
                raise ConnectionError("no route")
            case "auth":
                raise SummarizerAuthError("refused")
            case "limit":
                raise SummarizerRateLimitError("slow down", retry_after_s=60)
            case "too long":
                raise SourceTooLongError("too long")
        return f"in brief {self.calls} ¤¤¤"


class CompactionHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = Clock()
        self.moods = Moods()
        self.said = 0
        self.config: dict[str, Any] = {}
        self.engine: Engine | None = None

    @initialize(config=CONFIGS)
    def begin(self, config: dict[str, Any]) -> None:
        self.config = config
        self._open()

    def _open(self) -> None:
        path = self.folder / "memory.db"
        self.engine = memory(path, self.moods, self.clock, **self.config)

    @property
    def memory(self) -> Engine:
        assert self.engine is not None
        return self.engine

    @rule(count=st.integers(1, 12), tokens=st.integers(0, 200), budget=BUDGETS)
    def a_turn(self, count: int, tokens: int, budget: int) -> None:
        self.memory.after_turn(turns(count, tokens, self.said), token_budget=budget)
        self.said += count

    @rule(names=st.lists(st.sampled_from(Moods.NAMES), min_size=1, max_size=4))
    def the_summariser_changes_its_moods(self, names: list[str]) -> None:
        self.moods.names = names

    @rule(budget=BUDGETS, force=st.booleans())
    def a_compaction(self, budget: int, force: bool) -> None:
        if not self.said:
            return
        result = self.memory.compact(token_budget=budget, force=force)
        assert result.tokens_after <= result.tokens_before
        assert result.tokens_after == self.memory.conversation().frontier_tokens
        assert (result.status == "failed") <= (result.failure_code is not None)

    @rule()
    def maintenance(self) -> None:
        for one in self.memory.maintain().drained:
            assert one.compaction.tokens_after <= one.compaction.tokens_before

    @rule(budget=BUDGETS)
    def an_assembly(self, budget: int) -> None:
        assert self.memory.assemble(token_budget=budget).estimated_tokens <= budget

    @rule(minutes=st.sampled_from((1, 10, 40)))
    def time_passes(self, minutes: int) -> None:
        self.clock.advance(minutes=minutes)

    @rule()
    def a_restart(self) -> None:
        self.memory.close()
        self._open()

    @rule(at=st.integers(1, 60))
    def the_power_fails_during_maintenance(self, at: int) -> None:
        power_fails(self.memory, at, self.memory.maintain)
        self.a_restart()
        # The process that died had the lease; this one has its number and is alive.
        self.clock.advance(minutes=60)

    @invariant()
    def the_memory_is_whole(self) -> None:
        if self.engine is None:
            return
        assert violations(self.engine.store) == []
        if self.said:
            assert self.engine.conversation().message_count == self.said

    def teardown(self) -> None:
        if self.engine is not None:
            self.engine.close()
        shutil.rmtree(self.folder)


IS_NIGHTLY = settings().max_examples >= NIGHTLY_EXAMPLES
SHORT = {} if IS_NIGHTLY else {"stateful_step_count": 25, "max_examples": 40}
CompactionHistory.TestCase.settings = settings(
    deadline=None, suppress_health_check=list(HealthCheck), **SHORT
)
TestCompactionHistories = CompactionHistory.TestCase
