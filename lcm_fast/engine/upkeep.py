"""Compaction as an engine runs it: when asked, when a debt is due, and before a tight assembly.

One compaction of a conversation at a time; turns never wait for one. Holds the policy of budgets
and thresholds; the sweeps themselves are `compaction` (design: architecture, sections 3 and 5).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from .. import compaction
from ..assembly.pieces import summary_tokens
from ..compaction import CompactionPlan, CompactionResult, Goal
from ..compaction.debt import seconds_between, settlement, time_after
from ..compaction.guards import open_gate
from ..compaction.redo import redo_fallbacks
from ..compaction.services import Frontiers
from ..compaction.thresholds import (
    CallContext,
    PersistedThreshold,
    Pressure,
    Threshold,
    effective_config,
    goal_tokens,
    measure_pressure,
    resolve_threshold,
    settled_threshold,
)
from ..config import Config
from ..errors import LcmError
from ..store import (
    NO_FACTS,
    CallFacts,
    Conversation,
    Debt,
    DebtTerms,
    Settlement,
    Store,
    in_model_tokens,
    in_stored_tokens,
    owner_name,
)
from ..summarize.backends import Backend
from .results import DrainedDebt, MaintenanceResult

__all__ = ["Order", "Upkeep"]

_LOG = logging.getLogger(__name__)

_REDONE_AT_ONCE = 8
_FAILED_CLAIMS_THAT_WAIT = 3


@dataclass(frozen=True, slots=True)
class Order:
    """A compaction that somebody asks for.

    Attributes
    ----------
    token_budget
        The context window to fit, in tokens of the model.
    to_budget
        Fit the budget itself, not the threshold.
    facts
        Of the model call; observed tokens count what the frontier does not hold as well.
    instructions
        For the summariser; None for ``customInstructions``.
    """

    token_budget: int
    force: bool = False
    to_budget: bool = False
    facts: CallFacts = NO_FACTS
    instructions: str | None = None
    progress: Callable[[str], None] = lambda line: None
    is_cancelled: Callable[[], bool] = lambda: False

    def in_stored_tokens(self, ratio: float) -> Order:
        """Return the order in our tokens, of one of which the model makes `ratio`."""
        observed = self.facts.observed_tokens
        if observed is not None:
            observed = in_stored_tokens(observed, ratio)
        return replace(
            self,
            token_budget=in_stored_tokens(self.token_budget, ratio),
            facts=replace(self.facts, observed_tokens=observed),
        )


@dataclass(slots=True)
class Upkeep:
    """Runs the compactions of one engine.

    Attributes
    ----------
    counter
        Names what counts what is stored; None: its counts stand for every model's.
    wake
        Called when a debt was written, for whoever drains debts in the background.

    Threading: may be used from any thread.
    """

    store: Store
    config: Config
    backend: Backend
    frontiers: Frontiers
    timezone: str
    count_tokens: Callable[[str], int]
    counter: Callable[[], str | None]
    now: Callable[[], str]
    monotonic: Callable[[], float]
    wake: Callable[[], None] = lambda: None
    _owner: str = field(default_factory=owner_name)
    _busy: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def terms(self, session_key: str | None, token_budget: int, facts: CallFacts) -> DebtTerms:
        """Return when a turn leaves its conversation in debt."""
        threshold = resolve_threshold(self.config, _context(session_key, facts))
        return DebtTerms(
            threshold_tokens=threshold.tokens(token_budget),
            token_budget=token_budget,
            context_threshold=threshold.fraction,
            threshold_source=threshold.source,
            counter=self.counter(),
            fresh_tail_count=threshold.fresh_tail_count,
            leaf_chunk_tokens=threshold.leaf_chunk_tokens,
            facts=facts,
        )

    def token_ratio(self, conversation_id: int, model: str | None = None) -> float:
        """Return how many tokens a model, else that of the last call, makes of one of ours."""
        counter = self.counter()
        return 1.0 if counter is None else self.store.token_ratio(conversation_id, counter, model)

    def limit_tokens(self, session_key: str | None, order: Order) -> int:
        """Return what a context is to take at most after an order."""
        if order.to_budget:
            return order.token_budget
        return self.terms(session_key, order.token_budget, order.facts).threshold_tokens

    def compact(self, conversation: Conversation, order: Order) -> CompactionResult:
        """Compact a conversation because somebody asks for it."""
        number = conversation.conversation_id
        ratio = self.token_ratio(number, order.facts.model)
        threshold = resolve_threshold(self.config, self._known_context(conversation, order.facts))
        goal, config = self._goal(conversation, threshold, order.in_stored_tokens(ratio))
        with self._alone_with(number) as is_alone:
            if not is_alone:
                return _busy_result(conversation, goal)
            services = self.services(config, number, order, clears_spend_guard=order.force)
            result = self._run(services, conversation, goal, order)
        if result.status in ("done", "nothing", "exhausted") and self.store.debt(number):
            self.store.resolve_debt_if_under(
                number,
                result.reason,
                self.now(),
                ratio=ratio,
                is_exhausted=result.status == "exhausted",
            )
        return result

    def rehearse(self, conversation: Conversation, order: Order) -> CompactionPlan:
        """Return what `compact` would do; nothing is asked or written."""
        ratio = self.token_ratio(conversation.conversation_id, order.facts.model)
        threshold = resolve_threshold(self.config, self._known_context(conversation, order.facts))
        goal, config = self._goal(conversation, threshold, order.in_stored_tokens(ratio))
        services = self.services(config, conversation.conversation_id, order)
        return compaction.rehearse(services, conversation.conversation_id, goal)

    def drain(
        self,
        conversation_id: int,
        *,
        token_budget: int | None = None,
        ignores_wait: bool = False,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> CompactionResult | None:
        """Compact what a debt asks for; None when there is none, it waits, or another one has it.

        Parameters
        ----------
        token_budget
            Caps the budget that the debt was made under.
        ignores_wait
            Do not heed the waiting time after a failure.
        """
        with self._alone_with(conversation_id) as is_alone:
            if not is_alone:
                return None
            now = self.now()
            debt = self.store.claim_debt(
                conversation_id,
                self._owner,
                now=now,
                lease_until=time_after(now, self._longest_drain_ms()),
                ignores_wait=ignores_wait,
            )
            if debt is None:
                return None
            return self._drain_claimed(debt, token_budget, is_cancelled)

    def relieve(self, conversation: Conversation, token_budget: int, wait_s: float) -> bool:
        """Drain the debt of a conversation that does not fit a budget, for a bounded time; tell
        whether it may have changed.

        What is not done by then goes on in a thread of its own.
        """
        number = conversation.conversation_id
        debt = None if self.store.is_read_only else self.store.debt(number)
        if debt is None or not (debt.pending or debt.running):
            return False
        ignores_wait = debt.retry_attempts < _FAILED_CLAIMS_THAT_WAIT

        def drain() -> None:
            try:
                self.drain(number, token_budget=token_budget, ignores_wait=ignores_wait)
            except LcmError as error:
                _LOG.warning("conversation %d: %s", number, error)

        thread = threading.Thread(target=drain, name="lcm-fast-relieve", daemon=True)
        thread.start()
        thread.join(wait_s)
        return True

    def maintain(
        self,
        conversation_id: int | None = None,
        *,
        token_budget: int | None = None,
        deadline_ms: int | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[str], None] = lambda line: None,
    ) -> MaintenanceResult:
        """Drain what is due, the oldest debt first, then write fallback summaries properly."""
        started = self.monotonic()
        end = None if deadline_ms is None else started + deadline_ms / 1000

        def is_over() -> bool:
            return is_cancelled() or (end is not None and self.monotonic() >= end)

        drained: list[DrainedDebt] = []
        stopped = ""
        for debt in self.store.due_debts(self.now(), conversation_id):
            if stopped or is_over():
                break
            result = self.drain(
                debt.conversation_id, token_budget=token_budget, is_cancelled=is_over
            )
            if result is not None:
                drained.append(DrainedDebt(debt.conversation_id, debt.session_key, result))
                progress(f"{debt.session_key or debt.session_id}: {result.status}")
                stopped = result.reason if result.summarizer_is_out else ""
        redone = 0 if stopped or is_over() else self._redo(conversation_id, is_over)
        pending, next_attempt_after = self.store.open_debts(conversation_id)
        wait_s = seconds_between(self.now(), next_attempt_after)
        if any(one.compaction.can_go_on for one in drained):
            wait_s = 0.0
        return MaintenanceResult(
            drained=drained,
            redone=redone,
            pending=pending,
            next_attempt_after=next_attempt_after,
            wait_s=wait_s,
            stopped="the deadline was reached, or the caller stopped it" if is_over() else stopped,
            duration_ms=(self.monotonic() - started) * 1000,
        )

    def _redo(self, conversation_id: int | None, is_over: Callable[[], bool]) -> int:
        redone = 0
        for number in self.store.conversations_to_redo(conversation_id, self.now()):
            if is_over():
                break
            with self._alone_with(number) as is_alone:
                if is_alone:
                    order = Order(token_budget=0, is_cancelled=is_over)
                    services = self.services(self.config, number, order)
                    result = redo_fallbacks(services, number, limit=_REDONE_AT_ONCE)
                    redone += result.redone
                    if result.failure:
                        break
        return redone

    def _drain_claimed(
        self, debt: Debt, token_budget: int | None, is_cancelled: Callable[[], bool]
    ) -> CompactionResult:
        number = debt.conversation_id
        end = Settlement(True, failure="interrupted", attempts=debt.retry_attempts)
        try:
            result = self._compact_for(debt, token_budget, is_cancelled)
            end = settlement(debt, result, self.now())
        except Exception as error:
            end = settlement(debt, _failed(error), self.now())
            raise
        finally:
            self.store.settle_debt(number, self._owner, end, self.now())
        return result

    def _compact_for(
        self, debt: Debt, token_budget: int | None, is_cancelled: Callable[[], bool]
    ) -> CompactionResult:
        conversation = self.store.conversation(debt.conversation_id)
        assert conversation is not None  # a debt goes with its conversation
        facts = self.store.call_facts(debt.conversation_id)
        budget = self._budget_of(debt, token_budget)
        context = _context(conversation.session_key, facts)
        live = resolve_threshold(self.config, context)
        threshold = settled_threshold(_persisted(debt), live, self.config, context)
        overhead = max(0, (debt.projected_token_count or 0) - (debt.current_token_count or 0))
        ratio = self.token_ratio(debt.conversation_id)
        stored = in_model_tokens(conversation.frontier_tokens, ratio)
        observed = stored + overhead if overhead else None
        order = Order(budget, facts=CallFacts(observed), is_cancelled=is_cancelled)
        goal, config = self._goal(conversation, threshold, order.in_stored_tokens(ratio))
        services = self.services(config, debt.conversation_id, order)
        return self._run(services, conversation, goal, order)

    def _run(
        self,
        services: compaction.Services,
        conversation: Conversation,
        goal: Goal,
        order: Order,
    ) -> CompactionResult:
        number = conversation.conversation_id
        instructions = order.instructions
        if instructions is None:
            instructions = self.config.custom_instructions
        _LOG.info("conversation %d: compacting to %d tokens", number, goal.target_tokens)
        result = compaction.compact(services, number, goal, instructions=instructions)
        _LOG.info(
            "conversation %d: %s, %d to %d tokens in %d passes: %s",
            number,
            result.status,
            result.tokens_before,
            result.tokens_after,
            result.passes,
            result.reason,
        )
        return result

    def _goal(
        self, conversation: Conversation, threshold: Threshold, order: Order
    ) -> tuple[Goal, Config]:
        """Return what an order, in our tokens, is to reach, and with which configuration."""
        config = effective_config(self.config, threshold)
        budget = order.token_budget
        limit = budget if order.to_budget else threshold.tokens(budget)
        stored = conversation.frontier_tokens
        pressure = measure_pressure(stored, order.facts.observed_tokens, limit)
        self._log_decision(conversation, threshold, pressure)
        return (
            Goal(
                target_tokens=goal_tokens(pressure, limit),
                prefix_target_tokens=config.summary_prefix_target(budget),
                force=order.force,
                overhead_tokens=pressure.overhead_tokens,
                beyond_us=pressure.reason if pressure.is_beyond_us else "",
            ),
            config,
        )

    def _log_decision(
        self, conversation: Conversation, threshold: Threshold, pressure: Pressure
    ) -> None:
        _LOG.info(
            "conversation %d: %s; threshold %.3g from %s (%s)",
            conversation.conversation_id,
            pressure.reason,
            threshold.fraction,
            threshold.source,
            threshold.reason,
        )

    def services(
        self, config: Config, number: int, order: Order, *, clears_spend_guard: bool = False
    ) -> compaction.Services:
        """Return what a compaction of a conversation, or a brief of it, works with."""
        gate = open_gate(
            self.store, config, number, self.now, clears_spend_guard=clears_spend_guard
        )
        return compaction.Services(
            store=self.store,
            config=config,
            frontiers=self.frontiers,
            timezone=self.timezone,
            summarizer=compaction.GatedSummarizer(self.backend, gate),
            count_tokens=self.count_tokens,
            wire_tokens=lambda row: summary_tokens(row, self.timezone, self.count_tokens),
            now=self.now,
            monotonic=self.monotonic,
            progress=order.progress,
            is_cancelled=order.is_cancelled,
        )

    def _known_context(self, conversation: Conversation, facts: CallFacts) -> CallContext:
        """Return the context of a call; what it leaves out is taken from the last one."""
        if not self.config.context_threshold_overrides:
            return _context(conversation.session_key, facts)
        known = self.store.call_facts(conversation.conversation_id)
        return _context(
            conversation.session_key,
            CallFacts(
                model=facts.model or known.model,
                provider=facts.provider or known.provider,
                context_window=facts.context_window or known.context_window,
            ),
        )

    def _budget_of(self, debt: Debt, token_budget: int | None) -> int:
        budgets = [
            budget
            for budget in (
                debt.token_budget,
                token_budget,
                self.config.max_assembly_token_budget,
            )
            if budget
        ]
        return min(budgets)

    def _longest_drain_ms(self) -> int:
        """Return how long a drain may take: its last summary may be asked for twice."""
        return self.config.compact_until_under_deadline_ms + 2 * self.config.sweep_deadline_ms

    @contextmanager
    def _alone_with(self, conversation_id: int) -> Iterator[bool]:
        """Tell whether nobody else in this engine compacts a conversation, and keep it so."""
        with self._lock:
            is_alone = conversation_id not in self._busy
            self._busy.add(conversation_id)
        try:
            yield is_alone
        finally:
            if is_alone:
                with self._lock:
                    self._busy.discard(conversation_id)


def _context(session_key: str | None, facts: CallFacts) -> CallContext:
    return CallContext(
        model=facts.model,
        provider=facts.provider,
        context_window=facts.context_window,
        session_key=session_key,
    )


def _persisted(debt: Debt) -> PersistedThreshold | None:
    if debt.context_threshold is None:
        return None
    return PersistedThreshold(
        fraction=debt.context_threshold,
        source="override" if debt.context_threshold_source == "override" else "global",
        fresh_tail_count=debt.context_fresh_tail_count,
        leaf_chunk_tokens=debt.context_leaf_chunk_tokens,
    )


def _busy_result(conversation: Conversation, goal: Goal) -> CompactionResult:
    tokens = conversation.frontier_tokens
    return CompactionResult(
        "deferred",
        "another compaction of this conversation is under way",
        tokens,
        tokens,
        goal.target_tokens,
    )


def _failed(error: Exception) -> CompactionResult:
    code = error.code if isinstance(error, LcmError) else "error"
    return CompactionResult(
        "failed", f"{type(error).__name__}: {error}", 0, 0, 0, failure_code=code
    )
