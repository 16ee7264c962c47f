"""The texts that stand for payloads, and the ids in them (spec: storage 2.9.4, 2.9.9, 8.15)."""

from __future__ import annotations

import pytest

from lcm_fast.ingest.payloads import reference_id, reference_ids
from lcm_fast.ingest.payloads.references import (
    file_reference,
    image_reference,
    raw_reference,
    tool_reference,
)

FILE_ID = "file_00112233aabbccdd"
READ_BACK = f'Call describe(id="{FILE_ID}", expand_file=True) to fetch the full'


def test_a_file_reference_names_id_name_type_and_size() -> None:
    assert file_reference(FILE_ID, "a.csv", "text/csv", 1_234_567, "Rows: 2.") == (
        f"[LCM File: {FILE_ID} | a.csv | text/csv | 1,234,567 bytes]\n\n"
        f"Exploration Summary:\nRows: 2.\n\n{READ_BACK} file content from disk."
    )


def test_a_tool_reference_names_id_tool_and_size() -> None:
    assert tool_reference(FILE_ID, "exec", 1_234, "Lines: 9.") == (
        f"[LCM Tool Output: {FILE_ID} | tool=exec | 1,234 bytes]\n\n"
        f"Exploration Summary:\nLines: 9.\n\n{READ_BACK} output content from disk."
    )


def test_a_raw_reference_names_id_role_reason_and_size() -> None:
    assert raw_reference(FILE_ID, "user", "large_raw_message", 1_234, "Lines: 9.") == (
        f"[LCM Raw Payload: {FILE_ID} | role=user | reason=large_raw_message | 1,234 bytes]\n\n"
        f"Exploration Summary:\nLines: 9.\n\n{READ_BACK} payload content from disk."
    )


def test_an_image_reference_is_one_line() -> None:
    assert image_reference("Assistant image", FILE_ID, "a.png", "image/png", 42_150) == (
        f"[Assistant image: a.png (image/png, 42,150 bytes) | LCM file: {FILE_ID}]"
    )


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    reference = file_reference(FILE_ID, None, None, 5, " ")
    assert reference.startswith(f"[LCM File: {FILE_ID} | unknown | unknown | 5 bytes]")
    assert "Exploration Summary:\n(no summary available)\n" in reference


def test_ids_are_found_in_order_each_once_in_lower_case() -> None:
    found = reference_ids(
        "[LCM File: file_AAAABBBBCCCCDDDD | a | b | 1 bytes] then file_1111222233334444 "
        "and file_aaaabbbbccccdddd again"
    )
    assert found == ["file_aaaabbbbccccdddd", "file_1111222233334444"]


@pytest.mark.parametrize(
    "given",
    [
        FILE_ID,
        FILE_ID.upper(),
        f"[LCM Tool Output: {FILE_ID} | tool=Bash | 42,000 bytes]",
        f"  [LCM Tool Output: {FILE_ID} | tool=Bash | 42,000 bytes]\n",
        f"[User image: a.png (image/png, 42 bytes) | LCM file: {FILE_ID}]",
        tool_reference(FILE_ID, "exec", 42, "it quotes file_1111222233334444"),
    ],
)
def test_describe_resolves_a_raw_id_and_the_whole_visible_reference(given: str) -> None:
    assert reference_ids(given) == [FILE_ID]


def test_two_ids_are_two_ids() -> None:
    assert reference_ids(f"{FILE_ID} file_1111222233334444") == [FILE_ID, "file_1111222233334444"]


@pytest.mark.parametrize(
    "words",
    ["", "file_", "file_00112233aabbccd", f"{FILE_ID}0", f"my{FILE_ID}", "file_00112233aabbccdg"],
)
def test_what_only_resembles_an_id_is_none(words: str) -> None:
    assert reference_ids(words) == []


def test_words_around_a_reference_make_it_a_quotation() -> None:
    assert reference_id(tool_reference(FILE_ID, "exec", 42, "x")) == FILE_ID
    assert reference_id("see " + tool_reference(FILE_ID, "exec", 42, "x")) is None
    assert reference_id(tool_reference(FILE_ID, "exec", 42, "x") + " look") is None
