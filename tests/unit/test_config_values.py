"""One value against its key: what is accepted, in which type, and what the error says."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm_fast.config import ThresholdRule
from lcm_fast.config.schema import KEYS, Key, key_for_name, nearest_name, snake_case
from lcm_fast.config.values import parse_text, parse_value
from lcm_fast.errors import ConfigError

texts = st.text(st.sampled_from("aZ09 -+._e,/ü\n"), max_size=8)
anything = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.lists(texts)
keys = st.sampled_from(list(KEYS.values()))


def parse(name: str, value: object) -> Any:
    return parse_value(KEYS[name], value, "argument")


@pytest.mark.parametrize("value", [True, 1, "true", "TRUE", " Yes ", "on", "1"])
def test_what_says_yes_is_true(value: object) -> None:
    assert parse("enabled", value) is True


@pytest.mark.parametrize("value", [False, 0, "false", "False", "NO", "off", "0"])
def test_what_says_no_is_false(value: object) -> None:
    assert parse("enabled", value) is False


@pytest.mark.parametrize("value", ["maybe", "", 2, 1.0, None, [], "t"])
def test_other_values_are_no_booleans(value: object) -> None:
    with pytest.raises(ConfigError):
        parse("enabled", value)


@pytest.mark.parametrize("value", [24, "24", " 24 ", "+24", 24.0])
def test_an_integer_may_be_written_as_text(value: object) -> None:
    assert parse("freshTailCount", value) == 24


@pytest.mark.parametrize(
    "value", ["12abc", "0x10", "1e3", "1_000", "", 2.5, True, math.nan, "٣", []]
)
def test_nothing_is_guessed_into_an_integer(value: object) -> None:
    with pytest.raises(ConfigError):
        parse("freshTailCount", value)


@pytest.mark.parametrize(("name", "lowest"), [("freshTailCount", 1), ("fallbackMaxTokens", 64)])
def test_the_lowest_integer_is_allowed_and_the_one_below_is_not(name: str, lowest: int) -> None:
    assert parse(name, lowest) == lowest
    with pytest.raises(ConfigError, match=str(lowest - 1)):
        parse(name, lowest - 1)


@pytest.mark.parametrize("value", [0, 1, 0.6, "0.6", ".6", "6e-1"])
def test_a_threshold_from_zero_to_one_is_a_number(value: object) -> None:
    assert isinstance(parse("contextThreshold", value), float)


@pytest.mark.parametrize("value", [7, -0.1, "0.5x", math.inf, math.nan, "nan", False, "1_0"])
def test_a_threshold_elsewhere_is_refused(value: object) -> None:
    with pytest.raises(ConfigError):
        parse("contextThreshold", value)


@pytest.mark.parametrize("value", ["capture-only", " Capture-Only "])
def test_a_choice_is_found_in_any_case(value: str) -> None:
    assert parse("hostFallbackMode", value) == "capture-only"


def test_a_path_expands_the_home_directory() -> None:
    assert parse("databasePath", "~/lcm.db") == Path.home() / "lcm.db"


@pytest.mark.parametrize("value", ["", "  ", 5, "a\0b", "~nobody-by-this-name/x"])
def test_what_is_no_path_is_refused(value: object) -> None:
    with pytest.raises(ConfigError):
        parse("databasePath", value)


@pytest.mark.parametrize("value", ["Mars/Olympus", "", "../etc/passwd", 3])
def test_an_unknown_time_zone_is_refused(value: object) -> None:
    with pytest.raises(ConfigError):
        parse("timezone", value)


def test_a_list_may_be_a_text_with_commas() -> None:
    patterns = "agent:*:cron:*, agent:main:subagent:**,"
    assert parse("ignoreSessionPatterns", patterns) == (
        "agent:*:cron:*",
        "agent:main:subagent:**",
    )


def test_a_list_of_other_things_than_texts_is_refused() -> None:
    with pytest.raises(ConfigError, match="every item"):
        parse("ignoreSessionPatterns", ["a", 1])


def test_an_empty_variable_of_a_list_is_the_empty_list() -> None:
    assert parse_text(KEYS["stripInjectedContextTags"], " ", "env X") == ()


def test_providers_in_the_environment_split_at_the_first_slash() -> None:
    parsed = parse_text(KEYS["fallbackProviders"], "openrouter/anthropic/m, openai/gpt", "env X")
    assert parsed == (("openrouter", "anthropic/m"), ("openai", "gpt"))


@pytest.mark.parametrize("text", ["openai", "openai/", "/gpt", "a/b,c"])
def test_a_provider_without_a_model_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_text(KEYS["fallbackProviders"], text, "env X")


def test_a_threshold_rule_is_accepted_as_documented() -> None:
    rule = {
        "match": {"model": "openai/gpt", "modelContextWindowMin": 1000},
        "contextThreshold": 0.5,
    }
    (read,) = parse("contextThresholdOverrides", [rule])
    assert read == ThresholdRule(0.5, model="openai/gpt", window_min=1000)
    assert parse("contextThresholdOverrides", [read]) == (read,)


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ("text", r"\[0\] must be an object"),
        ({"contextThreshold": 0.5}, r"\[0\]\.match must be an object"),
        ({"match": {}, "contextThreshold": 0.5}, "must have one of"),
        ({"match": {"model": " "}, "contextThreshold": 0.5}, r"match\.model"),
        ({"match": {"modelContextWindowMin": 0}, "contextThreshold": 0.5}, "WindowMin"),
        (
            {
                "match": {"modelContextWindowMin": 9, "modelContextWindowMax": 8},
                "contextThreshold": 0.5,
            },
            "above",
        ),
        ({"match": {"model": "m"}}, "contextThreshold must be a number from 0 to 1"),
        ({"match": {"model": "m"}, "contextThreshold": 0.5, "freshTailCount": 0}, "freshTailCount"),
    ],
)
def test_a_broken_threshold_rule_names_the_place(rule: object, place: str) -> None:
    with pytest.raises(ConfigError, match=place):
        parse("contextThresholdOverrides", [rule])


def test_the_error_names_key_value_source_and_range() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value(KEYS["contextThreshold"], "7", "env LCM_CONTEXT_THRESHOLD")
    assert str(caught.value) == (
        "contextThreshold is '7' (env LCM_CONTEXT_THRESHOLD) (it must be a number from 0 to 1)"
    )


@given(keys, anything)
def test_every_value_is_either_taken_or_a_configuration_error(key: Key, value: object) -> None:
    with contextlib.suppress(ConfigError):
        assert parse_value(key, value, "argument") is not None


@given(keys.filter(lambda key: key.kind != "providers"), anything)
def test_a_value_that_was_taken_is_taken_again_unchanged(key: Key, value: object) -> None:
    with contextlib.suppress(ConfigError):
        taken = parse_value(key, value, "argument")
        assert parse_value(key, taken, "argument") == taken


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.name)
def test_every_default_is_a_value_its_key_accepts(key: Key) -> None:
    if key.default is not None:
        assert parse_value(key, key.default, "default") == key.default


def test_no_two_keys_share_a_variable() -> None:
    names = [key.env for key in KEYS.values() if key.env]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.name)
def test_a_key_is_found_in_both_spellings(key: Key) -> None:
    assert key_for_name(key.name) is key_for_name(snake_case(key.name)) is key


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("freshTailCounts", "freshTailCount"), ("fresh_tail_cuont", "freshTailCount")],
)
def test_a_misspelt_key_has_a_nearest_name(typed: str, meant: str) -> None:
    assert nearest_name(typed) == meant
