"""What a compaction would do: the same sweeps over the same arrays, with nobody asked.

Each summary is taken to be as long as it is asked to be. Reads no item, writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from .passes import Passes
from .planner import Plan

__all__ = ["CompactionPlan", "PlannedPass", "Rehearsal"]


@dataclass(frozen=True, slots=True)
class PlannedPass:
    """A summary that would be made.

    Attributes
    ----------
    depth
        0 is a leaf, made of messages; deeper ones are made of summaries.
    items
        How many messages or summaries it would replace.
    input_tokens
        What the summariser would be given to read, about.
    output_tokens
        The length that is asked for, its frame included.
    """

    depth: int
    first_ordinal: int
    last_ordinal: int
    items: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a compaction would do, and about what would be left.

    Attributes
    ----------
    tokens_before, tokens_after
        Of the frontier.
    """

    tokens_before: int
    tokens_after: int
    target_tokens: int
    passes: tuple[PlannedPass, ...]

    @property
    def input_tokens(self) -> int:
        """Tokens that the summariser would read, about."""
        return sum(planned.input_tokens for planned in self.passes)

    @property
    def output_tokens(self) -> int:
        """Tokens that it would write."""
        return sum(planned.output_tokens for planned in self.passes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, with the sums."""
        sums = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        return {**asdict(self), "passes": [asdict(planned) for planned in self.passes], **sums}


@dataclass(slots=True)
class Rehearsal(Passes):
    """A compaction that is only imagined."""

    planned: list[PlannedPass] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """Nothing stops it but the limits."""
        return False

    def attempt(self, plan: Plan) -> None:
        """Put a summary of the expected length in the place of what the plan names."""
        self.passes += 1
        self.published += 1
        tokens = self.maker(plan).expected_wire_tokens()
        self.planned.append(
            PlannedPass(
                depth=plan.depth,
                first_ordinal=plan.first_ordinal,
                last_ordinal=plan.last_ordinal,
                items=plan.item_count,
                input_tokens=plan.tokens,
                output_tokens=tokens,
            )
        )
        self.frontier = plan.replaced_by(
            self.frontier,
            summary_id=f"planned {self.passes}",
            tokens=tokens,
            revision=self.frontier.revision,
        )

    def attempt_side_by_side(self, plans: Iterable[Plan], concurrency: int) -> None:
        """Attempt plans one after the other: nothing is waited for."""
        for plan in plans:
            self.attempt(plan)
