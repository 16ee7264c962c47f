"""One pass: from a plan to a summary that can be published in its place.

Reads what the plan names, calls the summariser, works out the summary's row. Holds no lock and no transaction, and
writes nothing (spec F, G4 to G7, K9, M1).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..config import Config
from ..store import SUMMARY, Frontier, NewSummary, Store, StoredMessage, StoredSummary
from ..summarize import (
    SourceItem,
    Summarizer,
    Summary,
    SummaryRequest,
    condensed_target_tokens,
    leaf_target_tokens,
    sanitise_summary,
    summarise_with_escalation,
)
from .planner import Plan
from .source import item_from_message, item_from_summary

__all__ = ["Services", "summarise"]

_FILE_ID = re.compile(r"\bfile_[0-9a-f]{16}\b", re.IGNORECASE)
_CONTINUITY_SUMMARIES = 2


@dataclass(frozen=True, slots=True)
class Services:
    """What a compaction works with; all of it is injected.

    Attributes
    ----------
    wire_tokens
        Tokens of a summary as a model is sent it.
    now, monotonic
        UTC time as ISO 8601, and seconds of a clock that never goes back.
    progress
        Called after each pass with a line for people.
    """

    store: Store
    config: Config
    timezone: str
    summarizer: Summarizer
    count_tokens: Callable[[str], int]
    wire_tokens: Callable[[StoredSummary], int]
    now: Callable[[], str]
    monotonic: Callable[[], float]
    progress: Callable[[str], None]


def summarise(
    services: Services, conversation_id: int, frontier: Frontier, plan: Plan, instructions: str
) -> NewSummary:
    """Return the summary of a plan's items.

    Raises
    ------
    SummarizerError
        The summariser failed; its failure is never stored as a summary.
    """
    maker = _Maker(services, conversation_id, frontier, plan, instructions)
    return maker.leaf() if plan.depth == 0 else maker.condensed()


@dataclass(frozen=True, slots=True)
class _Maker:
    services: Services
    conversation_id: int
    frontier: Frontier
    plan: Plan
    instructions: str

    def leaf(self) -> NewSummary:
        messages = self.services.store.messages(self.plan.message_ids)
        tags = self.services.config.strip_injected_context_tags
        summary = self._ask([item_from_message(message, tags) for message in messages])
        times = [message.created_at for message in messages]
        return self._row(
            summary,
            earliest_at=min(times),
            latest_at=max(times),
            source_tokens=self.plan.tokens,
            file_ids=_file_ids(messages),
        )

    def condensed(self) -> NewSummary:
        sources = self.services.store.summaries(self.plan.source_ids)
        summary = self._ask([item_from_summary(source) for source in sources])
        return self._row(
            summary,
            earliest_at=min(source.earliest_at or source.created_at for source in sources),
            latest_at=max(source.latest_at or source.created_at for source in sources),
            source_tokens=sum(source.source_message_token_count for source in sources),
            file_ids=[file_id for source in sources for file_id in source.file_ids],
            sources=sources,
        )

    def _ask(self, items: list[SourceItem]) -> Summary:
        config, plan = self.services.config, self.plan
        is_leaf = plan.depth == 0
        request = SummaryRequest(
            kind="leaf" if is_leaf else "condensed",
            depth=plan.depth,
            items=tuple(items),
            target_tokens=leaf_target_tokens(plan.tokens, config.leaf_target_tokens, "normal")
            if is_leaf
            else condensed_target_tokens(config.condensed_target_tokens),
            previous_summary=self._previous_summary() if plan.depth <= 1 else None,
            instructions=self.instructions,
            timezone=self.services.timezone,
        )
        return summarise_with_escalation(
            self.services.summarizer,
            request,
            count_tokens=self.services.count_tokens,
            max_overage_factor=config.summary_max_overage_factor,
            fallback_max_tokens=config.fallback_max_tokens,
        )

    def _previous_summary(self) -> str | None:
        """Return up to two summaries that stand before the run, for continuity (spec K9)."""
        before = np.flatnonzero(self.frontier.kinds[: self.plan.begin] == SUMMARY)
        ids = [self.frontier.summary_ids[index] or "" for index in before[-_CONTINUITY_SUMMARIES:]]
        rows = self.services.store.summaries(ids) if ids else []
        texts = [text for row in rows if (text := sanitise_summary(row.content))]
        return "\n\n".join(texts) or None

    def _row(
        self,
        summary: Summary,
        *,
        earliest_at: str,
        latest_at: str,
        source_tokens: int,
        file_ids: list[str],
        sources: Sequence[StoredSummary] = (),
    ) -> NewSummary:
        plan = self.plan
        stored = StoredSummary(
            summary_id=self._summary_id(summary.text),
            conversation_id=self.conversation_id,
            kind="leaf" if plan.depth == 0 else "condensed",
            depth=plan.depth,
            content=summary.text,
            token_count=summary.token_count,
            earliest_at=earliest_at,
            latest_at=latest_at,
            descendant_count=sum(1 + source.descendant_count for source in sources),
            descendant_token_count=sum(
                source.token_count + source.descendant_token_count for source in sources
            ),
            source_message_token_count=source_tokens,
            created_at=self.services.now(),
            model=summary.model,
            level=summary.level,
            truncated=summary.truncated,
            file_ids=list(dict.fromkeys(file_ids)),
            source_ids=plan.source_ids,
        )
        return NewSummary(
            summary=stored,
            wire_tokens=self.services.wire_tokens(stored),
            first_ordinal=int(self.frontier.ordinals[plan.begin]),
            last_ordinal=int(self.frontier.ordinals[plan.end - 1]),
            message_ids=plan.message_ids,
        )

    def _summary_id(self, text: str) -> str:
        """Name a summary by what it is made of and what it says."""
        sources: Sequence[object] = self.plan.source_ids or self.plan.message_ids
        named = "\0".join(map(str, (self.conversation_id, *sources, text)))
        return "sum_" + hashlib.sha256(named.encode()).hexdigest()[:16]


def _file_ids(messages: Iterable[StoredMessage]) -> list[str]:
    return [
        match.group().lower() for message in messages for match in _FILE_ID.finditer(message.content)
    ]
