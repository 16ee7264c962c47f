"""The only place with SQL and the only importer of apsw (design: architecture, sections 4 and
5)."""

from .branches import ABANDONED_BRANCH
from .connection import BUSY_TIMEOUT_MS, Durability
from .debt import Debt, DebtTerms, Settlement
from .files import private_file
from .focus import FocusBrief, FocusDelta, SummaryReach
from .frontier import BRIEF, MESSAGE, ROLE_CODES, SUMMARY, Frontier
from .leases import owner_name
from .map_jobs import MapItem, NewJob
from .model_calls import (
    NO_FACTS,
    CallFacts,
    ModelCalibration,
    SentPrompt,
    in_model_tokens,
    in_stored_tokens,
)
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
    Mention,
    NewSummary,
    QuarantinedBatch,
    Source,
    StoredFile,
    StoredMessage,
    StoredSummary,
)
from .schema import SCHEMA_VERSION
from .spending import Guard, ModelUsage, SummarizerCall
from .store import Store
from .writer import WriterStats

__all__ = [
    "ABANDONED_BRANCH",
    "BRIEF",
    "BUSY_TIMEOUT_MS",
    "MESSAGE",
    "NO_FACTS",
    "ROLE_CODES",
    "SCHEMA_VERSION",
    "SUMMARY",
    "Address",
    "AgentSession",
    "AppendOutcome",
    "Batch",
    "CallFacts",
    "CarriedEntry",
    "Commit",
    "Conversation",
    "Cursor",
    "Debt",
    "DebtTerms",
    "Durability",
    "FloodThresholds",
    "FocusBrief",
    "FocusDelta",
    "Frontier",
    "Guard",
    "MapItem",
    "Mention",
    "ModelCalibration",
    "ModelUsage",
    "NewJob",
    "NewSummary",
    "OpenClawAgentDatabase",
    "PayloadFolder",
    "QuarantinedBatch",
    "SentPrompt",
    "Settlement",
    "Source",
    "Store",
    "StoredFile",
    "StoredMessage",
    "StoredSummary",
    "SummarizerCall",
    "SummaryReach",
    "WriterStats",
    "in_model_tokens",
    "in_stored_tokens",
    "owner_name",
    "private_file",
]
