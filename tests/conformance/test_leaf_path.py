"""The leaf path of branched sessions, case by case (spec: storage 3.2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from lcm_fast.transcripts.leaf_path import Link, is_linear, leaf_offsets
from lcm_fast.transcripts.reader import open_transcript

ShownTexts = Callable[[Iterable[dict[str, Any]]], list[str]]


def entry(entry_id: str, parent_id: str | None, text: str) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"type": "message", "id": entry_id, "parentId": parent_id, "message": message}


def custom(entry_id: str, parent_id: str | None, kind: str = "custom") -> dict[str, Any]:
    return {"type": kind, "id": entry_id, "parentId": parent_id}


@pytest.fixture
def shown(tmp_path: Path) -> ShownTexts:
    """Write entries behind a header and read the texts of the messages on the leaf path."""

    def write_and_read(entries: Iterable[dict[str, Any]]) -> list[str]:
        header = {"type": "session", "version": 3, "id": "s"}
        path = tmp_path / "session.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in [header, *entries]))
        return shown_texts(path)

    return write_and_read


def shown_texts(path: Path) -> list[str]:
    return [
        one.message["content"]
        for one in open_transcript(path)
        if one.message is not None and one.on_leaf_path
    ]


def test_a_linear_session_is_shown_whole(shown: ShownTexts) -> None:
    session = [entry("a", None, "one"), entry("b", "a", "two"), entry("c", "b", "three")]
    assert shown(session) == ["one", "two", "three"]


def test_of_two_branches_the_one_with_the_last_record_is_shown(shown: ShownTexts) -> None:
    session = [
        entry("a", None, "root"),
        entry("b1", "a", "abandoned reply"),
        entry("c1", "b1", "abandoned follow-up"),
        entry("b2", "a", "active reply"),
        entry("c2", "b2", "active follow-up"),
    ]
    assert shown(session) == ["root", "active reply", "active follow-up"]


def test_a_rewritten_suffix_replaces_the_old_one(shown: ShownTexts) -> None:
    session = [
        entry("a", None, "a"),
        entry("b", "a", "b"),
        entry("c", "b", "c"),
        entry("d", "c", "d"),
        entry("c2", "b", "c2"),
        entry("d2", "c2", "d2"),
    ]
    assert shown(session) == ["a", "b", "c2", "d2"]


def test_a_parent_of_null_in_mid_file_abandons_everything_before(shown: ShownTexts) -> None:
    session = [
        entry("a", None, "a"),
        entry("b", "a", "b"),
        entry("c", None, "c"),
        entry("d", "c", "d"),
    ]
    assert shown(session) == ["c", "d"]


def test_entries_without_a_message_are_links_of_the_chain(shown: ShownTexts) -> None:
    session = [
        entry("a", None, "one"),
        custom("x", "a"),
        entry("b", "x", "two"),
        custom("y", "b", "compaction"),
    ]
    assert shown(session) == ["one", "two"]


def test_a_duplicated_line_is_shown_once(shown: ShownTexts) -> None:
    duplicate = entry("b", "a", "two")
    session = [entry("a", None, "one"), duplicate, duplicate, entry("c", "b", "three")]
    assert shown(session) == ["one", "two", "three"]


def test_of_records_with_one_id_the_last_is_shown(shown: ShownTexts) -> None:
    session = [entry("a", None, "one"), entry("b", "a", "old"), entry("b", "a", "new")]
    assert shown(session) == ["one", "new"]


def test_one_bare_message_flattens_the_session(shown: ShownTexts) -> None:
    session = [
        entry("a", None, "one"),
        entry("b1", "a", "two"),
        {"role": "user", "content": "bare"},
        entry("b2", "a", "three"),
    ]
    assert shown(session) == ["one", "two", "bare", "three"]


def test_one_message_without_an_id_flattens_the_session(shown: ShownTexts) -> None:
    without_id = {"type": "message", "message": {"role": "user", "content": "no id"}}
    session = [entry("a", None, "one"), entry("b1", "a", "two"), without_id, entry("b2", "a", "x")]
    assert shown(session) == ["one", "two", "no id", "x"]


def test_an_entry_without_id_and_message_flattens_nothing(shown: ShownTexts) -> None:
    session = [
        entry("a", None, "one"),
        entry("b1", "a", "abandoned"),
        {"type": "label", "name": "x"},
        entry("b2", "a", "active"),
    ]
    assert shown(session) == ["one", "active"]


def test_an_unknown_parent_flattens_the_session(shown: ShownTexts) -> None:
    session = [entry("a", None, "one"), entry("b", "gone", "two"), entry("c", "b", "three")]
    assert shown(session) == ["one", "two", "three"]


def test_a_circle_of_parents_flattens_the_session(shown: ShownTexts) -> None:
    assert shown([entry("a", "b", "one"), entry("b", "a", "two")]) == ["one", "two"]


def test_a_record_that_names_no_parent_is_not_taken_for_a_root(shown: ShownTexts) -> None:
    session = [entry("a", None, "one"), entry("b", None, "two"), entry("c", "b", "three")]
    del session[1]["parentId"]
    assert shown(session) == ["one", "two", "three"]


def test_records_without_any_parents_are_a_list(shown: ShownTexts) -> None:
    session = [entry("a", None, "one"), entry("b", None, "two")]
    for one in session:
        del one["parentId"]
    assert shown(session) == ["one", "two"]


def test_the_header_is_not_part_of_the_path(shown: ShownTexts) -> None:
    assert shown([entry("s", None, "an entry with the session's id")]) == [
        "an entry with the session's id"
    ]


def test_an_array_is_shown_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "messages.json"
    messages = [{"role": "user", "content": text} for text in ("one", "two")]
    path.write_text(json.dumps(messages))
    assert shown_texts(path) == ["one", "two"]


def test_a_part_of_a_session_whose_root_is_elsewhere_is_shown_whole(tmp_path: Path) -> None:
    path = tmp_path / "increment.jsonl"
    entries = [entry("m", "earlier", "one"), entry("n", "m", "two")]
    path.write_text("".join(json.dumps(one) + "\n" for one in entries))
    assert shown_texts(path) == ["one", "two"]


def test_a_partial_last_line_does_not_move_the_leaf(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    entries = [entry("a", None, "one"), entry("b", "a", "two")]
    lines = "".join(json.dumps(one) + "\n" for one in entries)
    path.write_text(lines + '{"type":"message","id":"c","parentId":"a","mess')
    assert shown_texts(path) == ["one", "two"]


def test_objects_sharing_a_line_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    entries = [entry("a", None, "one"), entry("b", "a", "left"), entry("c", "a", "right")]
    path.write_text("".join(json.dumps(one) for one in entries) + "\n")
    assert shown_texts(path) == ["one", "right"]


def test_a_chain_of_any_length_is_walked_without_recursion() -> None:
    links = [Link(n, str(n), str(n - 1) if n else None, True) for n in range(50_000)]
    links.append(Link(50_000, "leaf", "49999", True))
    assert len(leaf_offsets(links) or ()) == 50_001


def test_a_linear_session_needs_no_table() -> None:
    links = (Link(n, str(n), str(n - 1) if n else None, True) for n in range(1000))
    assert is_linear(links)
