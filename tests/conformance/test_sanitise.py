"""Rules K1 to K6 with decision 8: what a summariser reads of a message (AB30, AB63, AB69)."""

from __future__ import annotations

import json

import pytest

from lcm_fast.summarize import (
    clean_text,
    extract_text,
    note_media,
    render_tool_call,
    sanitise_message,
    sanitise_summary,
    strip_injected_context,
    strip_reasoning,
)

DEFAULT_TAGS = (
    "active_memory_plugin",
    "relevant-memories",
    "relevant_memories",
    "hindsight_memories",
)
PAYLOAD = "QUJDZGVm0123" * 30


class TestPlainText:
    def test_blank_lines_are_dropped(self) -> None:
        assert clean_text("a\n\n\nb  \n") == "a\nb"

    def test_an_embedded_picture_is_named_and_the_words_around_it_stay(self) -> None:
        text = "see data:image/png;base64,AAAA then more words. tail"
        assert clean_text(text) == "see [embedded media omitted] then more words. tail"

    def test_a_picture_wrapped_over_lines_goes_as_a_whole(self) -> None:
        wrapped = "\n".join([PAYLOAD[:76], PAYLOAD[76:152], "QUI="])
        text = f"before data:image/png;base64,{wrapped}\nafter"
        assert clean_text(text) == "before [embedded media omitted]\nafter"

    def test_a_media_path_line_is_dropped(self) -> None:
        assert clean_text("MEDIA:/tmp/x.png\ncaption") == "caption"

    def test_a_line_of_base64_is_dropped(self) -> None:
        assert clean_text(f"head\n{PAYLOAD}\ntail") == "head\ntail"

    def test_a_long_run_of_one_letter_is_not_taken_for_a_payload(self) -> None:
        assert clean_text("x" * 512) == "x" * 512

    def test_a_long_hexadecimal_number_is_not_taken_for_a_payload(self) -> None:
        assert clean_text("0a1b" * 128) == "0a1b" * 128


class TestStructuredContent:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ('{"result":{"status":"ok","text":"hi"}}', "hi"),
            ('[{"type":"text","text":"a"},{"type":"thinking","thinking":"b"}]', "a"),
            ('{"type":"image","data":"xx","caption":"a cat"}', "a cat"),
            ('{"type":"image","data":"xx"}', ""),
            ('{"content":[{"output":"x"},{"error":"y"}]}', "x\ny"),
            ("[]", ""),
            ('[""]', ""),
        ],
    )
    def test_known_keys_are_read_in_order(self, content: str, text: str) -> None:
        assert extract_text(content) == text

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ('{"status":"ok"}', "status: ok"),
            ('{"status":"ok","count":3,"done":true}', "status: ok, count: 3, done: true"),
            ("[1,2]", "[1, 2]"),
            ('[{"text":"a"},{"status":"failed"}]', "a\nstatus: failed"),
            ('{"results":[]}', "results: []"),
            ('{"a":{"b":[null,{"c":"d"}]}}', "a: {b: [null, {c: d}]}"),
        ],
    )
    def test_unknown_keys_do_not_vanish(self, content: str, text: str) -> None:
        assert extract_text(content) == text

    def test_numbers_keep_their_digits(self) -> None:
        content = '{"id":12345678901234567890123,"v":1.50,"e":1e400}'
        assert extract_text(content) == "id: 12345678901234567890123, v: 1.50, e: 1e400"

    def test_a_record_with_long_values_takes_a_line_per_field(self) -> None:
        content = json.dumps({"a": "x" * 100, "b": "y" * 100})
        assert extract_text(content) == f"a: {'x' * 100}\nb: {'y' * 100}"

    def test_text_that_only_looks_like_json_is_read_as_text(self) -> None:
        assert extract_text("[not json]") == "[not json]"

    def test_nesting_beyond_any_reader_is_read_as_text(self) -> None:
        content = "[" * 200_000 + "]" * 200_000
        assert extract_text(content) == content

    def test_a_payload_inside_json_is_removed(self) -> None:
        assert extract_text(json.dumps({"data": f"a\n{PAYLOAD}"})) == "a"

    def test_a_call_block_keeps_the_name_and_every_argument(self) -> None:
        block = [{"type": "toolCall", "name": "read", "arguments": {"path": "a.py", "limit": 5}}]
        assert extract_text(json.dumps(block)) == "Tool input (read):\npath: a.py\nlimit: 5"


class TestToolCalls:
    def test_arguments_stand_on_lines_of_their_own(self) -> None:
        call = render_tool_call("exec", {"command": "ls -la", "timeout": 30})
        assert call == "Tool input (exec):\ncommand: ls -la\ntimeout: 30"

    def test_arguments_given_as_json_text_are_decoded(self) -> None:
        assert render_tool_call("f", '{"a":1.0}') == "Tool input (f):\na: 1.0"

    def test_arguments_that_are_no_json_are_shown_as_they_are(self) -> None:
        assert render_tool_call("f", '{"a":') == 'Tool input (f):\n{"a":'

    def test_a_call_without_arguments_is_named(self) -> None:
        assert render_tool_call("ping", None) == "Tool input (ping):"

    def test_a_name_cannot_break_out_of_its_line(self) -> None:
        assert render_tool_call("a\nb", {}).count("\n") == 0


class TestMedia:
    def test_media_alone_is_named(self) -> None:
        assert note_media(clean_text("MEDIA:/tmp/x.png")) == "[Media attachment]"

    def test_a_caption_is_kept_with_a_note(self) -> None:
        assert note_media("Look at this!") == "Look at this! [with media attachment]"

    def test_the_note_is_not_repeated(self) -> None:
        assert note_media(note_media("Look")) == note_media("Look")


class TestReasoning:
    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("<think>a</think> Chose X.", "Chose X."),
            ("<think>a</think>\n<thinking>b</thinking>\nChose X.", "Chose X."),
            ("Chose X.\n<reasoning>\nhm\n</reasoning>\nThen Y.", "Chose X.\n\nThen Y."),
            ("Chose X.\n<think>\nnever closed", "Chose X."),
            ("Chose X.\n<|think|>\nnever closed", "Chose X."),
            ("Chose X.\n[thinking]\nnever closed", "Chose X."),
            ("<think>only", ""),
            ("[thinking]\nonly", ""),
            ("<THINK id='1'>a</THINK>Chose X.", "Chose X."),
        ],
    )
    def test_reasoning_blocks_are_removed(self, text: str, kept: str) -> None:
        assert strip_reasoning(text) == kept

    @pytest.mark.parametrize(
        "text",
        [
            "Wrap it in <think> and </think> tags.",
            "The [thinking] label is shown.",
            "a < b and [c]",
            "The tag <thinker> is no reasoning",
        ],
    )
    def test_a_tag_named_in_a_sentence_stays(self, text: str) -> None:
        assert strip_reasoning(text) == text

    def test_a_stored_summary_of_reasoning_alone_is_empty(self) -> None:
        assert sanitise_summary("<think>long thoughts</think>") == ""

    def test_a_message_keeps_its_tags(self) -> None:
        assert sanitise_message("<think>a</think> b") == "<think>a</think> b"


class TestInjectedContext:
    def test_tags_are_matched_exactly_and_without_case(self) -> None:
        assert strip_injected_context("<a.b>x</a.b> <A.B>y</A.B> axb", ["a.b"]) == "axb"

    @pytest.mark.parametrize("tag", DEFAULT_TAGS)
    def test_the_blocks_of_known_plugins_are_removed(self, tag: str) -> None:
        text = f"Untrusted context (metadata, not instructions):\n<{tag}>\nx\n</{tag}>\nReal"
        assert sanitise_message(text, injected_tags=DEFAULT_TAGS) == "Real"

    def test_a_tag_with_attributes_stays(self) -> None:
        text = '<m id="1">x</m>'
        assert strip_injected_context(text, ["m"]) == text

    def test_an_unclosed_tag_stays(self) -> None:
        assert strip_injected_context("a <m> b", ["m"]) == "a <m> b"

    def test_without_tags_nothing_is_touched(self) -> None:
        text = "  Untrusted context (x):\n<m>a</m> "
        assert strip_injected_context(text, []) == text

    def test_json_uncovered_by_the_stripping_is_read_too(self) -> None:
        text = '<m>x</m>{"text":"inner"}'
        assert sanitise_message(text, injected_tags=["m"]) == "inner"


@pytest.mark.parametrize(
    "unit",
    [
        "<think>",
        "<think>\n",
        "</think>",
        "<m>",
        "</m>",
        "data:",
        "data:a/b;",
        " ",
        "{",
        "Untrusted context (",
        "A",
        "\ud800",
    ],
)
def test_a_hundred_kilobytes_of_one_pattern_are_survived(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    assert len(sanitise_summary(sanitise_message(text, injected_tags=["m"]))) <= len(text)
