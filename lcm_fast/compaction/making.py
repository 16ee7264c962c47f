"""Make the summary of a plan's items, as a row that can be published in their place.

Reads what the plan names, calls the summariser, works out the row. Holds no lock and no
transaction, and writes nothing (spec F, G4 to G7, K9, M1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..store import SUMMARY, Frontier, NewSummary, StoredSummary
from ..summarize import (
    SourceItem,
    Summary,
    SummaryRequest,
    condensed_target_tokens,
    leaf_target_tokens,
    sanitise_summary,
    summarise_with_escalation,
)
from .planner import Plan
from .services import Services
from .source import item_from_message, item_from_summary

__all__ = ["SummaryMaker"]

_CONTINUITY_SUMMARIES = 2
_READ_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class SummaryMaker:
    """Makes the summary of one plan on one frontier."""

    services: Services
    conversation_id: int
    frontier: Frontier
    plan: Plan
    instructions: str

    def least_wire_tokens(self) -> int:
        """Return the tokens of the summary when it says nothing: its frame and its sources."""
        nothing = Summary("", 0, "normal", "", input_tokens=0)
        return self.services.wire_tokens(self._stored(nothing, _Origin(), created_at=""))

    def make(self) -> NewSummary:
        """Return the summary.

        Raises
        ------
        SummarizerError
            The summariser failed; its failure is never stored as a summary.
        """
        return self._leaf() if self.plan.depth == 0 else self._condensed()

    def _leaf(self) -> NewSummary:
        messages = self.services.store.messages(self.plan.message_ids)
        tags = self.services.config.strip_injected_context_tags
        summary = self._ask([item_from_message(message, tags) for message in messages])
        times = [message.created_at for message in messages]
        origin = _Origin(
            earliest_at=min(times),
            latest_at=max(times),
            source_tokens=self.plan.tokens,
            file_ids=tuple(self.services.store.file_ids_of(self.plan.message_ids)),
        )
        return self._row(summary, origin)

    def _condensed(self) -> NewSummary:
        sources = self.services.store.summaries(self.plan.source_ids)
        summary = self._ask([item_from_summary(source) for source in sources])
        known = [file_id for source in sources for file_id in source.file_ids]
        origin = _Origin(
            earliest_at=min(source.earliest_at or source.created_at for source in sources),
            latest_at=max(source.latest_at or source.created_at for source in sources),
            source_tokens=sum(source.source_message_token_count for source in sources),
            file_ids=tuple(known),
            sources=tuple(sources),
        )
        return self._row(summary, origin)

    def _ask(self, items: list[SourceItem]) -> Summary:
        config, plan = self.services.config, self.plan
        is_leaf = plan.depth == 0
        target, aggressive_target = self._target_tokens()
        request = SummaryRequest(
            kind="leaf" if is_leaf else "condensed",
            depth=plan.depth,
            items=tuple(items),
            target_tokens=target,
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
            aggressive_target_tokens=aggressive_target,
        )

    def _target_tokens(self) -> tuple[int, int]:
        """Return the length to ask for at first, and when that was too long (spec L6)."""
        config, tokens = self.services.config, self.plan.tokens
        if self.plan.depth:
            target = condensed_target_tokens(config.condensed_target_tokens)
            return target, target
        longest = config.leaf_target_tokens
        return (
            leaf_target_tokens(tokens, longest, "normal"),
            leaf_target_tokens(tokens, longest, "aggressive"),
        )

    def _previous_summary(self) -> str | None:
        """Return up to two summaries that stand before the run, for continuity (spec K9)."""
        newest_first = list(islice(self._texts_before(), _CONTINUITY_SUMMARIES))
        return "\n\n".join(reversed(newest_first)) or None

    def _texts_before(self) -> Iterator[str]:
        """Yield what the summaries before the run say, newest first, those of leaves for leaves."""
        frontier, begin = self.frontier, self.plan.begin
        before = frontier.kinds[:begin] == SUMMARY
        if self.plan.depth:
            before &= frontier.depths[:begin] == 0
        newest_first = np.flatnonzero(before)[::-1]
        for start in range(0, len(newest_first), _READ_AT_ONCE):
            page = newest_first[start : start + _READ_AT_ONCE]
            rows = self.services.store.summaries([frontier.summary_ids[at] or "" for at in page])
            yield from filter(None, (sanitise_summary(row.content) for row in rows))

    def _row(self, summary: Summary, origin: _Origin) -> NewSummary:
        stored = self._stored(summary, origin, created_at=self.services.now())
        return NewSummary(
            summary=stored,
            wire_tokens=self.services.wire_tokens(stored),
            first_ordinal=self.plan.first_ordinal,
            last_ordinal=self.plan.last_ordinal,
            message_ids=self.plan.message_ids,
        )

    def _stored(self, summary: Summary, origin: _Origin, *, created_at: str) -> StoredSummary:
        plan, sources = self.plan, origin.sources
        return StoredSummary(
            summary_id=self._summary_id(summary.text),
            conversation_id=self.conversation_id,
            kind="leaf" if plan.depth == 0 else "condensed",
            depth=plan.depth,
            content=summary.text,
            token_count=summary.token_count,
            earliest_at=origin.earliest_at,
            latest_at=origin.latest_at,
            descendant_count=sum(1 + source.descendant_count for source in sources),
            descendant_token_count=sum(
                source.token_count + source.descendant_token_count for source in sources
            ),
            source_message_token_count=origin.source_tokens,
            created_at=created_at,
            model=summary.model,
            level=summary.level,
            truncated=summary.truncated,
            file_ids=list(dict.fromkeys(origin.file_ids)),
            source_ids=plan.source_ids,
        )

    def _summary_id(self, text: str) -> str:
        """Name a summary by what it is made of and what it says."""
        sources: Sequence[object] = self.plan.source_ids or self.plan.message_ids
        named = "\0".join(map(str, (self.conversation_id, *sources, text)))
        return "sum_" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a summary's row says of its sources."""

    earliest_at: str | None = None
    latest_at: str | None = None
    source_tokens: int = 0
    file_ids: tuple[str, ...] = ()
    sources: tuple[StoredSummary, ...] = ()
