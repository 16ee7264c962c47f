"""The schema: version 2 whole, the first one, and the steps after it.

Text only: `migrations` runs it, nothing else may change tables.

Two layers share the file (design: architecture, sections 1 and 4). The record (messages and entries
as received, large files, quarantine, commit keys) is never rewritten. The view (summaries, context
items, search) can be rebuilt from it. Counters of a conversation are kept in its row, so that no
command counts messages. Times are UTC, ISO 8601 with milliseconds.
"""

from __future__ import annotations

__all__ = [
    "APPLICATION_ID",
    "FIRST_VERSION",
    "SCHEMA_VERSION",
    "VERSION_2",
    "VERSION_3",
    "VERSION_4",
]

APPLICATION_ID = 0x4C434D46  # "LCMF"
SCHEMA_VERSION = 4
FIRST_VERSION = 2  # version 1 was never in a release

_RECORD = """
CREATE TABLE conversations (
  conversation_id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  session_key TEXT,
  active INTEGER NOT NULL DEFAULT 1 CHECK (active IN (0, 1)),
  archived_at TEXT,
  archive_cause TEXT,
  title TEXT,
  bootstrapped_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  last_ingest_at TEXT,
  last_seq INTEGER NOT NULL DEFAULT 0,
  message_count INTEGER NOT NULL DEFAULT 0,
  message_tokens INTEGER NOT NULL DEFAULT 0,
  excluded_count INTEGER NOT NULL DEFAULT 0,
  frontier_items INTEGER NOT NULL DEFAULT 0,
  frontier_tokens INTEGER NOT NULL DEFAULT 0,
  frontier_summary_tokens INTEGER NOT NULL DEFAULT 0,
  covered_source_tokens INTEGER NOT NULL DEFAULT 0,
  leaf_count INTEGER NOT NULL DEFAULT 0,
  condensed_count INTEGER NOT NULL DEFAULT 0,
  fallback_count INTEGER NOT NULL DEFAULT 0,
  truncated_count INTEGER NOT NULL DEFAULT 0,
  quarantined_count INTEGER NOT NULL DEFAULT 0,
  -- raised by each change of context_items other than appending: tells caches to start anew
  view_revision INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX conversations_active_key ON conversations (session_key)
  WHERE session_key IS NOT NULL AND active = 1;
CREATE INDEX conversations_session_key ON conversations (session_key, created_at);
CREATE INDEX conversations_session_id ON conversations (session_id, active, created_at);

CREATE TABLE messages (
  message_id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
  content TEXT NOT NULL,
  token_count INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  -- where created_at is from: 0 the receipt, 1 the entry's envelope, 2 the message itself
  timed INTEGER NOT NULL,
  -- digest of what the message says, the same for every face of it; times and ids tell equal ones
  -- apart
  identity_hash BLOB NOT NULL,
  -- 1 once a transcript has shown it, and which one did first
  claimed INTEGER NOT NULL,
  transcript_id INTEGER,
  transcript_entry_id TEXT,
  parent_entry_id TEXT,
  stable_event_key TEXT,
  excluded TEXT,
  -- tokens as the model is sent it, and the seq of the call a tool message belongs to
  wire_tokens INTEGER NOT NULL,
  opener_seq INTEGER NOT NULL,
  raw_codec INTEGER NOT NULL,
  raw BLOB NOT NULL,
  -- the message with large payloads replaced by references, packed; NULL when it is shown as it is
  shown_codec INTEGER,
  shown BLOB,
  UNIQUE (conversation_id, seq)
) STRICT;
CREATE INDEX messages_identity ON messages (conversation_id, identity_hash, claimed, created_at);
-- the same entry id with other content, or at another time, is another message: both are kept
CREATE UNIQUE INDEX messages_entry
  ON messages (conversation_id, transcript_entry_id, identity_hash, created_at)
  WHERE transcript_entry_id IS NOT NULL;
CREATE UNIQUE INDEX messages_event ON messages (conversation_id, stable_event_key)
  WHERE stable_event_key IS NOT NULL;

-- another form in which a stored message came again: redacted, pruned, decorated, spaced otherwise
CREATE TABLE message_revisions (
  revision_id INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  message_id INTEGER NOT NULL REFERENCES messages ON DELETE CASCADE,
  kind TEXT NOT NULL,
  identity_hash BLOB NOT NULL,
  received_at TEXT NOT NULL,
  raw_codec INTEGER NOT NULL,
  raw BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_revisions_identity
  ON message_revisions (conversation_id, identity_hash, message_id, kind);
CREATE INDEX message_revisions_message ON message_revisions (message_id);

-- entries of a session file that carry no message: header, model changes, custom, labels, unknown
-- types
CREATE TABLE transcript_entries (
  row_id INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  after_seq INTEGER NOT NULL,
  entry_type TEXT NOT NULL,
  entry_id TEXT,
  parent_entry_id TEXT,
  identity_hash BLOB NOT NULL,
  occurrence INTEGER NOT NULL,
  file_offset INTEGER NOT NULL,
  raw_codec INTEGER NOT NULL,
  raw BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX transcript_entries_identity
  ON transcript_entries (conversation_id, identity_hash, occurrence);
CREATE INDEX transcript_entries_place ON transcript_entries (conversation_id, after_seq);

-- one row a tool call; result_seq is the message that answers it, NULL while open
CREATE TABLE tool_calls (
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  call_id TEXT NOT NULL,
  call_seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  result_seq INTEGER,
  PRIMARY KEY (conversation_id, call_id, call_seq)
) STRICT, WITHOUT ROWID;

-- results whose call is not in the record; a call that is filled in later takes them up
CREATE TABLE orphan_results (
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  call_id TEXT NOT NULL,
  result_seq INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, call_id, result_seq)
) STRICT, WITHOUT ROWID;

-- how far each session file has been read; moves in the transaction that stores its rows
CREATE TABLE transcript_cursors (
  transcript_id INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  session_file_path TEXT NOT NULL,
  session_header_id TEXT,
  last_seen_size INTEGER NOT NULL,
  last_seen_mtime_ns INTEGER NOT NULL,
  last_processed_offset INTEGER NOT NULL,
  last_processed_entry_id TEXT,
  last_message_id INTEGER,
  message_count INTEGER NOT NULL DEFAULT 0,
  -- of a fork: how many messages of its parent's history are not shown, and the entry they end
  -- before
  shown_from INTEGER NOT NULL DEFAULT 0,
  shown_from_entry_id TEXT,
  -- digest of the first and last bytes before the offset: tells an append from a rewrite
  prefix_fingerprint BLOB,
  frozen_since TEXT,
  frozen_reason TEXT,
  updated_at TEXT NOT NULL,
  UNIQUE (conversation_id, session_file_path)
) STRICT;

CREATE TABLE commit_keys (
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  advancement_key TEXT NOT NULL,
  payload_hash BLOB NOT NULL,
  committed_at TEXT NOT NULL,
  PRIMARY KEY (conversation_id, advancement_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE quarantine (
  quarantine_id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  batch_id TEXT NOT NULL,
  role TEXT NOT NULL,
  content TEXT NOT NULL,
  reason TEXT NOT NULL,
  received_at TEXT NOT NULL,
  raw_codec INTEGER NOT NULL,
  raw BLOB NOT NULL,
  resolved_at TEXT,
  resolution TEXT
) STRICT;
CREATE INDEX quarantine_open ON quarantine (batch_id) WHERE resolved_at IS NULL;

CREATE TABLE large_files (
  file_id TEXT PRIMARY KEY,
  -- where it was met first; messages of others may name it too
  conversation_id INTEGER REFERENCES conversations ON DELETE SET NULL,
  file_name TEXT,
  mime_type TEXT,
  byte_size INTEGER NOT NULL,
  line_count INTEGER,
  storage_uri TEXT NOT NULL,
  exploration_summary TEXT,
  created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX large_files_conversation ON large_files (conversation_id, created_at);

CREATE TABLE message_files (
  message_id INTEGER NOT NULL REFERENCES messages ON DELETE CASCADE,
  file_id TEXT NOT NULL REFERENCES large_files,
  PRIMARY KEY (message_id, file_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_files_file ON message_files (file_id);

CREATE TABLE record_dictionaries (
  dictionary_id INTEGER PRIMARY KEY,
  content BLOB NOT NULL
) STRICT;
"""

_VIEW = """
CREATE TABLE summaries (
  summary_id TEXT PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('leaf', 'condensed')),
  depth INTEGER NOT NULL,
  content TEXT NOT NULL,
  token_count INTEGER NOT NULL,
  earliest_at TEXT,
  latest_at TEXT,
  descendant_count INTEGER NOT NULL,
  descendant_token_count INTEGER NOT NULL,
  source_message_token_count INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  file_ids TEXT NOT NULL DEFAULT '[]',
  model TEXT NOT NULL,
  -- normal | aggressive | fallback; a fallback is redone when a summariser is healthy again
  level TEXT NOT NULL CHECK (level IN ('normal', 'aggressive', 'fallback')),
  truncated INTEGER NOT NULL DEFAULT 0,
  replaced_by TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX summaries_conversation ON summaries (conversation_id, created_at);
CREATE INDEX summaries_unhealthy ON summaries (conversation_id, level, truncated)
  WHERE level = 'fallback' OR truncated = 1;

CREATE TABLE summary_messages (
  summary_id TEXT NOT NULL REFERENCES summaries ON DELETE CASCADE,
  message_id INTEGER NOT NULL REFERENCES messages,
  ordinal INTEGER NOT NULL,
  PRIMARY KEY (summary_id, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX summary_messages_message ON summary_messages (message_id);

-- parent_summary_id is a source that summary_id was condensed from
CREATE TABLE summary_parents (
  summary_id TEXT NOT NULL REFERENCES summaries ON DELETE CASCADE,
  parent_summary_id TEXT NOT NULL REFERENCES summaries,
  ordinal INTEGER NOT NULL,
  PRIMARY KEY (summary_id, parent_summary_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX summary_parents_parent ON summary_parents (parent_summary_id);

-- a message's ordinal is its seq; a summary takes the ordinal of the first item it replaces.
-- The columns after summary_id repeat what selection needs, so that it reads no other table.
CREATE TABLE context_items (
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  item_type TEXT NOT NULL CHECK (item_type IN ('message', 'summary')),
  message_id INTEGER REFERENCES messages,
  summary_id TEXT REFERENCES summaries,
  role TEXT NOT NULL,
  depth INTEGER NOT NULL,
  wire_tokens INTEGER NOT NULL,
  opener INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, ordinal),
  CHECK ((item_type = 'message') = (message_id IS NOT NULL)),
  CHECK ((item_type = 'summary') = (summary_id IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX context_items_message ON context_items (message_id)
  WHERE message_id IS NOT NULL;
CREATE UNIQUE INDEX context_items_summary ON context_items (summary_id)
  WHERE summary_id IS NOT NULL;

-- terms are produced by our own analyser and indexed behind a watermark, in batches
CREATE VIRTUAL TABLE message_terms USING fts5 (
  terms, content='', contentless_delete=1, tokenize='ascii'
);
CREATE VIRTUAL TABLE summary_terms USING fts5 (
  terms, content='', contentless_delete=1, tokenize='ascii'
);
CREATE TABLE summary_term_rows (
  row_id INTEGER PRIMARY KEY,
  summary_id TEXT NOT NULL UNIQUE REFERENCES summaries ON DELETE CASCADE
) STRICT;
CREATE TABLE search_watermark (
  corpus TEXT PRIMARY KEY CHECK (corpus IN ('messages', 'summaries')),
  indexed_through INTEGER NOT NULL,
  documents INTEGER NOT NULL,
  stale INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE term_documents (
  term TEXT PRIMARY KEY,
  documents INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

_WORK = """
-- compaction debt, one coalesced row a conversation
CREATE TABLE conversation_compaction_maintenance (
  conversation_id INTEGER PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
  pending INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  reason TEXT,
  requested_at TEXT,
  last_started_at TEXT,
  last_finished_at TEXT,
  last_failure_summary TEXT,
  token_budget INTEGER,
  current_token_count INTEGER,
  projected_token_count INTEGER,
  raw_tokens_outside_tail INTEGER,
  context_threshold REAL,
  context_threshold_source TEXT,
  context_fresh_tail_count INTEGER,
  context_leaf_chunk_tokens INTEGER,
  retry_attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_after TEXT,
  resolution_reason TEXT,
  resolved_at TEXT,
  maintenance_revision INTEGER NOT NULL DEFAULT 0,
  updated_at TEXT NOT NULL
) STRICT;

CREATE TABLE conversation_compaction_telemetry (
  conversation_id INTEGER PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
  last_observed_prompt_token_count INTEGER,
  last_observed_cache_read INTEGER,
  last_observed_cache_write INTEGER,
  cache_state TEXT NOT NULL DEFAULT 'unknown' CHECK (cache_state IN ('hot', 'cold', 'unknown')),
  last_leaf_compaction_at TEXT,
  last_api_call_at TEXT,
  provider TEXT,
  model TEXT,
  updated_at TEXT NOT NULL
) STRICT;

CREATE TABLE summarizer_calls (
  call_id INTEGER PRIMARY KEY,
  conversation_id INTEGER REFERENCES conversations ON DELETE SET NULL,
  summary_id TEXT,
  provider TEXT,
  model TEXT NOT NULL,
  outcome TEXT NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  duration_ms INTEGER NOT NULL,
  called_at TEXT NOT NULL
) STRICT;
CREATE INDEX summarizer_calls_time ON summarizer_calls (conversation_id, called_at);

-- batch work over stored items: one row a job, one a item, leased to one worker at a time
CREATE TABLE map_jobs (
  job_id TEXT PRIMARY KEY,
  conversation_id INTEGER REFERENCES conversations ON DELETE CASCADE,
  prompt TEXT NOT NULL,
  output_schema TEXT,
  state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'cancelled')),
  created_at TEXT NOT NULL,
  finished_at TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE map_items (
  job_id TEXT NOT NULL REFERENCES map_jobs ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  item_ref TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'done', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  leased_until TEXT,
  result TEXT,
  error TEXT,
  PRIMARY KEY (job_id, ordinal)
) STRICT, WITHOUT ROWID;

-- how far a model's reported prompt tokens are from our counts
CREATE TABLE model_calibration (
  model TEXT PRIMARY KEY,
  ratio REAL NOT NULL,
  samples INTEGER NOT NULL,
  updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE focus_briefs (
  brief_id TEXT PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  session_key TEXT,
  prompt TEXT NOT NULL,
  content TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('draft', 'active', 'superseded', 'failed', 'inactive')),
  token_count INTEGER NOT NULL DEFAULT 0,
  target_tokens INTEGER NOT NULL DEFAULT 0,
  covered_latest_at TEXT,
  covered_message_seq INTEGER,
  source_context_hash TEXT NOT NULL DEFAULT '',
  error TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  superseded_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX focus_briefs_status ON focus_briefs (conversation_id, status, created_at);
CREATE TABLE focus_brief_sources (
  brief_id TEXT NOT NULL REFERENCES focus_briefs ON DELETE CASCADE,
  summary_id TEXT NOT NULL,
  role TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  PRIMARY KEY (brief_id, summary_id, role)
) STRICT, WITHOUT ROWID;

-- what was done to a conversation other than ingest and compaction: new, reset, rotate, prune,
-- repair
CREATE TABLE lifecycle_events (
  event_id INTEGER PRIMARY KEY,
  conversation_id INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
  kind TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT '{}',
  happened_at TEXT NOT NULL
) STRICT;
CREATE INDEX lifecycle_events_conversation ON lifecycle_events (conversation_id, happened_at);
"""

VERSION_2 = _RECORD + _VIEW + _WORK

VERSION_3 = """
-- who drains a debt, as host:process:engine, and until when nobody else may
ALTER TABLE conversation_compaction_maintenance ADD COLUMN lease_owner TEXT;
ALTER TABLE conversation_compaction_maintenance ADD COLUMN lease_until TEXT;
ALTER TABLE conversation_compaction_telemetry ADD COLUMN context_window INTEGER;

-- tries to make a fallback anew, and the time before which there is no further one
ALTER TABLE summaries ADD COLUMN redo_attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN redo_after TEXT;

-- what pauses summariser calls: 'model:NAME' refuses our credentials, 'spend:CONVERSATION' is spent
CREATE TABLE summarizer_guards (
  scope TEXT PRIMARY KEY,
  failures INTEGER NOT NULL DEFAULT 0,
  open_until TEXT,
  reason TEXT NOT NULL DEFAULT '',
  updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- what each model was asked and used, so that status need not count calls
CREATE TABLE summarizer_usage (
  model TEXT PRIMARY KEY,
  calls INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  last_called_at TEXT NOT NULL,
  last_failure TEXT
) STRICT, WITHOUT ROWID;
ALTER TABLE map_items ADD COLUMN lease_owner TEXT;

-- calls under way are few; summaries name them
CREATE INDEX tool_calls_open ON tool_calls (conversation_id, call_seq) WHERE result_seq IS NULL;
"""

VERSION_4 = """
-- how many tokens a model makes of one of ours, by what counted ours
DROP TABLE model_calibration;
CREATE TABLE model_calibration (
  model TEXT NOT NULL,
  counter TEXT NOT NULL,
  ratio REAL NOT NULL,
  -- sums over pairs of prompts, older pairs weighing less
  observed_tokens REAL NOT NULL,
  counted_tokens REAL NOT NULL,
  samples INTEGER NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (model, counter)
) STRICT, WITHOUT ROWID;
ALTER TABLE focus_briefs ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE focus_briefs ADD COLUMN model TEXT NOT NULL DEFAULT '';

-- the prompt of a conversation that the next one is compared with
CREATE TABLE calibration_anchors (
  conversation_id INTEGER PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
  model TEXT NOT NULL,
  counter TEXT NOT NULL,
  observed_tokens INTEGER NOT NULL,
  counted_tokens INTEGER NOT NULL
) STRICT;
"""
