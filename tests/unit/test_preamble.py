"""What hosts put around a user's words (spec: storage 2.6.5 to 2.6.9, 8.6, 8.7, 8.11)."""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import pytest

from lcm_fast.ingest.preamble import (
    canonical_content,
    is_decorated_face,
    matches_body,
    reduced_body,
    without_carried_summaries,
)

TIME = "[Sun 2026-01-04 12:00 GMT+0]"
LINES_HEADING = "Chat history since last reply (untrusted, for context):"
SELECTED_HEADING = "Conversation context (untrusted, chronological, selected for current message):"
RECAP_LINES = f"{LINES_HEADING}\n#12 Mon 2026-01-05 10:00:00 UTC Ann: is it done?\n#13 Bo: no"
RECAP_JSON = f'{LINES_HEADING}\n```json\n[{{"sender": "Ann", "body": "is it done?"}}]\n```'
STARTER = 'Thread starter (untrusted, for context):\n```json\n{"body": "the start"}\n```'


def block(heading: str, value: Any) -> str:
    return f"{heading} (untrusted metadata):\n```json\n{json.dumps(value, indent=2)}\n```"


def info(**fields: Any) -> str:
    """Return a block of conversation metadata with a chat id and these fields."""
    return block("Conversation info", {"chat_id": "c", **fields})


def canonical(*parts: str) -> str:
    """Return the canonical form of a user's message made of parts with a blank line between."""
    return canonical_content("user", "\n\n".join(parts))


def digest(role: str, content: str) -> str:
    return hashlib.sha256(f"{role}\0{canonical_content(role, content)}".encode()).hexdigest()


class TestCanonicalContent:
    def test_the_published_example_comes_out_to_the_letter(self) -> None:
        conversation = {
            "message_id": "m1",
            "chat_id": "c",
            "timestamp": "t",
            "sender": {"b": 1, "a": [{"d": 1, "c": 2}]},
        }
        content = "\n\n".join(
            [
                block("Conversation info", conversation),
                block("Sender", {"name": "Syu", "id": "7"}),
                "hi there",
            ]
        )
        expected = (
            "Conversation info (untrusted metadata):\n```json\n"
            '{"chat_id":"c","sender":{"a":[{"c":2,"d":1}],"b":1}}\n```\n\n'
            'Sender (untrusted metadata):\n```json\n{"id":"7","name":"Syu"}\n```\n\nhi there'
        )
        assert (canonical_content("user", content), digest("user", content)) == (
            expected,
            "8956abd1f88665f6debd8b5711fbf9ae51d71f09d1175c0d892a877a67dd73c0",
        )

    @pytest.mark.parametrize(
        ("role", "content", "expected"),
        [
            ("user", "hello", "87ce4613405ac8c20165d125a5c2219e8b38a9e030616dffd73a89faaf7293c8"),
            ("assistant", "", "6b7cfe66c085fd7be04ba5f135fe64c1f15f8c157a635a02ec525834c7b35060"),
        ],
    )
    def test_plain_texts_have_the_published_digests(
        self, role: str, content: str, expected: str
    ) -> None:
        assert digest(role, content) == expected

    @pytest.mark.parametrize("volatile", ["message_id", "reply_to_id", "timestamp"])
    def test_volatile_fields_do_not_count(self, volatile: str) -> None:
        assert canonical(info(**{volatile: "1"}), "hi") == canonical(info(**{volatile: "2"}), "hi")

    def test_another_chat_is_another_text(self) -> None:
        assert canonical(info(chat_id="a"), "hi") != canonical(info(chat_id="b"), "hi")

    def test_another_sender_is_another_text(self) -> None:
        one, other = (block("Sender", {"id": number}) for number in ("1", "2"))
        assert canonical(info(), one, "hi") != canonical(info(), other, "hi")

    @pytest.mark.parametrize("role", ["assistant", "system", "tool"])
    def test_only_a_users_text_has_a_canonical_form(self, role: str) -> None:
        content = f"{info(message_id='1')}\n\nhi"
        assert canonical_content(role, content) is content

    @pytest.mark.parametrize(
        "content",
        [
            "hello",
            "Conversation info (untrusted metadata)",
            block("Conversation info", {"foreign": 1}) + "\n\nhi",
            block("Conversation info", ["chat_id"]) + "\n\nhi",
            block("Conversation info", {"message_id": "1", "timestamp": "t"}) + "\n\nhi",
            info(message_id="1"),
            info(message_id="1") + "\n\n \n",
            "> " + info(message_id="1") + "\n\nhi",
            info(message_id="1").removesuffix("\n```") + "\n\nhi",
            info(message_id="1") + "x\n\nhi",
            info(message_id="1").replace('"c"', "NaN") + "\n\nhi",
            info(message_id="1").replace("```json", "```") + "\n\nhi",
            "Delivery: now\nhi",
            "Delivery: now\n" + info(message_id="1") + "\n\nhi",
        ],
        ids=[
            "no block",
            "heading alone",
            "no known key",
            "no object",
            "volatile fields alone",
            "no body",
            "blank body",
            "quoted",
            "unclosed fence",
            "text behind the fence",
            "no JSON",
            "no JSON fence",
            "delivery lines alone",
            "no blank line before the heading",
        ],
    )
    def test_what_is_no_whole_preamble_stays_as_it_is(self, content: str) -> None:
        assert canonical_content("user", content) is content

    def test_spaces_before_the_preamble_do_not_count(self) -> None:
        assert canonical(" \n" + info(), "hi") == canonical(info(), "hi")

    def test_spaces_before_the_body_are_kept(self) -> None:
        assert canonical(info(message_id="1"), "  hi").endswith("```\n\n  hi")

    def test_one_blank_line_at_most_is_taken_from_the_body(self) -> None:
        assert canonical(info(message_id="1"), "\nhi").endswith("```\n\n\nhi")

    def test_windows_line_ends_are_read(self) -> None:
        content = f"{info(message_id='1')}\n\nhi"
        assert canonical(content.replace("\n", "\r\n")) == canonical(content)

    def test_delivery_lines_are_kept_to_the_letter(self) -> None:
        prelude = "Delivery: to  all\nvia: mail\n\n"
        assert canonical(prelude + info(message_id="1"), "hi") == prelude + canonical(info(), "hi")

    @pytest.mark.parametrize(
        ("keys", "expected"),
        [
            (["b", "A", "a", "B"], ["a", "A", "b", "B"]),
            (["id", "_id", "1d", "ID"], ["_id", "1d", "id", "ID"]),
            (["is_b", "isA"], ["is_b", "isA"]),
            (["ab", "a_b", "a"], ["a", "a_b", "ab"]),
        ],
    )
    def test_keys_are_in_the_order_of_a_locale(self, keys: list[str], expected: list[str]) -> None:
        content = canonical(info(sender=dict.fromkeys(keys, 1)), "hi")
        assert list(json.loads(content.split("\n")[2])["sender"]) == expected

    @pytest.mark.parametrize("recap", [RECAP_LINES, RECAP_JSON], ids=["lines", "json"])
    def test_the_recap_that_a_history_count_announces_does_not_count(self, recap: str) -> None:
        assert canonical(info(history_count=2), recap, "hi") == canonical(info(), "hi")

    def test_a_recap_under_the_other_heading_does_not_count(self) -> None:
        recap = RECAP_LINES.replace(LINES_HEADING, SELECTED_HEADING)
        assert canonical(info(history_count=2), recap, "hi") == canonical(info(), "hi")

    def test_the_length_of_the_history_does_not_count(self) -> None:
        one = info(history_count=2, history_media_count=1, history_truncated=True)
        assert canonical(one, "hi") == canonical(info(), "hi")

    @pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", None])
    def test_without_a_history_a_recap_is_the_users_text(self, count: object) -> None:
        assert RECAP_LINES in canonical(info(history_count=count), RECAP_LINES, "hi")

    def test_context_before_a_recap_is_kept(self) -> None:
        with_recap = canonical(info(history_count=2), STARTER, RECAP_LINES, "hi")
        assert with_recap == canonical(info(), STARTER, "hi")

    @pytest.mark.parametrize(
        "recap",
        [
            f"{LINES_HEADING}\n#12 Ann: yes\nand a line of another kind",
            f"{LINES_HEADING}\n#12 Ann: yes\n#13 Bo:no",
            f"{LINES_HEADING}\nAnn: neither id nor time",
            f"{LINES_HEADING}\n#12  : nobody",
            f"{LINES_HEADING}\n#12 Ann:  ",
            f"{LINES_HEADING}\n",
            f"{LINES_HEADING}\n```json\n[]\n```",
            f'{LINES_HEADING}\n```json\n{{"sender": "Ann"}}\n```',
            f'{LINES_HEADING}\n```json\n[{{"sender": "Ann"}}, {{"foreign": 1}}]\n```',
            f"{LINES_HEADING}\n```json\n[1]\n```",
            RECAP_JSON.removesuffix("```"),
            f"> {RECAP_LINES}",
        ],
        ids=[
            "run not ended",
            "line without colon and space",
            "line without id and time",
            "line without sender",
            "line without words",
            "no line",
            "empty array",
            "object",
            "item without a known key",
            "item that is no object",
            "unclosed fence",
            "quoted heading",
        ],
    )
    def test_what_is_no_whole_recap_is_kept(self, recap: str) -> None:
        assert recap in canonical(info(history_count=2), recap, "hi")

    def test_a_recap_before_a_senders_block_is_kept(self) -> None:
        sender = block("Sender", {"name": "x", "id": "7"})
        once = canonical(info(history_count=2), RECAP_LINES, sender, "hi")
        assert (RECAP_LINES in once, canonical(once)) == (True, once)

    @pytest.mark.parametrize("depth", [40, sys.getrecursionlimit() * 100])
    def test_metadata_nested_too_deep_is_text(self, depth: int) -> None:
        value = "[" * depth + "]" * depth
        content = info(chat_id="?").replace('"?"', value) + "\n\nhi"
        assert canonical(content) is content

    @pytest.mark.parametrize(
        "content",
        [
            info(history_count=2) + f"\n\n{LINES_HEADING}\n" + "#1 Ann: yes\n" * 100_000 + "x",
            info(history_count=2) + f"\n\n{STARTER}" * 20_000 + f"\n\n{LINES_HEADING}",
            "Delivery:" + "\nConversation info (untrusted metadata):" * 50_000,
            "Conversation info (untrusted metadata):\n```json\n" + "\n```x" * 200_000,
            "Conversation info (untrusted metadata):\n```json\n{" + " " * 1_000_000,
            " " * 1_000_000 + "x",
        ],
        ids=["recap", "context", "headings", "fences", "unclosed", "blank"],
    )
    def test_megabytes_of_look_alikes_change_no_words(self, content: str) -> None:
        assert canonical(content).endswith(content[-100:])


class TestReducedBody:
    @pytest.mark.parametrize(
        "parts",
        [
            [info()],
            [TIME + " " + info()],
            [TIME + "\n" + info()],
            ["Delivery: now\n\n" + info()],
            [info(), block("Sender", {"id": "7"})],
            [info(), RECAP_LINES],
            [info(), RECAP_JSON],
            [info(), block("Sender", {"id": "7"}), STARTER, RECAP_LINES],
        ],
        ids=["info", "time", "time above", "delivery", "sender", "recap", "json recap", "all"],
    )
    def test_what_a_host_puts_before_the_words_is_taken_off(self, parts: list[str]) -> None:
        assert reduced_body("\n\n".join([*parts, "  two\n\nwords "])) == "  two\n\nwords "

    @pytest.mark.parametrize(
        "content",
        [
            "hi",
            f"{TIME} hi",
            info(),
            info() + "\n\n \n",
            f"{info()}\n\n{RECAP_LINES}",
            "x" + info(),
        ],
        ids=["bare", "time alone", "no body", "blank body", "recap alone", "not at the start"],
    )
    def test_a_text_without_metadata_or_without_words_has_none(self, content: str) -> None:
        assert reduced_body(content) is None

    def test_a_recap_that_is_not_whole_belongs_to_the_words(self) -> None:
        words = f"{LINES_HEADING}\n#1 Ann: yes\nhi"
        assert reduced_body(f"{info()}\n\n{words}") == words


class TestMatchesBody:
    def test_metadata_before_the_same_words_match(self) -> None:
        assert matches_body(f"{info()}\n\nhi", "hi")

    def test_the_bare_text_may_bear_a_channels_time(self) -> None:
        assert matches_body(f"{info()}\n\nhi", f"{TIME} hi")

    def test_both_texts_may_bear_a_channels_time(self) -> None:
        assert matches_body(f"{info()}\n\n{TIME} hi", f"{TIME} hi")

    @pytest.mark.parametrize("bare", ["ho", "hi!", "h", "hi\n", ""])
    def test_other_words_do_not_match(self, bare: str) -> None:
        assert not matches_body(f"{info()}\n\nhi", bare)

    def test_a_text_without_metadata_matches_nothing(self) -> None:
        assert not matches_body("hi", "hi")

    @pytest.mark.parametrize(
        "live",
        [
            f"{info()}\n\n<relevant-memories>\nlikes tea\n</relevant-memories>\n\nhi",
            f"<derived-focus>tea</derived-focus>\n\n{info()}\n\nhi",
            f"{info()}\n\n{RECAP_LINES}\n\n<error-detected>x</error-detected>\nhi",
            f"{info()}\n\n<inherited-rules>a</inherited-rules>\n<derived-focus>b</derived-focus>\nhi",
        ],
        ids=["behind metadata", "before metadata", "behind a recap", "two"],
    )
    def test_injected_context_is_taken_off_on_demand(self, live: str) -> None:
        assert [
            matches_body(live, "hi"),
            matches_body(live, "hi", with_injected_context=True),
        ] == [False, True]

    @pytest.mark.parametrize(
        "injected",
        [
            "<relevant-memories>likes tea",
            "<relevant-memories>likes tea</derived-focus>",
            "<foreign>likes tea</foreign>",
            "see <relevant-memories>likes tea</relevant-memories>",
        ],
        ids=["unclosed", "closed otherwise", "unknown", "in the words"],
    )
    def test_what_is_no_injected_context_is_the_users_text(self, injected: str) -> None:
        live = f"{info()}\n\n{injected}\n\nhi"
        assert not matches_body(live, "hi", with_injected_context=True)

    def test_injected_context_in_both_texts_matches(self) -> None:
        words = "<relevant-memories>tea</relevant-memories>\n\nhi"
        assert matches_body(f"{info()}\n\n{words}", words, with_injected_context=True)


class TestIsDecoratedFace:
    @pytest.mark.parametrize(
        "live",
        [
            f"{TIME} two\nlines",
            f"{TIME}\ntwo\nlines",
            f"{TIME}\r\ntwo\nlines",
            f"{info()}\n\n{TIME} two\nlines",
            f"some lines\n{TIME}\ntwo\nlines",
            "[Mon 2026-01-05 09:30:15 UTC] two\nlines",
        ],
    )
    def test_a_channels_time_right_before_the_words_counts(self, live: str) -> None:
        assert is_decorated_face(live, "two\nlines")

    @pytest.mark.parametrize(
        "live",
        [
            "hi",
            f"{info()}\n\nhi",
            f"{TIME} oh hi",
            f"see {TIME} hi",
            f"{TIME} hi there",
            f"{TIME} {TIME} hi",
            "[note] hi",
            "[Sun 2026-01-04] hi",
            "Sun 2026-01-04 12:00 GMT+0 hi",
        ],
    )
    def test_anything_else_before_the_words_does_not(self, live: str) -> None:
        assert not is_decorated_face(live, "hi")

    @pytest.mark.parametrize("bare", ["", " ", "\n"])
    def test_no_words_have_no_other_face(self, bare: str) -> None:
        assert not is_decorated_face(f"{TIME} {bare}", bare)


class TestWithoutCarriedSummaries:
    SUMMARY = (
        '<summary id="sum_1" kind="leaf">\n  <content>\n&lt;/summary&gt;\n  </content>\n</summary>'
    )

    @pytest.mark.parametrize("between", ["\n", "\n\n"])
    @pytest.mark.parametrize("count", [1, 3])
    def test_our_summaries_before_the_words_are_taken_off(self, between: str, count: int) -> None:
        carrier = between.join([*[self.SUMMARY] * count, "hi"])
        assert without_carried_summaries(carrier) == "hi"

    @pytest.mark.parametrize(
        "content",
        [
            "hi",
            SUMMARY,
            SUMMARY.removesuffix("</summary>") + "hi",
            f"see {SUMMARY}\nhi",
            SUMMARY.replace("sum_1", "other") + "\nhi",
        ],
        ids=["none", "nothing else", "unclosed", "in the words", "of another kind"],
    )
    def test_anything_else_stays_as_it_is(self, content: str) -> None:
        assert without_carried_summaries(content) is content
