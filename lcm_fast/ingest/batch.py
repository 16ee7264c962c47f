"""Store a live batch of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..store import Address, Batch, Store
from .normalise import CountTokens, message_from_object
from .results import IngestResult

__all__ = ["ingest_batch"]


def ingest_batch(
    store: Store,
    messages: Iterable[Any],
    address: Address,
    *,
    count_tokens: CountTokens,
    now: Callable[[], str],
) -> IngestResult:
    """Store what is new of a batch, all of it in one transaction.

    Raises
    ------
    MessageError
        A message is malformed; nothing of the batch is stored.
    """
    normalised = [
        message_from_object(value, index, count_tokens) for index, value in enumerate(messages)
    ]
    packed = [store.pack(message.raw, message.content) for message in normalised]
    outcome = store.append(address, Batch(messages=normalised, received_at=now()), packed)
    return IngestResult(
        ingested=len(outcome.message_ids),
        duplicates=outcome.duplicates,
        quarantined=0,
        message_ids=outcome.message_ids,
        tokens=outcome.tokens,
        conversation_id=outcome.conversation_id,
        session_key=address.session_key,
    )
