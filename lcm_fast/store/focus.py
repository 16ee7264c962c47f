"""Focus briefs: long notes on one task, shown in the place of the summaries they were written from.

A brief is an overlay: no summary and no context item is changed. Its watermark says how far it
reaches; what it covers follows from that, so that summaries condensed later are covered as well
(spec W5, W6).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

__all__ = [
    "FocusBrief",
    "FocusDelta",
    "SummaryReach",
    "active",
    "begin",
    "covered_by",
    "deactivate",
    "delta",
    "fail",
    "latest",
    "messages_below",
    "page",
    "publish",
    "reach_of_view",
    "source_hash",
    "sources_of",
]


class FocusBrief(msgspec.Struct, frozen=True, kw_only=True):
    """A focus brief; the fields are its columns.

    Attributes
    ----------
    status
        ``draft`` while it is written, ``active`` while it is shown, ``superseded`` by another,
        ``inactive`` after an unfocus, ``failed`` with `error`.
    covered_latest_at, covered_message_seq
        The watermark: how far the summaries reached that it was written from.
    source_context_hash
        Of those summaries, to tell whether they are still the same.
    truncated
        Its text was cut to a limit.
    model
        That wrote it.
    """

    brief_id: str
    conversation_id: int
    session_key: str | None
    prompt: str
    content: str = ""
    status: str = "draft"
    token_count: int = 0
    target_tokens: int = 0
    covered_latest_at: str | None = None
    covered_message_seq: int | None = None
    source_context_hash: str = ""
    error: str | None = None
    created_at: str
    updated_at: str
    superseded_at: str | None = None
    truncated: bool = False
    model: str = ""


class SummaryReach(msgspec.Struct, frozen=True):
    """A summary of a conversation's view, and how far it reaches.

    Attributes
    ----------
    max_seq
        Of the newest message that it was made from, directly or through other summaries; None
        where it has no sources.
    """

    ordinal: int
    summary_id: str
    tokens: int
    latest_at: str | None
    max_seq: int | None


class FocusDelta(msgspec.Struct, frozen=True):
    """What a conversation's view holds beyond a brief's watermark."""

    messages: int
    summaries: int
    tokens: int


_COLUMNS = ", ".join(FocusBrief.__struct_fields__)

# The newest message of a summary is in the last of its sources.
_REACH = """
WITH RECURSIVE view (ordinal, summary_id, tokens) AS (
  SELECT ordinal, summary_id, wire_tokens FROM context_items
  WHERE conversation_id = :id AND item_type = 'summary'
), last (root, summary_id) AS (
  SELECT summary_id, summary_id FROM view
  UNION ALL
  SELECT root, parent_summary_id FROM last JOIN summary_parents AS source
  ON source.summary_id = last.summary_id AND source.ordinal =
    (SELECT max(ordinal) FROM summary_parents WHERE summary_id = last.summary_id)
), reach (root, max_seq) AS (
  SELECT root, max(seq) FROM last
  JOIN summary_messages ON summary_messages.summary_id = last.summary_id
  JOIN messages USING (message_id) GROUP BY root
)
SELECT ordinal, view.summary_id, tokens, latest_at, max_seq FROM view
JOIN summaries ON summaries.summary_id = view.summary_id
LEFT JOIN reach ON root = view.summary_id
ORDER BY ordinal
"""


def reach_of_view(db: apsw.Connection, conversation_id: int) -> list[SummaryReach]:
    """Return the summaries of a conversation's view, in order.

    Complexity: linear in the summaries, each with the messages of one leaf.
    """
    return [SummaryReach(*row) for row in db.execute(_REACH, {"id": conversation_id})]


def source_hash(summaries: Sequence[SummaryReach]) -> str:
    """Return a digest of summaries: their places, ids, sizes and times.

    >>> source_hash([SummaryReach(1, "sum_a", 9, None, 4)])[:8]
    '5a1fb48f'
    """
    digest = hashlib.sha256()
    for one in summaries:
        digest.update(
            f"{one.ordinal}\0{one.summary_id}\0{one.tokens}\0{one.latest_at or ''}\n".encode()
        )
    return digest.hexdigest()


def covered_by(brief: FocusBrief, summaries: Sequence[SummaryReach]) -> list[SummaryReach]:
    """Return which summaries reach no further than a brief: by message, else by time."""
    return [one for one in summaries if _is_covered(brief, one)]


def _is_covered(brief: FocusBrief, summary: SummaryReach) -> bool:
    if brief.covered_message_seq is not None and summary.max_seq is not None:
        return summary.max_seq <= brief.covered_message_seq
    if brief.covered_latest_at is not None and summary.latest_at is not None:
        return summary.latest_at <= brief.covered_latest_at
    return False


def active(db: apsw.Connection, conversation_id: int) -> FocusBrief | None:
    """Return the brief that is shown."""
    return _first(db, "conversation_id = ? AND status = 'active'", (conversation_id,))


def latest(db: apsw.Connection, conversation_id: int) -> FocusBrief | None:
    """Return the brief that was begun last, whatever became of it."""
    return _first(db, "conversation_id = ?", (conversation_id,))


def page(db: apsw.Connection, *, limit: int) -> list[FocusBrief]:
    """Return briefs that are shown, under way, or the last of their conversation to fail; the
    newest first."""
    where = (
        "status IN ('active', 'draft') OR (status = 'failed' AND NOT EXISTS (SELECT 1 FROM"
        " focus_briefs newer WHERE newer.conversation_id = focus_briefs.conversation_id AND"
        " newer.created_at > focus_briefs.created_at))"
    )
    return _select(db, where, (), limit)


def begin(db: apsw.Connection, brief: FocusBrief, sources: dict[str, list[str]]) -> None:
    """Insert a draft, and the ids of the summaries it is written from, by their role."""
    fields = msgspec.structs.astuple(brief)
    db.execute(
        f"INSERT INTO focus_briefs ({_COLUMNS}) VALUES ({', '.join('?' * len(fields))})",
        [int(value) if isinstance(value, bool) else value for value in fields],
    )
    db.executemany(
        "INSERT INTO focus_brief_sources (brief_id, summary_id, role, ordinal) VALUES (?, ?, ?, ?)",
        [
            (brief.brief_id, summary_id, role, place)
            for role, ids in sources.items()
            for place, summary_id in enumerate(ids)
        ],
    )


def publish(db: apsw.Connection, brief: FocusBrief, now: str) -> None:
    """Show a brief that was written, instead of the one before."""
    db.execute(
        "UPDATE focus_briefs SET status = 'superseded', superseded_at = :now, updated_at = :now"
        " WHERE conversation_id = :id AND status IN ('draft', 'active') AND brief_id <> :brief",
        {"now": now, "id": brief.conversation_id, "brief": brief.brief_id},
    )
    db.execute(
        "UPDATE focus_briefs SET status = 'active', content = ?, token_count = ?, truncated = ?,"
        " model = ?, updated_at = ? WHERE brief_id = ?",
        (
            brief.content,
            brief.token_count,
            int(brief.truncated),
            brief.model,
            now,
            brief.brief_id,
        ),
    )
    _tell_caches(db, brief.conversation_id)


def fail(db: apsw.Connection, brief_id: str, error: str, now: str) -> None:
    """Note why a draft came to nothing; what is shown stays."""
    db.execute(
        "UPDATE focus_briefs SET status = 'failed', error = ?, updated_at = ? WHERE brief_id = ?",
        (error, now, brief_id),
    )


def deactivate(db: apsw.Connection, conversation_id: int, now: str) -> int:
    """Show no brief any more; return how many were shown."""
    db.execute(
        "UPDATE focus_briefs SET status = 'inactive', updated_at = ?"
        " WHERE conversation_id = ? AND status = 'active'",
        (now, conversation_id),
    )
    count = db.changes()
    if count:
        _tell_caches(db, conversation_id)
    return count


def sources_of(db: apsw.Connection, brief_id: str) -> dict[str, list[str]]:
    """Return the ids of the summaries a brief was written from, by their role."""
    found: dict[str, list[str]] = {}
    rows = db.execute(
        "SELECT role, summary_id FROM focus_brief_sources WHERE brief_id = ?"
        " ORDER BY role, ordinal",
        (brief_id,),
    )
    for role, summary_id in rows:
        found.setdefault(role, []).append(summary_id)
    return found


def messages_below(
    db: apsw.Connection, summary_ids: Sequence[str]
) -> list[tuple[str, int, int, str]]:
    """Return (root, message id, tokens, text) of the messages that summaries stand for, in order.

    Complexity: linear in those messages.
    """
    rows = db.execute(
        "WITH RECURSIVE below (root, summary_id) AS ("
        " SELECT value, value FROM json_each(?) UNION"
        " SELECT root, parent_summary_id FROM below JOIN summary_parents"
        " ON summary_parents.summary_id = below.summary_id)"
        " SELECT root, message_id, messages.token_count, messages.content FROM below"
        " JOIN summary_messages ON summary_messages.summary_id = below.summary_id"
        " JOIN messages USING (message_id) ORDER BY seq",
        (json.dumps(list(summary_ids)),),
    )
    return [(root, message_id, tokens, text) for root, message_id, tokens, text in rows]


def delta(db: apsw.Connection, brief: FocusBrief, covered: Sequence[SummaryReach]) -> FocusDelta:
    """Return what the view holds beyond a brief."""
    rows = db.execute(
        "SELECT item_type = 'summary', wire_tokens FROM context_items"
        " WHERE conversation_id = ? AND coalesce(summary_id, '') NOT IN"
        " (SELECT value FROM json_each(?))"
        " AND role <> 'system'",
        (brief.conversation_id, json.dumps([one.summary_id for one in covered])),
    )
    messages = summaries = tokens = 0
    for is_summary, size in rows:
        summaries += is_summary
        messages += not is_summary
        tokens += size
    return FocusDelta(messages, summaries, tokens)


def _tell_caches(db: apsw.Connection, conversation_id: int) -> None:
    db.execute(
        "UPDATE conversations SET view_revision = view_revision + 1 WHERE conversation_id = ?",
        (conversation_id,),
    )


def _first(db: apsw.Connection, where: str, parameters: tuple[Any, ...]) -> FocusBrief | None:
    return next(iter(_select(db, where, parameters, 1)), None)


def _select(
    db: apsw.Connection, where: str, parameters: tuple[Any, ...], limit: int
) -> list[FocusBrief]:
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM focus_briefs WHERE {where}"
        f" ORDER BY created_at DESC, brief_id DESC LIMIT {limit}",
        parameters,
    )
    fields = FocusBrief.__struct_fields__
    return [
        msgspec.convert(dict(zip(fields, row, strict=True)), FocusBrief, strict=False)
        for row in rows
    ]
