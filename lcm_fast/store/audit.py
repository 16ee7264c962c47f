"""Questions that prove the store's invariants; each returns what violates one. Read-only.

`doctor` asks them. They may read whole tables and belong to no turn.
"""

from __future__ import annotations

import apsw

__all__ = [
    "COUNTERS",
    "COVERAGE",
    "EDGES",
    "FALLBACKS",
    "FROZEN",
    "ORDINALS",
    "SAMPLES",
    "TRUNCATED",
    "Finding",
    "foreign_keys",
    "integrity",
    "run",
    "work_state",
]

Finding = tuple[int, list[str]]
SAMPLES = 5

# Every summary that the frontier leads to, through the summaries it was condensed from.
_REACHABLE = (
    "WITH RECURSIVE reachable (summary_id) AS ("
    " SELECT summary_id FROM context_items WHERE summary_id IS NOT NULL"
    " UNION SELECT parent_summary_id FROM summary_parents JOIN reachable USING (summary_id)) "
)

COVERAGE = (
    f"{_REACHABLE} SELECT 'message ' || message_id || ' stands ' || places || ' times' FROM ("
    " SELECT message_id, (excluded IS NOT NULL)"
    " + (SELECT count(*) FROM context_items i WHERE i.message_id = m.message_id)"
    " + (SELECT count(*) FROM summary_messages s JOIN reachable USING (summary_id)"
    "    WHERE s.message_id = m.message_id) AS places FROM messages m) WHERE places <> 1"
)
ORDINALS = (
    "SELECT 'conversation ' || i.conversation_id || ' ordinal ' || i.ordinal"
    " FROM context_items i JOIN messages m USING (message_id)"
    " WHERE m.seq <> i.ordinal OR m.conversation_id <> i.conversation_id"
    " UNION ALL SELECT 'conversation ' || i.conversation_id || ' summary ' || i.summary_id"
    " FROM context_items i JOIN summaries s USING (summary_id)"
    " WHERE s.conversation_id <> i.conversation_id OR s.depth <> i.depth"
)
_WITHOUT_SOURCES = (
    "SELECT summary_id || ' has no sources' FROM summaries s WHERE replaced_by IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM summary_messages e WHERE e.summary_id = s.summary_id)"
    " AND NOT EXISTS (SELECT 1 FROM summary_parents e WHERE e.summary_id = s.summary_id)"
)
_REPLACED = (
    "SELECT s.summary_id || ' was replaced and is still in use' FROM summaries s"
    " WHERE replaced_by IS NOT NULL AND ("
    " EXISTS (SELECT 1 FROM summary_messages e WHERE e.summary_id = s.summary_id)"
    " OR EXISTS (SELECT 1 FROM summary_parents e"
    "  WHERE s.summary_id IN (e.summary_id, e.parent_summary_id))"
    " OR EXISTS (SELECT 1 FROM context_items i WHERE i.summary_id = s.summary_id)"
    " OR NOT EXISTS (SELECT 1 FROM summaries n WHERE n.summary_id = s.replaced_by))"
)
_WRONG_DEPTH = (
    "SELECT s.summary_id || ' at depth ' || s.depth || ' has a source at depth ' || p.depth"
    " FROM summary_parents e JOIN summaries s USING (summary_id)"
    " JOIN summaries p ON p.summary_id = e.parent_summary_id WHERE p.depth >= s.depth"
)
_SHARED_SOURCE = (
    "SELECT parent_summary_id || ' is a source ' || count(*) || ' times'"
    " FROM summary_parents GROUP BY parent_summary_id HAVING count(*) > 1"
)
# column of a condensed summary -> what its sources say it is
_FROM_SOURCES = {
    "descendant_count": "sum(1 + p.descendant_count)",
    "descendant_token_count": "sum(p.token_count + p.descendant_token_count)",
    "source_message_token_count": "sum(p.source_message_token_count)",
    "earliest_at": "min(coalesce(p.earliest_at, p.created_at))",
    "latest_at": "max(coalesce(p.latest_at, p.created_at))",
}
_WRONG_SUMS = " UNION ALL ".join(
    f"SELECT summary_id || ' has {name} ' || {name} || ', not ' || found FROM ("
    f" SELECT s.summary_id, s.{name}, {recount} AS found FROM summaries s"
    " JOIN summary_parents e USING (summary_id)"
    " JOIN summaries p ON p.summary_id = e.parent_summary_id GROUP BY s.summary_id)"
    f" WHERE {name} IS NOT found"
    for name, recount in _FROM_SOURCES.items()
)
_WRONG_LEAF = (
    "SELECT summary_id || ' counts ' || source_message_token_count || ' source tokens and '"
    " || descendant_count || ' descendants, has ' || found || ' and 0' FROM ("
    " SELECT s.summary_id, s.source_message_token_count, s.descendant_count,"
    " s.descendant_token_count, sum(m.wire_tokens) AS found FROM summaries s"
    " JOIN summary_messages USING (summary_id) JOIN messages m USING (message_id)"
    " GROUP BY s.summary_id) WHERE source_message_token_count <> found"
    " OR descendant_count <> 0 OR descendant_token_count <> 0"
)
EDGES = " UNION ALL ".join(
    (_WITHOUT_SOURCES, _REPLACED, _WRONG_DEPTH, _SHARED_SOURCE, _WRONG_SUMS, _WRONG_LEAF)
)

# counter of a conversation -> how it is counted anew
_RECOUNTS = {
    "message_count": "count(*) FROM messages",
    "message_tokens": "coalesce(sum(token_count), 0) FROM messages",
    "excluded_count": "count(excluded) FROM messages",
    "frontier_items": "count(*) FROM context_items",
    "frontier_tokens": "coalesce(sum(wire_tokens), 0) FROM context_items",
    "frontier_summary_tokens": (
        "coalesce(sum(wire_tokens) FILTER (WHERE summary_id IS NOT NULL), 0) FROM context_items"
    ),
    "covered_source_tokens": (
        "coalesce(sum(wire_tokens), 0) FROM messages JOIN summary_messages USING (message_id)"
    ),
    "leaf_count": ("count(*) FILTER (WHERE kind = 'leaf' AND replaced_by IS NULL) FROM summaries"),
    "condensed_count": (
        "count(*) FILTER (WHERE kind = 'condensed' AND replaced_by IS NULL) FROM summaries"
    ),
    "fallback_count": (
        "count(*) FILTER (WHERE level = 'fallback' AND replaced_by IS NULL) FROM summaries"
    ),
    "truncated_count": (
        "count(*) FILTER (WHERE truncated = 1 AND replaced_by IS NULL) FROM summaries"
    ),
}
COUNTERS = " UNION ALL ".join(
    f"SELECT 'conversation ' || number || ' has {name} ' || {name} || ', not ' || found FROM ("
    f" SELECT conversation_id AS number, {name}, ("
    f"  SELECT {recount} WHERE conversation_id = c.conversation_id) AS found FROM conversations c)"
    f" WHERE {name} <> found"
    for name, recount in _RECOUNTS.items()
)
FALLBACKS = "SELECT summary_id FROM summaries WHERE level = 'fallback' AND replaced_by IS NULL"
TRUNCATED = "SELECT summary_id FROM summaries WHERE truncated = 1 AND replaced_by IS NULL"
FROZEN = (
    "SELECT session_file_path || ' since ' || frozen_since || ': ' || frozen_reason"
    " FROM transcript_cursors WHERE frozen_since IS NOT NULL"
)


def run(db: apsw.Connection, question: str) -> Finding:
    """Return how many violations a question finds, and the first few of them."""
    samples: list[str] = []
    count = 0
    for (text,) in db.execute(question):
        count += 1
        if len(samples) < SAMPLES:
            samples.append(str(text))
    return count, samples


def integrity(db: apsw.Connection) -> Finding:
    """Return what SQLite's own check of pages, indexes and constraints finds."""
    found = [str(text) for (text,) in db.execute("PRAGMA integrity_check(100)") if text != "ok"]
    return len(found), found[:SAMPLES]


def foreign_keys(db: apsw.Connection) -> Finding:
    """Return rows that point to rows which are not there."""
    found = [
        f"{table} row {row_id} points to a missing row of {parent}"
        for table, row_id, parent, _ in db.execute("PRAGMA foreign_key_check")
    ]
    return len(found), found[:SAMPLES]


def work_state(db: apsw.Connection) -> dict[str, object]:
    """Return what is waiting: compaction debt, frozen files, messages the search index lacks."""
    pending, running = next(
        iter(
            db.execute(
                "SELECT count(*) FILTER (WHERE pending = 1), count(*) FILTER (WHERE running = 1)"
                " FROM conversation_compaction_maintenance"
            )
        )
    )
    failures = db.execute(
        "SELECT last_failure_summary FROM conversation_compaction_maintenance"
        " WHERE last_failure_summary IS NOT NULL ORDER BY last_finished_at DESC LIMIT 1"
    )
    frozen = db.execute("SELECT count(*) FROM transcript_cursors WHERE frozen_since IS NOT NULL")
    newest = db.execute(
        "SELECT coalesce(max(message_id), 0) - (SELECT indexed_through FROM search_watermark"
        " WHERE corpus = 'messages') FROM messages"
    )
    ingested = db.execute("SELECT max(last_ingest_at) FROM conversations")
    return {
        "pending": pending,
        "running": running,
        "last_failure": next((text for (text,) in failures), None),
        "frozen": next(iter(frozen))[0],
        "unindexed": next(iter(newest))[0],
        "last_ingest_at": next(iter(ingested))[0],
    }
