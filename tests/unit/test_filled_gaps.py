"""Messages that were missing in the middle: where they go, and what moves with the rows behind."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import chain, entry, make_engine, said, shown, texts, violations, write_session

from lcm_fast.engine import Engine
from lcm_fast.store import Address

KEY = "session"
CALL = {"type": "toolCall", "id": "call_1", "name": "exec", "arguments": {}}
CALLING = {"role": "assistant", "content": [CALL], "timestamp": 1_700_000_002_000}
ANSWER = {
    "role": "toolResult",
    "toolCallId": "call_1",
    "content": [{"type": "text", "text": "found"}],
    "timestamp": 1_700_000_003_000,
}


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def turns(*numbers: int) -> list[dict[str, Any]]:
    """Return entries e<n> that say <n>, each the child of the one before in the list."""
    parents = [None, *(f"e{n}" for n in numbers)]
    return [
        entry(f"e{n}", parent, said(str(n), n)) for n, parent in zip(numbers, parents, strict=False)
    ]


def order(engine: Engine) -> list[str]:
    return texts(engine, session_key=KEY)


def openers(engine: Engine) -> list[int]:
    found = engine.store.frontier(Address(KEY), {})
    assert found is not None
    return [int(opener) for opener in found[1].openers]


@pytest.mark.parametrize(
    "known",
    [(1, 2, 5), (1, 5), (2, 3, 4), (3,), (5,), (1, 3, 5)],
    ids=lambda known: "has " + " ".join(map(str, known)),
)
def test_a_file_that_has_more_fills_every_gap_in_its_order(
    engine: Engine, session: Path, known: tuple[int, ...]
) -> None:
    engine.bootstrap(write_session(session, turns(*known)))
    engine.bootstrap(write_session(session, turns(1, 2, 3, 4, 5)))
    assert (order(engine), violations(engine.store)) == (list("12345"), [])


def test_a_message_between_two_that_a_live_batch_repeats_is_filled_in(engine: Engine) -> None:
    engine.ingest([said("1", 1), said("3", 3)], session_key=KEY)
    engine.ingest([said("1", 1), said("2", 2), said("3", 3)], session_key=KEY)
    assert order(engine) == ["1", "2", "3"]


def test_new_messages_around_a_repeated_one_in_a_live_batch_are_appended(engine: Engine) -> None:
    engine.ingest([said("1", 1), said("2", 2)], session_key=KEY)
    engine.ingest([said("3", 3), said("1", 1), said("4", 4)], session_key=KEY)
    assert order(engine) == ["1", "2", "3", "4"]


def test_what_the_file_lacks_yet_stays_behind_what_it_brings(engine: Engine, session: Path) -> None:
    engine.bootstrap(write_session(session, turns(1)))
    engine.ingest([said("3", 3)], session_key=KEY)
    engine.bootstrap(write_session(session, turns(1, 2)))
    assert order(engine) == ["1", "2", "3"]


def test_a_later_message_of_the_file_goes_behind_an_earlier_live_one(
    engine: Engine, session: Path
) -> None:
    engine.bootstrap(write_session(session, turns(1)))
    engine.ingest([said("2", 2)], session_key=KEY)
    engine.bootstrap(write_session(session, turns(1, 3)))
    assert order(engine) == ["1", "2", "3"]


def test_a_call_that_is_filled_in_takes_up_its_result(engine: Engine, session: Path) -> None:
    entries = chain(said("go", 1), CALLING, ANSWER)
    engine.bootstrap(write_session(session, [entries[0], entries[2]]))
    engine.bootstrap(write_session(session, entries))
    assert openers(engine) == [1, 2, 2]
    with closing(apsw.Connection(engine.store.path)) as db:
        calls = db.execute("SELECT call_id, call_seq, result_seq FROM tool_calls").fetchall()
        assert calls == [("call_1", 2, 3)]


def test_exchanges_behind_a_gap_keep_their_openers(engine: Engine, session: Path) -> None:
    entries = chain(said("a", 0), said("b", 1), CALLING, ANSWER)
    engine.bootstrap(write_session(session, [entries[0], *entries[2:]]))
    engine.bootstrap(write_session(session, entries))
    assert openers(engine) == [1, 2, 3, 3]


def test_entries_without_a_message_keep_their_place_around_a_filled_gap(
    engine: Engine, session: Path
) -> None:
    entries: list[dict[str, Any]] = []
    for one in turns(1, 2, 3):
        entries += [one, {"type": "custom", "data": one["id"]}]
    engine.bootstrap(write_session(session, [*entries[:2], *entries[4:]]))
    engine.bootstrap(write_session(session, entries))
    lines = session.read_bytes().splitlines()
    assert list(engine.export_entries(session_key=KEY)) == lines


def test_a_gap_inside_what_a_summary_covers_is_filled_beside_it(
    database: Path, session: Path
) -> None:
    long = [entry(f"e{n}", f"e{n - 1}" if n else None, said(f"{n} " * 200, n)) for n in range(12)]
    with make_engine(database, fresh_tail_count=2, leaf_chunk_tokens=300) as engine:
        engine.bootstrap(write_session(session, [*long[:3], *long[4:]]))
        assert engine.compact(session_key=KEY, token_budget=600, force=True).summaries_created
        engine.bootstrap(write_session(session, long))
        assert order(engine) == [one["message"]["content"] for one in long]
        assert long[3]["message"]["content"] in shown(engine, KEY)
        assert violations(engine.store) == []


def test_a_frontier_read_before_the_gap_was_filled_is_read_anew(
    engine: Engine, session: Path
) -> None:
    engine.bootstrap(write_session(session, turns(1, 3)))
    engine.assemble(session_key=KEY, token_budget=1000)
    engine.bootstrap(write_session(session, turns(1, 2, 3)))
    messages = engine.assemble(session_key=KEY, token_budget=1000).messages
    assert [message["content"] for message in messages] == ["1", "2", "3"]


def test_many_gaps_are_filled_at_once(engine: Engine, session: Path) -> None:
    every = list(range(1, 400))
    engine.bootstrap(write_session(session, turns(*every[::3])))
    engine.bootstrap(write_session(session, turns(*every)))
    assert (order(engine), violations(engine.store)) == ([str(n) for n in every], [])
