"""The resolved configuration: typed values of the keys that have an effect, and where each came
from.

Must not read files or the environment; that is `resolve`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .overrides import ThresholdRule
from .schema import EFFECTIVE_KEYS, KEYS, Key, snake_case
from .values import parse_value

__all__ = ["Config", "Note", "default_database_path", "state_directory"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the configuration its owner should know, and that is no error."""

    code: str
    detail: str
    hint: str

    def to_dict(self) -> dict[str, str]:
        """Return ``{"code", "detail", "hint"}``."""
        return {"code": self.code, "detail": self.detail, "hint": self.hint}


def state_directory(environ: Mapping[str, str]) -> Path:
    """Return the host's state directory: ``OPENCLAW_STATE_DIR``, else ``~/.openclaw``.

    Raises
    ------
    ConfigError
        Neither the variable nor a home directory is known.
    """
    named = environ.get("OPENCLAW_STATE_DIR", "").strip()
    try:
        return Path(named or "~/.openclaw").expanduser()
    except RuntimeError as error:
        raise ConfigError(
            f"no state directory: {error}", hint="set OPENCLAW_STATE_DIR or databasePath"
        ) from error


def default_database_path() -> Path:
    """Return where the database is when nothing says otherwise."""
    return state_directory({}) / "lcm.db"


_LEAST_BOOTSTRAP_TOKENS = 6000


def _default(name: str) -> Any:
    return KEYS[name].default


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of an engine. ``Config()`` holds the documented defaults; the environment is not
    read.

    Every field is the documented key in Python's spelling. Values are checked on construction.

    Attributes
    ----------
    sources
        Where each value came from, by documented key: ``"default"``, ``"env LCM_..."``, ``"file
        PATH"`` or ``"argument"``.
    notes
        Keys that were set and are old names, deprecated or without effect in this version.

    Raises
    ------
    ConfigError
        A value is of the wrong kind or out of range.
    """

    enabled: bool = _default("enabled")
    database_path: Path = field(default_factory=default_database_path)
    context_threshold: float = _default("contextThreshold")
    fresh_tail_count: int = _default("freshTailCount")
    fresh_tail_max_tokens: int | None = _default("freshTailMaxTokens")
    leaf_chunk_tokens: int = _default("leafChunkTokens")
    leaf_target_tokens: int = _default("leafTargetTokens")
    condensed_target_tokens: int = _default("condensedTargetTokens")
    leaf_min_fanout: int = _default("leafMinFanout")
    condensed_min_fanout: int = _default("condensedMinFanout")
    condensed_min_fanout_hard: int = _default("condensedMinFanoutHard")
    sweep_max_depth: int = _default("sweepMaxDepth")
    summary_prefix_target_tokens: int | None = _default("summaryPrefixTargetTokens")
    max_sweep_iterations: int = _default("maxSweepIterations")
    sweep_deadline_ms: int = _default("sweepDeadlineMs")
    compact_until_under_deadline_ms: int = _default("compactUntilUnderDeadlineMs")
    max_assembly_token_budget: int | None = _default("maxAssemblyTokenBudget")
    prompt_aware_eviction: bool = _default("promptAwareEviction")
    stub_large_tool_payloads: bool = _default("stubLargeToolPayloads")
    eviction_step: float = _default("evictionStep")
    token_counter: str = _default("tokenCounter")
    token_vocabulary_dir: Path | None = None
    usage_calibration: bool = _default("usageCalibration")
    summary_max_overage_factor: float = _default("summaryMaxOverageFactor")
    fallback_max_tokens: int = _default("fallbackMaxTokens")
    context_threshold_overrides: tuple[ThresholdRule, ...] = _default("contextThresholdOverrides")
    proactive_threshold_compaction_mode: str = _default("proactiveThresholdCompactionMode")
    summary_provider: str = _default("summaryProvider")
    summary_model: str = _default("summaryModel")
    summary_base_url: str = _default("summaryBaseUrl")
    summary_command: str = _default("summaryCommand")
    summary_concurrency: int = _default("summaryConcurrency")
    fallback_providers: tuple[tuple[str, str], ...] = _default("fallbackProviders")
    enable_summary_thinking: bool = _default("enableSummaryThinking")
    summary_timeout_ms: int = _default("summaryTimeoutMs")
    circuit_breaker_threshold: int = _default("circuitBreakerThreshold")
    circuit_breaker_cooldown_ms: int = _default("circuitBreakerCooldownMs")
    summary_call_window_ms: int = _default("summaryCallWindowMs")
    summary_max_calls_per_window: int = _default("summaryMaxCallsPerWindow")
    summary_spend_backoff_ms: int = _default("summarySpendBackoffMs")
    custom_instructions: str = _default("customInstructions")
    timezone: str | None = _default("timezone")
    strip_injected_context_tags: tuple[str, ...] = _default("stripInjectedContextTags")
    ignore_session_patterns: tuple[str, ...] = _default("ignoreSessionPatterns")
    stateless_session_patterns: tuple[str, ...] = _default("statelessSessionPatterns")
    skip_stateless_sessions: bool = _default("skipStatelessSessions")
    prune_heartbeat_ok: bool = _default("pruneHeartbeatOk")
    bootstrap_max_tokens: int | None = _default("bootstrapMaxTokens")
    replay_flood_threshold_external: int = _default("replayFloodThresholdExternal")
    replay_flood_threshold_internal: int = _default("replayFloodThresholdInternal")
    large_files_dir: Path | None = None
    large_file_threshold_tokens: int = _default("largeFileThresholdTokens")
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        sources: dict[str, str] = {}
        for key in EFFECTIVE_KEYS:
            name = snake_case(key.name)
            value = getattr(self, name)
            source = self.sources.get(key.name, "default")
            if source == "default" and not _is_default(key, value):
                source = "argument"
            sources[key.name] = source
            if value is not None or key.default is not None or key.name == "databasePath":
                object.__setattr__(self, name, parse_value(key, value, source))
        object.__setattr__(self, "sources", sources)

    @property
    def bootstrap_tokens(self) -> int:
        """Tokens of its parent's history that a forked session shows (spec: storage 1.9).

        >>> Config().bootstrap_tokens, Config(leaf_chunk_tokens=30_000).bootstrap_tokens
        (6000, 9000)
        """
        derived = max(_LEAST_BOOTSTRAP_TOKENS, 3 * self.leaf_chunk_tokens // 10)
        return self.bootstrap_max_tokens or derived

    def large_files_folder(self, database_path: str) -> Path:
        """Return where large payloads are kept: ``lcm-files`` beside the database unless set."""
        return self.large_files_dir or Path(database_path).parent / "lcm-files"

    def summary_prefix_target(self, budget_tokens: int) -> int:
        """Return how many tokens of summaries are too many for a token budget (spec: compaction
        H7).

        >>> [Config().summary_prefix_target(budget) for budget in (4096, 8192, 32000, 200000)]
        [2000, 3072, 12000, 20000]
        """
        if self.summary_prefix_target_tokens is not None:
            return self.summary_prefix_target_tokens
        threshold_tokens = max(1, math.floor(self.context_threshold * budget_tokens))
        derived = min(self.leaf_chunk_tokens, threshold_tokens // 2)
        return max(self.condensed_target_tokens, derived)


def _is_default(key: Key, value: object) -> bool:
    if key.name != "databasePath":
        return bool(value == key.default)
    try:
        return value == default_database_path()
    except ConfigError:
        return False
