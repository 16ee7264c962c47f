"""Focus briefs: a long note on one task, written from the summaries of a conversation and from the
messages behind them, and shown in the place of those summaries (spec W)."""

from .overlay import Overlay, load_overlay
from .results import FocusResult, FocusStatus
from .writing import (
    LEAST_TOKENS,
    TARGET_TOKENS,
    BriefPlan,
    evidence_limit_tokens,
    plan_brief,
    timeout_s,
    write_brief,
)

__all__ = [
    "LEAST_TOKENS",
    "TARGET_TOKENS",
    "BriefPlan",
    "FocusResult",
    "FocusStatus",
    "Overlay",
    "evidence_limit_tokens",
    "load_overlay",
    "plan_brief",
    "timeout_s",
    "write_brief",
]
