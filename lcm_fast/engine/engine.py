"""The engine: what a host embeds.

Orchestrates the layers and holds their policy; has no SQL and no kernel of its own (design:
architecture, section 3).

Threading: an engine may be used from any thread; calls for different conversations do not wait for
one another other than to commit together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event
from types import TracebackType
from typing import Any

from ..assembly import check_budget
from ..assembly.recently_used import RecentlyUsed
from ..compaction import CompactionPlan, CompactionResult
from ..compaction.usage import observed_prompt_tokens
from ..config import Config, system_zone
from ..counting import Counter, given_counter
from ..errors import ConfigError
from ..ingest import address
from ..mapping import MapResult
from ..store import NO_FACTS, Address, CallFacts, Frontier, Store
from ..summarize.backends import as_backend
from .batches import Batches
from .focusing import Focusing
from .results import MaintenanceResult
from .upkeep import Order, Upkeep
from .worker import MaintenanceWorker

__all__ = ["Engine"]

_REMEMBERED_FRONTIERS = 64


class Engine(Focusing):
    """A memory of conversations. Made by `open_engine`; a context manager that closes itself.

    Attributes
    ----------
    store, config
        What it works on, and with which settings.
    timezone
        IANA name of the zone in which times are shown.
    upkeep
        Runs its compactions.
    token_counter
        What counts its tokens, for `status`.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        summarizer: Any,
        count_tokens: Callable[[str], int],
        *,
        counter: Counter | None = None,
        now: Callable[[], str] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.token_counter = counter or given_counter(count_tokens)
        self.timezone = config.timezone or system_zone()
        frontiers: RecentlyUsed[Frontier] = RecentlyUsed(_REMEMBERED_FRONTIERS)
        upkeep = Upkeep(
            store=store,
            config=config,
            backend=as_backend(summarizer, timeout_s=config.summary_timeout_ms / 1000),
            frontiers=frontiers,
            timezone=self.timezone,
            count_tokens=count_tokens,
            counter=lambda: self.token_counter.name if config.usage_calibration else None,
            now=now or _utc_now,
            monotonic=monotonic,
        )
        super().__init__(store, config, upkeep, count_tokens, now or _utc_now)
        self._worker: MaintenanceWorker | None = None
        self._batches = Batches(
            store=store,
            config=config,
            backend=upkeep.backend,
            folder=self._folder,
            count_tokens=count_tokens,
            now=self._now,
            monotonic=monotonic,
        )

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the worker and close the database; a second call does nothing."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None
        self.store.close()

    @property
    def summarizer_name(self) -> str:
        """What makes the summaries: the name of a model, a program or a function."""
        return self.upkeep.backend.name

    def start_worker(self) -> None:
        """Maintain this memory from a thread of its own until it is closed; a second call does
        nothing.

        The thread drains compaction debt as turns write it, takes up what an earlier process left,
        and tries again what failed when its waiting time is over.
        """
        if self._worker is None:
            self._worker = MaintenanceWorker(lambda stopped: self.maintain(cancel=stopped))
            self.upkeep.wake = self._worker.wake

    def compact(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        token_budget: int | None = None,
        force: bool = False,
        target: str = "threshold",
        instructions: str | None = None,
        current_tokens: Mapping[str, Any] | int | None = None,
        model: str | None = None,
        provider: str | None = None,
        context_window: int | None = None,
        cancel: Event | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> CompactionResult:
        """Summarise old messages until the conversation is under its target.

        Parameters
        ----------
        token_budget
            The context window to fit, in tokens; ``maxAssemblyTokenBudget`` caps it. Default: that
            of the last call for this conversation, else 128,000.
        force
            Do one sweep over all that is outside the fresh tail even when under the target.
        target
            ``"threshold"``: ``contextThreshold`` of the budget. ``"budget"``: the budget itself.
        instructions
            For the summariser, instead of ``customInstructions``.
        current_tokens
            What the provider counted for the last prompt: what it held beyond the stored context
            has to fit as well.
        model, provider, context_window
            Of the call; ``contextThresholdOverrides`` are chosen by them. Default: what the last
            turn said.
        cancel
            Once it is set, no further summary is begun.
        progress
            Called with a line for people after each sweep.

        Returns
        -------
        CompactionResult
            A summariser's failure is a status of it, not an exception; what was published before
            stays.

        Raises
        ------
        BudgetTooSmallError
            The budget is below 256.
        ConfigError
            `target` is neither of the two.

        Threading: the summariser is called without any lock or transaction; turns go on meanwhile.
        """
        facts = CallFacts(observed_prompt_tokens(current_tokens), model, provider, context_window)
        place = address(session_key, session_id)
        order = self._order(place, token_budget, target, force=force, facts=facts)
        order = replace(
            order,
            instructions=instructions,
            progress=progress or order.progress,
            is_cancelled=cancel.is_set if cancel is not None else order.is_cancelled,
        )
        conversation = self.store.find_conversation(place)
        reason = self._sessions.why_not_stored(place.session_key, place.session_id)
        if conversation is not None and reason is None:
            return self.upkeep.compact(conversation, order)
        limit = self.upkeep.limit_tokens(place.session_key, order)
        return CompactionResult("nothing", reason or "no such conversation", 0, 0, limit)

    def plan_compaction(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        token_budget: int | None = None,
        force: bool = False,
        target: str = "threshold",
    ) -> CompactionPlan:
        """Return what `compact` would do: which summaries, of what, for how many tokens of input.

        Nothing is summarised or written. Each summary is taken to be as long as it is asked to be;
        a real one may be shorter or longer.

        Parameters
        ----------
        session_key, session_id, token_budget, force, target
            As for `compact`.

        Raises
        ------
        NotFoundError
            No such conversation.
        BudgetTooSmallError, ConfigError
            As for `compact`.

        Complexity: as `compact` without reading messages or calling the summariser.
        """
        place = address(session_key, session_id)
        order = self._order(place, token_budget, target, force=force, facts=NO_FACTS)
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        return self.upkeep.rehearse(conversation, order)

    def maintain(
        self,
        *,
        session_key: str | None = None,
        token_budget: int | None = None,
        deadline_ms: int | None = None,
        cancel: Event | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> MaintenanceResult:
        """Do what turns have left to be done: drain compaction debt, then write anew what is only a
        fallback summary.

        Parameters
        ----------
        session_key
            This conversation alone.
        token_budget
            Caps the budgets that the debts were made under.
        deadline_ms
            After it nothing further is begun.
        cancel
            Once it is set, nothing further is begun.
        progress
            Called with a line for people after each conversation.

        Returns
        -------
        MaintenanceResult
            A summariser's failure is told in it, and tried again later: after 5, 10, 20, then 30
            minutes.

        Raises
        ------
        NotFoundError
            There is no conversation of this key.
        StoreBusyError, StoreFullError, DatabaseError
            As the store found it; what was published before stays.
        """
        self._check_enabled()
        number = None
        if session_key is not None:
            number = self.conversation(session_key=session_key).conversation_id
        return self.upkeep.maintain(
            number,
            token_budget=token_budget,
            deadline_ms=deadline_ms,
            is_cancelled=cancel.is_set if cancel is not None else lambda: False,
            progress=progress or (lambda line: None),
        )

    def map(
        self,
        items: Iterable[str],
        prompt: str,
        *,
        schema: Mapping[str, Any] | None = None,
        model: Any = None,
        concurrency: int | None = None,
        job_id: str | None = None,
        session_key: str | None = None,
        max_attempts: int = 3,
        max_tokens: int = 1024,
        cancel: Event | None = None,
    ) -> MapResult:
        """Have a model answer one prompt for each of many items, side by side.

        Answers are kept as they come: the same call again, after it was stopped or killed, goes on
        where it was, and asks nothing twice.

        Parameters
        ----------
        items
            Texts, or ids of what is stored: ``msg_...``, ``sum_...``, ``file_...``.
        prompt
            What is to be done with each.
        schema
            A JSON schema that every answer must meet; one that does not is asked for again.
        model
            A `LanguageModel`. Default: the models that the configuration names for summaries.
        concurrency
            Items at a time; default ``summaryConcurrency``.
        job_id
            Names the work; default a digest of prompt, schema and items.
        session_key
            The conversation that the results belong to: they are deleted with it.
        max_attempts
            Unusable answers to an item before it has failed.
        max_tokens
            Length of an answer.
        cancel
            Once it is set, no further item is begun.

        Returns
        -------
        MapResult
            The items in order, with their results; ``paused`` when a rate limit, an outage or
            refused credentials ended it before all were done.

        Raises
        ------
        ConfigError
            No model answers prompts, or the schema is none.
        JobConflictError
            `job_id` was used for other work.
        NotFoundError
            There is no conversation of this key.
        """
        self._check_enabled()
        number = None
        if session_key is not None:
            number = self.conversation(session_key=session_key).conversation_id
        return self._batches.run(
            list(items),
            prompt,
            schema=schema,
            model=model,
            concurrency=concurrency,
            job_id=job_id,
            conversation_id=number,
            max_attempts=max_attempts,
            max_tokens=max_tokens,
            is_cancelled=cancel.is_set if cancel is not None else lambda: False,
        )

    def _order(
        self,
        place: Address,
        token_budget: int | None,
        target: str,
        *,
        force: bool,
        facts: CallFacts,
    ) -> Order:
        self._check_enabled()
        if target not in ("threshold", "budget"):
            raise ConfigError(f"target is {target!r}", hint="one of: threshold, budget")
        budget = self._budget_for(place, token_budget)
        check_budget(budget)
        return Order(budget, force=force, to_budget=target == "budget", facts=facts)


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
