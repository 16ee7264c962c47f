"""Memories whose time is set by hand, and summarisers that do as they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from conformance.frontiers import count_marks

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.store import Store
from lcm_fast.summarize import SummaryRequest

Answer = str | Exception


class Clock:
    """A time of day that moves when it is told to."""

    def __init__(self) -> None:
        self.moment = datetime.fromisoformat("2026-03-01T12:00:00+00:00")

    def now(self) -> str:
        return self.moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def advance(self, minutes: float) -> None:
        self.moment += timedelta(minutes=minutes)


class Scripted:
    """A summariser that gives its answers in order, the last one for ever, and counts its calls."""

    def __init__(self, *answers: Answer) -> None:
        self.answers: list[Answer] = list(answers) or ["¤"]
        self.requests: list[SummaryRequest] = []

    @property
    def calls(self) -> int:
        return len(self.requests)

    def __call__(self, request: SummaryRequest) -> str:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def memory(
    database: Path,
    summarise: Callable[[SummaryRequest], str],
    clock: Clock | None = None,
    **config: Any,
) -> Engine:
    """An engine that counts marks: a token is one ``¤``. One summary is made at a time."""
    settings = {"fresh_tail_count": 2, "leaf_chunk_tokens": 200, "summary_concurrency": 1, **config}
    return Engine(
        Store.open(database),
        lcm_fast.Config(timezone="UTC", **settings),
        summarise,
        count_marks,
        now=(clock or Clock()).now,
    )


def turns(count: int, tokens: int = 100, first: int = 0) -> list[dict[str, Any]]:
    """Alternating messages of so many tokens each."""
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"turn {n} " + "¤" * tokens}
        for n in range(first, first + count)
    ]


def statuses(engine: Engine, rounds: Iterable[int]) -> list[str]:
    """Maintain so many times; return how each compaction ended."""
    return [one.compaction.status for _ in rounds for one in engine.maintain().drained]
