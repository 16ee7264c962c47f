"""Rules that set the threshold for given models, windows or sessions.

One rule is read here, strictly: an unknown field is an error that names it. Choosing among rules is
`compaction.thresholds` (spec: configuration 1.4, compaction A9, C3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["RuleError", "ThresholdRule", "read_rule"]

_MODEL_SCORE, _SESSION_SCORE, _WINDOW_SCORE = 100, 50, 20
_MATCHERS = ("model", "sessionPattern", "modelContextWindowMin", "modelContextWindowMax")
_FIELDS = ("name", "match", "contextThreshold", "freshTailCount", "leafChunkTokens")


class RuleError(Exception):
    """What is wrong with a rule, and where in it."""


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """A rule of ``contextThresholdOverrides``; what is None is not asked for, or not set.

    Attributes
    ----------
    model
        ``provider/model`` or a bare model, compared as it stands.
    session_pattern
        A glob over the session key.
    window_min, window_max
        Inclusive bounds of the model's context window, in tokens.
    context_threshold
        Fraction of the budget.
    fresh_tail_count, leaf_chunk_tokens
        Set along with it.
    """

    context_threshold: float
    name: str | None = None
    model: str | None = None
    session_pattern: str | None = None
    window_min: int | None = None
    window_max: int | None = None
    fresh_tail_count: int | None = None
    leaf_chunk_tokens: int | None = None

    @property
    def specificity(self) -> int:
        """How particular the rule is; the highest that matches wins.

        >>> ThresholdRule(0.2, model="gpt-5.5").specificity
        100
        """
        scores = (
            (self.model, _MODEL_SCORE),
            (self.session_pattern, _SESSION_SCORE),
            (self.window_min, _WINDOW_SCORE),
            (self.window_max, _WINDOW_SCORE),
        )
        return sum(score for matcher, score in scores if matcher is not None)


def read_rule(value: object, at: str) -> ThresholdRule:
    """Return the rule of one object; `at` is its place, for messages.

    Raises
    ------
    RuleError
        It is no such object.
    """
    if isinstance(value, ThresholdRule):
        return value
    rule = _object(value, at, _FIELDS)
    match = _object(rule.get("match"), f"{at}.match", _MATCHERS)
    if not match:
        raise RuleError(f"{at}.match must have one of {', '.join(_MATCHERS)}")
    low = _positive(match, "modelContextWindowMin", f"{at}.match")
    high = _positive(match, "modelContextWindowMax", f"{at}.match")
    if low is not None and high is not None and low > high:
        raise RuleError(f"{at}.match: modelContextWindowMin is above modelContextWindowMax")
    return ThresholdRule(
        context_threshold=_fraction(rule.get("contextThreshold"), at),
        name=_text(rule, "name", at),
        model=_text(match, "model", f"{at}.match"),
        session_pattern=_text(match, "sessionPattern", f"{at}.match"),
        window_min=low,
        window_max=high,
        fresh_tail_count=_positive(rule, "freshTailCount", at),
        leaf_chunk_tokens=_positive(rule, "leafChunkTokens", at),
    )


def _object(value: object, at: str, allowed: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RuleError(f"{at} must be an object")
    unknown = [str(name) for name in value if name not in allowed]
    if unknown:
        raise RuleError(f"{at}.{unknown[0]} is unknown; it may have {', '.join(allowed)}")
    return value


def _text(holder: Mapping[str, Any], name: str, at: str) -> str | None:
    if name not in holder:
        return None
    text = holder[name]
    if not isinstance(text, str) or not text.strip():
        raise RuleError(f"{at}.{name} must be a text that is not empty")
    return text.strip()


def _positive(holder: Mapping[str, Any], name: str, at: str) -> int | None:
    if name not in holder:
        return None
    number = holder[name]
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise RuleError(f"{at}.{name} must be a positive integer")
    return number


def _fraction(value: object, at: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= 1:  # type: ignore[arg-type, operator]
        raise RuleError(f"{at}.contextThreshold must be a number from 0 to 1")
    return float(value)  # type: ignore[arg-type]
