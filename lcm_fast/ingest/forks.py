"""A session forked from another begins with its parent's history: how much of it is shown.

The record keeps all of it; only the newest part, within ``bootstrapMaxTokens``, belongs to the view
(spec: storage 3.7, made lossless).
"""

from __future__ import annotations

from typing import NamedTuple

from ..transcripts import AnyTranscript, text_at
from .normalise import message_from_entry
from .services import Services

__all__ = ["BEFORE_FORK", "NO_FORK", "Fork", "find_fork"]

BEFORE_FORK = "before-fork"


class Fork(NamedTuple):
    """Where a session begins to show: how many messages before that it does not, and at which
    entry, where that has an id."""

    hidden: int = 0
    first_shown_id: str | None = None


NO_FORK = Fork()


def find_fork(transcript: AnyTranscript, services: Services) -> Fork:
    """Return where a new session begins to show: at its beginning, unless it is a fork.

    Never in the middle of a tool exchange; the newest message is always shown.
    """
    if not transcript.header or text_at(transcript.header, "parentSession") is None:
        return NO_FORK
    messages = [
        (message.role, message.wire_tokens if message.excluded is None else 0, message.entry_id)
        for entry in transcript
        if (message := message_from_entry(entry, services.count_tokens)) is not None
    ]
    left = services.fork_max_tokens
    first = len(messages)
    while first > 0 and (left >= messages[first - 1][1] or first == len(messages)):
        first -= 1
        left -= messages[first][1]
    begin = first
    while begin < len(messages) and messages[begin][0] == "tool":
        begin += 1
    hidden = begin if begin < len(messages) else first
    return Fork(hidden, messages[hidden][2] if hidden else None)
