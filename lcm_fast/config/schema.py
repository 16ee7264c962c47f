"""Every documented configuration key in one table: name, kind, default, range, meaning, variable.

The single source for resolving, for messages and for what `config` prints. Must not read files or
the environment (spec: configuration 1.3; decision 9).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

__all__ = [
    "EFFECTIVE_KEYS",
    "KEYS",
    "OBJECTS",
    "Key",
    "Kind",
    "key_for_name",
    "nearest_name",
    "snake_case",
]

Kind = Literal[
    "boolean", "integer", "number", "string", "path", "zone", "list", "choice", "providers", "rules"
]


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key.

    Attributes
    ----------
    name
        As documented; a sub-key of an object is named ``object.sub``.
    default
        None where nothing is set or the default is derived at run time.
    minimum, maximum
        Inclusive range of a number.
    env
        The environment variable that sets it, or None.
    effective
        Whether this version acts on it; the others are checked, accepted and reported.
    alias_of
        The key this older name stands for.
    deprecated
        Accepted for old configurations, and without effect for good.
    """

    name: str
    kind: Kind
    default: Any
    doc: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    env: str | None = None
    effective: bool = False
    alias_of: str | None = None
    deprecated: bool = False

    @property
    def expected(self) -> str:
        """Say in words which values are allowed, to complete "must be ..."."""
        match self.kind:
            case "boolean":
                return "true or false (also 1/0, yes/no, on/off)"
            case "integer" | "number":
                return self._expected_number()
            case "choice":
                return "one of " + ", ".join(self.choices)
        return _EXPECTED[self.kind]

    def _expected_number(self) -> str:
        what = "an integer" if self.kind == "integer" else "a number"
        if self.maximum is not None:
            return f"{what} from {self.minimum:g} to {self.maximum:g}"
        return f"{what} of at least {self.minimum:g}"


_EXPECTED: dict[Kind, str] = {
    "string": "a text",
    "path": "a path that is not empty",
    "zone": "an IANA time zone such as Europe/Berlin",
    "list": "a list of texts",
    "providers": 'a list of {"provider", "model"}, or provider/model,... in the environment',
    "rules": "a list of {match, contextThreshold, ...} objects",
}

_TAGS = ("active_memory_plugin", "relevant-memories", "relevant_memories", "hindsight_memories")
_COUNTERS = ("auto", "o200k_base", "cl100k_base", "calibrated", "documented")
_ROTATION = ("rotate", "warn", "off")
_RETIRED = "Had to do with prompt caches; compaction no longer looks at them."


def _on_off(name: str, default: bool, doc: str) -> Key:
    return Key(name, "boolean", default, doc)


def _integer(name: str, default: int | None, minimum: int, doc: str) -> Key:
    return Key(name, "integer", default, doc, minimum)


def _number(name: str, default: float, low: float, high: float | None, doc: str) -> Key:
    return Key(name, "number", default, doc, low, high)


def _choice(name: str, choices: tuple[str, ...], doc: str) -> Key:
    return Key(name, "choice", choices[0], doc, choices=choices)


def _text(name: str, doc: str) -> Key:
    return Key(name, "string", "", doc)


_ACTIVE = (
    _on_off("enabled", True, "Whether anything is stored, compacted or assembled."),
    Key("databasePath", "path", None, "The SQLite file; default lcm.db in the state directory."),
    Key("timezone", "zone", None, "Zone in which times are shown; default the system's."),
    Key(
        "stripInjectedContextTags", "list", _TAGS, "XML tags whose blocks no summary is made from."
    ),
    _number("contextThreshold", 0.75, 0, 1, "Fraction of the budget that compaction keeps to."),
    _integer("freshTailCount", 64, 1, "Newest messages that are kept as they are."),
    _integer(
        "freshTailMaxTokens",
        None,
        0,
        "Token cap of the fresh tail; the newest message always stays.",
    ),
    _integer("leafChunkTokens", 20_000, 1, "Most source tokens of one leaf summary."),
    _integer("leafTargetTokens", 2_400, 1, "Tokens a leaf summary aims at."),
    _integer("condensedTargetTokens", 2_000, 1, "Tokens a condensed summary aims at."),
    _integer("leafMinFanout", 8, 2, "Fewest leaf summaries that are condensed into one."),
    _integer("condensedMinFanout", 4, 2, "Fewest deeper summaries that are condensed into one."),
    _integer("condensedMinFanoutHard", 2, 2, "Fewest of either kind under pressure."),
    _integer(
        "sweepMaxDepth", 1, -1, "Deepest routine condensation; 0 leaves only, -1 without limit."
    ),
    _integer(
        "summaryPrefixTargetTokens", None, 1, "Tokens of summaries that are too many; else derived."
    ),
    _integer("maxSweepIterations", 12, 1, "Most passes of one sweep."),
    _integer("sweepDeadlineMs", 120_000, 1, "Milliseconds after which a sweep starts no new pass."),
    _integer("compactUntilUnderDeadlineMs", 300_000, 1, "Milliseconds for one compaction."),
    _integer("maxAssemblyTokenBudget", None, 1000, "Cap on every token budget."),
    _on_off("promptAwareEviction", False, "Whether the prompt decides which old items are kept."),
    _on_off("stubLargeToolPayloads", False, "Whether old tool results that are large are stubs."),
    _number("evictionStep", 0.1, 0, 0.5, "Fraction of the budget freed at once when items go."),
    _choice("tokenCounter", _COUNTERS, "What counts tokens; auto is o200k_base if it can be."),
    Key("tokenVocabularyDir", "path", None, "Where o200k_base.tiktoken and others are looked for."),
    _on_off("usageCalibration", True, "Whether reported prompt tokens correct counts, by model."),
    _text("customInstructions", "Text added to every summarisation prompt."),
    _number(
        "summaryMaxOverageFactor", 3.0, 1, None, "Multiple of its target at which a summary is cut."
    ),
    _integer("fallbackMaxTokens", 512, 64, "Tokens of a fallback summary."),
    Key(
        "contextThresholdOverrides",
        "rules",
        (),
        "Thresholds for given models, windows or sessions.",
    ),
    _choice(
        "proactiveThresholdCompactionMode", ("deferred", "inline"), "When due compaction runs."
    ),
    _text("summaryProvider", "Provider of a bare summaryModel."),
    _text("summaryModel", "Model that summarises; offline extraction when empty."),
    _text("summaryBaseUrl", "Address of an OpenAI-compatible endpoint of summaryProvider."),
    _text("summaryCommand", "Program that summarises: prompt on stdin, text on stdout."),
    _integer("summaryConcurrency", 4, 1, "Chunks of a long backlog summarised side by side."),
    Key("fallbackProviders", "providers", (), "Models tried when the first fails."),
    _on_off("enableSummaryThinking", True, "Whether summarisers may reason."),
    _integer("summaryTimeoutMs", 60_000, 1, "Milliseconds of one summariser call."),
    _integer("circuitBreakerThreshold", 5, 1, "Refused calls in a row that pause summarising."),
    _integer("circuitBreakerCooldownMs", 1_800_000, 1, "Milliseconds of that pause."),
    _integer("summaryCallWindowMs", 600_000, 1, "Window in which calls are counted."),
    _integer("summaryMaxCallsPerWindow", 24, 1, "Most calls in that window."),
    _integer("summarySpendBackoffMs", 1_800_000, 1, "Milliseconds of pause when it is full."),
    Key(
        "largeFilesDir",
        "path",
        None,
        "Where large payloads are kept; default lcm-files beside the database.",
    ),
    Key("ignoreSessionPatterns", "list", (), "Session keys that are not touched at all."),
    Key(
        "statelessSessionPatterns",
        "list",
        (),
        "Session keys that are read from and never written to.",
    ),
    _on_off("skipStatelessSessions", True, "Whether statelessSessionPatterns is obeyed."),
    _on_off("pruneHeartbeatOk", False, "Whether heartbeat turns are kept out of the view."),
    _integer(
        "bootstrapMaxTokens", None, 1, "Tokens of its parent's history a fork shows; else derived."
    ),
    _integer("replayFloodThresholdExternal", 3, 1, "User messages repeated in a second: a replay."),
    _integer("replayFloodThresholdInternal", 32, 1, "The same for the other roles."),
    _integer("largeFileThresholdTokens", 25_000, 1000, "Tokens from which a payload is a file."),
)

_LATER = (
    _choice("hostFallbackMode", ("error", "capture-only"), "What a host does without us."),
    _integer("newSessionRetainDepth", 2, -1, "Depth of summaries that survive /new; -1 keeps all."),
    _on_off("transcriptGcEnabled", False, "Whether maintenance rewrites transcripts."),
    _text("largeFileSummaryProvider", "Provider of a bare largeFileSummaryModel."),
    _text("largeFileSummaryModel", "Model that summarises large files."),
    _text("expansionProvider", "Provider of a bare expansionModel."),
    _text("expansionModel", "Model that answers expansion queries."),
    _integer("maxExpandTokens", 4_000, 1, "Tokens of an answer."),
    _integer("delegationTimeoutMs", 120_000, 1, "Milliseconds of a delegated query."),
    _on_off("autoRotateSessionFiles.enabled", True, "Whether large transcripts are rotated."),
    _on_off(
        "autoRotateSessionFiles.createBackups", False, "Whether the whole file is kept as well."
    ),
    _integer("autoRotateSessionFiles.sizeBytes", 2_097_152, 1, "Size from which it is due."),
    _choice("autoRotateSessionFiles.startup", _ROTATION, "What is done at start."),
    _choice("autoRotateSessionFiles.runtime", _ROTATION, "What is done after a turn."),
    _on_off("independentLogFile.enabled", True, "Whether a log file of our own is written."),
    _text("independentLogFile.file", "Its path; dated when empty."),
    _integer("independentLogFile.maxFileBytes", 104_857_600, 1, "Size at which it is closed."),
)

_WITHOUT_EFFECT = (
    _on_off("cacheAwareCompaction.enabled", True, _RETIRED),
    _integer("cacheAwareCompaction.cacheTTLSeconds", 300, 1, _RETIRED),
    _integer("cacheAwareCompaction.maxColdCacheCatchupPasses", 2, 1, _RETIRED),
    _number("cacheAwareCompaction.hotCachePressureFactor", 4.0, 1, None, _RETIRED),
    _number("cacheAwareCompaction.hotCacheBudgetHeadroomRatio", 0.2, 0, 0.95, _RETIRED),
    _integer("cacheAwareCompaction.coldCacheObservationThreshold", 3, 1, _RETIRED),
    _number("cacheAwareCompaction.criticalBudgetPressureRatio", 0.9, 0, 1, _RETIRED),
    _on_off("dynamicLeafChunkTokens.enabled", True, _RETIRED),
    _integer("dynamicLeafChunkTokens.max", None, 1, _RETIRED),
)

# Variables whose names do not follow from the key's.
_ENV: dict[str, str | None] = {
    "timezone": "TZ",
    "contextThresholdOverrides": None,
    "dbPath": None,
    "largeFileTokenThreshold": None,
    "promptAwareEviction": "LCM_PROMPT_AWARE_EVICTION_ENABLED",
    "largeFileThresholdTokens": "LCM_LARGE_FILE_TOKEN_THRESHOLD",
    "independentLogFile.enabled": "LCM_LOG_FILE_ENABLED",
    "independentLogFile.file": "LCM_LOG_FILE",
    "independentLogFile.maxFileBytes": "LCM_LOG_MAX_FILE_BYTES",
    "cacheAwareCompaction.cacheTTLSeconds": "LCM_CACHE_TTL_SECONDS",
    "cacheAwareCompaction.maxColdCacheCatchupPasses": "LCM_MAX_COLD_CACHE_CATCHUP_PASSES",
    "cacheAwareCompaction.hotCachePressureFactor": "LCM_HOT_CACHE_PRESSURE_FACTOR",
    "cacheAwareCompaction.hotCacheBudgetHeadroomRatio": "LCM_HOT_CACHE_BUDGET_HEADROOM_RATIO",
    "cacheAwareCompaction.coldCacheObservationThreshold": "LCM_COLD_CACHE_OBSERVATION_THRESHOLD",
    "cacheAwareCompaction.criticalBudgetPressureRatio": "LCM_CRITICAL_BUDGET_PRESSURE_RATIO",
}
_ALIASES = {
    "dbPath": "databasePath",
    "incrementalMaxDepth": "sweepMaxDepth",
    "largeFileTokenThreshold": "largeFileThresholdTokens",
}


def snake_case(name: str) -> str:
    """Return a key's name as Python spells it.

    >>> snake_case("autoRotateSessionFiles.sizeBytes")
    'auto_rotate_session_files_size_bytes'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\.", "_", name).lower()


def _variable(name: str) -> str | None:
    return _ENV[name] if name in _ENV else "LCM_" + snake_case(name).upper()


def _table() -> dict[str, Key]:
    keys = [replace(key, effective=True) for key in _ACTIVE]
    keys += _LATER
    keys += [replace(key, deprecated=True) for key in _WITHOUT_EFFECT]
    table = {key.name: replace(key, env=_variable(key.name)) for key in keys}
    for name, target in _ALIASES.items():
        doc = f"Older name of {target}."
        table[name] = replace(
            table[target], name=name, env=_variable(name), doc=doc, alias_of=target
        )
    return table


KEYS: Mapping[str, Key] = MappingProxyType(_table())
EFFECTIVE_KEYS: tuple[Key, ...] = tuple(
    key for key in KEYS.values() if key.effective and not key.alias_of
)
OBJECTS = frozenset(name.split(".")[0] for name in KEYS if "." in name)
_BY_SPELLING = {snake_case(name): name for name in KEYS}


def key_for_name(name: str) -> Key | None:
    """Return the key of a name in either spelling (``freshTailCount``, ``fresh_tail_count``)."""
    return KEYS.get(name) or KEYS.get(_BY_SPELLING.get(name, ""))


def nearest_name(name: str) -> str | None:
    """Return the key whose name looks most like `name`, or None when none does.

    >>> nearest_name("freshTailSize"), nearest_name("zzz")
    ('freshTailCount', None)
    """
    spellings = {known.lower(): known for known in [*KEYS, *OBJECTS]}
    plain = name.lower().replace("_", "").replace("-", "")
    close = difflib.get_close_matches(plain, spellings, n=1)
    return spellings[close[0]] if close else None
