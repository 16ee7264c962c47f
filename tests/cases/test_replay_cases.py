"""What users of such engines reported about messages stored twice or lost, one test a report.

Each test is named after the symptom and holds the reproduction, scaled down. Must not test how it
is done: the unit tests do.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import chain, entry, make_engine, said, shown, texts, violations, write_session

import lcm_fast
from lcm_fast.engine import Engine

Message = dict[str, Any]
FIRST_MS = 1_700_000_000_123


def spoken(role: str, text: str, ms: int, **fields: Any) -> Message:
    """Return a message that was said so many milliseconds after the first."""
    return {"role": role, "content": text, "timestamp": FIRST_MS + ms, **fields}


def call(call_id: str, ms: int, text: str = "") -> Message:
    blocks: list[Message] = [{"type": "text", "text": text}] if text else []
    blocks.append({"type": "toolCall", "id": call_id, "name": "exec", "arguments": {}})
    return {"role": "assistant", "content": blocks, "timestamp": FIRST_MS + ms}


def result(call_id: str, ms: int, text: str) -> Message:
    return {
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": "exec",
        "content": [{"type": "text", "text": text}],
        "timestamp": FIRST_MS + ms,
    }


def talk(turns: int, first: int = 0) -> list[Message]:
    """Return so many turns of a question and its answer, a minute apart."""
    messages = []
    for n in range(first, first + turns):
        messages.append(spoken("user", f"question {n}", 60_000 * n))
        messages.append(spoken("assistant", f"answer {n}", 60_000 * n + 5_000))
    return messages


def untimed(messages: Sequence[Message]) -> list[Message]:
    return [{k: v for k, v in one.items() if k != "timestamp"} for one in messages]


def contents(messages: Sequence[Message]) -> list[str]:
    return [one["content"] for one in messages]


def sent(engine: Engine) -> list[Message]:
    """Return what a model is sent of the conversation."""
    return engine.assemble(token_budget=100_000).messages


def reissued(messages: Sequence[Message], generation: int) -> list[dict[str, Any]]:
    """Return entries for the messages under ids that were never used before."""
    return [
        entry(f"g{generation}-{n}", f"g{generation}-{n - 1}" if n else None, one)
        for n, one in enumerate(messages)
    ]


def read(engine: Engine, path: Path) -> int:
    """Read a session file into the default conversation; return how many messages were new."""
    outcome = engine.bootstrap(path, session_key="default")
    assert not outcome.is_frozen
    return outcome.ingested


def execute(database: Path, statement: str) -> None:
    with closing(apsw.Connection(str(database))) as db:
        db.execute(statement)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def test_turns_that_came_live_are_not_stored_again_from_their_transcript(
    engine: Engine, session: Path
) -> None:
    messages = []
    for n in range(50):
        reminder = spoken("system", "reminder: be brief", 60_000 * n - 1)
        turn = [reminder, *talk(1, n)]
        assert engine.ingest(turn).quarantined == 0
        messages += turn
    assert read(engine, write_session(session, chain(*messages))) == 0
    rows = engine.messages(limit=1000)
    groups = Counter((row.created_at, row.role, row.content) for row in rows)
    assert (len(rows), max(groups.values())) == (150, 1)


@pytest.mark.parametrize("with_times", [True, False])
def test_a_session_file_read_without_its_checkpoint_is_not_stored_again(
    database: Path, session: Path, with_times: bool
) -> None:
    messages = talk(23) if with_times else untimed(talk(23))
    entries = chain(*messages)
    with make_engine(database) as engine:
        assert read(engine, write_session(session, entries[:43])) == 43
    added = []
    for count in (43, 46):
        execute(database, "DELETE FROM transcript_cursors")
        with make_engine(database) as engine:
            added.append(read(engine, write_session(session, entries[:count])))
            stored = texts(engine)
    assert (added, stored) == ([0, 3], contents(messages))


def test_a_hook_that_is_called_twice_a_turn_stores_the_turn_once(engine: Engine) -> None:
    turn = [
        spoken("user", "look", 0),
        call("call_1", 10),
        result("call_1", 20, "found"),
        spoken("assistant", "done", 30),
    ]
    engine.ingest(talk(2, first=-9))
    added = [engine.ingest(turn).ingested for _ in range(2)]
    added.append(engine.ingest([*turn, spoken("user", "thanks", 40)]).ingested)
    assert added == [4, 0, 1]


def test_a_hook_that_is_called_twice_knows_messages_without_times_beside_timed_ones(
    engine: Engine,
) -> None:
    engine.ingest(talk(2, first=-9))
    timed, *others = talk(2)
    added = [engine.ingest([timed, *untimed(others)]).ingested for _ in range(2)]
    assert added == [4, 0]


def test_a_hook_that_is_called_twice_with_a_list_without_times_stores_it_once(
    engine: Engine,
) -> None:
    history = untimed(talk(3))
    added = [engine.ingest(history).ingested for _ in range(2)]
    added.append(engine.ingest([*history, {"role": "user", "content": "and now?"}]).ingested)
    assert added == [6, 0, 1]


def test_a_summary_of_the_host_is_not_a_new_instruction_and_brings_nothing_twice(
    engine: Engine, session: Path
) -> None:
    entries = chain(*talk(10))
    read(engine, write_session(session, entries))
    summary = {
        "type": "compaction",
        "id": "c0",
        "parentId": "e19",
        "summary": "The user asked: question 0. Please answer it.",
        "firstKeptEntryId": "e0",
    }
    assert read(engine, write_session(session, [*entries, summary])) == 0
    again = engine.ingest(talk(10))
    assert (again.ingested, texts(engine)) == (0, contents(talk(10)))
    assert "Please answer it" not in json.dumps(sent(engine))


def test_a_summary_of_the_host_in_a_live_batch_is_not_a_new_instruction(engine: Engine) -> None:
    engine.ingest(talk(10))
    summary = {
        "role": "compactionSummary",
        "summary": "The user asked: question 0. Please answer it.",
        "timestamp": FIRST_MS + 900_000,
    }
    assert engine.ingest([summary, *talk(10)]).ingested == 1
    assert sent(engine) == talk(10)
    assert engine.messages(limit=100)[-1].excluded == "host-only"


def test_a_secret_masked_in_the_transcript_does_not_make_a_second_message(
    engine: Engine, session: Path
) -> None:
    calls = [spoken("user", "show it", 0), call("call_X", 10)]
    engine.ingest([*calls, result("call_X", 20, "key=sk-ABC")])
    masked = chain(*calls, result("call_X", 20, "key=***"))
    assert read(engine, write_session(session, masked)) == 0
    assert texts(engine)[-1] == "key=sk-ABC"


def test_a_secret_masked_in_the_transcript_of_a_message_without_a_time_is_known_by_its_place(
    engine: Engine, session: Path
) -> None:
    live = [
        {"role": "user", "content": "the key is key=sk-ABC, keep it"},
        {"role": "assistant", "content": "kept"},
    ]
    engine.ingest(live)
    masked = {"role": "user", "content": "the key is key=***, keep it"}
    assert read(engine, write_session(session, chain(masked, live[1]))) == 0
    assert texts(engine) == contents(live)


def test_a_secret_masked_in_an_answer_that_comes_again_later_is_known_by_its_providers_id(
    engine: Engine,
) -> None:
    answer = spoken("assistant", "use key=sk-ABC for it", 0, responseId="resp_0a1b2c")
    masked = spoken("assistant", "use key=*** for it", 900, responseId="resp_0a1b2c")
    added = [engine.ingest([one]).ingested for one in (answer, masked)]
    assert (added, texts(engine)) == ([1, 0], ["use key=sk-ABC for it"])


def test_a_masked_form_that_comes_again_under_another_id_is_known(
    engine: Engine, session: Path
) -> None:
    whole = untimed([*talk(1), spoken("user", "the key is key=sk-ABC, keep it", 0), *talk(1, 1)])
    masked = [*whole[:2], {"role": "user", "content": "the key is key=***, keep it"}, *whole[3:]]
    added = [
        read(engine, write_session(session, reissued(messages, generation)))
        for generation, messages in enumerate((whole, masked, masked[2:3]))
    ]
    assert (added, texts(engine)) == ([5, 0, 0], contents(whole))


def test_equal_texts_of_two_ids_stay_two_messages(engine: Engine, session: Path) -> None:
    said_twice = {"role": "user", "content": "key=***"}
    assert read(engine, write_session(session, chain(said_twice, said_twice))) == 2


@pytest.mark.parametrize("with_times", [True, False])
def test_a_file_rewritten_with_other_ids_is_not_imported_again_at_a_restart(
    database: Path, session: Path, with_times: bool
) -> None:
    messages = [
        spoken("assistant", "NO_REPLY", 1000 * n)
        if n % 8 == 0
        else spoken("user", f"m{n}", 1000 * n)
        for n in range(800)
    ]
    messages = messages if with_times else untimed(messages)
    with make_engine(database) as engine:
        read(engine, write_session(session, reissued(messages, 0)))
    write_session(session, reissued(messages, 1))
    with make_engine(database) as engine:
        assert read(engine, session) == 0
        assert texts(engine) == contents(messages)


def test_a_conversation_does_not_stay_at_one_message_while_its_file_grows(
    engine: Engine, session: Path
) -> None:
    messages = talk(30)
    counts = []
    for turn in range(1, 31):
        write_session(session, chain(*messages[: 2 * turn]))
        new = messages[2 * turn - 2 : 2 * turn]
        engine.after_turn(new, session_file=session, session_key="default")
        counts.append(engine.conversation().message_count)
    assert counts == list(range(2, 61, 2))


def test_a_record_that_is_behind_its_file_fails_a_check_of_doctor(
    engine: Engine, session: Path
) -> None:
    read(engine, write_session(session, chain(*talk(2))))
    write_session(session, chain(*talk(5)))
    (failed,) = [check for check in lcm_fast.doctor(engine).checks if not check.ok]
    assert (failed.name, str(session) in failed.detail) == ("transcripts_read", True)


def test_turns_after_a_restart_are_stored_without_another_restart(
    database: Path, session: Path
) -> None:
    with make_engine(database) as engine:
        engine.after_turn(talk(1), session_file=session, session_key="default")
        before = lcm_fast.status(engine).ingest["last_at"]
    with make_engine(database) as engine:
        for n in range(1, 6):
            write_session(session, chain(*talk(n + 1)))
            engine.after_turn(talk(1, n), session_file=session, session_key="default")
        assert texts(engine) == contents(talk(6))
        assert lcm_fast.status(engine).ingest["last_at"] > before


def test_a_session_resumed_again_and_again_grows_only_by_what_is_new(
    database: Path, tmp_path: Path
) -> None:
    history = talk(40)
    continuation = "Continue with the task. " * 200
    with make_engine(database) as engine, make_engine(tmp_path / "truth.db") as truth:
        engine.ingest(history)
        for n in range(30):
            new = [
                spoken("user", continuation, 10_000_000 + 60_000 * n),
                spoken("assistant", f"step {n} is done", 10_000_000 + 60_000 * n + 100),
            ]
            engine.ingest([*history[-20:], *new])
            history += new
        truth.ingest(history)
        assert texts(engine) == contents(history)
        found, wanted = engine.conversation(), truth.conversation()
        assert found.frontier_tokens == wanted.frontier_tokens


@pytest.mark.parametrize("with_times", [True, False])
def test_tool_outputs_cleared_by_the_host_do_not_bring_the_prefix_again(
    engine: Engine, with_times: bool
) -> None:
    history = [spoken("user", "begin", 0)]
    for n in range(39):
        history.append(call(f"call_{n}", 1000 * n + 10, f"step {n}"))
        history.append(result(f"call_{n}", 1000 * n + 20, f"output {n} " * 20))
        history.append(spoken("user", f"next {n}", 1000 * n + 30))
    history = history if with_times else untimed(history)
    engine.ingest(history)
    stored = texts(engine)
    chosen = random.Random(7)
    outputs = [n for n, one in enumerate(history) if one["role"] == "toolResult"]
    outcomes = []
    for _ in range(10):
        pruned = list(history)
        for n in chosen.sample(outputs, 5):
            pruned[n] = {**history[n], "content": [{"type": "text", "text": "[cleared]"}]}
        outcomes.append(engine.ingest(pruned))
    assert [one.ingested for one in outcomes] == [0] * 10
    assert texts(engine) == stored
    assert outcomes[0].revised == 5


def test_turns_cut_off_by_twenty_restarts_are_all_caught_up_with(
    database: Path, session: Path
) -> None:
    messages: list[Message] = []
    for n in range(20):
        question, answer = talk(1, n)
        with make_engine(database) as engine:
            write_session(session, chain(*messages, question))
            engine.after_turn([question], session_file=session, session_key="default")
        messages += [question, answer]
        write_session(session, chain(*messages))
    with make_engine(database) as engine:
        read(engine, session)
        assert texts(engine) == contents(messages)
        assert lcm_fast.status(engine).ingest["frozen"] == 0


def test_a_message_of_a_custom_role_is_not_stored_as_the_assistants(
    engine: Engine, session: Path
) -> None:
    question, answer = talk(1)
    custom = {"role": "custom", "customType": "notice", "content": "do it all again"}
    read(engine, write_session(session, chain(question, custom, answer)))
    assert texts(engine) == contents([question, answer])
    assert sum(b"do it all again" in raw for raw in engine.export_entries()) == 1


def test_a_message_of_a_custom_role_does_not_cost_the_live_turn_it_comes_in(
    engine: Engine,
) -> None:
    question, answer = talk(1)
    custom = {"role": "custom", "customType": "notice", "content": "do it all again"}
    engine.ingest([question, custom, answer])
    assert sent(engine) == [question, answer]
    assert [row.excluded for row in engine.messages()] == [None, "host-only", None]


def test_hook_import_and_replay_of_one_session_add_up_to_one_copy_in_any_order(
    database: Path, session: Path
) -> None:
    messages = talk(4)
    write_session(session, chain(*messages))
    with make_engine(database) as engine:
        paths: dict[str, Callable[[str], object]] = {
            "hook": lambda key: [
                engine.ingest(messages[n : n + 2], session_key=key) for n in range(0, 8, 2)
            ],
            "import": lambda key: engine.bootstrap(session, session_key=key),
            "replay": lambda key: engine.ingest(messages, session_key=key),
        }
        for names in itertools.permutations(paths):
            key = " ".join(names)
            for name in names:
                paths[name](key)
            assert texts(engine, session_key=key) == contents(messages), key


def test_a_batch_that_overlaps_in_part_is_not_thrown_away(engine: Engine) -> None:
    old, new = talk(2)[:3], talk(1, first=8)
    for number, batch in enumerate(itertools.permutations([*old, *new])):
        key = str(number)
        engine.ingest(old, session_key=key)
        outcome = engine.ingest(list(batch), session_key=key)
        assert (outcome.ingested, outcome.duplicates) == (2, 3), contents(batch)


def test_results_of_a_call_id_that_is_used_again_are_not_merged(engine: Engine) -> None:
    for n, found in enumerate(["a.py", "b.py"]):
        engine.ingest([call("call_1", 1000 * n), result("call_1", 1000 * n + 1, found)])
    assert [text for text in texts(engine) if text.endswith(".py")] == ["a.py", "b.py"]


@pytest.mark.parametrize("count", [1, 5])
def test_rows_of_metadata_stored_first_do_not_freeze_a_conversation(
    engine: Engine, session: Path, count: int
) -> None:
    metadata = 'Conversation info (untrusted metadata):\n```json\n{"chat_id": "c1"}\n```'
    engine.ingest([{"role": "user", "content": metadata}] * count)
    first = engine.bootstrap(write_session(session, chain(*talk(100))), session_key="default")
    write_session(session, chain(*talk(101)))
    grown = engine.bootstrap(session, session_key="default")
    assert (first.ingested, grown.ingested, grown.is_frozen) == (200, 2, False)


def test_runs_of_spaces_that_the_host_collapses_do_not_make_a_second_message(
    engine: Engine, session: Path
) -> None:
    engine.ingest([spoken("user", "a b", 0)])
    write_session(session, chain(spoken("user", "a  b", 0)))
    outcome = engine.bootstrap(session, session_key="default")
    assert (outcome.ingested, outcome.revised, texts(engine)) == (0, 1, ["a b"])


def test_texts_that_differ_in_their_line_breaks_stay_two_messages(
    engine: Engine, session: Path
) -> None:
    engine.ingest([spoken("user", "a b", 0)])
    assert read(engine, write_session(session, chain(spoken("user", "a\nb", 0)))) == 1


def test_externalised_results_do_not_come_again_when_the_file_is_rewritten(
    database: Path, session: Path
) -> None:
    messages = [spoken("user", "begin", 0)]
    for n in range(30):
        messages.append(call(f"call_{n}", 1000 * n))
        messages.append(result(f"call_{n}", 1000 * n + 1, f"line {n} of the log\n" * 300))
    with make_engine(database, large_file_threshold_tokens=1000) as engine:
        read(engine, write_session(session, chain(*messages)))
        externalised = [text for text in texts(engine) if "file_" in text]
        lighter = [
            {**one, "content": [{"type": "text", "text": "[output omitted]"}]}
            if one["role"] == "toolResult"
            else one
            for one in messages
        ]
        assert read(engine, write_session(session, chain(*lighter))) == 0
        assert (len(externalised), len(texts(engine))) == (30, 61)


def test_externalised_results_of_a_file_without_ids_are_known_by_what_they_say(
    database: Path, session: Path
) -> None:
    messages = untimed([call("call_1", 0), result("call_1", 1, "line of the log\n" * 400)])
    lines = [{"type": "message", "message": one} for one in messages]
    with make_engine(database, large_file_threshold_tokens=1000) as engine:
        read(engine, write_session(session, lines))
        rewritten = [{"type": "model_change", "model": "m"}, *lines]
        assert read(engine, write_session(session, rewritten)) == 0


def test_equal_calls_and_results_appended_one_by_one_are_each_stored_and_read_once(
    engine: Engine, session: Path
) -> None:
    write_session(session, [])
    loop = [
        one
        for n in range(60)
        for one in (call("call_1", 1000 * n), result("call_1", 1000 * n + 1, "ok"))
    ]
    outcomes = []
    for line in chain(*loop):
        with session.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        outcomes.append(engine.bootstrap(session, session_key="default"))
    assert [one.ingested for one in outcomes] == [1] * 120
    assert sum(one.bytes_read for one in outcomes) == session.stat().st_size


def test_a_file_rewritten_to_half_its_size_is_read_on(engine: Engine, session: Path) -> None:
    entries = chain(*talk(30))
    read(engine, write_session(session, entries[:40]))
    kept = entries[20:40]
    assert read(engine, write_session(session, kept)) == 0
    assert read(engine, write_session(session, [*kept, *entries[40:50]])) == 10
    assert texts(engine) == contents(talk(25))


def test_an_instruction_that_occurs_in_a_summary_of_the_host_is_stored(
    engine: Engine, session: Path
) -> None:
    wish = spoken("user", "please rename the module to store", 900_000)
    summary = {
        "type": "compaction",
        "id": "c0",
        "parentId": "e3",
        "summary": f"The user said: {wish['content']}. It was done.",
    }
    read(engine, write_session(session, [*chain(*talk(2)), summary, entry("e4", "c0", wish)]))
    assert texts(engine)[-1] == wish["content"]


def test_a_tail_replayed_after_a_compaction_is_not_stored_again(
    database: Path, session: Path
) -> None:
    messages = [
        spoken("user", f"step {n} moves /srv/app/step{n}.py to its place. " * 10, 1000 * n)
        for n in range(60)
    ]
    with make_engine(database, fresh_tail_count=4, leaf_chunk_tokens=600) as engine:
        engine.ingest(messages)
        made = engine.compact(token_budget=2000, force=True)
        again = engine.ingest(messages[-40:])
        from_file = read(engine, write_session(session, chain(*messages[-40:])))
        assert made.summaries_created > 0
        assert (again.ingested, from_file, len(texts(engine))) == (0, 0, 60)


def test_empty_replies_of_cut_off_turns_do_not_pile_up_in_the_context(
    engine: Engine, session: Path
) -> None:
    cut_off = [
        spoken("assistant", "", 1000 * n, stopReason="aborted", errorMessage="aborted")
        for n in range(200)
    ]
    messages = [spoken("user", "go on", -1000), *cut_off, spoken("user", "again", 900_000)]
    engine.ingest(messages)
    added = engine.ingest(messages).ingested
    added += read(engine, write_session(session, chain(*messages)))
    assert (added, sent(engine)) == (0, [messages[0], messages[-1]])


def test_restarts_with_a_touched_file_neither_grow_the_record_nor_date_it_anew(
    database: Path, session: Path
) -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo" * 50}
    messages = talk(20)
    for n in range(0, 40, 4):
        messages[n] = {**messages[n], "content": [{"type": "text", "text": f"see {n}"}, picture]}
    write_session(session, chain(*messages))
    found = set()
    for n in range(10):
        os.utime(session, ns=(n, n))
        with make_engine(database) as engine:
            read(engine, session)
            times = tuple(row.created_at for row in engine.messages(limit=1000))
            found.add((engine.conversation().message_tokens, times))
    ((_, times),) = found
    assert (len(times), times[0], times[-1][:19]) == (
        40,
        "2023-11-14T22:13:20.123Z",
        "2023-11-14T22:32:25",
    )


def test_adding_a_message_twice_deletes_nothing(engine: Engine) -> None:
    message = entry("m1", None, said("I live in Berlin", 1))
    added = [engine.ingest([message]).ingested for _ in range(2)]
    assert (added, texts(engine)) == ([1, 0], ["I live in Berlin"])


def test_one_file_under_three_spellings_of_its_path_is_stored_once(
    engine: Engine, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(session, chain(*untimed(talk(4))))
    link = session.with_name("link.jsonl")
    link.symlink_to(session)
    monkeypatch.chdir(session.parent)
    added = [read(engine, path) for path in (link, Path(session.name), session)]
    assert (added, len(texts(engine))) == ([8, 0, 0], 8)


def test_an_old_line_edited_in_place_is_noticed_while_the_file_grows(
    engine: Engine, session: Path
) -> None:
    entries = chain(*talk(10))
    read(engine, write_session(session, entries[:18]))
    edited = spoken("user", "QUESTION 3", 180_000)
    entries[6] = entry("e6", "e5", edited)
    outcome = engine.bootstrap(write_session(session, entries), session_key="default")
    assert (outcome.ingested, outcome.revised) == (2, 1)
    assert texts(engine) == contents(talk(10))


def test_a_tail_issued_again_by_rotation_and_restore_is_stored_once_in_any_order(
    engine: Engine, session: Path
) -> None:
    messages = talk(8)
    read(engine, write_session(session, reissued(messages, 0)))
    spans = {"rotated": (10, 16), "restored": (0, 16), "pruned": (4, 12), "compacted": (6, 16)}
    for n, names in enumerate(itertools.permutations(spans)):
        for m, name in enumerate(names):
            begin, end = spans[name]
            generation = 1 + 4 * n + m
            read(engine, write_session(session, reissued(messages[begin:end], generation)))
        assert texts(engine) == shown(engine) == contents(messages), names
    assert violations(engine.store) == []


def test_rotations_that_merge_a_summary_into_a_message_store_each_turn_once(
    database: Path, session: Path
) -> None:
    why = " because /srv/app moves to its new place and the old one is closed. " * 8
    messages = [{**one, "content": one["content"] + why} for one in talk(40)]
    kept: list[Message] = []
    with make_engine(database, fresh_tail_count=2, leaf_chunk_tokens=600) as engine:
        for turn in range(40):
            question, answer = messages[2 * turn : 2 * turn + 2]
            if turn and turn % 4 == 0:
                engine.compact(token_budget=2000, force=True)
                summaries = [text for text in contents(sent(engine)) if text.startswith("<summary")]
                carrier = "\n\n".join([*summaries, question["content"]])
                assert carrier.startswith("<summary")
                kept = [{**question, "content": carrier}, answer]
            else:
                kept += [question, answer]
            write_session(session, reissued(kept, turn // 4))
            engine.after_turn([question, answer], session_file=session, session_key="default")
        assert lcm_fast.status(engine).ingest["frozen"] == 0
        assert [text.rpartition("\n")[2] for text in texts(engine)] == contents(messages)


@pytest.mark.parametrize("with_times", [True, False])
def test_a_message_inserted_before_the_end_of_the_list_is_stored_in_its_place(
    engine: Engine, with_times: bool
) -> None:
    history = talk(6)
    steer = spoken("user", "rather use the other file", 60_000 * 5 - 30_000)
    longer = [*history[:9], steer, *history[9:]]
    if not with_times:
        history, longer = untimed(history), untimed(longer)
    engine.ingest(history)
    added = [engine.ingest(longer).ingested for _ in range(3)]
    assert (added, texts(engine)) == ([1, 0, 0], contents(longer))


def test_a_message_inserted_into_the_file_in_mid_turn_is_stored_in_its_place(
    engine: Engine, session: Path
) -> None:
    entries = chain(*talk(6))
    read(engine, write_session(session, entries))
    steer = entry("steer", "e8", spoken("user", "rather use the other file", 270_000))
    entries[9] = {**entries[9], "parentId": "steer"}
    inserted = [*entries[:9], steer, *entries[9:]]
    added = [read(engine, write_session(session, inserted)) for _ in range(2)]
    assert (added, texts(engine)[9]) == ([1, 0], "rather use the other file")


@pytest.mark.parametrize("with_times", [True, False])
def test_a_prompt_trimmed_at_the_end_of_its_turn_is_not_stored_again(
    engine: Engine, with_times: bool
) -> None:
    turn = [spoken("user", "  fix the build \n", 0), spoken("assistant", "fixed", 10)]
    turn = turn if with_times else untimed(turn)
    engine.ingest(turn)
    trimmed = {**turn[0], "content": "fix the build"}
    assert engine.ingest([trimmed, turn[1]]).ingested == 0
    assert texts(engine)[0] == "  fix the build \n"
