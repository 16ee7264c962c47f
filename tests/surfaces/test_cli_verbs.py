"""The verbs that look at, compact and hand back what is stored."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from surfaces.command import Command, talk, write_session


@pytest.fixture
def memory(lcm: Command, long: Path) -> Command:
    """The command, with a long session stored and compacted."""
    assert lcm("run", long, "--budget", 5000).exit_code == 0
    return lcm


def test_assemble_prints_the_messages_within_the_budget(memory: Command) -> None:
    words = ("assemble", "--session-key", "long", "--budget", 2000, "--json")
    found = json.loads(memory(*words).stdout)
    assert found["estimated_tokens"] <= 2000
    assert found["messages"][-1]["content"] == talk(200)[-1]["content"]


def test_assemble_sends_the_messages_in_the_form_asked_for(memory: Command) -> None:
    words = ("assemble", "--session-key", "long", "--budget", 2000, "--json", "--format")
    newest = json.loads(memory(*words, "anthropic").stdout)["messages"][-1]
    assert newest["content"] == [{"type": "text", "text": talk(200)[-1]["content"]}]


def test_assemble_names_the_forms_when_there_is_none_such(memory: Command) -> None:
    result = memory("assemble", "--session-key", "long", "--budget", 2000, "--format", "toml")
    assert result.exit_code == 2
    assert "openclaw" in result.stderr
    assert "responses" in result.stderr


def test_assemble_finds_a_conversation_by_its_session_id(memory: Command) -> None:
    assert memory("assemble", "--session-id", "id-of-long", "--budget", 2000).exit_code == 0


def test_assemble_shows_people_role_and_first_words(memory: Command) -> None:
    shown = memory("assemble", "--session-key", "long", "--budget", 2000).stdout
    assert "assistant\n      Point 200: the retry limit" in shown


def test_assemble_writes_its_messages_to_a_file(memory: Command, tmp_path: Path) -> None:
    memory("assemble", "--session-key", "long", "--budget", 2000, "--out", "c.json")
    assert json.loads((tmp_path / "c.json").read_bytes())[-1]["role"] == "assistant"


def test_assemble_refuses_a_budget_too_small(memory: Command) -> None:
    assert memory("assemble", "--session-key", "long", "--budget", 100).exit_code == 2


def test_compact_reports_what_it_did_as_json(lcm: Command, long: Path) -> None:
    lcm("ingest", long)
    found = json.loads(lcm("compact", "--session-key", "long", "--budget", 5000, "--json").stdout)
    assert found["tokens_after"] < found["tokens_before"]


def test_compact_does_nothing_under_its_target(memory: Command) -> None:
    found = memory("compact", "--session-key", "long", "--budget", 500_000, "--json").stdout
    assert json.loads(found)["status"] == "nothing"


def test_compact_can_be_forced_under_its_target(lcm: Command, long: Path) -> None:
    lcm("ingest", long)
    words = ("compact", "--session-key", "long", "--budget", 500_000, "--force", "--json")
    assert json.loads(lcm(*words).stdout)["summaries_created"] > 0


def test_compact_makes_no_memory_to_find_nothing_in(lcm: Command, tmp_path: Path) -> None:
    assert lcm("compact", "--session-key", "x", "--budget", 5000).exit_code == 3
    assert not (tmp_path / "lcm.db").exists()


def test_status_has_the_promised_keys(memory: Command) -> None:
    promised = {
        *("ok", "version", "enabled", "selected", "implementation", "database", "totals"),
        *("conversations", "maintenance", "ingest", "search", "summary_health"),
        *("token_counter", "config_sources", "problems"),
    }
    assert promised <= json.loads(memory("status", "--json").stdout).keys()


def test_status_says_what_counts_the_tokens(memory: Command) -> None:
    shown = memory("status").stdout
    assert "counted by estimate by documented: asked for by tokenCounter" in shown


def test_status_names_the_source_of_a_value_that_was_set(memory: Command) -> None:
    memory_status = json.loads(memory("status", "--db", "lcm.db", "--json").stdout)
    assert memory_status["config_sources"]["databasePath"] == "argument"


def test_status_shows_people_the_totals(memory: Command) -> None:
    assert "200 messages in 1 conversation" in memory("status").stdout


def test_status_of_an_unknown_session_key_is_not_found(memory: Command) -> None:
    assert memory("status", "--session-key", "nobody").exit_code == 3


def test_doctor_passes_on_a_healthy_memory(memory: Command) -> None:
    found = memory("doctor", "--json")
    assert (found.exit_code, json.loads(found.stdout)["ok"]) == (0, True)


def test_doctor_lists_each_check_by_name(memory: Command) -> None:
    checks = json.loads(memory("doctor", "--json").stdout)["checks"]
    shown = memory("doctor").stdout
    assert all(f"ok      {check['name']}: " in shown for check in checks)


def test_doctor_ends_with_1_when_a_check_fails(memory: Command, tmp_path: Path) -> None:
    _break_a_counter(tmp_path / "lcm.db")
    assert memory("doctor").exit_code == 1


def test_doctor_says_which_check_failed(memory: Command, tmp_path: Path) -> None:
    _break_a_counter(tmp_path / "lcm.db")
    assert "FAILED  counters" in memory("doctor").stdout


def _break_a_counter(path: Path) -> None:
    import sqlite3  # noqa: PLC0415  (only where a test does damage from outside)

    db = sqlite3.connect(path)
    db.execute("UPDATE conversations SET message_count = message_count + 1")
    db.commit()
    db.close()


def test_export_gives_the_session_back_byte_for_byte(memory: Command, long: Path) -> None:
    memory("export", "--session-key", "long", "--to", "back.jsonl")
    assert long.with_name("back.jsonl").read_bytes() == long.read_bytes()


def test_export_writes_to_standard_output(memory: Command, long: Path) -> None:
    assert memory("export", "--session-key", "long").stdout_bytes == long.read_bytes()


def test_export_of_json_about_itself_needs_a_file(memory: Command) -> None:
    assert memory("export", "--session-key", "long", "--json").exit_code == 2


def test_conversations_are_listed(memory: Command) -> None:
    found = json.loads(memory("conversations", "--json").stdout)
    assert [row["session_key"] for row in found["conversations"]] == ["long"]


def test_paging_through_conversations_visits_each_once(lcm: Command, tmp_path: Path) -> None:
    for number in range(5):
        lcm("ingest", write_session(tmp_path / f"s{number}.jsonl", talk(2)))
    seen = [row["session_key"] for row in _all_rows(lcm, "conversations", 2)]
    assert seen == ["s0", "s1", "s2", "s3", "s4"]


def test_paging_through_messages_visits_each_once(memory: Command) -> None:
    rows = _all_rows(memory, "messages", 7, "--session-key", "long")
    assert [row["content"] for row in rows] == [message["content"] for message in talk(200)]


def test_paging_through_summaries_visits_each_once(memory: Command) -> None:
    words = ("summaries", "--session-key", "long")
    whole = json.loads(memory(*words, "--limit", 1000, "--json").stdout)["summaries"]
    paged = _all_rows(memory, "summaries", 1, "--session-key", "long")
    assert [row["id"] for row in paged] == [row["id"] for row in whole]


def _all_rows(lcm: Command, verb: str, limit: int, *words: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    cursor: list[object] = []
    while True:
        page = json.loads(lcm(verb, *words, "--limit", limit, "--json", *cursor).stdout)
        assert len(page[verb]) <= limit
        rows += page[verb]
        if page["next_cursor"] is None:
            return rows
        cursor = ["--cursor", page["next_cursor"]]


def test_a_list_for_people_ends_with_the_command_for_the_next_page(memory: Command) -> None:
    last = memory("messages", "--session-key", "long", "--limit", 5).stdout.splitlines()[-1]
    words = shlex.split(last.removeprefix("more: lcm-fast "))
    assert memory(*words).stdout.splitlines()[1].startswith("msg_6 ")


def test_a_list_shows_ids_whole_on_a_narrow_terminal(
    memory: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    listed = memory("summaries", "--session-key", "long", "--json").stdout
    first = json.loads(listed)["summaries"][0]["id"]
    assert first in memory("summaries", "--session-key", "long").stdout


def test_one_message_is_shown_with_its_bytes_as_received(memory: Command, long: Path) -> None:
    found = json.loads(memory("messages", "--id", "msg_1", "--json").stdout)["message"]
    assert found["raw"] == long.read_text(encoding="utf-8").splitlines()[1]


def test_one_message_is_shown_whole_to_people(memory: Command) -> None:
    assert talk(3)[2]["content"] in memory("messages", "--id", "msg_3").stdout


def test_one_summary_is_shown_whole_to_people(memory: Command) -> None:
    listed = memory("summaries", "--session-key", "long", "--json").stdout
    first = json.loads(listed)["summaries"][0]
    assert first["content"] in memory("summaries", "--id", first["id"]).stdout


@pytest.mark.parametrize(("verb", "name"), [("messages", "msg_9999"), ("summaries", "sum_0")])
def test_an_unknown_id_is_not_found(memory: Command, verb: str, name: str) -> None:
    assert memory(verb, "--id", name).exit_code == 3


@pytest.mark.parametrize("verb", ["messages", "summaries", "export"])
def test_a_verb_on_a_conversation_must_be_told_which(memory: Command, verb: str) -> None:
    assert memory(verb).exit_code == 2


def test_looking_never_makes_a_database(lcm: Command, tmp_path: Path) -> None:
    for verb in ("status", "doctor", "conversations"):
        assert lcm(verb).exit_code == 3
    assert not (tmp_path / "lcm.db").exists()
