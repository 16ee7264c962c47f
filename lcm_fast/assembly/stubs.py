"""Which messages are shown with stubs for their large tool results, and what that makes of a
frontier (spec R11).

Must not choose what is shown.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..store import MESSAGE, ROLE_CODES, Frontier
from .rendered import MessagePieces
from .request import AssemblyRequest

__all__ = ["with_stubs"]


def with_stubs(
    frontier: Frontier, request: AssemblyRequest, messages: MessagePieces
) -> tuple[Frontier, frozenset[int]]:
    """Return the frontier with the tokens of stubs, and the ids of the messages that have them.

    They are the tool's and as large as `stub_threshold_tokens`, and stand before the fresh tail:
    before a place in it that moves in steps, as the output is to change in steps only.

    Complexity: linear in the frontier; reads the messages that had no stub before.
    """
    threshold = request.stub_threshold_tokens
    if threshold is None:
        return frontier, frozenset()
    is_large = (frontier.kinds == MESSAGE) & (frontier.tokens >= threshold)
    is_large &= np.isin(frontier.roles, (ROLE_CODES["tool"], ROLE_CODES["user"]))
    is_large[_end(frontier, request) :] = False
    indexes = np.flatnonzero(is_large)
    ids = frontier.message_ids[indexes].tolist()
    stub_tokens = messages.stub_tokens(ids, request.form)
    tokens = frontier.tokens.copy()
    tokens[indexes] = [stub_tokens[message_id] for message_id in ids]
    smaller = indexes[tokens[indexes] < frontier.tokens[indexes]]
    return replace(frontier, tokens=tokens), frozenset(frontier.message_ids[smaller].tolist())


def _end(frontier: Frontier, request: AssemblyRequest) -> int:
    room = request.room_beside(0)
    tail = frontier.fresh_tail_start(room.fresh_tail_count, room.fresh_tail_max_tokens)
    if not room.step_tokens:
        return tail
    before = np.concatenate(([0], np.cumsum(frontier.tokens)))
    whole_steps = int(before[tail]) // room.step_tokens * room.step_tokens
    return min(tail, int(np.searchsorted(before, whole_steps, "right")) - 1)
