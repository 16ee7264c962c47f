"""Each check of doctor, seen to fail on a database broken by hand, and only to report."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from conftest import make_engine, said

import lcm_fast
from lcm_fast.errors import NotFoundError
from lcm_fast.surfaces.doctor import Check

NAMES = [
    "integrity",
    "foreign_keys",
    "coverage",
    "ordinals",
    "summary_edges",
    "counters",
    "fallback_summaries",
    "truncated_summaries",
    "large_files",
    "frozen",
    "transcripts_read",
]


@pytest.fixture
def healthy(database: Path) -> Path:
    """A database with forty messages, leaf summaries and a condensed one."""
    with make_engine(database, fresh_tail_count=4, leaf_chunk_tokens=1000) as engine:
        engine.ingest([said(f"We moved step {n} to /srv/step{n}.py. " * 30, n) for n in range(40)])
        engine.compact(token_budget=4000, force=True)
        assert engine.conversation().leaf_count >= 2
    return database


def broken(path: Path, *statements: str) -> list[Check]:
    """Break a database behind its back; return the checks that fail, and see that none repairs."""
    with closing(apsw.Connection(str(path))) as db:
        for statement in statements:
            db.execute(statement)
    before = lcm_fast.doctor(path)
    again = lcm_fast.doctor(path)
    assert (before.ok, before) == (False, again)
    return [check for check in before.checks if not check.ok]


def test_a_healthy_memory_passes_every_check(healthy: Path) -> None:
    report = lcm_fast.doctor(healthy)
    assert ([check.name for check in report.checks], report.ok) == (NAMES, True)


def test_an_empty_memory_passes_every_check(database: Path) -> None:
    with make_engine(database) as engine:
        assert lcm_fast.doctor(engine).ok


def test_a_memory_in_use_can_be_checked(healthy: Path) -> None:
    with make_engine(healthy) as engine:
        engine.ingest([said("one more", 99)])
        assert lcm_fast.doctor(engine).ok


def test_the_report_is_plain_values(healthy: Path) -> None:
    report = lcm_fast.doctor(healthy).to_dict()
    assert set(report) == {"ok", "checks"}
    assert set(report["checks"][0]) == {"name", "ok", "detail", "hint", "affected"}


def test_a_memory_that_is_not_there_is_not_made(database: Path) -> None:
    with pytest.raises(NotFoundError):
        lcm_fast.doctor(database)
    assert not database.exists()


def test_a_row_an_index_disagrees_with_fails_integrity(healthy: Path) -> None:
    with closing(apsw.Connection(str(healthy))) as db:
        ((identity,),) = db.execute("SELECT identity_hash FROM messages WHERE message_id = 40")
    whole = bytearray(healthy.read_bytes())
    whole[whole.rindex(identity)] ^= 0xFF
    healthy.write_bytes(whole)
    (check,) = [check for check in lcm_fast.doctor(healthy).checks if not check.ok]
    assert (check.name, "messages_identity" in check.detail) == ("integrity", True)


def test_a_reference_that_leads_nowhere_fails_foreign_keys(healthy: Path) -> None:
    checks = broken(
        healthy,
        "INSERT INTO tool_calls VALUES (77, 'call', 1, 'exec', NULL)",
    )
    (check,) = checks
    assert (check.name, check.affected) == ("foreign_keys", 1)
    assert "tool_calls" in check.detail


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM context_items WHERE message_id = 40",
        "UPDATE messages SET excluded = 'by hand' WHERE message_id = 40",
        "INSERT INTO summary_messages SELECT summary_id, 40, 999 FROM summaries LIMIT 1",
    ],
    ids=["nowhere", "excluded and shown", "covered and shown"],
)
def test_a_message_that_does_not_stand_once_fails_coverage(healthy: Path, statement: str) -> None:
    found = {check.name: check for check in broken(healthy, statement)}
    assert "message 40 stands" in found["coverage"].detail


def test_messages_under_an_unreachable_summary_fail_coverage(healthy: Path) -> None:
    checks = broken(healthy, "DELETE FROM context_items WHERE item_type = 'summary'")
    coverage = next(check for check in checks if check.name == "coverage")
    assert coverage.affected > 5
    assert coverage.detail.endswith(f"and {coverage.affected - 5} more")


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE context_items SET ordinal = 77 WHERE message_id = 40", "ordinal 77"),
        ("UPDATE context_items SET depth = 5 WHERE item_type = 'summary'", "summary sum_"),
    ],
)
def test_an_item_out_of_its_place_fails_ordinals(healthy: Path, statement: str, named: str) -> None:
    found = {check.name: check for check in broken(healthy, statement)}
    assert named in found["ordinals"].detail


ANOTHER = (
    "INSERT INTO summaries SELECT 'sum_new', conversation_id, 'condensed', 9, content, token_count,"
    " NULL, NULL, 1, 0, 0, created_at, '[]', model, 'normal', 0, NULL, 0, NULL"
    " FROM summaries LIMIT 1"
)


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        ([ANOTHER], "sum_new has no sources"),
        (
            ["UPDATE summaries SET descendant_count = 42 WHERE kind = 'leaf'"],
            "and 42 descendants",
        ),
        (
            ["UPDATE summaries SET replaced_by = 'sum_gone' WHERE kind = 'leaf'"],
            "was replaced and is still in use",
        ),
        (
            [
                ANOTHER,
                "UPDATE summaries SET depth = 0 WHERE summary_id = 'sum_new'",
                "INSERT INTO summary_parents"
                " SELECT 'sum_new', summary_id, 0 FROM summaries WHERE kind = 'leaf' LIMIT 1",
            ],
            "sum_new at depth 0 has a source at depth 0",
        ),
        (
            [
                ANOTHER,
                ANOTHER.replace("sum_new", "sum_newer"),
                "INSERT INTO summary_parents"
                " SELECT 'sum_new', min(summary_id), 0 FROM summaries WHERE kind = 'leaf'",
                "INSERT INTO summary_parents"
                " SELECT 'sum_newer', min(summary_id), 0 FROM summaries WHERE kind = 'leaf'",
            ],
            " times",
        ),
    ],
    ids=["no sources", "descendants", "replaced", "depth", "shared source"],
)
def test_a_broken_edge_fails_summary_edges(
    healthy: Path, statements: list[str], named: str
) -> None:
    found = {check.name: check for check in broken(healthy, *statements)}
    assert named in found["summary_edges"].detail


@pytest.mark.parametrize(
    "counter",
    [
        "message_count",
        "message_tokens",
        "excluded_count",
        "frontier_items",
        "frontier_tokens",
        "frontier_summary_tokens",
        "covered_source_tokens",
        "leaf_count",
        "condensed_count",
    ],
)
def test_a_counter_that_is_off_is_named(healthy: Path, counter: str) -> None:
    (check,) = broken(healthy, f"UPDATE conversations SET {counter} = {counter} + 1")
    assert (check.name, f"conversation 1 has {counter}" in check.detail) == ("counters", True)


@pytest.mark.parametrize(
    ("name", "change"),
    [("fallback_summaries", "level = 'fallback'"), ("truncated_summaries", "truncated = 1")],
)
def test_a_summary_that_is_not_sound_is_named(healthy: Path, name: str, change: str) -> None:
    found = {
        check.name: check
        for check in broken(
            healthy,
            f"UPDATE summaries SET {change}"
            " WHERE summary_id = (SELECT min(summary_id) FROM summaries)",
        )
    }
    assert (found[name].affected, found[name].detail.startswith("sum_")) == (1, True)


def add_large_file(place: Path) -> str:
    return (
        "INSERT INTO large_files (file_id, conversation_id, byte_size, storage_uri, created_at)"
        f" VALUES ('file_1', 1, 5, '{place}', '')"
    )


def test_a_large_file_that_is_gone_is_named(healthy: Path, tmp_path: Path) -> None:
    (check,) = broken(healthy, add_large_file(tmp_path / "gone"))
    assert (check.name, "file_1" in check.detail, "is missing" in check.detail) == (
        "large_files",
        True,
        True,
    )


def test_a_large_file_of_another_size_is_named(healthy: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("four")
    (check,) = broken(healthy, add_large_file(tmp_path / "there"))
    assert check.detail.endswith("has 4 bytes, not 5")


def test_a_large_file_in_its_place_is_fine(healthy: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("fives")
    with closing(apsw.Connection(str(healthy))) as db:
        db.execute(add_large_file(tmp_path / "there"))
    assert lcm_fast.doctor(healthy).ok


def test_a_frozen_session_file_is_named_with_its_age_and_reason(healthy: Path) -> None:
    (check,) = broken(
        healthy,
        "INSERT INTO transcript_cursors (conversation_id, session_file_path, last_seen_size,"
        " last_seen_mtime_ns, last_processed_offset, frozen_since, frozen_reason, updated_at)"
        " VALUES (1, '/s.jsonl', 0, 0, 0, '2026-01-01', 'it was cut', '')",
    )
    assert (check.name, check.detail) == ("frozen", "/s.jsonl since 2026-01-01: it was cut")


def test_every_failing_check_says_what_to_do(healthy: Path) -> None:
    checks = broken(
        healthy,
        "UPDATE summaries SET level = 'fallback', truncated = 1",
        "DELETE FROM context_items WHERE message_id = 40",
    )
    assert all(check.hint for check in checks)
