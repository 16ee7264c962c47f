"""Say what fills a context: the largest items, and what stands in it more than once.

Ids and counts, no content (spec R21). Asked for by people who wonder where their tokens go; reads
every item of the frontier, which an assembly never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..store import MESSAGE, SUMMARY, Frontier
from .rendered import MessagePieces

__all__ = ["Diagnostics", "Duplicates", "LargeItem", "diagnose"]

_LISTED = 5
_IDS_LISTED = 8


@dataclass(frozen=True, slots=True)
class LargeItem:
    """An item of the frontier, and whether the assembly shows it."""

    item_id: str
    ordinal: int
    tokens: int
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Messages that say the same; `item_ids` are the first of them."""

    count: int
    tokens: int
    item_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What a frontier is made of.

    Attributes
    ----------
    message_tokens, summary_tokens
        Tokens of all items of the kind, shown or not.
    shown_messages, shown_summaries
        How many of each the assembly shows.
    largest_messages, largest_summaries, duplicates
        The largest five each, by tokens.
    """

    message_tokens: int
    summary_tokens: int
    shown_messages: int
    shown_summaries: int
    largest_messages: tuple[LargeItem, ...]
    largest_summaries: tuple[LargeItem, ...]
    duplicates: tuple[Duplicates, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


def diagnose(
    messages: MessagePieces, frontier: Frontier, shown_ordinals: Sequence[int]
) -> Diagnostics:
    """Return what fills a frontier.

    Parameters
    ----------
    shown_ordinals
        Of the items that the assembly shows.

    Complexity: reads every message of the frontier that is not remembered.
    """
    is_shown = np.isin(frontier.ordinals, np.asarray(shown_ordinals, dtype=np.int64))
    of_messages, of_summaries = (
        np.flatnonzero(frontier.kinds == kind) for kind in (MESSAGE, SUMMARY)
    )
    return Diagnostics(
        message_tokens=int(frontier.tokens[of_messages].sum()),
        summary_tokens=int(frontier.tokens[of_summaries].sum()),
        shown_messages=int(is_shown[of_messages].sum()),
        shown_summaries=int(is_shown[of_summaries].sum()),
        largest_messages=_largest(frontier, of_messages, is_shown),
        largest_summaries=_largest(frontier, of_summaries, is_shown),
        duplicates=_duplicates(messages, frontier),
    )


def _item_id(frontier: Frontier, index: int) -> str:
    return frontier.summary_ids[index] or f"msg_{frontier.message_ids[index]}"


def _largest(frontier: Frontier, indexes: Any, is_shown: Any) -> tuple[LargeItem, ...]:
    by_size = indexes[np.argsort(-frontier.tokens[indexes], kind="stable")][:_LISTED]
    return tuple(
        LargeItem(
            item_id=_item_id(frontier, index),
            ordinal=int(frontier.ordinals[index]),
            tokens=int(frontier.tokens[index]),
            is_shown=bool(is_shown[index]),
        )
        for index in by_size.tolist()
    )


def _duplicates(messages: MessagePieces, frontier: Frontier) -> tuple[Duplicates, ...]:
    places = [
        place
        for place in zip(
            frontier.message_ids.tolist(),
            frontier.ordinals.tolist(),
            frontier.openers.tolist(),
            strict=True,
        )
        if place[0] >= 0
    ]
    same: dict[int, list[Any]] = {}
    for (piece,) in messages.read(places).values():
        same.setdefault(piece.digest, []).append(piece)
    repeated = [
        Duplicates(
            count=len(pieces),
            tokens=sum(piece.tokens for piece in pieces),
            item_ids=tuple(piece.item_id for piece in pieces[:_IDS_LISTED]),
        )
        for pieces in same.values()
        if len(pieces) > 1
    ]
    return tuple(sorted(repeated, key=lambda one: (-one.tokens, one.item_ids))[:_LISTED])
