"""Two faces of one message, and messages that only look alike (spec: storage 2.6, 2.8, 2.11)."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import said

from lcm_fast.ingest.likeness import identity_text, is_delivery_mirror, is_revision
from lcm_fast.ingest.payloads.references import tool_reference

TIME = "[Sun 2026-01-01 12:00 GMT+0]"
INFO = 'Conversation info (untrusted metadata):\n```json\n{"chat_id": "c", "message_id": "1"}\n```'
SUMMARY = '<summary id="sum_1" kind="leaf">\n  <content>\nold\n  </content>\n</summary>'
LISTING = "\n".join(f"line {n} of a long listing" for n in range(60))
PICTURE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


def result(text: str, call_id: str | None = "call_1", **fields: Any) -> dict[str, Any]:
    return {**said(text, role="toolResult"), "toolCallId": call_id, **fields}


def calling(command: str, call_id: str = "call_1", **fields: Any) -> dict[str, Any]:
    call = {"type": "toolCall", "id": call_id, "name": "exec", "arguments": {"command": command}}
    return {"role": "assistant", "content": [{"type": "text", "text": "look"}, call], **fields}


def reply(text: str, **fields: Any) -> dict[str, Any]:
    return {**said(text, role="assistant"), **fields}


def kind(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Return how two messages are alike; the same whichever was stored first."""
    found = is_revision(one, other)
    assert is_revision(other, one) == found
    return found


class TestIdentityText:
    @pytest.mark.parametrize("text", ["hi", "two\n\nlines\twith one space", "", "é"])
    def test_a_text_like_nearly_all_is_returned_itself(self, text: str) -> None:
        assert identity_text("user", text) is text

    @pytest.mark.parametrize("other", ["a  b", "a    b", " a b", "a b\n", "\ta b "])
    def test_spaces_that_hosts_collapse_or_trim_do_not_count(self, other: str) -> None:
        assert identity_text("user", other) == "a b"

    @pytest.mark.parametrize("other", ["a\nb", "a\tb", "a\n b", "ab"])
    def test_line_breaks_and_tabs_inside_count(self, other: str) -> None:
        assert identity_text("user", other) != "a b"

    @pytest.mark.parametrize("role", ["assistant", "tool", "system"])
    def test_all_spaces_of_others_count(self, role: str) -> None:
        text = " a  b\n"
        assert identity_text(role, text) is text

    def test_the_id_of_a_channel_message_does_not_count(self) -> None:
        one, other = (INFO.replace('"1"', f'"{n}"') + "\n\nhi" for n in (1, 2))
        assert identity_text("user", one) == identity_text("user", other)

    def test_our_summaries_in_one_with_the_words_do_not_count(self) -> None:
        assert identity_text("user", f"{SUMMARY}\n\n{SUMMARY}\n\nhi") == "hi"


class TestEqualMessages:
    @pytest.mark.parametrize(
        "body", [said("hi"), said(""), result("***"), calling("ls"), result("[cleared]")], ids=str
    )
    def test_an_equal_message_has_not_changed(self, body: dict[str, Any]) -> None:
        assert is_revision(body, dict(body)) == ""

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (said("hi", 1), said("hi", 2)),
            (said("hi"), {"role": "user", "content": [{"type": "text", "text": "hi"}]}),
            (result("out"), {"role": "tool", "tool_call_id": "call_1", "content": "out"}),
            (result("out"), result("out", details={"exit": 0})),
            (result("out"), result("out", None)),
            (calling("ls"), calling("ls", usage={"input": 9})),
            (reply("hi"), reply("hi", reasoning_content="hm")),
            (
                {"role": "user", "content": [PICTURE]},
                {"role": "user", "content": [PICTURE], "timestamp": 1},
            ),
        ],
    )
    def test_other_fields_are_a_change_of_metadata(
        self, one: dict[str, Any], other: dict[str, Any]
    ) -> None:
        assert kind(one, other) == "metadata"

    def test_the_volatile_metadata_in_a_users_text_is_metadata(self) -> None:
        one, other = (said(INFO.replace('"1"', f'"{n}"') + "\n\nhi") for n in (1, 2))
        assert kind(one, other) == "metadata"


class TestDifferentMessages:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (said("yes"), said("no")),
            (said("hi"), said("hi there")),
            (said("hi"), reply("hi")),
            (said("hi"), said("hi", role="custom")),
            (said("a b"), said("a\nb")),
            (said("a b"), said("a\tb")),
            (said("a b"), said("ab")),
            (reply("yes"), reply("yes and no")),
            (reply("", reasoning_content="one"), reply("", reasoning_content="two")),
            ({"role": "user", "content": [PICTURE]}, said("")),
            (said(""), said(" ")),
            (
                {"role": "user", "content": [PICTURE]},
                {"role": "user", "content": [{**PICTURE, "data": "BBBB"}]},
            ),
            (said("[cleared]"), said("a long text")),
            (said("hi [truncated]"), said("hi, this is a long text")),
        ],
        ids=str,
    )
    def test_other_words_are_another_message(
        self, one: dict[str, Any], other: dict[str, Any]
    ) -> None:
        assert kind(one, other) is None

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("one", "two"),
            ("1", "12"),
            ("ok", "ok, and then it failed"),
            ('{"text": "a", "ok": true}', '{"text": "a", "ok": false}'),
            ("[1]", "[1, 2]"),
            ('["removed"]', '["added", "changed"]'),
            ("3 removed", "3 removed, 2 added"),
            ("<p>3 items removed</p>", "<p>3 items were added to the list of items</p>"),
            ("step 1 of the job ... done", "step 1 of the job is still going on, wait for it"),
            (LISTING, LISTING.replace("line 30", "row 30")),
            (LISTING, LISTING.replace("line 30 of a long listing\n", "")),
        ],
    )
    def test_another_result_of_a_call_is_another_message(self, one: str, other: str) -> None:
        assert kind(result(one), result(other)) is None

    @pytest.mark.parametrize("text", ["out", " out", "key=***", "[cleared]"])
    def test_the_result_of_another_call_is_another_message(self, text: str) -> None:
        assert kind(result("out"), result(text, "call_2")) is None

    def test_a_call_under_another_id_is_another_message(self) -> None:
        assert kind(calling("ls", "call_1"), calling("ls", "call_2")) is None

    def test_a_call_with_other_arguments_is_another_message(self) -> None:
        assert kind(calling("ls"), calling("pwd")) is None


class TestWhitespace:
    @pytest.mark.parametrize("other", ["a  b", " a b", "a b\n", "\n\n a   b"])
    def test_collapsed_and_trimmed_spaces(self, other: str) -> None:
        assert kind(said("a b"), said(other)) == "whitespace"

    def test_trimmed_results(self) -> None:
        assert kind(result("out\n"), result("out")) == "whitespace"


class TestDecorated:
    @pytest.mark.parametrize(
        "live",
        [
            f"{INFO}\n\nplease summarize",
            f"{TIME} please summarize",
            f"{TIME}\nplease summarize",
            f"{INFO}\n\n{TIME} please  summarize",
            f"{INFO}\n\n<relevant-memories>tea</relevant-memories>\n\nplease summarize",
            f"{SUMMARY}\n\nplease summarize",
            f"{SUMMARY}\n\n{INFO}\n\nplease summarize",
        ],
        ids=["info", "time", "time above", "both", "memories", "summary", "summary and info"],
    )
    def test_what_a_host_puts_before_a_users_words(self, live: str) -> None:
        assert kind(said(live), said("please summarize")) == "decorated"

    def test_other_words_behind_the_same_decoration(self) -> None:
        assert kind(said(f"{TIME} yes"), said("no")) is None

    def test_only_users_are_decorated(self) -> None:
        assert kind(reply(f"{TIME} hi"), reply("hi")) is None


class TestRedacted:
    @pytest.mark.parametrize(
        "masked",
        [
            "export KEY=*** && run",
            "export KEY=•••••• && run",
            "export KEY=[REDACTED] && run",
            "export KEY=[redacted: ask for it] && run",
            "export KEY=<redacted> && run",
            "export KEY=sk-...*** && run",
            "export KEY=sk-***cdef && run",
            "export KEY=sk-abc…cdef && run",
            "export *** && ***",
        ],
    )
    @pytest.mark.parametrize("make", [said, reply, result, calling])
    def test_masked_secrets(self, masked: str, make: Any) -> None:
        assert kind(make("export KEY=sk-abc0123456789cdef && run"), make(masked)) == "redacted"

    def test_a_masked_block_of_lines(self) -> None:
        key = "-----BEGIN KEY-----\nabc\ndef\n-----END KEY-----"
        masked = "-----BEGIN KEY-----\n…redacted…\n-----END KEY-----"
        assert kind(said(key), said(masked)) == "redacted"

    def test_a_result_that_is_all_secret(self) -> None:
        assert kind(result("secret-text"), result("***")) == "redacted"

    def test_another_secret_is_another_result(self) -> None:
        assert kind(result("secret-text"), result("secret-word")) is None

    @pytest.mark.parametrize("ids", [("call_1", "call_2"), ("call_1", None), (None, None)])
    def test_a_result_without_the_same_call_id_is_not_taken_for_masked(
        self, ids: tuple[str | None, str | None]
    ) -> None:
        assert kind(result("key=abc", ids[0]), result("key=***", ids[1])) is None

    def test_masked_arguments_of_a_chat_call(self) -> None:
        def chat(arguments: str) -> dict[str, Any]:
            function = {"name": "exec", "arguments": arguments}
            calls = [{"id": "call_1", "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}

        assert kind(chat('{"key": "abc"}'), chat('{"key":"***"}')) == "redacted"

    def test_a_mask_hides_no_argument(self) -> None:
        one, other = calling("a"), calling("***")
        one["content"][1]["arguments"]["cwd"] = "/"
        assert kind(one, other) is None

    def test_ids_are_never_masked(self) -> None:
        assert kind(calling("ls", "call_1"), calling("ls", "***")) is None

    @pytest.mark.parametrize(
        ("masked", "other"),
        [
            ("***", "hello"),
            ("*** ***", "hello there"),
            ("key=***", "key="),
            ("key=***", "key is abc"),
            ("key=*** ok", "key=abc no"),
            ("a *** b *** c", "a x c"),
            ("**bold**", "very bold"),
            ("wait…what", "wait a minute, what"),
            ("and so on…", "and so on and on"),
        ],
    )
    def test_what_a_mask_cannot_have_been(self, masked: str, other: str) -> None:
        assert kind(said(masked), said(other)) is None


class TestPruned:
    @pytest.mark.parametrize(
        "placeholder",
        [
            "[cleared]",
            "[output cleared]",
            "[output cleared by the host]",
            "[Old tool result content cleared]",
            "[compacted: tool output removed to free context]",
            "(output omitted)",
            "<truncated>",
            "[...]",
            "...",
            "Tool output omitted to save context.",
            tool_reference("file_0123456789abcdef", "exec", 99_000, "Lines: " + "9 " * 200),
        ],
    )
    def test_placeholders(self, placeholder: str) -> None:
        assert kind(result(LISTING), result(placeholder)) == "pruned"

    def test_a_short_result_has_placeholders_too(self) -> None:
        assert kind(result("ok"), result("[cleared]")) == "pruned"

    def test_a_placeholder_for_another(self) -> None:
        assert kind(result("[cleared]"), result("[output removed]")) == "pruned"

    def test_a_placeholder_in_blocks(self) -> None:
        def anthropic(content: Any) -> dict[str, Any]:
            block = {"type": "tool_result", "tool_use_id": "call_1", "content": content}
            return {"role": "user", "content": [block]}

        whole = anthropic([{"type": "text", "text": LISTING}, PICTURE])
        assert kind(whole, anthropic("[cleared]")) == "pruned"

    @pytest.mark.parametrize(
        "cut",
        [
            LISTING[:400],
            LISTING[:400] + "…",
            LISTING[:400] + "\n... [truncated]",
            LISTING[:400] + "\n\n[1,099 characters omitted]\n\n" + LISTING[-300:],
            LISTING[:400] + "\n...\n" + LISTING[-300:],
            LISTING[:400]
            + f"\n...\n{LISTING[-300:]}\n\n[Tool result trimmed: kept first 400 chars.]",
            LISTING[:400] + "\n[output truncated: 2 KB of 9 KB]",
            LISTING[:400] + "\n-- truncated --\n" + LISTING[-300:],
            "line 0 [truncated]",
            "[... 1,000 lines removed]" + LISTING[-300:],
        ],
    )
    def test_results_cut_short(self, cut: str) -> None:
        assert kind(result(LISTING), result(cut)) == "pruned"

    def test_a_cut_whose_marker_begins_as_the_text_goes_on(self) -> None:
        whole = "values:\n[.1, .2, .3, .4, .5, .6]\nthe end of all the values"
        cut = "values:\n[... truncated]\nthe end of all the values"
        assert kind(result(whole), result(cut)) == "pruned"

    @pytest.mark.parametrize("ids", [("call_1", None), (None, None)])
    def test_a_result_without_the_same_call_id_is_not_taken_for_pruned(
        self, ids: tuple[str | None, str | None]
    ) -> None:
        assert kind(result(LISTING, ids[0]), result("[cleared]", ids[1])) is None

    def test_pictures_gone_with_a_placeholder_in_their_place(self) -> None:
        words = {"type": "text", "text": "look at this"}
        gone = {"type": "text", "text": "[image data removed - already processed]"}
        whole, bare = ({"role": "user", "content": [words, last]} for last in (PICTURE, gone))
        assert kind(whole, bare) == "pruned"

    def test_pictures_gone_without_a_word(self) -> None:
        words = {"type": "text", "text": "look at this"}
        assert kind({"role": "user", "content": [words, PICTURE]}, said("look at this")) is None


class TestMirror:
    MIRROR = reply("all done", model="delivery-mirror")

    @pytest.mark.parametrize(
        "body",
        [
            reply("all done", reasoning_content="hm"),
            reply("all done ", model="m"),
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "all done"},
                ],
            },
        ],
        ids=["reasoning beside", "edges trimmed", "reasoning in a block"],
    )
    def test_the_copy_of_a_reply(self, body: dict[str, Any]) -> None:
        assert kind(body, self.MIRROR) == "mirror"

    @pytest.mark.parametrize("text", ["", " \n", "all done now"])
    def test_no_copy_of_other_words(self, text: str) -> None:
        assert kind(reply(text), self.MIRROR) is None

    def test_no_copy_of_nothing(self) -> None:
        assert kind(reply(""), reply("", model="delivery-mirror")) is None

    def test_a_user_has_no_mirror(self) -> None:
        assert not is_delivery_mirror(said("all done") | {"model": "delivery-mirror"})

    def test_a_mirror_is_told_by_its_model(self) -> None:
        assert [is_delivery_mirror(self.MIRROR), is_delivery_mirror(reply("all done"))] == [
            True,
            False,
        ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x*** " * 20_000 + "y", "xab " * 20_000 + "z"),
        ("[redacted " * 50_000, "[" * 500_000),
        ("a…b" * 50_000, "a b" * 50_000),
        ("ab" * 300_000 + "... " * 50_000, "ab" * 300_000 + "c" * 300_000),
        ("<" * 500_000 + ">", "<" * 400_000),
        ("\n" * 500_000 + "[removed", "\n" * 600_000),
    ],
    ids=["masks", "labels", "ellipses", "markers", "brackets", "blanks"],
)
def test_megabytes_of_look_alikes_are_different_results(one: str, other: str) -> None:
    assert kind(result(f"x{one}x"), result(f"x{other}y")) is None
