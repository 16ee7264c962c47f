"""Lay a focus brief over a frontier: it stands in the place of the summaries it covers (spec W6).

Neither summaries nor context items are changed. What a brief covers is worked out once for each
revision of the view.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..assembly.pieces import CountTokens, brief_tokens
from ..store import SUMMARY, FocusBrief, Frontier, Store
from ..store.focus import covered_by
from ..store.frontier import Int64

__all__ = ["Overlay", "load_overlay"]


@dataclass(frozen=True, slots=True)
class Overlay:
    """A brief and the summaries it covers in one revision of a view.

    Attributes
    ----------
    brief
        None: nothing is covered.
    covered : int64[n]
        Ordinals of the summaries.
    tokens
        Of the brief as a model is sent it.
    """

    revision: int
    brief: FocusBrief | None = None
    covered: Int64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    tokens: int = 0

    def over(self, frontier: Frontier) -> tuple[Frontier, FocusBrief | None]:
        """Return a frontier with the brief in it, and the brief; None where it covers nothing.

        Complexity: linear in the frontier where there is a brief.
        """
        if self.brief is None or not np.any(
            np.isin(self.covered, frontier.ordinals[frontier.kinds == SUMMARY])
        ):
            return frontier, None
        brief_id = self.brief.brief_id
        shown = frontier.with_brief(self.covered, brief_id=brief_id, tokens=self.tokens)
        return shown, self.brief


def load_overlay(
    store: Store, conversation_id: int, revision: int, count_tokens: CountTokens
) -> Overlay:
    """Return the overlay of a view.

    Complexity: one row where there is no brief; else linear in the summaries of the view.
    """
    brief = store.active_brief(conversation_id)
    if brief is None or not brief.content.strip():
        return Overlay(revision)
    covered = covered_by(brief, store.reach_of_view(conversation_id))
    ordinals = np.array([one.ordinal for one in covered], dtype=np.int64)
    return Overlay(revision, brief, ordinals, brief_tokens(brief, count_tokens))
