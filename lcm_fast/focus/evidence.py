"""Find the messages behind summaries that have to do with a task.

As a reader would: the summaries that say most of it are opened first, and of what is behind them
the nearest messages are taken, until there are enough. Reads; writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..assembly.relevance import spread_scores
from ..assembly.term_index import TermIndex
from ..store import Store, StoredSummary

__all__ = ["Evidence", "find_evidence"]

# Messages are looked at for so many times the tokens that are taken.
_LOOKED_AT = 4


@dataclass(frozen=True, slots=True)
class Evidence:
    """Messages that have to do with a task, by the summary that stands for them.

    Attributes
    ----------
    message_ids
        In order, by summary id; only summaries that have some.
    opened
        Summaries whose messages were looked at.
    irrelevant
        Summaries that share no term with the task.
    """

    message_ids: dict[str, list[int]] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    irrelevant: list[str] = field(default_factory=list)


def find_evidence(
    store: Store, task: str, summaries: Sequence[StoredSummary], limit_tokens: int
) -> Evidence:
    """Return the messages behind summaries that have most to do with a task.

    Parameters
    ----------
    limit_tokens
        Of all that are returned.

    Complexity: linear in the summaries, and in the messages of `_LOOKED_AT` times the limit.
    """
    scores = _scores(task, [one.content for one in summaries])
    nearest_first = [index for index in np.argsort(-scores, kind="stable") if scores[index] > 0]
    opened: list[str] = []
    left = _LOOKED_AT * limit_tokens
    for index in nearest_first:
        if left <= 0:
            break
        opened.append(summaries[index].summary_id)
        left -= summaries[index].source_message_token_count
    return Evidence(
        message_ids=_nearest(store, task, opened, limit_tokens),
        opened=opened,
        irrelevant=[
            one.summary_id for one, score in zip(summaries, scores, strict=True) if score <= 0
        ],
    )


def _nearest(
    store: Store, task: str, opened: Sequence[str], limit_tokens: int
) -> dict[str, list[int]]:
    messages = store.messages_below(opened) if opened else []
    if not messages:
        return {}
    tokens = np.array([tokens for _, _, tokens, _ in messages], dtype=np.int64)
    scores = spread_scores(_scores(task, [text for *_, text in messages]), tokens)
    taken: list[int] = []
    left = limit_tokens
    for index in np.argsort(-scores, kind="stable").tolist():
        if scores[index] > 0 and tokens[index] <= left:
            taken.append(index)
            left -= int(tokens[index])
    found: dict[str, list[int]] = {}
    for index in sorted(taken):
        summary_id, message_id, _, _ = messages[index]
        found.setdefault(summary_id, []).append(message_id)
    return found


def _scores(task: str, texts: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    index = TermIndex()
    index.add(range(len(texts)), texts)
    return index.scores(task, np.arange(len(texts)))
