"""The best context for a token budget: selection, rendering, tool pairing, fitting."""

from .assembler import MIN_BUDGET_TOKENS, assemble, check_budget
from .diagnostics import Diagnostics, diagnose
from .pieces import summary_xml
from .relevance import Relevance
from .rendered import MessagePieces
from .request import NOTHING_LIVE, NOTHING_SHOWN, AssemblyRequest, LiveMessages, Shown
from .results import Assembly, AssemblyStats, FreshTail, Prefix

__all__ = [
    "MIN_BUDGET_TOKENS",
    "NOTHING_LIVE",
    "NOTHING_SHOWN",
    "Assembly",
    "AssemblyRequest",
    "AssemblyStats",
    "Diagnostics",
    "FreshTail",
    "LiveMessages",
    "MessagePieces",
    "Prefix",
    "Relevance",
    "Shown",
    "assemble",
    "check_budget",
    "diagnose",
    "summary_xml",
]
