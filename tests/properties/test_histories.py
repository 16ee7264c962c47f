"""Whatever a host shows, in whatever order and form, the record holds what was said: no more, no
less, in its order.

Rules are the things hosts are known to do. ``--hypothesis-profile=nightly`` runs 20,000 histories
of up to 200 steps.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from conftest import NIGHTLY_EXAMPLES, make_engine, power_fails, texts, violations
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from properties.histories import CLEARED, Said, Session, Truth

from lcm_fast.engine import Engine

KEY = "agent:main:main"
SECRET = "sk-ABCDEF1234567890"
WORDS = ("ok", "yes", "go  on", "what is the  key", f"{SECRET} is the key", "好的", "done")
FEW, MANY = st.integers(1, 3), st.integers(1, 12)


class Histories(RuleBasedStateMachine):
    """A host, its session file, and an engine that is shown some of it now and then."""

    @initialize(timed=st.booleans(), with_ids=st.booleans())
    def begin(self, timed: bool, with_ids: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        self.truth = Truth(timed)
        self.session = Session(folder / "session.jsonl", with_ids=with_ids)
        self.database = folder / "memory.db"
        # Without times, many turns in one batch are a flood of what was said before.
        self.settings = {} if timed else {"replay_flood_threshold_external": 1000}
        self.engine: Engine = make_engine(self.database, **self.settings)
        self.flushed = 0  # messages of the truth that stand in the file
        self.live_until = 0  # messages of the truth that were shown live
        self.ticks = 0
        # Without times a first turn that is sent twice is taken for the whole history again.
        self.truth.say("user", "a beginning that no turn repeats")
        self.the_host_writes_its_file(1)
        self.read(self.session.write())

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.engine.close()
            self.folder.cleanup()

    @rule(word=st.sampled_from(WORDS), reply=st.sampled_from(WORDS), gap_ms=st.integers(1000, 3000))
    def a_turn_of_words(self, word: str, reply: str, gap_ms: int) -> None:
        self.truth.say("user", word, gap_ms=gap_ms)
        self.truth.say("assistant", reply)

    @rule(
        word=st.sampled_from(WORDS),
        output=st.sampled_from(WORDS),
        call_id=st.sampled_from([None, None, "call_1"]),
        calls=FEW,
    )
    def a_turn_with_tools(self, word: str, output: str, call_id: str | None, calls: int) -> None:
        self.truth.say("user", word, gap_ms=1000)
        for _ in range(calls):
            self.truth.exchange(call_id, output)
        self.truth.say("assistant", word)

    @precondition(lambda self: self.truth.timed)
    @rule(back=MANY)
    def the_host_sends_the_last_messages(self, back: int) -> None:
        begin = max(0, min(self.live_until, len(self.truth.messages) - back))
        self.show_live(begin)

    @rule()
    def the_host_sends_what_is_new(self) -> None:
        if not self.truth.timed:
            # As `after_turn` does: without times only this order tells what is new.
            self.read(self.session.write())
        self.show_live(max(self.live_until, self.flushed))

    @rule(count=MANY)
    def the_host_writes_its_file(self, count: int) -> None:
        for said in self.truth.messages[self.flushed : self.flushed + count]:
            self.session.append(said)
        self.flushed = min(self.flushed + count, len(self.truth.messages))

    @rule()
    def the_file_is_read(self) -> None:
        self.read(self.session.write())

    @precondition(lambda self: self.session.with_ids or self.truth.timed)
    @rule(share=st.floats(0, 1))
    def a_half_written_file_is_read(self, share: float) -> None:
        self.session.write()
        self.read(self.session.write(int(share * self.session.size())))

    @rule(keep=MANY)
    def the_file_is_rotated(self, keep: int) -> None:
        self.read(self.session.write())
        self.session.entries = self.session.entries[-keep:]
        self.read(self.session.write())

    @precondition(lambda self: self.truth.timed and self.session.with_ids)
    @rule()
    def the_file_is_issued_again_under_other_ids(self) -> None:
        self.read(self.session.write())
        self.session.reissue()
        self.read(self.session.write())

    @rule(pick=st.integers(0, 30))
    def the_host_spaces_a_text_otherwise(self, pick: int) -> None:
        for entry in self.entries_at(pick):
            if entry.said.role == "user":
                entry.text = " ".join(entry.text.split(" ")) if "  " in entry.text else entry.text
        self.read(self.session.write())

    @precondition(lambda self: self.session.with_ids or self.truth.timed)
    @rule(pick=st.integers(0, 30))
    def the_host_masks_a_secret(self, pick: int) -> None:
        for entry in self.entries_at(pick):
            entry.text = entry.text.replace(SECRET, "sk-***")
        self.read(self.session.write())

    @precondition(lambda self: self.session.with_ids or self.truth.timed)
    @rule(pick=st.integers(0, 30))
    def the_host_clears_a_tool_output(self, pick: int) -> None:
        for entry in self.entries_at(pick):
            if entry.said.role == "toolResult":
                entry.text = CLEARED
        self.read(self.session.write())

    @precondition(lambda self: self.session.with_ids and self.flushed == len(self.truth.messages))
    @rule(back=FEW)
    def a_user_steers_in_the_middle(self, back: int) -> None:
        self.read(self.session.write())
        at = max(0, len(self.truth.messages) - back)
        if at >= len(self.truth.messages) or back > len(self.session.entries):
            return
        said = self.truth.say("user", f"no, wait ({len(self.truth.messages)})", at=at)
        self.session.insert(len(self.session.entries) - back, said)
        self.flushed += 1
        self.live_until = max(self.live_until, self.flushed)
        self.read(self.session.write())

    @rule()
    def the_engine_is_started_anew(self) -> None:
        self.engine.close()
        self.engine = make_engine(self.database, **self.settings)
        self.engine._now = self.clock  # type: ignore[method-assign]

    @rule(at=st.integers(1, 40))
    def the_power_fails_while_the_file_is_read(self, at: int) -> None:
        entries = self.session.write()
        before = texts(self.engine, session_key=KEY) if self.is_begun() else []
        if power_fails(
            self.engine, at, lambda: self.engine.bootstrap(self.session.path, session_key=KEY)
        ):
            after = texts(self.engine, session_key=KEY) if self.is_begun() else []
            assert after == before
        self.read(entries)

    @rule()
    def old_messages_are_compacted(self) -> None:
        if self.is_begun():
            self.engine.compact(session_key=KEY, token_budget=300, force=True)

    @invariant()
    def the_record_is_what_was_said(self) -> None:
        if not hasattr(self, "engine") or not self.is_begun():
            return
        expected = [spaced(said.form) for said in self.truth.messages if said.form is not None]
        stored = [spaced(text) for text in texts(self.engine, session_key=KEY)]
        assert Counter(stored) == Counter(expected)
        if self.truth.timed or self.session.with_ids:
            # Equal texts without ids and times cannot be told apart, so neither can their order.
            assert stored == expected

    @invariant()
    def every_message_stands_in_one_place(self) -> None:
        if hasattr(self, "engine"):
            assert violations(self.engine.store) == []

    def show_live(self, begin: int) -> None:
        shown = self.truth.messages[begin:]
        if not shown:
            return
        result = self.engine.ingest(
            [said.body(said.text) for said in shown], session_key=KEY, session_id="s-1"
        )
        assert result.quarantined == 0
        note_shown(shown, [said.text for said in shown])
        self.live_until = len(self.truth.messages)

    def read(self, entries: list[Any]) -> None:
        self.ticks += 1
        os.utime(self.session.path, (self.ticks, self.ticks))
        result = self.engine.bootstrap(self.session.path, session_key=KEY)
        assert not result.is_frozen
        note_shown([entry.said for entry in entries], [entry.text for entry in entries])

    def entries_at(self, pick: int) -> list[Any]:
        return self.session.entries[pick : pick + 1]

    def is_begun(self) -> bool:
        return bool(self.engine.conversations())

    def clock(self) -> str:
        self.ticks += 1
        return f"2026-02-01T{self.ticks // 3600:02d}:{self.ticks // 60 % 60:02d}:00.000Z"


def note_shown(shown: list[Said], forms: list[str]) -> None:
    for said, form in zip(shown, forms, strict=True):
        if said.form is None:
            said.form = form


def spaced(text: str | None) -> str:
    return " ".join((text or "").split())


IS_NIGHTLY = settings().max_examples >= NIGHTLY_EXAMPLES
SHORT = {} if IS_NIGHTLY else {"stateful_step_count": 30, "max_examples": 40}
Histories.TestCase.settings = settings(
    deadline=None, suppress_health_check=list(HealthCheck), **SHORT
)
TestHistories = Histories.TestCase
