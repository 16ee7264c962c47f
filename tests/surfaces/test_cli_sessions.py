"""`run` and `ingest`: what they store, what they print for people and for programs."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from surfaces.command import Command, talk, write_session


def test_run_prints_one_json_object_with_the_promised_keys(lcm: Command, short: Path) -> None:
    found = json.loads(lcm("run", short, "--json").stdout)
    promised = {"ok", "session_key", "ingest", "compaction", "assembly", "implementation", "db"}
    assert promised <= found.keys()


def test_run_promises_the_keys_of_its_parts(lcm: Command, short: Path) -> None:
    found = json.loads(lcm("run", short, "--json").stdout)
    assert {"ingested", "duplicates", "unreadable", "messages_per_s"} <= found["ingest"].keys()
    made = {"status", "summaries_created", "tokens_before", "tokens_after"}
    assert made <= found["compaction"].keys()
    chosen = {"messages", "estimated_tokens", "token_budget", "selection"}
    assert chosen <= found["assembly"].keys()


def test_run_counts_the_assembled_messages(lcm: Command, short: Path) -> None:
    assert json.loads(lcm("run", short, "--json").stdout)["assembly"]["messages"] == 6


def test_a_second_run_adds_nothing(lcm: Command, short: Path) -> None:
    lcm("run", short)
    again = json.loads(lcm("run", short, "--json").stdout)["ingest"]
    assert (again["ingested"], again["duplicates"]) == (0, 6)


def test_a_second_run_tells_people_that_nothing_was_new(lcm: Command, short: Path) -> None:
    lcm("run", short)
    assert "0 new" in lcm("run", short).stdout


def test_a_grown_session_adds_its_new_messages_only(
    lcm: Command, short: Path, tmp_path: Path
) -> None:
    lcm("run", short)
    write_session(short, talk(9))
    again = json.loads(lcm("run", short, "--json").stdout)["ingest"]
    assert (again["ingested"], again["duplicates"]) == (3, 6)


def test_run_compacts_a_long_session_and_keeps_to_the_budget(lcm: Command, long: Path) -> None:
    found = json.loads(lcm("run", long, "--budget", 5000, "--json").stdout)
    assert found["compaction"]["summaries_created"] > 0
    assert found["assembly"]["estimated_tokens"] <= 5000


def test_the_report_says_what_went_in_what_came_out_where_and_what_to_type_next(
    lcm: Command, long: Path
) -> None:
    report = lcm("run", long, "--budget", 5000).stdout
    labels = [line[2:12].strip() for line in report.splitlines() if line[2:12].strip()]
    assert labels[1:] == ["in", "compact", "out", "where", "next"]


def test_the_report_is_at_most_80_columns_wide(lcm: Command, long: Path) -> None:
    report = lcm("run", long.name, "--budget", 5000, "--db", "lcm.db").stdout
    assert [line for line in report.splitlines() if len(line) > 80] == []


def test_the_commands_to_type_next_work(lcm: Command, short: Path) -> None:
    report = lcm("run", short).stdout
    commands = [line.split()[-3:] for line in report.splitlines() if "lcm-fast summ" in line]
    assert lcm(*commands[0]).exit_code == 0


def test_out_holds_the_assembled_messages_as_a_json_array(
    lcm: Command, short: Path, tmp_path: Path
) -> None:
    lcm("run", short, "--out", tmp_path / "context.json")
    written = json.loads((tmp_path / "context.json").read_text(encoding="utf-8"))
    assert [message["content"] for message in written] == [m["content"] for m in talk(6)]


def test_out_is_readable_by_its_owner_only(lcm: Command, short: Path, tmp_path: Path) -> None:
    lcm("run", short, "--out", tmp_path / "context.json")
    assert stat.S_IMODE((tmp_path / "context.json").stat().st_mode) == 0o600


def test_out_leaves_no_partial_file_behind(lcm: Command, short: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    lcm("run", short, "--out", tmp_path / "out" / "context.json")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["context.json"]


def test_several_sessions_print_a_json_line_each_in_their_order(
    lcm: Command, short: Path, long: Path
) -> None:
    lines = lcm("run", long, short, "--json").stdout.splitlines()
    assert [json.loads(line)["session_key"] for line in lines] == ["long", "short"]


def test_a_session_that_fails_does_not_stop_the_others(lcm: Command, short: Path) -> None:
    lines = lcm("run", "missing.jsonl", short, "--json").stdout.splitlines()
    assert [json.loads(line)["ok"] for line in lines] == [False, True]


def test_a_session_that_fails_is_named_in_its_json_line(lcm: Command, short: Path) -> None:
    first = json.loads(lcm("run", "missing.jsonl", short, "--json").stdout.splitlines()[0])
    assert (first["session_file"], first["error"]["code"]) == ("missing.jsonl", "not_found")


def test_several_sessions_end_with_the_highest_exit_code(lcm: Command, short: Path) -> None:
    short.with_name("half.jsonl").write_text('{"role":"user","content":"a"}\nnonsense\n')
    assert lcm("run", short, "half.jsonl", "missing.jsonl").exit_code == 3


def test_a_session_key_is_for_one_session(lcm: Command, short: Path, long: Path) -> None:
    assert lcm("run", short, long, "--session-key", "k").exit_code == 2


def test_a_session_goes_to_the_conversation_its_key_names(lcm: Command, short: Path) -> None:
    lcm("run", short, "--session-key", "agent:main")
    assert lcm("messages", "--session-key", "agent:main").exit_code == 0


def test_ingest_stores_without_compacting(lcm: Command, long: Path) -> None:
    lcm("ingest", long)
    totals = json.loads(lcm("status", "--json").stdout)["totals"]
    assert (totals["messages"], totals["summaries"]["leaf"]) == (200, 0)


def test_ingest_prints_its_counts_as_json(lcm: Command, short: Path) -> None:
    found = json.loads(lcm("ingest", short, "--json").stdout)
    assert (found["ok"], found["ingested"], found["session_key"]) == (True, 6, "short")


def test_abandoned_branches_are_reported(lcm: Command, tmp_path: Path) -> None:
    session = write_session(tmp_path / "branched.jsonl", talk(4))
    lines = session.read_text(encoding="utf-8").splitlines()
    fork = json.loads(lines[-1]) | {"id": "fork", "parentId": "e2"}
    session.write_text("\n".join([*lines, json.dumps(fork)]) + "\n", encoding="utf-8")
    assert "2 messages on abandoned branches" in lcm("run", session).stdout
