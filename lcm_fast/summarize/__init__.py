"""Summarisers and what guards them: protocol, sanitising, escalation, offline extraction.

Knows neither database nor transcripts; callers hand in sanitised items (architecture, section 2).
"""

from __future__ import annotations

from .directives import is_directive, remove_directives
from .escalation import (
    FALLBACK_MODEL,
    TEXTLESS_MODEL,
    Summary,
    condensed_target_tokens,
    leaf_target_tokens,
    summarise_with_escalation,
)
from .extractive import ExtractiveSummarizer
from .prompts import Prompt, build_prompt
from .protocol import (
    SummarizeFunction,
    Summarizer,
    SummaryRequest,
    SummaryResponse,
    as_summarizer,
)
from .sanitise import (
    clean_text,
    extract_text,
    note_media,
    render_tool_call,
    sanitise_message,
    sanitise_summary,
)
from .shortening import bounded_request
from .source_text import (
    SourceItem,
    SourceRole,
    render_source,
    sender_label,
)
from .tagged_blocks import strip_injected_context, strip_reasoning
from .timestamps import format_time

__all__ = [
    "FALLBACK_MODEL",
    "TEXTLESS_MODEL",
    "ExtractiveSummarizer",
    "Prompt",
    "SourceItem",
    "SourceRole",
    "SummarizeFunction",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "SummaryResponse",
    "as_summarizer",
    "bounded_request",
    "build_prompt",
    "clean_text",
    "condensed_target_tokens",
    "extract_text",
    "format_time",
    "is_directive",
    "leaf_target_tokens",
    "note_media",
    "remove_directives",
    "render_source",
    "render_tool_call",
    "sanitise_message",
    "sanitise_summary",
    "sender_label",
    "strip_injected_context",
    "strip_reasoning",
    "summarise_with_escalation",
]
