"""The only place with SQL and the only importer of apsw (design: architecture, sections 4 and
5)."""

from .branches import ABANDONED_BRANCH
from .connection import BUSY_TIMEOUT_MS, Durability
from .files import private_file
from .frontier import MESSAGE, ROLE_CODES, SUMMARY, Frontier
from .rows import (
    Address,
    AppendOutcome,
    Batch,
    CarriedEntry,
    Conversation,
    Cursor,
    NewSummary,
    StoredMessage,
    StoredSummary,
)
from .schema import SCHEMA_VERSION
from .store import Store

__all__ = [
    "ABANDONED_BRANCH",
    "BUSY_TIMEOUT_MS",
    "MESSAGE",
    "ROLE_CODES",
    "SCHEMA_VERSION",
    "SUMMARY",
    "Address",
    "AppendOutcome",
    "Batch",
    "CarriedEntry",
    "Conversation",
    "Cursor",
    "Durability",
    "Frontier",
    "NewSummary",
    "Store",
    "StoredMessage",
    "StoredSummary",
    "private_file",
]
