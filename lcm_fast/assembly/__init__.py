"""The best context for a token budget: selection, rendering, tool pairing, fitting."""

from .assembler import MIN_BUDGET_TOKENS, AssemblyRequest, assemble, check_budget
from .pieces import summary_xml
from .rendered import MessagePieces
from .results import Assembly, AssemblyStats, FreshTail, Prefix

__all__ = [
    "MIN_BUDGET_TOKENS",
    "Assembly",
    "AssemblyRequest",
    "AssemblyStats",
    "FreshTail",
    "MessagePieces",
    "Prefix",
    "assemble",
    "check_budget",
    "summary_xml",
]
