"""The types that blocks and items go by in the known message shapes (spec: storage 2.3)."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CALL_TYPES",
    "PICTURE_TYPES",
    "REASONING_TYPES",
    "RESULT_TYPES",
    "is_call",
    "is_result",
]

# Tuples, not sets: a "type" met in the wild may be a list or an object, which no set can look up.
CALL_TYPES = (
    "toolCall",
    "tool_use",
    "function_call",
    "tool_call",
    "toolUse",
    "tool-use",
    "functionCall",
)
RESULT_TYPES = ("toolResult", "tool_result", "tool_use_result", "function_call_output")
REASONING_TYPES = ("thinking", "redacted_thinking", "reasoning")
PICTURE_TYPES = ("image", "image_url", "input_image")


def is_call(block: Any) -> bool:
    """Tell whether a block is a tool call."""
    return isinstance(block, dict) and block.get("type") in CALL_TYPES


def is_result(block: Any) -> bool:
    """Tell whether a block is the result of a tool call."""
    return isinstance(block, dict) and block.get("type") in RESULT_TYPES
