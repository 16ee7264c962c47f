"""Which threshold holds for a call, and how a conversation stands to it; pure.

Rules are ANDed inside and compete by specificity; ties go to the first (spec C, D, N5; decision 20;
case 66).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ..config import Config, ThresholdRule, matches

__all__ = [
    "CallContext",
    "PersistedThreshold",
    "Pressure",
    "Threshold",
    "effective_config",
    "goal_tokens",
    "measure_pressure",
    "resolve_threshold",
    "settled_threshold",
]

NO_OVERRIDE = "no_override_matched"
PERSISTED = "persisted deferred threshold debt"

# What the stored context is never asked to go below, as a part of the threshold: a target of a few
# tokens would be compacted for ever.
_LEAST_SHARE = 4

Source = Literal["global", "override"]


@dataclass(frozen=True, slots=True)
class CallContext:
    """What is known of a model call; None where nothing is.

    Attributes
    ----------
    context_window
        Of the model, in tokens; a token budget never stands for it.
    """

    model: str | None = None
    provider: str | None = None
    context_window: int | None = None
    session_key: str | None = None

    @property
    def model_ref(self) -> str | None:
        """The model with its provider, as far as that is known.

        >>> CallContext(model="gpt-5.5", provider="openai").model_ref
        'openai/gpt-5.5'
        """
        if self.model is None or "/" in self.model or not self.provider:
            return self.model
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold that holds for a call, and why.

    Attributes
    ----------
    fraction
        Of the token budget.
    rule_index, rule_name, specificity
        Of the override that set it.
    fresh_tail_count, leaf_chunk_tokens
        Set by the override along with it; None where it does not.
    is_stale
        A persisted threshold was given up for this one.
    """

    fraction: float
    source: Source = "global"
    reason: str = NO_OVERRIDE
    rule_index: int | None = None
    rule_name: str | None = None
    specificity: int = 0
    fresh_tail_count: int | None = None
    leaf_chunk_tokens: int | None = None
    is_stale: bool = False

    def tokens(self, budget_tokens: int) -> int:
        """Return the threshold in tokens; a conversation is over it above, not at it.

        >>> Threshold(0.75).tokens(1001)
        750
        """
        return math.floor(self.fraction * budget_tokens)


@dataclass(frozen=True, slots=True)
class PersistedThreshold:
    """The threshold a debt was made under."""

    fraction: float
    source: Source
    fresh_tail_count: int | None = None
    leaf_chunk_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Pressure:
    """How a conversation stands to its threshold.

    Attributes
    ----------
    current_tokens
        What is stored, or what the provider counted, whichever is more.
    overhead_tokens
        What the provider counted beyond what is stored.
    is_beyond_us
        The overhead alone is over the threshold: no compaction can help.
    """

    current_tokens: int
    overhead_tokens: int
    is_over: bool
    is_beyond_us: bool
    reason: str


def resolve_threshold(config: Config, context: CallContext) -> Threshold:
    """Return the threshold for a call: that of the most particular rule that matches, else the
    global one."""
    best: tuple[int, int, str] | None = None
    for index, rule in enumerate(config.context_threshold_overrides):
        reason = _matching(rule, context)
        if reason is not None and (best is None or rule.specificity > best[0]):
            best = rule.specificity, index, reason
    if best is None:
        return Threshold(config.context_threshold)
    specificity, index, reason = best
    rule = config.context_threshold_overrides[index]
    return Threshold(
        fraction=rule.context_threshold,
        source="override",
        reason=reason,
        rule_index=index,
        rule_name=rule.name,
        specificity=specificity,
        fresh_tail_count=rule.fresh_tail_count,
        leaf_chunk_tokens=rule.leaf_chunk_tokens,
    )


def settled_threshold(
    persisted: PersistedThreshold | None, live: Threshold, config: Config, context: CallContext
) -> Threshold:
    """Return which of a debt's own threshold and the live one a drain goes by.

    A debt made under an override keeps it while some rule could still produce it and no other
    override applies; one made under the global threshold keeps it only while that is the same
    (spec C8).
    """
    if persisted is None:
        return live
    if persisted.source == "override":
        is_kept = _could_produce(persisted, config, context) and (
            live.source == "global" or _is_same(persisted, live)
        )
    else:
        is_kept = live.source == "global" and live.fraction == persisted.fraction
    if not is_kept:
        return replace(live, is_stale=True)
    return Threshold(
        fraction=persisted.fraction,
        source=persisted.source,
        reason=PERSISTED,
        fresh_tail_count=persisted.fresh_tail_count or live.fresh_tail_count,
        leaf_chunk_tokens=persisted.leaf_chunk_tokens or live.leaf_chunk_tokens,
    )


def effective_config(config: Config, threshold: Threshold) -> Config:
    """Return the configuration with what an override sets: for selection of every kind alike."""
    changes: dict[str, float | int] = {}
    if threshold.fraction != config.context_threshold:
        changes["context_threshold"] = threshold.fraction
    if threshold.fresh_tail_count is not None:
        changes["fresh_tail_count"] = threshold.fresh_tail_count
    if threshold.leaf_chunk_tokens is not None:
        changes["leaf_chunk_tokens"] = threshold.leaf_chunk_tokens
    return replace(config, **changes) if changes else config  # type: ignore[arg-type]


def measure_pressure(
    stored_tokens: int, observed_tokens: int | None, threshold_tokens: int
) -> Pressure:
    """Return how a conversation stands to its threshold.

    Parameters
    ----------
    observed_tokens
        What the provider counted for the prompt; None when that is unknown.
    """
    observed = observed_tokens or 0
    current = max(stored_tokens, observed)
    overhead = max(0, observed - stored_tokens) if observed else 0
    is_beyond_us = overhead >= threshold_tokens > 0
    reason = f"{current:,} tokens, threshold {threshold_tokens:,}"
    if overhead:
        reason += f"; {overhead:,} of them are the host's own"
    if is_beyond_us:
        reason = (
            f"the host's own prompt takes {overhead:,} tokens beyond the stored {stored_tokens:,},"
            f" more than the threshold of {threshold_tokens:,}: no compaction reaches it"
        )
    return Pressure(current, overhead, current > threshold_tokens, is_beyond_us, reason)


def goal_tokens(pressure: Pressure, threshold_tokens: int) -> int:
    """Return what the stored context must come down to for the whole prompt to fit.

    >>> goal_tokens(measure_pressure(7000, 12000, 8200), 8200)
    3200
    """
    if pressure.is_beyond_us or not pressure.is_over:
        return threshold_tokens
    return max(threshold_tokens - pressure.overhead_tokens, threshold_tokens // _LEAST_SHARE)


def _matching(rule: ThresholdRule, context: CallContext) -> str | None:
    """Return what a rule matched by, in words; None when it does not match."""
    found = []
    for is_met, words in _conditions(rule, context):
        if not is_met:
            return None
        found.append(words)
    return ",".join(found)


def _conditions(rule: ThresholdRule, context: CallContext) -> Iterator[tuple[bool, str]]:
    window = context.context_window
    if rule.model is not None:
        names = {name.strip() for name in (context.model, context.model_ref) if name}
        yield rule.model in names, f"model={rule.model}"
    if rule.session_pattern is not None:
        key = (context.session_key or "").strip()
        is_met = bool(key) and matches(rule.session_pattern, key)
        yield is_met, f"sessionPattern={rule.session_pattern}"
    if rule.window_min is not None:
        is_met = window is not None and window >= rule.window_min
        yield is_met, f"modelContextWindow>={rule.window_min}"
    if rule.window_max is not None:
        is_met = window is not None and window <= rule.window_max
        yield is_met, f"modelContextWindow<={rule.window_max}"
    if rule.window_min is not None or rule.window_max is not None:
        yield window is not None, f"resolvedModelContextWindow={window}"


def _could_produce(persisted: PersistedThreshold, config: Config, context: CallContext) -> bool:
    """Tell whether some rule that may match, what is unknown granted, sets just this."""
    return any(
        _may_match(rule, context)
        and rule.context_threshold == persisted.fraction
        and persisted.fresh_tail_count in (None, rule.fresh_tail_count)
        and persisted.leaf_chunk_tokens in (None, rule.leaf_chunk_tokens)
        for rule in config.context_threshold_overrides
    )


def _may_match(rule: ThresholdRule, context: CallContext) -> bool:
    known = replace(
        rule,
        model=rule.model if context.model else None,
        session_pattern=rule.session_pattern if context.session_key else None,
        window_min=rule.window_min if context.context_window else None,
        window_max=rule.window_max if context.context_window else None,
    )
    return _matching(known, context) is not None


def _is_same(persisted: PersistedThreshold, live: Threshold) -> bool:
    return (
        live.fraction == persisted.fraction
        and persisted.fresh_tail_count in (None, live.fresh_tail_count)
        and persisted.leaf_chunk_tokens in (None, live.leaf_chunk_tokens)
    )
