"""Which tool results answer which calls, as far as the record tells; in the caller's transaction.

A message of a tool exchange knows the seq of the call that opened it, so that selection never
splits one. A call id that is used again leads to the newest call before the result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw

from .rows import Batch

__all__ = ["link", "open_calls", "take_up_orphans", "unanswered"]


def open_calls(
    db: apsw.Connection, conversation_id: int, batch: Batch, new: Sequence[int]
) -> frozenset[str]:
    """Return the call ids that new results of a batch answer for the first time."""
    answers = {call_id for n in new for call_id in batch.messages[n].answers}
    if not answers:
        return frozenset()
    made_here = {call.call_id for n in new for call in batch.messages[n].calls}
    rows = db.execute(
        "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM tool_calls"
        " WHERE conversation_id = ? AND call_id = value AND result_seq IS NULL)",
        (json.dumps(list(answers)), conversation_id),
    )
    return frozenset(call_id for (call_id,) in rows) | (made_here & answers)


def link(
    db: apsw.Connection,
    conversation_id: int,
    batch: Batch,
    new: Sequence[int],
    seqs: dict[int, int],
) -> dict[int, int]:
    """Note the calls and results of new messages; return position -> seq of the opening call."""
    calls: dict[tuple[str, int], list[Any]] = {}
    answered: list[tuple[int, int, str, int]] = []
    orphans: list[tuple[int, str, int]] = []
    openers: dict[int, int] = {}
    newest: dict[str, int] = {}  # call id -> seq of its newest call, of this batch
    for position in sorted(new, key=seqs.__getitem__):
        message, seq = batch.messages[position], seqs[position]
        for call in message.calls:
            newest[call.call_id] = seq
            calls.setdefault(
                (call.call_id, seq), [conversation_id, call.call_id, seq, call.name, None]
            )
        for call_id in message.answers:
            call_seq = newest.get(call_id)
            if call_seq is None:
                call_seq = _newest_call(db, conversation_id, call_id, seq)
            if call_seq is None or call_seq >= seq:
                orphans.append((conversation_id, call_id, seq))
                continue
            openers[position] = min(openers.get(position, seq), call_seq)
            made_here = calls.get((call_id, call_seq))
            if made_here is not None:
                made_here[4] = made_here[4] or seq
            else:
                answered.append((seq, conversation_id, call_id, call_seq))
    db.executemany("INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?)", calls.values())
    db.executemany(
        "UPDATE tool_calls SET result_seq = coalesce(result_seq, ?)"
        " WHERE conversation_id = ? AND call_id = ? AND call_seq = ?",
        answered,
    )
    db.executemany("INSERT OR IGNORE INTO orphan_results VALUES (?, ?, ?)", orphans)
    return openers


def take_up_orphans(db: apsw.Connection, conversation_id: int) -> None:
    """Link results to calls that stand before them now, as rows were filled in or moved."""
    rows: list[tuple[Any, ...]] = db.execute(
        "SELECT call_id, result_seq, (SELECT max(call_seq) FROM tool_calls c"
        " WHERE c.conversation_id = o.conversation_id AND c.call_id = o.call_id"
        " AND c.call_seq < o.result_seq) AS opener FROM orphan_results o"
        " WHERE conversation_id = ? AND opener IS NOT NULL ORDER BY result_seq",
        (conversation_id,),
    ).fetchall()
    for call_id, result_seq, call_seq in rows:
        _answer(db, conversation_id, call_id, call_seq, result_seq)
        db.execute(
            "DELETE FROM orphan_results"
            " WHERE conversation_id = ? AND call_id = ? AND result_seq = ?",
            (conversation_id, call_id, result_seq),
        )


def _answer(
    db: apsw.Connection, conversation_id: int, call_id: str, call_seq: int, result_seq: int
) -> None:
    where = "conversation_id = ? AND {} = ?"
    db.execute(
        f"UPDATE messages SET opener_seq = min(opener_seq, ?) WHERE {where.format('seq')}",
        (call_seq, conversation_id, result_seq),
    )
    db.execute(
        f"UPDATE context_items SET opener = min(opener, ?) WHERE {where.format('ordinal')}"
        " AND item_type = 'message'",
        (call_seq, conversation_id, result_seq),
    )
    db.execute(
        f"UPDATE tool_calls SET result_seq = coalesce(result_seq, ?)"
        f" WHERE {where.format('call_id')} AND call_seq = ?",
        (result_seq, conversation_id, call_id, call_seq),
    )


def _newest_call(
    db: apsw.Connection, conversation_id: int, call_id: str, before_seq: int
) -> int | None:
    rows = db.execute(
        "SELECT call_seq FROM tool_calls WHERE conversation_id = ? AND call_id = ?"
        " AND call_seq < ? ORDER BY call_seq DESC LIMIT 1",
        (conversation_id, call_id, before_seq),
    )
    return next((int(seq) for (seq,) in rows), None)


def unanswered(
    db: apsw.Connection, conversation_id: int, first_seq: int, last_seq: int
) -> dict[int, list[tuple[str, str]]]:
    """Return, by seq, (tool name, call id) of the calls in a range that have no result yet."""
    rows = db.execute(
        "SELECT call_seq, name, call_id FROM tool_calls WHERE conversation_id = ?"
        " AND result_seq IS NULL AND call_seq BETWEEN ? AND ? ORDER BY call_seq, call_id",
        (conversation_id, first_seq, last_seq),
    )
    found: dict[int, list[tuple[str, str]]] = {}
    for seq, name, call_id in rows:
        found.setdefault(int(seq), []).append((str(name), str(call_id)))
    return found
