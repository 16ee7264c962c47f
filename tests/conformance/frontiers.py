"""Conversations whose tokens are set by hand: a token is one mark ``¤``, all else is free.

So the numbers of the specification's cases hold as they stand, frames and headers left aside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from conftest import ticking_clock

import lcm_fast
from lcm_fast.engine import DEFAULT_SESSION_KEY, Engine
from lcm_fast.store import Address, Frontier, NewSummary, Store, StoredSummary
from lcm_fast.summarize import SummaryRequest, as_summarizer

ADDRESS = Address(session_key=DEFAULT_SESSION_KEY)


def count_marks(text: str) -> int:
    """The token counter of these cases."""
    return text.count("¤")


class Recorder:
    """A summariser that answers with a fixed number of tokens and remembers what it was asked."""

    def __init__(self, tokens: int = 60) -> None:
        self._tokens = tokens
        self.requests: list[SummaryRequest] = []

    def __call__(self, request: SummaryRequest) -> str:
        self.requests.append(request)
        return f"S{len(self.requests)}" + "¤" * self._tokens


def open_engine(
    database: Path,
    summarise: Callable[[SummaryRequest], str],
    *,
    monotonic: Callable[[], float] = lambda: 0.0,
    **config: object,
) -> Engine:
    """An engine that counts marks; time stands still unless a clock is given."""
    return Engine(
        Store.open(database),
        lcm_fast.Config(timezone="UTC", **config),  # type: ignore[arg-type]
        as_summarizer(summarise),
        count_marks,
        now=ticking_clock(),
        monotonic=monotonic,
    )


def ingest_turns(engine: Engine, count: int, tokens: int) -> None:
    """Store alternating user and assistant messages of so many tokens each."""
    engine.ingest(
        [
            {"role": ("user", "assistant")[n % 2], "content": f"turn {n} " + "¤" * tokens}
            for n in range(count)
        ]
    )


def frontier_of(engine: Engine) -> Frontier:
    """The frontier as it is stored."""
    loaded = engine.store.frontier(ADDRESS, {})
    assert loaded is not None
    return loaded[1]


def depths_of(engine: Engine) -> list[int]:
    """Depth of each item of the frontier; -1 is a message."""
    return [int(depth) for depth in frontier_of(engine).depths]


def lay_out(engine: Engine, depths: Sequence[int], *, tokens: int, tail: int) -> list[str]:
    """Store summaries of these depths, oldest first, then `tail` messages; return the ids.

    A summary of depth d stands for 2**d messages.
    """
    ingest_turns(engine, sum(2**depth for depth in depths), 2 * tokens)
    ids = []
    for at, depth in enumerate(depths):
        ids.append(publish_tree(engine, at, depth, tokens=tokens))
    engine.ingest(
        [{"role": ("assistant", "user")[n % 2], "content": f"tail {n}"} for n in range(tail)]
    )
    return ids


def publish_tree(engine: Engine, at: int, depth: int, *, tokens: int) -> str:
    """Put a summary of a depth at an index of the frontier, and those it is made of beneath it."""
    if depth == 0:
        return publish(engine, at, at + 1, depth=0, content="leaf" + "¤" * tokens)
    for child in range(2):
        publish_tree(engine, at + child, depth - 1, tokens=tokens)
    return publish(engine, at, at + 2, depth=depth, content=f"depth {depth}" + "¤" * tokens)


def publish(engine: Engine, begin: int, end: int, *, depth: int, content: str) -> str:
    """Put a summary in the place of the items ``begin:end`` of the frontier; return its id."""
    frontier = frontier_of(engine)
    sources = engine.store.summaries([name for name in frontier.summary_ids[begin:end] if name])
    summary_id = f"sum_{int(frontier.ordinals[begin]):03}_{depth}"
    engine.store.publish_summary(
        1,
        NewSummary(
            summary=StoredSummary(
                summary_id=summary_id,
                conversation_id=1,
                kind="condensed" if depth else "leaf",
                depth=depth,
                content=content,
                token_count=count_marks(content),
                earliest_at="2026-01-01T00:00:00.000Z",
                latest_at="2026-01-01T00:10:00.000Z",
                descendant_count=sum(1 + source.descendant_count for source in sources),
                descendant_token_count=sum(
                    source.token_count + source.descendant_token_count for source in sources
                ),
                source_message_token_count=(
                    sum(source.source_message_token_count for source in sources)
                    if depth
                    else int(frontier.tokens[begin:end].sum())
                ),
                created_at="2026-01-01T01:00:00.000Z",
                model="by hand",
                level="normal",
                truncated=False,
                file_ids=[],
                source_ids=[source.summary_id for source in sources],
            ),
            wire_tokens=count_marks(content),
            first_ordinal=int(frontier.ordinals[begin]),
            last_ordinal=int(frontier.ordinals[end - 1]),
            message_ids=[] if depth else frontier.message_ids[begin:end].tolist(),
        ),
    )
    return summary_id
