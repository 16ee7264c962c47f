"""The replay flood guard: which messages of a live batch repeat old ones, too many in a second.

Reads only. A message counts as a repeat when the record holds one that says the same from an
earlier second and nothing shows that it is new: no id of its own, no open call it answers. What is
refused is set aside by the caller, not lost (spec: storage 2.10; decision 12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import apsw
import numpy as np

from ..kernels import find_floods
from ..types import Message
from . import known_rows, links
from .rows import Batch

__all__ = ["Flood", "find_flood"]

_ROLE_CODES = {"system": 0, "user": 1, "assistant": 2, "tool": 3}
_SECOND = len("2026-01-01T00:00:00")
# A batch is a replay when so much of what the flooded role says in that second is repeated.
_REPEATED_SHARE = 0.5


class Flood(NamedTuple):
    """What is refused: positions of the batch, and why in words."""

    positions: list[int]
    reason: str


def find_flood(
    db: apsw.Connection,
    conversation_id: int,
    batch: Batch,
    new: Sequence[int],
    last_known: int,
) -> Flood | None:
    """Return what the guard refuses of a batch's new messages.

    Parameters
    ----------
    new
        Positions of the messages that would be stored.
    last_known
        Position of the last message that is stored, -1 for none: what follows it goes on from
        there.
    """
    if batch.thresholds is None:
        return None
    is_before = last_known < 0
    candidates = [
        n for n in new if (is_before or n < last_known) and _may_repeat(batch.messages[n])
    ]
    if not candidates:
        return None
    messages = [batch.messages[n] for n in candidates]
    if not _may_flood(db, conversation_id, batch, messages):
        return None
    oldest = known_rows.oldest_times(db, conversation_id, (one.identity for one in messages))
    seconds = [_second(one, batch) for one in messages]
    repeats = [
        oldest.get(one.identity, second) < second
        for one, second in zip(messages, seconds, strict=True)
    ]
    if not any(repeats):
        return None
    open_calls = links.open_calls(db, conversation_id, batch, new)
    repeats = [
        repeated and open_calls.isdisjoint(one.answers)
        for repeated, one in zip(repeats, messages, strict=True)
    ]
    stored = _stored_repeats(db, conversation_id, set(seconds), batch)
    floods = find_floods(
        np.array([_ROLE_CODES[one.role] for one in messages], np.uint8),
        np.array([_epoch(second) for second in seconds], np.int64),
        np.array([_content_code(one) for one in messages], np.int64),
        np.array(repeats, np.uint8),
        np.array(
            [stored[_group(one, second)] for one, second in zip(messages, seconds, strict=True)],
            np.int64,
        ),
        batch.thresholds.external,
        batch.thresholds.internal,
    )
    refused: set[int] = set()
    reasons = []
    for first, total in floods:
        role, second = messages[first].role, seconds[first]
        of_role = [n for n, one in enumerate(messages) if (one.role, seconds[n]) == (role, second)]
        if sum(repeats[n] for n in of_role) < _REPEATED_SHARE * len(of_role):
            continue  # a few words that were said before, among many that were not
        refused.update(n for n, s in enumerate(seconds) if s == second and repeats[n])
        reasons.append(f"{total} repeated {role} messages in the second {second}")
    if not refused:
        return None
    return Flood([candidates[n] for n in sorted(refused)], "replay flood: " + "; ".join(reasons))


def _may_flood(
    db: apsw.Connection, conversation_id: int, batch: Batch, messages: Sequence[Message]
) -> bool:
    """Tell whether so many messages fall into one second at all, stored ones included."""
    assert batch.thresholds is not None
    groups = Counter(_group(one, _second(one, batch)) for one in messages)
    for (role, _, _), count in groups.items():
        external = role == "user"
        if count >= (batch.thresholds.external if external else batch.thresholds.internal):
            return True
    newest = known_rows.newest(db, conversation_id, 1)
    return bool(newest) and newest[0].created_at[:_SECOND] >= min(one for _, one, _ in groups)


def _may_repeat(message: Message) -> bool:
    return (
        message.entry_id is None
        and message.excluded is None
        and bool(message.content)
        and not message.content.isspace()
    )


def _second(message: Message, batch: Batch) -> str:
    return (message.created_at or batch.received_at)[:_SECOND]


def _epoch(second: str) -> int:
    return int(datetime.fromisoformat(second + "+00:00").timestamp())


def _content_code(message: Message) -> int:
    """Return a number that is the same for messages that say the same, and never 0."""
    return int.from_bytes(message.identity[:8], "little", signed=True) | 1


def _group(message: Message, second: str) -> tuple[str, str, bytes]:
    return message.role, second, b"" if message.role == "user" else message.identity


def _stored_repeats(
    db: apsw.Connection, conversation_id: int, seconds: set[str], batch: Batch
) -> Counter[tuple[str, str, bytes]]:
    """Count the newest rows that were repeats in these seconds, by group.

    As many rows are looked at as could make a flood together with one more.
    """
    assert batch.thresholds is not None
    limit = max(batch.thresholds.external, batch.thresholds.internal)
    rows = known_rows.newest(db, conversation_id, limit)
    recent = [row for row in rows if row.created_at[:_SECOND] in seconds]
    oldest = known_rows.oldest_times(db, conversation_id, (row.identity for row in recent))
    counts: Counter[tuple[str, str, bytes]] = Counter()
    for row in recent:
        second = row.created_at[:_SECOND]
        if oldest[row.identity] < second:
            counts[row.role, second, b"" if row.role == "user" else row.identity] += 1
    return counts
