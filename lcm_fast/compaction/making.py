"""Make the summary of a plan's items, as a row that can be published in their place.

Reads what the plan names, calls the summariser, works out the row. Holds no lock and no
transaction, and writes nothing (spec F, G4 to G7, K9, M1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..config import Config
from ..store import SUMMARY, Frontier, NewSummary, StoredSummary
from ..summarize import (
    SourceItem,
    Summary,
    SummaryRequest,
    bounded_request,
    condensed_target_tokens,
    leaf_target_tokens,
    sanitise_summary,
    summarise_with_escalation,
)
from .planner import Plan
from .services import Services
from .source import item_from_summary, items_from_messages

__all__ = ["SummaryMaker", "summarise", "summary_id_of"]

_CONTINUITY_SUMMARIES = 2
_READ_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class SummaryMaker:
    """Makes the summary of one plan on the frontier it was planned on.

    Attributes
    ----------
    chunk_tokens
        Most tokens that are meant to be summarised at once; a single message may take more.
    """

    services: Services
    conversation_id: int
    frontier: Frontier
    plan: Plan
    instructions: str
    chunk_tokens: int

    def room_tokens(self) -> int:
        """Return how many tokens of text a summary may have and still be smaller than its sources,
        its frame included; none or less when it cannot be."""
        nothing = Summary("", 0, "normal", "", input_tokens=0)
        frame = self.services.wire_tokens(self._stored(nothing, _Origin(), created_at=""))
        return self.plan.tokens - frame - 1

    def expected_wire_tokens(self) -> int:
        """Return what the summary will take when it is as long as it is asked to be."""
        room = self.room_tokens()
        frame = self.plan.tokens - 1 - room
        target, _ = target_tokens(self.services.config, self.plan.depth, self.plan.tokens)
        return frame + min(target, room)

    def make(
        self, known: Summary | None = None, keep: Callable[[Summary], None] = lambda made: None
    ) -> NewSummary:
        """Return the summary.

        Parameters
        ----------
        known
            What the summariser said of the same items before; it is not asked again.
        keep
            Given what it says now.

        Raises
        ------
        SummarizerError
            The summariser failed; its failure is never stored as a summary.
        """
        if self.plan.depth:
            return self._condensed()
        return self._leaf(known, keep)

    def _leaf(self, known: Summary | None, keep: Callable[[Summary], None]) -> NewSummary:
        messages = self.services.store.messages(self.plan.message_ids)
        tags = self.services.config.strip_injected_context_tags
        if known is None:
            summary = self._ask(items_from_messages(self.services.store, messages, tags))
            keep(summary)
        else:
            summary = known
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
        plan = self.plan
        return summarise(
            self.services,
            depth=plan.depth,
            items=items,
            source_tokens=plan.tokens,
            chunk_tokens=self.chunk_tokens,
            instructions=self.instructions,
            previous_summary=self._previous_summary() if plan.depth <= 1 else None,
            max_tokens=self.room_tokens(),
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
            summary_id=summary_id_of(
                self.conversation_id, plan.source_ids or plan.message_ids, summary.text
            ),
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


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a summary's row says of its sources."""

    earliest_at: str | None = None
    latest_at: str | None = None
    source_tokens: int = 0
    file_ids: tuple[str, ...] = ()
    sources: tuple[StoredSummary, ...] = ()


def summarise(
    services: Services,
    *,
    depth: int,
    items: list[SourceItem],
    source_tokens: int,
    chunk_tokens: int,
    instructions: str,
    previous_summary: str | None = None,
    max_tokens: int | None = None,
) -> Summary:
    """Return the summary of some sources.

    Parameters
    ----------
    source_tokens
        What the sources take, by which the summary's length is chosen.
    chunk_tokens
        Most tokens that a summariser is to be given at once.
    max_tokens
        What the summary may take at most; else it is only shorter than its sources.

    Raises
    ------
    SummarizerError
        The summariser failed; its failure is never a summary.
    """
    config = services.config
    target, aggressive_target = target_tokens(config, depth, source_tokens)
    request = SummaryRequest(
        kind="condensed" if depth else "leaf",
        depth=depth,
        items=tuple(items),
        target_tokens=target,
        previous_summary=previous_summary,
        instructions=instructions,
        timezone=services.timezone,
        timeout_s=config.sweep_deadline_ms / 1000,
    )
    # Only a single message, or a tool exchange that is kept whole, is larger than a chunk; the
    # offline summariser takes any.
    if services.summarizer.backend.is_metered and source_tokens > chunk_tokens:
        request = bounded_request(request, chunk_tokens, services.count_tokens)
    return summarise_with_escalation(
        services.summarizer,
        request,
        count_tokens=services.count_tokens,
        max_overage_factor=config.summary_max_overage_factor,
        fallback_max_tokens=config.fallback_max_tokens,
        aggressive_target_tokens=aggressive_target,
        max_tokens=max_tokens,
    )


def target_tokens(config: Config, depth: int, source_tokens: int) -> tuple[int, int]:
    """Return the length to ask for at first, and when that was too long (spec L6)."""
    if depth:
        target = condensed_target_tokens(config.condensed_target_tokens)
        return target, target
    longest = config.leaf_target_tokens
    return (
        leaf_target_tokens(source_tokens, longest, "normal"),
        leaf_target_tokens(source_tokens, longest, "aggressive"),
    )


def summary_id_of(conversation_id: int, sources: Sequence[object], text: str) -> str:
    """Name a summary by what it is made of and what it says."""
    named = "\0".join(map(str, (conversation_id, *sources, text)))
    return "sum_" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:16]
