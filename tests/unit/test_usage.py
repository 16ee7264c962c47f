"""What a provider counted, under whichever names (spec B7; cases 79, 102)."""

from __future__ import annotations

from typing import Any

import pytest

from lcm_fast.compaction.usage import observed_prompt_tokens


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, None),
        (0, 0),
        (1234, 1234),
        ({"input": 10, "cacheRead": 800, "cacheWrite": 90, "output": 5000}, 900),
        ({"cacheRead": 800}, 800),
        ({"prompt_tokens": 900, "completion_tokens": 5000, "total_tokens": 5900}, 900),
        ({"promptTokens": 900}, 900),
        ({"input_tokens": 900, "input_tokens_details": {"cached_tokens": 800}}, 900),
        (
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 800,
                "cache_creation_input_tokens": 90,
                "output_tokens": 5000,
            },
            900,
        ),
        ({"inputTokens": 900}, 900),
        ({"usage": {"prompt_tokens": 900}}, 900),
        ({"lastCallUsage": {"input": 900}}, 900),
        ({"usage": {}, "lastCallUsage": {"input": 900}}, 900),
    ],
)
def test_prompt_tokens_are_found(usage: Any, tokens: int | None) -> None:
    assert observed_prompt_tokens(usage) == tokens


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "900", None, [900]])
def test_what_cannot_be_a_count_is_not_one(value: Any) -> None:
    assert observed_prompt_tokens({"prompt_tokens": value}) is None
    assert observed_prompt_tokens({"input": value, "cacheRead": 800}) == 800


def test_what_the_model_wrote_alone_is_no_prompt() -> None:
    assert observed_prompt_tokens({"output": 5000, "completion_tokens": 5000}) is None
