"""Write fallback summaries anew, now that a summariser may have something better to say.

A fallback is tried five times at most, with growing waiting times; what is no better is not stored.
Sources come before what was made of them (decision 6; cases 98, 120, 122, 133).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ..errors import PlanStaleError, SummarizerError
from ..store import StoredSummary
from ..summarize import SourceItem, Summary
from .debt import backoff_ms, time_after
from .making import summarise, summary_id_of
from .services import Services
from .source import item_from_summary, items_from_messages

__all__ = ["RedoResult", "redo_fallbacks"]

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class RedoResult:
    """What came of it.

    Attributes
    ----------
    redone
        Fallbacks that a proper summary stands for now.
    kept
        Fallbacks for which there was nothing better yet.
    failure
        Why the summariser failed; empty when it did not. That is no attempt: the fallback only
        waits.
    """

    redone: int = 0
    kept: int = 0
    failure: str = ""


def redo_fallbacks(services: Services, conversation_id: int, *, limit: int) -> RedoResult:
    """Have up to `limit` fallbacks of a conversation written anew.

    Complexity: each reads its sources, and changes its own edges and the counts above it.
    """
    result = RedoResult()
    for summary_id in services.store.fallbacks_due(conversation_id, services.now(), limit):
        if services.is_cancelled():
            break
        # Read only now: its sources may have been redone a moment ago.
        (old,) = services.store.summaries([summary_id])
        try:
            _redo(services, old, result)
        except SummarizerError as error:
            result.failure = error.detail
            _LOG.warning("conversation %d: redoing %s: %s", conversation_id, old.summary_id, error)
            later = time_after(services.now(), backoff_ms(1))
            services.store.note_redo_attempt(old.summary_id, later, counts=False)
            break
        finally:
            services.summarizer.gate.store_calls()
    return result


def _redo(services: Services, old: StoredSummary, result: RedoResult) -> None:
    message_ids = services.store.message_ids_of(old.summary_id)
    if not message_ids and not old.source_ids:
        return  # another process has redone it, and taken its sources
    summary = _written(services, old, _items(services, old, message_ids))
    if summary.level == "fallback":
        later = time_after(services.now(), backoff_ms(old.redo_attempts + 1))
        services.store.note_redo_attempt(old.summary_id, later, counts=True)
        result.kept += 1
        return
    new = msgspec.structs.replace(
        old,
        summary_id=summary_id_of(
            old.conversation_id, [*old.source_ids, *message_ids], f"{old.summary_id} {summary.text}"
        ),
        content=summary.text,
        token_count=summary.token_count,
        model=summary.model,
        level=summary.level,
        truncated=summary.truncated,
        created_at=services.now(),
        redo_attempts=0,
    )
    try:
        services.store.replace_fallback(old.summary_id, new, services.wire_tokens(new))
    except PlanStaleError:
        return  # another process has redone it
    result.redone += 1
    _LOG.info(
        "conversation %d: %s redone as %s", old.conversation_id, old.summary_id, new.summary_id
    )


def _items(services: Services, old: StoredSummary, message_ids: Sequence[int]) -> list[SourceItem]:
    if old.depth == 0:
        tags = services.config.strip_injected_context_tags
        return items_from_messages(services.store, services.store.messages(message_ids), tags)
    return [item_from_summary(source) for source in services.store.summaries(old.source_ids)]


def _written(services: Services, old: StoredSummary, items: list[SourceItem]) -> Summary:
    return summarise(
        services,
        depth=old.depth,
        items=items,
        source_tokens=old.source_message_token_count,
        chunk_tokens=services.config.leaf_chunk_tokens,
        instructions=services.config.custom_instructions,
    )
