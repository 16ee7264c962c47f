"""Which rows an assembly reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conftest import ticking_clock

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.kernels import estimate_tokens
from lcm_fast.store import Store, StoredMessage
from lcm_fast.summarize import ExtractiveSummarizer


class RecordingStore(Store):
    """A store that remembers which messages it was asked for."""

    asked: list[int]

    def messages(self, message_ids: Sequence[int]) -> list[StoredMessage]:
        self.asked = list(message_ids)
        return super().messages(message_ids)


def test_only_the_chosen_messages_are_read(database: Path) -> None:
    store = RecordingStore.open(database)
    assert isinstance(store, RecordingStore)
    config = lcm_fast.Config(timezone="UTC")
    with Engine(
        store, config, ExtractiveSummarizer(), estimate_tokens, now=ticking_clock()
    ) as engine:
        stored = engine.ingest(
            [{"role": ("user", "assistant")[n % 2], "content": "word " * 50} for n in range(500)]
        )
        assembly = engine.assemble(token_budget=2000)
    raw_shown = len(assembly.messages) - assembly.stats.placeholders
    assert store.asked == stored.message_ids[-len(store.asked) :]
    assert 0 <= len(store.asked) - raw_shown <= 1
