"""Which sessions are not stored, which keys are a job's, which turns are heartbeats."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import chain, make_engine, said, shown, texts, write_session
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.engine import Engine
from lcm_fast.ingest.heartbeats import heartbeat_positions
from lcm_fast.ingest.session_keys import is_cron_key, normalised_key
from lcm_fast.ingest.session_patterns import SessionPolicy, matches

POLL = "[OpenClaw heartbeat poll]"


@pytest.mark.parametrize(
    ("pattern", "key", "expected"),
    [
        ("agent:*:cron:*", "agent:main:cron:nightly", True),
        ("agent:*:cron:*", "agent:main:cron:nightly:run:run-123", False),
        ("agent:*:cron:**", "agent:main:cron:nightly:run:run-123", True),
        ("agent:main:subagent:**", "agent:main:subagent:a:subagent:b", True),
        ("agent?main", "agent?main", True),
        ("agent?main", "agenmain", False),
        ("a.c", "abc", False),
        ("a*", "a", True),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_only_stars_are_special_in_a_pattern(pattern: str, key: str, expected: bool) -> None:
    assert matches(pattern, key) is expected


@given(st.text("ab:*", max_size=8), st.text("ab:", max_size=8))
def test_a_pattern_matches_what_the_regular_expression_it_stands_for_does(
    pattern: str, key: str
) -> None:
    parts = re.split(r"(\*+)", pattern)
    expression = "".join(
        (".*" if len(part) > 1 else "[^:]*") if part.startswith("*") else re.escape(part)
        for part in parts
    )
    assert matches(pattern, key) is bool(re.fullmatch(expression, key))


def test_a_hundred_stars_are_matched_in_time_that_does_not_explode() -> None:
    assert not matches("*a" * 100 + "b", "a" * 2000)


def test_an_ignored_session_is_named_by_its_key_or_else_by_its_id() -> None:
    policy = SessionPolicy(["secret:*"], [], skip_stateless=True)
    assert policy.is_ignored("secret:1", None)
    assert policy.is_ignored(" ", "secret:1")
    assert not policy.is_ignored("open:1", "secret:1")


def test_a_stateless_session_is_told_by_its_key_alone_and_only_when_obeyed() -> None:
    assert SessionPolicy([], ["tmp:*"], skip_stateless=True).is_stateless("tmp:1")
    assert not SessionPolicy([], ["tmp:*"], skip_stateless=True).is_stateless(None)
    assert not SessionPolicy([], ["tmp:*"], skip_stateless=False).is_stateless("tmp:1")


def test_nothing_of_an_ignored_session_is_stored_and_the_result_says_why(database: Path) -> None:
    with make_engine(database, ignore_session_patterns=("secret:*",)) as engine:
        result = engine.ingest([said("hi")], session_key="secret:1")
        assert (result.ingested, result.reason) == (0, "session excluded by pattern")
        assert engine.conversations() == []


def test_a_stateless_session_is_read_from_and_never_written_to(database: Path) -> None:
    with make_engine(database) as engine:
        engine.ingest([said("hi")], session_key="tmp:1")
    with make_engine(database, stateless_session_patterns=("tmp:*",)) as engine:
        result = engine.commit_turn("k", [said("more")], session_key="tmp:1")
        assert (result.status, result.reason) == ("skipped", "stateless session")
        assert engine.assemble(session_key="tmp:1", token_budget=1000).messages == [said("hi")]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("agent:main:cron:nightly", True),
        ("agent:main:cron:nightly:run:1", True),
        ("agent:main:cron", False),
        ("agent:main:main:cron", False),
        ("cron:agent:cron:x", False),
    ],
)
def test_a_jobs_key_is_told_by_its_shape(key: str, expected: bool) -> None:
    assert is_cron_key(key) is expected


def test_blank_names_are_none() -> None:
    assert (normalised_key(" a "), normalised_key(" "), normalised_key(None)) == ("a", None, None)


def test_the_golden_heartbeats_are_found() -> None:
    turns = [
        ("user", POLL),
        ("assistant", "HEARTBEAT_OK"),
        ("user", "Read HEARTBEAT.md now"),
        ("tool", "x"),
        ("assistant", " heartbeat_ok "),
        ("user", "hi"),
        ("assistant", "HEARTBEAT_OK — nothing"),
    ]
    assert heartbeat_positions(turns) == [0, 2, 3, 4]


HEARTBEAT = [said("Read HEARTBEAT.md now", 1), said("HEARTBEAT_OK", 2, role="assistant")]


def test_heartbeats_are_kept_like_any_turn(engine: Engine) -> None:
    engine.ingest([*HEARTBEAT, said("hi", 3)])
    assert len(shown(engine)) == 3


def test_pruned_heartbeats_are_stored_and_not_shown(database: Path) -> None:
    with make_engine(database, prune_heartbeat_ok=True) as engine:
        engine.ingest([*HEARTBEAT, said("hi", 3)])
        assert (shown(engine), len(texts(engine))) == (["hi"], 3)
        assert engine.messages()[0].excluded == "heartbeat"


def test_a_turn_that_a_host_calls_a_heartbeat_is_pruned_whole(database: Path) -> None:
    with make_engine(database, prune_heartbeat_ok=True) as engine:
        engine.ingest([said("anything?", 1)], is_heartbeat=True)
        assert (shown(engine), len(texts(engine))) == ([], 1)


def test_a_stateless_session_is_not_compacted(database: Path) -> None:
    with make_engine(database, stateless_session_patterns=("tmp:*",)) as engine:
        result = engine.compact(session_key="tmp:1", force=True)
        assert (result.status, result.reason) == ("nothing", "stateless session")


def test_a_session_file_is_ignored_by_its_key_or_by_its_id(database: Path, tmp_path: Path) -> None:
    file = write_session(tmp_path / "session.jsonl", chain(said("hi", 1)))
    for pattern in ("s-1", "session"):
        with make_engine(database, ignore_session_patterns=(pattern,)) as engine:
            assert engine.bootstrap(file).reason == "session excluded by pattern"
            assert engine.conversations() == []


def test_a_call_that_names_no_session_is_ignored_as_the_default_one(database: Path) -> None:
    with make_engine(database, ignore_session_patterns=("**",)) as engine:
        assert engine.ingest([said("hi", 1)]).reason == "session excluded by pattern"
