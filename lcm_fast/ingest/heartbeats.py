"""Heartbeat turns: a host asks whether anything is to be done, the agent says that nothing is.

With ``pruneHeartbeatOk`` they are kept out of the view; the record has them all the same (spec:
storage 2.13; decision 15).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..types import Message

__all__ = ["HEARTBEAT", "heartbeat_positions", "without_heartbeats"]

HEARTBEAT = "heartbeat"

_POLL = "[openclaw heartbeat poll]"
_ACKNOWLEDGED = "heartbeat_ok"
_MARKER = "heartbeat.md"


def heartbeat_positions(turns: Sequence[tuple[str, str]]) -> list[int]:
    """Return the positions of heartbeat turns in a sequence of (role, content).

    They are the polls, and what stands between a user message and an acknowledgement that nothing
    is to be done, when it names the heartbeat file. A poll is a user message: what was said before
    it is no part of its turn.

    >>> heartbeat_positions([("user", "Read HEARTBEAT.md now"), ("assistant", "HEARTBEAT_OK")])
    [0, 1]
    """
    found: set[int] = set()
    begins: int | None = None
    names_file = False
    for position, (role, content) in enumerate(turns):
        said = content.strip().lower()
        if role == "user":
            begins, names_file = position, False
            if said == _POLL:
                found.add(position)
        names_file = names_file or _MARKER in said
        is_acknowledged = role == "assistant" and said == _ACKNOWLEDGED
        if is_acknowledged and names_file and begins is not None:
            found.update(range(begins, position + 1))
            begins = position + 1  # the rest of the turn, should it be acknowledged once more
    return sorted(found)


def without_heartbeats(messages: list[Message], *, is_heartbeat: bool = False) -> list[Message]:
    """Return messages with heartbeat turns excluded from the view; all when the batch is one."""
    if is_heartbeat:
        excluded = set(range(len(messages)))
    else:
        excluded = set(heartbeat_positions([(one.role, one.content) for one in messages]))
    return [
        msgspec.structs.replace(message, excluded=message.excluded or HEARTBEAT)
        if position in excluded
        else message
        for position, message in enumerate(messages)
    ]
