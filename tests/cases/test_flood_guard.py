"""What an engine refuses as a replay, and what it knows again: mirrors, twins, placeholders.

Each test is named after the symptom and holds the reproduction, scaled down. Must not test the
counting itself: the kernel's tests do (spec: storage 2.10 and 8.10 to 8.23; decisions 11 and 12).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import chain, entry, make_engine, shown, texts, write_session

import lcm_fast
from lcm_fast.engine import Engine

Message = dict[str, Any]
SECOND = 1_700_000_000_000
WISHES = ["go on", "what is left?", "thanks"]
TIGHT = {"replay_flood_threshold_internal": 6}


def user(text: str, at_ms: int) -> Message:
    return {"role": "user", "content": text, "timestamp": SECOND + at_ms}


def assistant(text: str, at_ms: int) -> Message:
    return {"role": "assistant", "content": text, "timestamp": SECOND + at_ms}


def output(text: str, at_ms: int, call_id: str = "call_1") -> Message:
    return {
        "role": "toolResult",
        "toolCallId": call_id,
        "content": [{"type": "text", "text": text}],
        "timestamp": SECOND + at_ms,
    }


def calling(at_ms: int, call_id: str) -> Message:
    block = {"type": "toolCall", "id": call_id, "name": "exec", "arguments": {}}
    return {"role": "assistant", "content": [block], "timestamp": SECOND + at_ms}


def seeded(make: Callable[[str, int], Message], said: Sequence[str]) -> list[Message]:
    """Return what is said in the first second."""
    return [make(text, n) for n, text in enumerate(said)]


def replayed(make: Callable[[str, int], Message], said: Sequence[str]) -> list[Message]:
    """Return the same, said in the next second."""
    return [make(text, 1000 + n) for n, text in enumerate(said)]


class TestAReplay:
    def test_of_one_user_text_three_times_in_the_next_second_is_refused(
        self, engine: Engine
    ) -> None:
        engine.ingest(seeded(user, ["X"]))
        refused = engine.ingest(replayed(user, ["X"] * 3))
        assert (refused.ingested, refused.quarantined) == (0, 3)

    def test_of_three_user_texts_in_the_next_second_is_refused_as_the_users(
        self, engine: Engine
    ) -> None:
        engine.ingest(seeded(user, WISHES))
        engine.ingest(replayed(user, WISHES))
        (batch,) = engine.quarantined()
        assert (batch.messages, "user" in batch.reason) == (3, True)

    def test_of_user_texts_among_old_tool_outputs_is_refused_as_the_users(
        self, engine: Engine
    ) -> None:
        engine.ingest([*seeded(output, ["ok"] * 10), *seeded(user, WISHES)])
        engine.ingest(replayed(user, WISHES))
        (batch,) = engine.quarantined()
        assert ("user" in batch.reason, "tool" in batch.reason) == (True, False)

    def test_of_six_equal_tool_outputs_at_a_threshold_of_six_is_refused(
        self, database: Path
    ) -> None:
        with make_engine(database, **TIGHT) as engine:
            engine.ingest(seeded(output, ["ok"] * 5))
            assert engine.ingest(replayed(output, ["ok"] * 6)).quarantined == 6

    def test_sent_one_by_one_within_a_second_is_refused_at_the_third(self, engine: Engine) -> None:
        engine.ingest(seeded(user, WISHES))
        outcomes = [engine.ingest([one]) for one in replayed(user, WISHES)]
        assert [one.quarantined for one in outcomes] == [0, 0, 1]

    def test_without_times_is_dated_by_its_receipt_and_refused(self, engine: Engine) -> None:
        history = [{"role": "user", "content": text} for text in WISHES]
        engine.ingest([*history, {"role": "assistant", "content": "nothing is left"}])
        assert engine.ingest(history).quarantined == 3

    def test_is_kept_as_it_came_and_can_be_admitted(self, engine: Engine) -> None:
        engine.ingest(seeded(user, WISHES))
        batch = replayed(user, WISHES)
        engine.ingest(batch)
        (waiting,) = engine.quarantined()
        assert engine.admit(waiting.batch_id).ingested == 3
        assert [json.loads(raw) for raw in engine.export_entries()][3:] == batch

    def test_takes_nothing_away_that_is_new_beside_it(self, engine: Engine) -> None:
        engine.ingest(seeded(user, WISHES))
        new = [assistant("one file is left", 1003), user("do that one", 1004)]
        outcome = engine.ingest([*replayed(user, WISHES), *new])
        assert (outcome.ingested, outcome.quarantined) == (2, 3)
        assert texts(engine) == [*WISHES, "one file is left", "do that one"]

    def test_wedges_neither_the_turns_after_it_nor_compaction(self, database: Path) -> None:
        with make_engine(database, fresh_tail_count=2, leaf_chunk_tokens=300) as engine:
            long = [f"step {n} moves /srv/app/step{n}.py to its place. " * 10 for n in range(20)]
            engine.ingest(seeded(user, long))
            engine.ingest(replayed(user, long))
            assert engine.ingest([user("and now?", 9000)]).ingested == 1
            assert engine.compact(token_budget=1000, force=True).summaries_created > 0

    def test_in_one_conversation_does_not_count_in_another(self, engine: Engine) -> None:
        engine.ingest(seeded(user, WISHES), session_key="one")
        assert engine.ingest(replayed(user, WISHES), session_key="two").ingested == 3


class TestNoReplay:
    def test_are_five_equal_tool_outputs_after_five_at_the_default_threshold(
        self, engine: Engine
    ) -> None:
        engine.ingest(seeded(output, ["ok"] * 5))
        assert engine.ingest(replayed(output, ["ok"] * 5)).ingested == 5

    def test_are_three_equal_tool_outputs_in_each_of_two_seconds(self, engine: Engine) -> None:
        engine.ingest(seeded(output, ["ok"] * 3))
        assert engine.ingest(replayed(output, ["ok"] * 3)).ingested == 3

    def test_are_six_different_tool_outputs_at_a_threshold_of_six(self, database: Path) -> None:
        different = [f"output {n}" for n in range(6)]
        with make_engine(database, **TIGHT) as engine:
            engine.ingest(seeded(output, different))
            assert engine.ingest(replayed(output, different)).ingested == 6

    def test_are_an_assistants_and_a_tools_repeats_that_only_together_are_many(
        self, database: Path
    ) -> None:
        with make_engine(database, **TIGHT) as engine:
            engine.ingest([*seeded(assistant, ["ok"] * 2), *seeded(output, ["ok"] * 2)])
            again = [*replayed(assistant, ["ok"] * 3), *replayed(output, ["ok"] * 3)]
            assert engine.ingest(again).ingested == 6

    def test_are_three_words_a_user_repeats_in_three_seconds(self, engine: Engine) -> None:
        engine.ingest(seeded(user, ["ok"]))
        assert engine.ingest([user("ok", 1000 * n) for n in (1, 2, 3)]).ingested == 3

    def test_are_texts_that_were_never_said(self, engine: Engine) -> None:
        engine.ingest(seeded(user, WISHES))
        assert engine.ingest(replayed(user, ["a", "b", "c", "d"])).ingested == 4

    def test_is_a_tool_that_reports_ok_a_hundred_times_a_second(self, engine: Engine) -> None:
        loop = []
        for n in range(100):
            loop += [calling(9 * n, f"call_{n}"), output("ok", 9 * n + 1, f"call_{n}")]
        first, again = engine.ingest(loop), engine.ingest(loop)
        assert (first.ingested, first.quarantined) == (200, 0)
        assert (again.ingested, again.quarantined) == (0, 0)

    def test_is_a_tool_that_reports_ok_in_every_turn(self, engine: Engine) -> None:
        engine.ingest([calling(0, "call_1"), output("ok", 1)])
        for n in range(100):
            for one in (calling(1000 + 9 * n, "call_1"), output("ok", 1001 + 9 * n)):
                assert engine.ingest([one]).ingested == 1

    def test_are_results_of_calls_that_wait_for_them(self, database: Path) -> None:
        with make_engine(database, **TIGHT) as engine:
            for begin in (0, 1000):
                loop = []
                for n in range(begin, begin + 40, 2):
                    loop += [calling(n, "call_1"), output("ok", n + 1)]
                assert engine.ingest(loop).ingested == 40

    def test_are_words_that_follow_what_is_known(self, engine: Engine) -> None:
        engine.ingest([*seeded(user, WISHES), assistant("nothing is left", 900)])
        goes_on = [assistant("nothing is left", 900), *replayed(user, WISHES)]
        assert engine.ingest(goes_on).ingested == 3

    def test_are_entries_with_ids_of_their_own(self, engine: Engine) -> None:
        engine.ingest(seeded(user, WISHES))
        entries = [entry(f"e{n}", None, one) for n, one in enumerate(replayed(user, WISHES))]
        assert engine.ingest(entries).ingested == 3

    def test_is_a_turn_committed_under_a_key(self, engine: Engine) -> None:
        engine.ingest(seeded(user, WISHES))
        assert engine.commit_turn("run-2", replayed(user, WISHES)).ingested == 3

    def test_is_the_transcript_of_what_came_live(self, engine: Engine, tmp_path: Path) -> None:
        engine.ingest(seeded(user, WISHES))
        later = [*seeded(user, WISHES), *replayed(user, WISHES)]
        path = write_session(tmp_path / "session.jsonl", chain(*later))
        assert engine.bootstrap(path, session_key="default").ingested == 3

    def test_is_the_whole_history_sent_again_with_its_times(self, engine: Engine) -> None:
        engine.ingest(seeded(user, WISHES))
        again = engine.ingest(seeded(user, WISHES))
        assert (again.duplicates, again.quarantined) == (3, 0)

    def test_is_a_tail_of_heartbeats(self, engine: Engine, tmp_path: Path) -> None:
        messages = [user("begin", 0)]
        for n in range(100):
            messages.append(user("[OpenClaw heartbeat poll]", 1000 + 2 * n))
            messages.append(assistant("HEARTBEAT_OK", 1001 + 2 * n))
        path = write_session(tmp_path / "session.jsonl", chain(*messages))
        first = engine.bootstrap(path, session_key="default")
        engine.ingest([*messages[-6:], user("and now?", 9000)])
        assert (first.ingested, texts(engine)[-1], engine.quarantined()) == (201, "and now?", [])


def reply(text: str, at_ms: int) -> Message:
    """Return an answer with its reasoning."""
    blocks = [{"type": "thinking", "thinking": "let me see"}, {"type": "text", "text": text}]
    return {"role": "assistant", "content": blocks, "timestamp": SECOND + at_ms}


def mirror(text: str, at_ms: int) -> Message:
    """Return the copy of an answer that a host writes when it delivers it."""
    return {
        "role": "assistant",
        "model": "delivery-mirror",
        "content": [{"type": "text", "text": text}],
        "timestamp": SECOND + at_ms,
    }


Way = Callable[[Engine, list[Message], Path], None]


def live(engine: Engine, messages: list[Message], folder: Path) -> None:
    engine.ingest(messages)


def one_by_one(engine: Engine, messages: list[Message], folder: Path) -> None:
    for message in messages:
        engine.ingest([message])


def whole_file(engine: Engine, messages: list[Message], folder: Path) -> None:
    path = write_session(folder / "session.jsonl", chain(*messages))
    engine.bootstrap(path, session_key="default")


def growing_file(engine: Engine, messages: list[Message], folder: Path) -> None:
    for count in range(1, len(messages) + 1):
        whole_file(engine, messages[:count], folder)


@pytest.mark.parametrize("store", [live, one_by_one, whole_file, growing_file])
class TestADeliveryMirror:
    def test_right_after_its_reply_is_no_second_message(
        self, engine: Engine, tmp_path: Path, store: Way
    ) -> None:
        turn = [user("go", 0), reply("done", 100), mirror("done", 101)]
        store(engine, turn, tmp_path)
        assert engine.assemble(token_budget=10_000).messages == turn[:2]

    def test_of_a_reply_with_its_reasoning_in_a_field_is_no_second_message(
        self, engine: Engine, tmp_path: Path, store: Way
    ) -> None:
        answer = {**assistant("done", 100), "reasoning_content": "let me see"}
        store(engine, [user("go", 0), answer, mirror("done", 101)], tmp_path)
        assert shown(engine) == ["go", "done"]

    def test_alone_is_stored(self, engine: Engine, tmp_path: Path, store: Way) -> None:
        store(engine, [user("go", 0), mirror("done", 101)], tmp_path)
        assert shown(engine) == ["go", "done"]

    def test_after_a_mirror_is_another_message(
        self, engine: Engine, tmp_path: Path, store: Way
    ) -> None:
        store(engine, [mirror("done", 101), mirror("done", 202)], tmp_path)
        assert shown(engine) == ["done", "done"]

    def test_after_another_turn_is_another_message(
        self, engine: Engine, tmp_path: Path, store: Way
    ) -> None:
        turns = [reply("done", 100), user("again", 5000), mirror("done", 6000)]
        store(engine, turns, tmp_path)
        assert shown(engine) == ["done", "again", "done"]

    def test_is_not_what_a_model_says_twice(
        self, engine: Engine, tmp_path: Path, store: Way
    ) -> None:
        store(engine, [user("go", 0), reply("done", 100), assistant("done", 101)], tmp_path)
        assert shown(engine) == ["go", "done", "done"]


class TestAnEntryIssuedAgain:
    OLD = (user("go on", 123), assistant("done", 456))

    def grown_by(self, engine: Engine, folder: Path, *more: Message) -> tuple[int, int]:
        """Return how many of the entries added to a file are stored, and bytes not read then."""
        path = folder / "session.jsonl"
        engine.bootstrap(write_session(path, chain(*self.OLD)), session_key="default")
        with path.open("a") as stream:
            for n, message in enumerate(more):
                parent = f"new{n - 1}" if n else "e1"
                stream.write(json.dumps(entry(f"new{n}", parent, message)) + "\n")
        grown = engine.bootstrap(path, session_key="default")
        return grown.ingested, engine.bootstrap(path, session_key="default").bytes_read

    def test_at_the_same_millisecond_is_skipped_and_read_once(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        assert self.grown_by(engine, tmp_path, *self.OLD) == (0, 0)

    def test_at_another_millisecond_is_a_message_of_its_own(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        assert self.grown_by(engine, tmp_path, user("go on", 124)) == (1, 0)

    def test_without_a_time_is_a_message_of_its_own(self, engine: Engine, tmp_path: Path) -> None:
        assert self.grown_by(engine, tmp_path, {"role": "user", "content": "go on"}) == (1, 0)

    def test_takes_no_place_from_what_is_new(self, engine: Engine, tmp_path: Path) -> None:
        new = [user(f"next {n}", 2000 + n) for n in range(60)]
        assert self.grown_by(engine, tmp_path, *self.OLD, *new) == (60, 0)


class TestABacklog:
    def test_behind_a_stale_checkpoint_is_stored_once_and_in_order(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        path = tmp_path / "session.jsonl"
        messages = [user(f"message {n}", 1000 * n) for n in range(300)]
        engine.bootstrap(write_session(path, chain(*messages[:100])), session_key="default")
        edited = [{**one, "edited": True} for one in chain(*messages)]
        write_session(path, edited)
        added = [engine.bootstrap(path, session_key="default").ingested for _ in range(3)]
        assert (added, texts(engine)) == ([200, 0, 0], [one["content"] for one in messages])

    def test_is_stored_in_order_however_large_it_is(self, engine: Engine, tmp_path: Path) -> None:
        path = tmp_path / "session.jsonl"
        messages = [user(f"message {n}", 1000 * n) for n in range(1600)]
        engine.bootstrap(write_session(path, chain(*messages[:20])), session_key="default")
        grown = engine.bootstrap(write_session(path, chain(*messages)), session_key="default")
        assert grown.ingested == 1580
        assert texts(engine) == [one["content"] for one in messages]

    def test_that_begins_with_a_burst_of_equal_messages_stops_no_other_conversation(
        self, database: Path, tmp_path: Path
    ) -> None:
        burst = [user("are you there?", n) for n in range(300)]
        old = {"odd": burst, "one": seeded(user, WISHES), "two": seeded(user, WISHES)}
        added = {}
        for more in ([], [user("go on now", 5000)]):
            with make_engine(database) as engine:
                for key, messages in old.items():
                    path = write_session(tmp_path / f"{key}.jsonl", chain(*messages, *more))
                    added[key, len(more)] = engine.bootstrap(path).ingested
                assert lcm_fast.doctor(engine).ok
        assert list(added.values()) == [300, 3, 3, 1, 1, 1]

    def test_of_repeated_words_is_not_taken_for_a_flood(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        path = tmp_path / "session.jsonl"
        messages = [user("ok", 1000 * (n // 10) + n % 10) for n in range(300)]
        engine.bootstrap(write_session(path, chain(*messages[:100])), session_key="default")
        engine.bootstrap(write_session(path, chain(*messages)), session_key="default")
        assert (len(texts(engine)), lcm_fast.status(engine).problems) == (300, [])


def stamped(engine: Engine) -> list[tuple[str, str | None]]:
    """Return what was said, each with the id of the entry it is known to be."""
    return [(row.content, row.entry_id) for row in engine.messages()]


PREAMBLE = (
    "Conversation info (untrusted metadata):\n"
    '```json\n{"chat_id": "c1", "message_id": "m7", "sender": "Ann"}\n```\n\n'
)


@pytest.mark.parametrize("around", ["[Sun 2026-01-04 12:00 GMT+0]\n", PREAMBLE])
class TestADecoratedMessageStoredBeforeItsEntry:
    def test_takes_the_id_of_the_bare_one(
        self, engine: Engine, tmp_path: Path, around: str
    ) -> None:
        decorated = around + "please summarise"
        engine.ingest([{"role": "user", "content": decorated}])
        bare = {"role": "user", "content": "please summarise"}
        whole_file(engine, [bare], tmp_path)
        assert stamped(engine) == [(decorated, "e0")]

    def test_is_adopted_oldest_first_where_several_say_the_same(
        self, engine: Engine, tmp_path: Path, around: str
    ) -> None:
        decorated = around + "please summarise"
        for _ in range(2):
            engine.ingest([{"role": "user", "content": decorated}])
        bare = {"role": "user", "content": "please summarise"}
        whole_file(engine, [bare], tmp_path)
        assert stamped(engine) == [(decorated, "e0"), (decorated, None)]
        whole_file(engine, [bare, bare], tmp_path)
        assert stamped(engine) == [(decorated, "e0"), (decorated, "e1")]

    def test_is_not_adopted_by_another_body(
        self, engine: Engine, tmp_path: Path, around: str
    ) -> None:
        engine.ingest([{"role": "user", "content": around + "please summarise"}])
        whole_file(engine, [{"role": "user", "content": "please translate"}], tmp_path)
        assert [entry_id for _, entry_id in stamped(engine)].count(None) == 1
        assert len(texts(engine)) == 2

    def test_is_not_adopted_where_it_is_the_assistants(
        self, engine: Engine, tmp_path: Path, around: str
    ) -> None:
        engine.ingest([{"role": "assistant", "content": around + "a summary"}])
        whole_file(engine, [{"role": "assistant", "content": "a summary"}], tmp_path)
        assert len(texts(engine)) == 2
