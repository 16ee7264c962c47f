"""The only place with SQL and the only importer of apsw (design: architecture, sections 4 and
5)."""

from .branches import ABANDONED_BRANCH
from .connection import BUSY_TIMEOUT_MS, Durability
from .files import private_file
from .frontier import MESSAGE, ROLE_CODES, SUMMARY, Frontier
from .openclaw_agent import AgentSession, OpenClawAgentDatabase
from .payload_files import PayloadFolder
from .rows import (
    Address,
    AppendOutcome,
    Batch,
    CarriedEntry,
    Commit,
    Conversation,
    Cursor,
    FloodThresholds,
    NewSummary,
    QuarantinedBatch,
    Source,
    StoredFile,
    StoredMessage,
    StoredSummary,
)
from .schema import SCHEMA_VERSION
from .store import Store
from .writer import WriterStats

__all__ = [
    "ABANDONED_BRANCH",
    "BUSY_TIMEOUT_MS",
    "MESSAGE",
    "ROLE_CODES",
    "SCHEMA_VERSION",
    "SUMMARY",
    "Address",
    "AgentSession",
    "AppendOutcome",
    "Batch",
    "CarriedEntry",
    "Commit",
    "Conversation",
    "Cursor",
    "Durability",
    "FloodThresholds",
    "Frontier",
    "NewSummary",
    "OpenClawAgentDatabase",
    "PayloadFolder",
    "QuarantinedBatch",
    "Source",
    "Store",
    "StoredFile",
    "StoredMessage",
    "StoredSummary",
    "WriterStats",
    "private_file",
]
