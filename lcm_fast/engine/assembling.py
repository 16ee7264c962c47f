"""The context of a model call, from the frontier to the messages sent.

Compacts first where a debt stands in the way, for a bounded time; the choice and the rendering are
`assembly` (design: architecture, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from ..assembly import (
    NOTHING_LIVE,
    NOTHING_SHOWN,
    Assembly,
    AssemblyRequest,
    LiveMessages,
    MessagePieces,
    Relevance,
    Shown,
    assemble,
    check_budget,
    diagnose,
)
from ..assembly.recently_used import RecentlyUsed
from ..config import Config
from ..errors import ConfigError
from ..focus import Overlay, load_overlay
from ..ingest import address, recognise_live, stub_form
from ..store import Address, Conversation, Frontier, SentPrompt, Store, in_model_tokens
from ..transcripts.forms import FORMS
from ..types import Shape
from .intake import Intake
from .upkeep import Upkeep

__all__ = ["Assembling"]

_REMEMBERED_ASSEMBLIES = 100
_RELIEF_MS = 5_000
# A result is large for a stub at a tenth of what is large for a file.
_STUBS_TO_FILES = 10


class Assembling(Intake):
    """The half of an engine that says what the model sees."""

    timezone: str

    def __init__(
        self,
        store: Store,
        config: Config,
        upkeep: Upkeep,
        count_tokens: Callable[[str], int],
        now: Callable[[], str],
    ) -> None:
        super().__init__(store, config, upkeep, count_tokens, now)
        self._stub_threshold = config.large_file_threshold_tokens // _STUBS_TO_FILES
        make_stub = partial(
            stub_form, threshold_tokens=self._stub_threshold, count_tokens=count_tokens
        )
        self._pieces = MessagePieces(store, count_tokens, make_stub)
        self._relevance = Relevance(store)
        self._assemblies: RecentlyUsed[Shown] = RecentlyUsed(_REMEMBERED_ASSEMBLIES)
        self._overlays: RecentlyUsed[Overlay] = RecentlyUsed(_REMEMBERED_ASSEMBLIES)

    def assemble(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        token_budget: int,
        prompt: str | None = None,
        live_messages: Iterable[Any] | None = None,
        format: Shape | None = None,
        model: str | None = None,
        diagnostics: bool = False,
        deadline_ms: int = _RELIEF_MS,
    ) -> Assembly:
        """Return the context for the next model call, within `token_budget`.

        Parameters
        ----------
        token_budget
            Tokens of the whole output, at least 256; ``maxAssemblyTokenBudget`` caps it. With
            ``usageCalibration`` they are the model's own, as far as its counts are known.
        prompt
            The user's next message, when it is sent after this context: room for it is kept free.
            With ``promptAwareEviction`` it decides which older items are shown; without it, what
            the user said last does.
        live_messages
            What the host holds of the conversation. Those that are not stored yet are shown as
            well, in their place; none is stored.
        format
            The form of the messages: ``"openclaw"``, ``"openai"`` (chat completions),
            ``"responses"`` or ``"anthropic"``. Default: each as it came.
        model
            That the context is for. Default: that of the conversation's last turn.
        diagnostics
            Also tell what fills the context: the largest items, and messages that say the same.
        deadline_ms
            How long a conversation that is in compaction debt and does not fit may be compacted
            first; after it, what fits is returned, and the compaction goes on behind.

        Raises
        ------
        BudgetTooSmallError
            Below 256, or not even what must stay fits with its texts cut away.
        ConfigError
            There is no such format.
        MessageError
            Naming index and field of a malformed live message.

        Complexity: linear in the frontier, in kernels; rows are read for what is chosen.
        """
        self._check_enabled()
        if format is not None and format not in FORMS:
            raise ConfigError(f"format is {format!r}", hint=f"one of: {', '.join(FORMS)}")
        budget = self._capped(token_budget)
        prompt_tokens = self._count_tokens(prompt) if prompt else 0
        check_budget(budget, prompt_tokens)
        place = address(session_key, session_id)
        self._budgets.put(place.identity, token_budget)
        conversation, frontier, ratio = self._frontier(place, budget, model, deadline_ms)
        live = NOTHING_LIVE
        if live_messages is not None:
            live = LiveMessages(*recognise_live(self._ingest, live_messages, conversation))
        if conversation is None and not live.bodies:
            self._sent.put(place.identity, SentPrompt(0, 0))
            return Assembly.nothing(budget)
        number = conversation.conversation_id if conversation is not None else 0
        frontier, brief = self._overlay(number, frontier).over(frontier)
        previous = self._assemblies.get(number) or NOTHING_SHOWN
        asked = prompt or live.newest_prompt
        rank = partial(self._relevance.rank, number, frontier, asked, previous.ordinals)
        request = AssemblyRequest(
            budget_tokens=budget,
            token_ratio=ratio,
            prompt=prompt or None,
            prompt_tokens=prompt_tokens,
            fresh_tail_count=self.config.fresh_tail_count,
            fresh_tail_max_tokens=self.config.fresh_tail_max_tokens,
            eviction_step=self.config.eviction_step,
            stub_threshold_tokens=(
                self._stub_threshold if self.config.stub_large_tool_payloads else None
            ),
            timezone=self.timezone,
            form=format,
            count_tokens=self._count_tokens,
            previous=previous,
            rank=rank if self.config.prompt_aware_eviction else None,
            live=live,
            brief=brief,
        )
        assembly, shown = assemble(self.store, self._pieces, number, frontier, request)
        if conversation is not None:
            self._assemblies.put(number, shown)
        self._sent.put(place.identity, SentPrompt(shown.stored_tokens, frontier.last_ordinal))
        if diagnostics:
            found = diagnose(self._pieces, frontier, shown.ordinals)
            assembly = replace(assembly, diagnostics=found)
        return assembly

    def _overlay(self, number: int, frontier: Frontier) -> Overlay:
        """Return what is laid over a conversation's frontier."""
        known = self._overlays.get(number)
        if known is None or known.revision != frontier.revision:
            known = load_overlay(self.store, number, frontier.revision, self._count_tokens)
            self._overlays.put(number, known)
        return known

    def _frontier(
        self, place: Address, budget: int, model: str | None, deadline_ms: int
    ) -> tuple[Conversation | None, Frontier, float]:
        """Return a conversation's frontier, compacted first where it is in debt and too large, and
        how many tokens the model makes of one of ours."""
        found = self.store.frontier(place, self.upkeep.frontiers)
        if found is None:
            return None, Frontier.empty(0), 1.0
        number = found[0].conversation_id
        ratio = self.upkeep.token_ratio(number, model)
        if in_model_tokens(found[0].frontier_tokens, ratio) > budget and self.upkeep.relieve(
            found[0], budget, deadline_ms / 1000
        ):
            found = self.store.frontier(place, self.upkeep.frontiers) or found
        self.upkeep.frontiers.put(number, found[1])
        return *found, ratio
