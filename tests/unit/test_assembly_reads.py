"""Which rows an assembly reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import ticking_clock

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.kernels import estimate_tokens
from lcm_fast.store import Store, StoredMessage
from lcm_fast.summarize import ExtractiveSummarizer


class RecordingStore(Store):
    """A store that remembers which messages it was asked for."""

    asked: tuple[int, ...] = ()

    def messages(self, message_ids: Sequence[int]) -> list[StoredMessage]:
        self.asked += tuple(message_ids)
        return super().messages(message_ids)


@pytest.fixture
def reading(database: Path) -> Iterator[tuple[Engine, RecordingStore]]:
    store = RecordingStore.open(database)
    assert isinstance(store, RecordingStore)
    config = lcm_fast.Config(timezone="UTC")
    with Engine(
        store, config, ExtractiveSummarizer(), estimate_tokens, now=ticking_clock()
    ) as engine:
        yield engine, store


def turns(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"turn {n} " + "word " * 50}
        for n in range(first, first + count)
    ]


def test_only_the_chosen_messages_are_read(reading: tuple[Engine, RecordingStore]) -> None:
    engine, store = reading
    ids = engine.ingest(turns(0, 500)).message_ids
    assembly = engine.assemble(token_budget=2000)
    raw_shown = len(assembly.messages) - assembly.stats.placeholders
    assert list(store.asked) == ids[-len(store.asked) :]
    assert 0 <= len(store.asked) - raw_shown <= 1


def test_the_next_assembly_reads_only_what_is_new(reading: tuple[Engine, RecordingStore]) -> None:
    engine, store = reading
    engine.ingest(turns(0, 500))
    engine.assemble(token_budget=2000)
    store.asked = ()
    ids = engine.ingest(turns(500, 2), token_budget=10**9).message_ids
    engine.assemble(token_budget=2000)
    assert list(store.asked) == ids


def test_what_a_caller_does_to_the_messages_does_not_come_back(engine: Engine) -> None:
    engine.ingest([{"role": "user", "content": [{"type": "text", "text": "hello"}]}])
    engine.assemble(token_budget=1000).messages[0]["content"][0]["text"] = "changed"
    messages = engine.assemble(token_budget=1000).messages
    assert messages == [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
