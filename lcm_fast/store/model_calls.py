"""What hosts tell of their model calls, and what their counts of prompts teach about ours.

A prompt holds more than we assemble: the host's own instructions, its tools. That part hardly
changes within a conversation, so the difference between two of its prompts tells how many tokens
the model makes of one of ours (decision 20).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import apsw
import msgspec

__all__ = [
    "NO_FACTS",
    "CallFacts",
    "ModelCalibration",
    "SentPrompt",
    "calibrations",
    "facts_of",
    "in_model_tokens",
    "in_stored_tokens",
    "learn",
    "learnt",
    "note_facts",
    "ratio_of",
]

# A shorter difference says more of what a provider adds to a message than of its tokens.
_LEAST_DIFFERENCE = 500
# A pair outside these bounds differs in something else than our messages.
_LEAST_RATIO, _GREATEST_RATIO = 0.4, 2.5
_LEAST_SAMPLES = 3
_DECAY = 0.98
# A ratio in use stays until it is wrong by so much: each change of it changes every prompt.
_TOLERANCE = 0.03


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """What a model call was sent of a conversation.

    Attributes
    ----------
    stored_tokens
        Of what was stored before the call, as shown, by our count.
    last_ordinal
        Of the context item that was the newest then; what follows it belongs to the turn.
    """

    stored_tokens: int
    last_ordinal: int


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What a host tells of its model calls; None where it did not.

    Attributes
    ----------
    observed_tokens
        Prompt tokens as the provider counted them.
    context_window
        Of the model, in tokens.
    sent
        The prompt that `observed_tokens` are of.
    """

    observed_tokens: int | None = None
    model: str | None = None
    provider: str | None = None
    context_window: int | None = None
    sent: SentPrompt | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the host told nothing."""
        return self == NO_FACTS


NO_FACTS = CallFacts()


class ModelCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens a model makes of one of ours; the fields are the columns.

    Attributes
    ----------
    counter
        Counted ours.
    ratio
        In use: of the model's tokens to ours.
    observed_tokens, counted_tokens
        What the model and we counted for the differences of prompts, older ones weighing less.
    samples
        Differences that were looked at.
    """

    model: str
    counter: str
    ratio: float = 1.0
    observed_tokens: float = 0.0
    counted_tokens: float = 0.0
    samples: int = 0
    updated_at: str


def in_model_tokens(stored_tokens: int, ratio: float) -> int:
    """Return what a model makes of so many of our tokens.

    >>> in_model_tokens(1_000, 1.25), in_model_tokens(0, 1.25)
    (1250, 0)
    """
    return math.ceil(stored_tokens * ratio - 1e-6)


def in_stored_tokens(model_tokens: int, ratio: float) -> int:
    """Return how many of our tokens a model makes at most so many of.

    >>> in_stored_tokens(1_000, 1.25)
    800
    """
    return math.floor(model_tokens / ratio + 1e-6)


def note_facts(db: apsw.Connection, conversation_id: int, facts: CallFacts, now: str) -> None:
    """Remember what the host told of its last model call; what it left out stays."""
    db.execute(
        "INSERT INTO conversation_compaction_telemetry (conversation_id,"
        " last_observed_prompt_token_count, last_api_call_at, provider, model, context_window,"
        " updated_at) VALUES (:id, :observed, :now, :provider, :model, :window, :now)"
        " ON CONFLICT (conversation_id) DO UPDATE SET"
        " last_observed_prompt_token_count ="
        " coalesce(:observed, last_observed_prompt_token_count), last_api_call_at = :now,"
        " provider = coalesce(:provider, provider), model = coalesce(:model, model),"
        " context_window = coalesce(:window, context_window), updated_at = :now",
        {
            "id": conversation_id,
            "observed": facts.observed_tokens,
            "provider": facts.provider,
            "model": facts.model,
            "window": facts.context_window,
            "now": now,
        },
    )


def facts_of(db: apsw.Connection, conversation_id: int) -> CallFacts:
    """Return what the host told of a conversation's model calls."""
    rows = db.execute(
        "SELECT last_observed_prompt_token_count, model, provider, context_window"
        " FROM conversation_compaction_telemetry WHERE conversation_id = ?",
        (conversation_id,),
    )
    return next((CallFacts(*row) for row in rows), NO_FACTS)


def ratio_of(
    db: apsw.Connection, conversation_id: int, counter: str, model: str | None = None
) -> float:
    """Return how many tokens a model, else that of the last call, makes of one of ours."""
    rows = db.execute(
        "SELECT ratio FROM model_calibration WHERE counter = ?1 AND model = coalesce(?2,"
        " (SELECT model FROM conversation_compaction_telemetry WHERE conversation_id = ?3))",
        (counter, model, conversation_id),
    )
    return next((ratio for (ratio,) in rows), 1.0)


def calibrations(db: apsw.Connection) -> list[ModelCalibration]:
    """Return what is known of each model's counts, the one learnt of last first."""
    columns = ", ".join(ModelCalibration.__struct_fields__)
    rows = db.execute(f"SELECT {columns} FROM model_calibration ORDER BY updated_at DESC, model")
    return [_calibration(row) for row in rows]


def learn(
    db: apsw.Connection, conversation_id: int, facts: CallFacts, counter: str, now: str
) -> None:
    """Compare a prompt with an earlier one of its conversation, where the host told enough."""
    if facts.sent is None or facts.observed_tokens is None:
        return
    model = facts.model or facts_of(db, conversation_id).model
    turn_tokens = _tokens_before_answer(db, conversation_id, facts.sent.last_ordinal)
    if model is None or turn_tokens is None:
        return
    observed, counted = facts.observed_tokens, facts.sent.stored_tokens + turn_tokens
    rows = db.execute(
        "SELECT observed_tokens, counted_tokens FROM calibration_anchors"
        " WHERE conversation_id = ? AND model = ? AND counter = ?",
        (conversation_id, model, counter),
    )
    anchor = next(rows, None)
    if anchor is not None and abs(counted - anchor[1]) < _LEAST_DIFFERENCE:
        return
    db.execute(
        "INSERT OR REPLACE INTO calibration_anchors VALUES (?, ?, ?, ?, ?)",
        (conversation_id, model, counter, observed, counted),
    )
    if anchor is not None:
        _add_pair(db, model, counter, observed - anchor[0], counted - anchor[1], now)


def learnt(known: ModelCalibration, observed: int, counted: int) -> ModelCalibration:
    """Return what is known of a model after one more pair of prompts.

    Parameters
    ----------
    observed, counted
        By how many tokens the model, and we, say that the prompts differ; `counted` is not 0.

    Examples
    --------
    >>> known = ModelCalibration(model="m", counter="o200k_base", updated_at="")
    >>> for _ in range(3):
    ...     known = learnt(known, 2_400, 2_000)
    >>> round(known.ratio, 2), known.samples
    (1.2, 3)
    """
    if not _LEAST_RATIO <= observed / counted <= _GREATEST_RATIO:
        return known
    known = msgspec.structs.replace(
        known,
        observed_tokens=known.observed_tokens * _DECAY + abs(observed),
        counted_tokens=known.counted_tokens * _DECAY + abs(counted),
        samples=known.samples + 1,
    )
    found = known.observed_tokens / known.counted_tokens
    is_off = abs(found / known.ratio - 1) > _TOLERANCE
    if known.samples < _LEAST_SAMPLES or not is_off:
        return known
    return msgspec.structs.replace(known, ratio=found)


def _add_pair(
    db: apsw.Connection, model: str, counter: str, observed: int, counted: int, now: str
) -> None:
    columns = ModelCalibration.__struct_fields__
    rows = db.execute(
        f"SELECT {', '.join(columns)} FROM model_calibration WHERE model = ? AND counter = ?",
        (model, counter),
    )
    new = ModelCalibration(model=model, counter=counter, updated_at=now)
    known = next((_calibration(row) for row in rows), new)
    after = learnt(known, observed, counted)
    if after is known:
        return
    db.execute(
        f"INSERT OR REPLACE INTO model_calibration ({', '.join(columns)})"
        f" VALUES ({', '.join('?' * len(columns))})",
        msgspec.structs.astuple(msgspec.structs.replace(after, updated_at=now)),
    )


def _calibration(row: tuple[object, ...]) -> ModelCalibration:
    return msgspec.convert(
        dict(zip(ModelCalibration.__struct_fields__, row, strict=True)), ModelCalibration
    )


def _tokens_before_answer(
    db: apsw.Connection, conversation_id: int, last_ordinal: int
) -> int | None:
    """Return the tokens of a turn up to the last answer of the model, for which the prompt was;
    None where it holds none."""
    rows = db.execute(
        "SELECT role, wire_tokens FROM context_items WHERE conversation_id = ? AND ordinal > ?"
        " ORDER BY ordinal",
        (conversation_id, last_ordinal),
    )
    tokens, before = 0, None
    for role, wire_tokens in rows:
        if role == "assistant":
            before = tokens
        tokens += wire_tokens
    return before
