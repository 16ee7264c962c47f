"""What users of such engines asked of committing a turn: exactly once, whatever happens between.

Each test is named after the symptom and holds the reproduction, scaled down. Must not test how it
is done: the unit tests do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import (
    chain,
    entry,
    make_engine,
    power_fails,
    said,
    texts,
    violations,
    write_session,
)

from lcm_fast.engine import Engine
from lcm_fast.errors import CommitConflictError, MessageError

KEY = "run-17"
TURN = [said("ok", 1), said("done", 2, role="assistant")]
UNTIMED = [{"role": "user", "content": "ok"}, {"role": "assistant", "content": "done"}]


def with_positions(messages: list[dict[str, Any]], first: int) -> list[dict[str, Any]]:
    return [{**one, "rawSeq": n} for n, one in enumerate(messages, first)]


@pytest.mark.parametrize(
    "payload",
    [
        TURN,
        UNTIMED,
        with_positions(TURN, 0),
        with_positions(TURN, 5000),
        chain(*TURN),
        chain(*UNTIMED),
        [{**entry("e5", "gone", TURN[0]), "generation": 3, "rawSeq": 12}, TURN[1]],
    ],
    ids=["bare", "untimed", "relative", "absolute", "entries", "untimed entries", "mixed"],
)
def test_no_form_of_the_payload_wedges_the_turns_after_it(
    engine: Engine, payload: list[dict[str, Any]]
) -> None:
    engine.ingest([said("before", 0)])
    statuses = [engine.commit_turn(KEY, payload).status for _ in range(2)]
    statuses.append(engine.commit_turn("run-18", [said("next", 9)]).status)
    assert statuses == ["committed", "duplicate", "committed"]
    assert texts(engine) == ["before", "ok", "done", "next"]


def test_a_turn_is_committed_without_the_turns_before_it(engine: Engine) -> None:
    engine.ingest([said(f"m{n}", n) for n in range(6)])
    later = [said("ok", 600), said("done", 601, role="assistant")]
    assert engine.commit_turn(KEY, later).ingested == 2


def test_a_key_whose_payload_was_refused_is_free_for_the_mended_one(engine: Engine) -> None:
    with pytest.raises(MessageError, match=r"messages\[1\]"):
        engine.commit_turn(KEY, [TURN[0], {"content": "no role"}])
    mended = engine.commit_turn(KEY, TURN)
    assert (mended.status, texts(engine)) == ("committed", ["ok", "done"])


def test_a_retry_is_a_duplicate_and_stores_nothing(engine: Engine) -> None:
    receipts = [engine.commit_turn(KEY, UNTIMED) for _ in range(3)]
    assert [one.status for one in receipts] == ["committed", "duplicate", "duplicate"]
    assert [one.ingested for one in receipts] == [2, 0, 0]
    assert texts(engine) == ["ok", "done"]


def test_a_retry_after_a_restart_is_a_duplicate(database: Path) -> None:
    statuses = []
    for _ in range(2):
        with make_engine(database) as engine:
            statuses.append(engine.commit_turn(KEY, UNTIMED).status)
    assert statuses == ["committed", "duplicate"]


def test_a_key_with_other_content_is_refused_and_changes_nothing(engine: Engine) -> None:
    engine.commit_turn(KEY, TURN)
    with pytest.raises(CommitConflictError, match=KEY):
        engine.commit_turn(KEY, [*TURN, said("one more", 3)])
    assert (texts(engine), engine.commit_turn(KEY, TURN).status) == (["ok", "done"], "duplicate")


def test_equal_turns_under_keys_of_their_own_are_all_kept(engine: Engine) -> None:
    statuses = [engine.commit_turn(key, UNTIMED[:1]).status for key in ("a", "b", "c")]
    assert (statuses, texts(engine)) == (["committed"] * 3, ["ok"] * 3)


def test_one_key_in_two_conversations_names_two_turns(engine: Engine) -> None:
    statuses = [engine.commit_turn(KEY, TURN, session_key=key).status for key in ("a", "b")]
    assert statuses == ["committed", "committed"]


def test_a_committed_turn_is_not_stored_again_from_its_transcript(
    engine: Engine, tmp_path: Path
) -> None:
    engine.commit_turn(KEY, UNTIMED)
    session = write_session(tmp_path / "session.jsonl", chain(*TURN))
    assert engine.bootstrap(session, session_key="default").ingested == 0


def test_a_turn_that_its_transcript_brought_first_is_committed_without_a_second_copy(
    engine: Engine, tmp_path: Path
) -> None:
    engine.bootstrap(write_session(tmp_path / "s.jsonl", chain(*TURN)), session_key="default")
    receipt = engine.commit_turn(KEY, TURN)
    assert (receipt.status, receipt.ingested, receipt.duplicates) == ("committed", 0, 2)


def test_a_commit_that_fails_at_any_statement_stores_nothing_and_can_be_retried(
    engine: Engine,
) -> None:
    def fail_at(statement_number: int, key: str) -> bool:
        commit = partial(engine.commit_turn, KEY, UNTIMED, session_key=key)
        return power_fails(engine, statement_number, commit)

    cuts = 0
    while fail_at(cuts + 1, key := f"session-{cuts}"):
        cuts += 1
        assert key not in {one.session_key for one in engine.conversations(limit=200)}
        retries = [engine.commit_turn(KEY, UNTIMED, session_key=key).status for _ in range(2)]
        assert (retries, texts(engine, session_key=key)) == (
            ["committed", "duplicate"],
            ["ok", "done"],
        )
    assert cuts > 5
    assert violations(engine.store) == []


DIES_AT_EACH_STATEMENT = """
    import os, sys
    import lcm_fast

    def commit(dies_at):
        left = dies_at
        def count_down(cursor, statement, bindings):
            nonlocal left
            left -= 1
            if left == 0:
                os._exit(9)
            return True
        engine = lcm_fast.open(sys.argv[1])
        engine.store._writer._db.exec_trace = count_down
        turn = [{"role": "user", "content": "ok"}, {"role": "assistant", "content": "done"}]
        engine.commit_turn("run-17", turn, session_key=str(dies_at))

    lcm_fast.open(sys.argv[1]).close()
    number = 0
    while True:
        number += 1
        child = os.fork()
        if not child:
            commit(number)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            print(number)
            break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is killed in mid-turn by forking")
def test_a_commit_whose_process_died_at_any_statement_is_whole_or_not_there(
    database: Path,
) -> None:
    script = [sys.executable, "-c", textwrap.dedent(DIES_AT_EACH_STATEMENT), str(database)]
    last = int(subprocess.run(script, check=True, stdout=subprocess.PIPE).stdout)
    with make_engine(database) as engine:
        there = {one.session_key for one in engine.conversations(limit=200)}
        for number in range(1, last + 1):
            receipt = engine.commit_turn(KEY, UNTIMED, session_key=str(number))
            assert (receipt.status == "duplicate") == (str(number) in there)
            assert texts(engine, session_key=str(number)) == ["ok", "done"]
        assert (last > 5, str(last) in there, "1" in there) == (True, True, False)
        assert violations(engine.store) == []
