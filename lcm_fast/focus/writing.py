"""Plan a focus brief, and have the summariser write it.

Holds no lock and no transaction, and writes nothing: the engine stores the draft, then what became
of it. A deterministic fallback is no brief: it would hide what it was made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from ..compaction import Services
from ..compaction.source import item_from_summary, items_from_messages
from ..errors import SummarizerContentError
from ..store import FocusBrief, StoredSummary, SummaryReach
from ..store.focus import covered_by, source_hash
from ..summarize import (
    SourceItem,
    Summary,
    SummaryRequest,
    bounded_request,
    sanitise_summary,
    summarise_with_escalation,
)
from .evidence import Evidence, find_evidence

__all__ = [
    "LEAST_TOKENS",
    "TARGET_TOKENS",
    "BriefPlan",
    "evidence_limit_tokens",
    "plan_brief",
    "timeout_s",
    "write_brief",
]

TARGET_TOKENS = 12_000
LEAST_TOKENS = max(1_000, TARGET_TOKENS * 6 // 10)

_LARGEST_INPUT = 120_000
_LEAST_EVIDENCE = 40_000
_LEAST_TIMEOUT_S, _LONGEST_TIMEOUT_S = 240.0, 900.0
_SECONDS_A_TOKEN = 0.05


def evidence_limit_tokens(summary_tokens: int) -> int:
    """Return how many tokens of messages a brief is written from at most (spec W3).

    >>> evidence_limit_tokens(3_000), evidence_limit_tokens(9_000), evidence_limit_tokens(90_000)
    (40000, 90000, 120000)
    """
    return min(_LARGEST_INPUT, max(10 * summary_tokens, 2 * TARGET_TOKENS, _LEAST_EVIDENCE))


def timeout_s(configured_ms: int) -> float:
    """Return how long the summariser may take over a brief, in seconds (spec W3).

    >>> timeout_s(60_000), timeout_s(660_000), timeout_s(10**7)
    (600.0, 660.0, 900.0)
    """
    wanted = max(configured_ms / 1000, _LEAST_TIMEOUT_S, _SECONDS_A_TOKEN * TARGET_TOKENS)
    return min(wanted, _LONGEST_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class BriefPlan:
    """What a brief is to be written from.

    Attributes
    ----------
    summaries
        Those that it reads, in order.
    previous
        The brief that it carries on; None for a new one.
    """

    draft: FocusBrief
    summaries: list[StoredSummary]
    evidence: Evidence
    previous: FocusBrief | None

    def sources(self) -> dict[str, list[str]]:
        """Return the ids of summaries by what they were to the brief."""
        return {
            "active_input": [one.summary_id for one in self.summaries],
            "cited": list(self.evidence.message_ids),
            "expanded": self.evidence.opened,
            "irrelevant": self.evidence.irrelevant,
        }


def plan_brief(
    services: Services,
    draft: FocusBrief,
    view: Sequence[SummaryReach],
    previous: FocusBrief | None = None,
) -> BriefPlan | None:
    """Return what a brief is to be written from; None when there is nothing new for it.

    Parameters
    ----------
    draft
        With its id, conversation, prompt and time.
    view
        The summaries of the conversation's view.
    previous
        The brief that is shown, to be carried on with what came after it.
    """
    known = {one.summary_id for one in covered_by(previous, view)} if previous else set()
    wanted = [one.summary_id for one in view if one.summary_id not in known]
    if not wanted:
        return None
    store = services.store
    summaries = store.summaries(wanted)
    limit = evidence_limit_tokens(sum(one.token_count for one in summaries))
    times = [one.latest_at for one in view if one.latest_at is not None]
    seqs = [one.max_seq for one in view if one.max_seq is not None]
    return BriefPlan(
        draft=_with(
            draft,
            target_tokens=TARGET_TOKENS,
            covered_latest_at=max(times, default=None),
            covered_message_seq=max(seqs, default=None),
            source_context_hash=source_hash(view),
        ),
        summaries=summaries,
        evidence=find_evidence(store, draft.prompt, summaries, limit),
        previous=previous,
    )


def write_brief(services: Services, plan: BriefPlan) -> FocusBrief:
    """Return the brief with its text.

    Raises
    ------
    SummarizerError
        The summariser failed, or wrote nothing that can stand for its sources.
    """
    config = services.config
    request = SummaryRequest(
        kind="condensed",
        depth=1,
        items=tuple(_items(services, plan)),
        target_tokens=TARGET_TOKENS,
        instructions=config.custom_instructions,
        focus=plan.draft.prompt,
        timezone=services.timezone,
        timeout_s=timeout_s(config.summary_timeout_ms),
    )
    if services.summarizer.backend.is_metered:
        request = bounded_request(request, _LARGEST_INPUT, services.count_tokens)
    written = summarise_with_escalation(
        services.summarizer,
        request,
        count_tokens=services.count_tokens,
        max_overage_factor=config.summary_max_overage_factor,
        fallback_max_tokens=config.fallback_max_tokens,
        aggressive_target_tokens=LEAST_TOKENS,
    )
    if written.level == "fallback" or not written.input_tokens:
        raise SummarizerContentError(_why_none(services, written))
    return _with(
        plan.draft,
        content=written.text,
        token_count=written.token_count,
        truncated=written.truncated,
        model=written.model,
    )


def _why_none(services: Services, written: Summary) -> str:
    if not written.input_tokens:
        return "the summaries hold no text to write a brief from"
    return f"{services.summarizer.name} wrote no usable brief: {written.problem}"


def _items(services: Services, plan: BriefPlan) -> Iterator[SourceItem]:
    """Yield what the brief is written from: each summary, then the evidence behind it."""
    tags = services.config.strip_injected_context_tags
    if plan.previous is not None:
        yield SourceItem(
            id=plan.previous.brief_id,
            role="summary",
            text=sanitise_summary(plan.previous.content),
            created_at=plan.previous.covered_latest_at or plan.previous.created_at,
        )
    for summary in plan.summaries:
        yield item_from_summary(summary)
        if ids := plan.evidence.message_ids.get(summary.summary_id):
            yield from items_from_messages(services.store, services.store.messages(ids), tags)


def _with(brief: FocusBrief, **changes: object) -> FocusBrief:
    return msgspec.structs.replace(brief, **changes)
