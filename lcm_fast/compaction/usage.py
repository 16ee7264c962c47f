"""How many prompt tokens a provider counted, whatever it calls them (spec B7; cases 79, 102)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["observed_prompt_tokens"]

# A record is one of these kinds: parts that add up to the prompt, or the whole under one name.
_PARTS = (
    ("input", "cacheRead", "cacheWrite"),
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"),
)
_WHOLES = ("prompt_tokens", "promptTokens")
_RECORDS = ("usage", "lastCallUsage")


def observed_prompt_tokens(usage: Mapping[str, Any] | int | None) -> int | None:
    """Return the prompt tokens of a provider's usage record; None when it tells none.

    Parameters
    ----------
    usage
        The record in OpenClaw, OpenAI or Anthropic shape, also under ``usage`` or
        ``lastCallUsage``, or the number itself. What the model wrote is not counted.

    Examples
    --------
    >>> observed_prompt_tokens({"prompt_tokens": 900, "completion_tokens": 50})
    900
    >>> observed_prompt_tokens({"input_tokens": 10, "cache_read_input_tokens": 890})
    900
    """
    if not isinstance(usage, Mapping):
        return _count(usage)
    for name in _RECORDS:
        inner = usage.get(name)
        if isinstance(inner, Mapping) and (found := observed_prompt_tokens(inner)) is not None:
            return found
    for name in _WHOLES:
        if (whole := _count(usage.get(name))) is not None:
            return whole
    for names in _PARTS:
        parts = [count for name in names if (count := _count(usage.get(name))) is not None]
        if parts:
            return sum(parts)
    return None


def _count(value: object) -> int | None:
    """Return a number of tokens, None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and value >= 0 else None
