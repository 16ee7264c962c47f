"""Where a batch's new messages stand: at the end, or in a gap between stored ones.

Seqs have no gaps, so filling one moves the rows behind it; the work is proportional to what follows
the gap. `make_room` runs in the caller's transaction (decision 11: rows before the anchor that are
missing are filled in; order is transcript order).
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import apsw

from ..types import UNTIMED, Message
from . import known_rows
from .rows import Batch

__all__ = ["Places", "Tail", "make_room", "move", "out_of_order", "place"]


@dataclass(slots=True)
class Places:
    """Where new messages go.

    Attributes
    ----------
    gaps
        Seq after which to fill in -> positions of the batch, in order.
    at_end
        Positions that are appended.
    """

    gaps: dict[int, list[int]] = field(default_factory=dict)
    at_end: list[int] = field(default_factory=list)

    def fill(self, after: int | None, positions: Sequence[int]) -> None:
        """Put positions behind a seq, or at the end for None."""
        target = self.at_end if after is None else self.gaps.setdefault(after, [])
        target.extend(positions)

    def moved(self, seq: int) -> int:
        """Return where a stored row stands once there is room.

        >>> Places(gaps={2: [0, 1]}).moved(2), Places(gaps={2: [0, 1]}).moved(3)
        (2, 5)
        """
        return seq + sum(len(filled) for after, filled in self.gaps.items() if after < seq)

    def seqs(self, last_seq: int) -> dict[int, int]:
        """Return position -> seq of every new message, given the last seq before there is room.

        >>> Places(gaps={2: [0]}, at_end=[3]).seqs(5)
        {0: 3, 3: 7}
        """
        found = {}
        for after, positions in self.gaps.items():
            for n, position in enumerate(positions, 1):
                found[position] = self.moved(after) + n
        for n, position in enumerate(self.at_end, 1):
            found[position] = self.moved(last_seq) + n
        return found


class Tail:
    """The rows behind a transcript's last known message: live ones it lacks yet, other files'."""

    def __init__(self, db: apsw.Connection, conversation_id: int, last_seq: int) -> None:
        self._db = db
        self._conversation_id = conversation_id
        self._last_seq = last_seq

    def place_of(self, message: Message, after: int | None) -> int:
        """Return the seq behind which a message goes that follows `after`, None for nothing.

        By its time. One without goes before what the transcript does not show: that is not written
        to it yet.
        """
        if message.timed == UNTIMED:
            if after is not None:
                return after
            return known_rows.last_shown_seq(self._db, self._conversation_id)
        rows = self._db.execute(
            "SELECT seq FROM messages WHERE conversation_id = ? AND seq > ? AND created_at >= ?"
            " ORDER BY seq LIMIT 1",
            (self._conversation_id, after or 0, message.created_at),
        )
        return next((int(seq) - 1 for (seq,) in rows), self._last_seq)


def place(
    batch: Batch,
    known_seqs: dict[int, int],
    new: Sequence[int],
    *,
    last_seq: int,
    starts_after: int | None,
    ends_before: int | None,
    tail: Tail,
) -> Places:
    """Say where each of a batch's new messages goes.

    Parameters
    ----------
    known_seqs
        Position -> seq of the messages that are stored.
    new
        Positions of the new messages, ascending.
    starts_after, ends_before
        Seqs of the rows between which a transcript's batch begins, where known.
    tail
        The rows behind a transcript's last known message.
    """
    places = Places()
    for run, before, after in _runs(known_seqs, new):
        previous = starts_after if before is None else known_seqs[before]
        following = known_seqs[after] if after is not None else None
        if previous is None and following is None:
            following = ends_before
        if batch.source == "live":
            places.fill(_live_gap(batch, run, previous, following, after), run)
        elif previous is not None and following is not None:
            places.fill(previous, run)
        elif following is not None:
            places.fill(following - 1, run)
        else:
            for position in run:
                if previous != last_seq:
                    previous = tail.place_of(batch.messages[position], previous)
                places.fill(None if previous == last_seq else previous, [position])
    return places


def _live_gap(
    batch: Batch,
    run: Sequence[int],
    previous: int | None,
    following: int | None,
    after: int | None,
) -> int | None:
    """Return where a run of a live batch is filled in: between two it knows, or before one that is
    later by its time."""
    if following is None or after is None:
        return None
    if previous is not None:
        return previous if previous < following else None
    last, later = batch.messages[run[-1]], batch.messages[after]
    if UNTIMED in (last.timed, later.timed) or (last.created_at or "") > (later.created_at or ""):
        return None
    return following - 1


def make_room(db: apsw.Connection, conversation_id: int, places: Places, last_seq: int) -> None:
    """Move the rows behind the gaps, and all that names them by their seq."""
    edges = [*sorted(places.gaps), last_seq]
    for table, column in _SEQS:
        for begin, end in itertools.pairwise(edges):
            db.execute(
                f"UPDATE {table} SET {column} = -({column} + ?)"
                f" WHERE conversation_id = ? AND {column} > ? AND {column} <= ?",
                (places.moved(end) - end, conversation_id, begin, end),
            )
        # By way of negative numbers: no two rows may share one even for a moment.
        db.execute(
            f"UPDATE {table} SET {column} = -{column} WHERE conversation_id = ? AND {column} < 0",
            (conversation_id,),
        )


# What names a message by its seq, and what only stands behind one.
_MESSAGE_SEQS = (
    ("messages", "seq"),
    ("messages", "opener_seq"),
    ("context_items", "ordinal"),
    ("context_items", "opener"),
    ("tool_calls", "call_seq"),
    ("tool_calls", "result_seq"),
    ("orphan_results", "result_seq"),
)
_SEQS = (*_MESSAGE_SEQS, ("transcript_entries", "after_seq"))


def out_of_order(seqs: Sequence[int], after: int) -> list[int]:
    """Return the indices whose seqs break the order, as few as can be.

    Parameters
    ----------
    seqs
        Where rows stand, in the order in which a transcript shows them.
    after
        Seq behind which all of them belong.

    Notes
    -----
    Complexity: O(n log n), by the longest increasing subsequence.

    Examples
    --------
    >>> out_of_order([4, 1, 5, 6], 0), out_of_order([3, 7, 8], 5)
    ([0], [0])
    """
    tails: list[int] = []
    ends: list[int] = []
    previous = [-1] * len(seqs)
    for n, seq in enumerate(seqs):
        if seq <= after:
            continue
        length = bisect.bisect_left(tails, seq)
        previous[n] = ends[length - 1] if length else -1
        tails[length : length + 1] = [seq]
        ends[length : length + 1] = [n]
    in_order = set()
    at = ends[-1] if ends else -1
    while at >= 0:
        in_order.add(at)
        at = previous[at]
    return [n for n in range(len(seqs)) if n not in in_order]


def move(db: apsw.Connection, conversation_id: int, seq: int, to: int) -> None:
    """Move a row, and all that names it by its seq, to a place that is free.

    Entries without a message stay: the transcript that moves the row shows those behind it too.
    """
    for table, column in _MESSAGE_SEQS:
        db.execute(
            f"UPDATE {table} SET {column} = ? WHERE conversation_id = ? AND {column} = ?",
            (to, conversation_id, seq),
        )


def _runs(
    known_seqs: dict[int, int], new: Sequence[int]
) -> Iterator[tuple[list[int], int | None, int | None]]:
    """Yield the new positions between two known ones, with these two."""
    anchors = iter(sorted(known_seqs))
    before: int | None = None
    after = next(anchors, None)
    run: list[int] = []
    for position in new:
        while after is not None and after < position:
            if run:
                yield run, before, after
                run = []
            before, after = after, next(anchors, None)
        run.append(position)
    if run:
        yield run, before, after
