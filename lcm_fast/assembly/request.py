"""What an assembly is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..store import FocusBrief, in_stored_tokens
from ..transcripts import shapes
from ..types import Shape
from .selection import Ranking, Room

__all__ = ["NOTHING_LIVE", "NOTHING_SHOWN", "AssemblyRequest", "LiveMessages", "Shown"]

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class LiveMessages:
    """What a host holds of a conversation.

    Attributes
    ----------
    bodies
        Its messages, in order.
    stored
        Message ids of those that the record holds, by position.
    """

    bodies: Sequence[dict[str, Any]] = ()
    stored: Mapping[int, int] = field(default_factory=dict)

    @property
    def newest_prompt(self) -> str | None:
        """What the user said last, None where the host holds nothing of the user."""
        users = [at for at in range(len(self.bodies)) if self.is_users(at)]
        return shapes.content_of(self.bodies[users[-1]]) if users else None

    def is_users(self, position: int) -> bool:
        """Tell whether a message is the user's, and not one that only brings tool results."""
        return shapes.role_of(self.bodies[position]) == "user"

    def is_newer(self, position: int) -> bool:
        """Tell whether a message comes after all that the record holds of the list."""
        return position > max(self.stored, default=-1)


NOTHING_LIVE = LiveMessages()


@dataclass(frozen=True, slots=True)
class Shown:
    """What an assembly showed.

    Attributes
    ----------
    digests
        Of its messages.
    ordinals
        Of their context items.
    stored_tokens
        Of what was stored of it, not of what only the host had.
    """

    digests: Sequence[int] = ()
    ordinals: Sequence[int] = ()
    stored_tokens: int = 0


NOTHING_SHOWN = Shown()


@dataclass(frozen=True, slots=True)
class AssemblyRequest:
    """What an assembly is asked for.

    Attributes
    ----------
    budget_tokens
        Size of the whole output, in tokens of the model.
    token_ratio
        Tokens the model makes of one of ours; all that follows is in ours.
    prompt
        What will follow the output; None: nothing will.
    prompt_tokens
        Kept free of the budget for it.
    eviction_step
        Share of the budget that is freed at once when items must be left out.
    stub_threshold_tokens
        From how many tokens on tool results before the fresh tail are stubs; None: none are.
    form
        That the messages are sent in; None: each as it came.
    previous
        What this process' last assembly of the conversation showed.
    brief
        That stands in the frontier as its `BRIEF`; None without.
    rank
        Tells how much each item has to do with the prompt, where that is to decide.
    live
        What the host holds of the conversation; what the record lacks of it is shown as well.
    """

    budget_tokens: int
    prompt: str | None
    prompt_tokens: int
    fresh_tail_count: int
    fresh_tail_max_tokens: int | None
    eviction_step: float
    stub_threshold_tokens: int | None
    timezone: str
    form: Shape | None
    count_tokens: CountTokens
    token_ratio: float = 1.0
    previous: Shown = NOTHING_SHOWN
    live: LiveMessages = NOTHING_LIVE
    brief: FocusBrief | None = None
    rank: Callable[[], Ranking] | None = None

    @property
    def _budget(self) -> int:
        return in_stored_tokens(self.budget_tokens, self.token_ratio)

    @property
    def available_tokens(self) -> int:
        """Tokens the output may take."""
        return self._budget - self.prompt_tokens

    def room_beside(self, tokens: int) -> Room:
        """Return what selection may fill when so much is taken."""
        return Room(
            budget_tokens=max(0, self.available_tokens - tokens),
            step_tokens=int(self.eviction_step * self._budget),
            fresh_tail_count=self.fresh_tail_count,
            fresh_tail_max_tokens=self.fresh_tail_max_tokens,
        )
