"""Store a live batch of messages, a turn under a host's key, or a batch the flood guard refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from ..store import Address, AppendOutcome, Batch, Commit
from ..transcripts import body_of
from ..types import Message
from .heartbeats import without_heartbeats
from .likeness import is_delivery_mirror
from .mirrors import without_mirrors
from .normalise import digest, message_from_object, revision_of
from .results import CommitResult, IngestResult
from .services import Services

__all__ = ["admit_batch", "commit_turn", "ingest_batch"]


def ingest_batch(
    services: Services,
    messages: Iterable[Any],
    address: Address,
    *,
    is_heartbeat: bool = False,
    is_covered: bool = False,
) -> IngestResult:
    """Store what is new of a batch, all of it in one transaction.

    Parameters
    ----------
    is_heartbeat
        The batch is a heartbeat turn.
    is_covered
        A transcript that was read just now shows the same messages.

    Raises
    ------
    MessageError
        A message is malformed; nothing of the batch is stored.
    """
    batch = Batch(
        messages=_normalised(services, messages, address, is_heartbeat=is_heartbeat),
        received_at=services.now(),
        is_covered=is_covered,
        thresholds=services.thresholds,
        revision_of=revision_of,
        debt=services.debt,
    )
    outcome = services.store.append(address, batch, _packed(services, batch.messages))
    return _result(outcome, address)


def commit_turn(
    services: Services, advancement_key: str, messages: Iterable[Any], address: Address
) -> CommitResult:
    """Store a turn once under its key.

    Raises
    ------
    CommitConflictError
        The key was used for other messages; nothing is stored.
    MessageError
        A message is malformed; nothing is stored.
    """
    normalised = _normalised(services, messages, address)
    payload = digest(*(message.raw for message in normalised))
    batch = Batch(
        messages=normalised,
        received_at=services.now(),
        commit=Commit(advancement_key, payload),
        revision_of=revision_of,
        debt=services.debt,
    )
    outcome = services.store.append(address, batch, _packed(services, normalised))
    status: Literal["committed", "duplicate"] = "committed"
    if outcome.is_repeated_commit:
        status = "duplicate"
    return CommitResult(
        status=status,
        advancement_key=advancement_key,
        session_key=address.session_key,
        **_counts(outcome),
    )


def admit_batch(services: Services, batch_id: str) -> IngestResult:
    """Store a quarantined batch after all.

    Raises
    ------
    NotFoundError
        No batch of this id waits.
    """
    conversation, raw_messages = services.store.quarantined_messages(batch_id)
    values = [msgspec.json.decode(raw) for raw in raw_messages]
    address = Address(conversation.session_key, conversation.session_id)
    batch = Batch(
        messages=_normalised(services, values, address),
        received_at=services.now(),
        revision_of=revision_of,
        debt=services.debt,
    )
    outcome = services.store.admit(batch_id, address, batch, _packed(services, batch.messages))
    return _result(outcome, address)


def _normalised(
    services: Services,
    values: Iterable[Any],
    address: Address,
    *,
    is_heartbeat: bool = False,
) -> list[Message]:
    messages = [
        message_from_object(value, index, services.count_tokens, services.show)
        for index, value in enumerate(values)
    ]
    if any(is_delivery_mirror(message.body) for message in messages):
        messages = without_mirrors(messages, _newest_body(services, address))
    if services.prunes_heartbeats:
        messages = without_heartbeats(messages, is_heartbeat=is_heartbeat)
    return messages


def _newest_body(services: Services, address: Address) -> dict[str, Any] | None:
    conversation = services.store.find_conversation(address)
    if conversation is None:
        return None
    number, last_seq = conversation.conversation_id, conversation.last_seq
    rows = services.store.messages_page(number, after_seq=last_seq - 1, limit=1)
    return body_of(rows[0].raw) if rows else None


def _packed(services: Services, messages: list[Message]) -> list[tuple[int, bytes]]:
    return [services.store.pack(message.raw, message.content) for message in messages]


def _result(outcome: AppendOutcome, address: Address) -> IngestResult:
    return IngestResult(**_counts(outcome), session_key=address.session_key)


def _counts(outcome: AppendOutcome) -> dict[str, Any]:
    return {
        "ingested": len(outcome.message_ids),
        "duplicates": outcome.duplicates,
        "quarantined": outcome.quarantined,
        "revised": outcome.revised,
        "message_ids": outcome.message_ids,
        "tokens": outcome.tokens,
        "conversation_id": outcome.conversation_id,
        "is_over_threshold": outcome.is_in_debt,
    }
