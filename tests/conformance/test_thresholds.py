"""Thresholds: spec A9, C, D and N5, cases AB3 to AB8 and AB31, with decision 20; case 66."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upkeep import Scripted, memory, turns

from lcm_fast.compaction.thresholds import (
    CallContext,
    PersistedThreshold,
    Threshold,
    effective_config,
    goal_tokens,
    measure_pressure,
    resolve_threshold,
    settled_threshold,
)
from lcm_fast.config import Config, ThresholdRule, load_config
from lcm_fast.errors import ConfigError

WINDOWS = (50_000, 100_000, 200_000, 400_000)


def config_of(*rules: dict[str, Any]) -> Config:
    return load_config(overrides={"contextThresholdOverrides": list(rules)}, environ={})


def rule(threshold: float, /, **match: Any) -> dict[str, Any]:
    return {"match": match, "contextThreshold": threshold}


AB3 = config_of(
    rule(0.5, modelContextWindowMin=100_000),
    rule(0.2, model="openai/gpt-5.5"),
    rule(0.4, modelContextWindowMin=100_000),
)


class TestResolution:
    def test_ab3_the_most_particular_rule_wins(self) -> None:
        found = resolve_threshold(AB3, CallContext("gpt-5.5", "openai", 400_000))
        assert (found.fraction, found.specificity, found.rule_index) == (0.2, 100, 1)

    def test_ab3_of_a_tie_the_first_wins(self) -> None:
        found = resolve_threshold(AB3, CallContext(context_window=400_000))
        assert (found.fraction, found.rule_index) == (0.5, 0)

    def test_ab4_a_bare_model_is_not_one_of_a_provider(self) -> None:
        found = resolve_threshold(
            config_of(rule(0.2, model="openai/gpt-5.5")), CallContext("gpt-5.5")
        )
        assert (found.source, found.fraction, found.reason) == (
            "global",
            0.75,
            "no_override_matched",
        )

    @pytest.mark.parametrize(
        ("key", "is_matched"),
        [
            ("agent:main:telegram:group:123", True),
            ("agent:main:discord:group:123", False),
            (None, False),
        ],
    )
    def test_ab4_sessions_are_matched_by_globs(self, key: str | None, is_matched: bool) -> None:
        config = config_of(rule(0.3, sessionPattern="agent:*:telegram:**"))
        found = resolve_threshold(config, CallContext(session_key=key))
        assert (found.source == "override") == is_matched

    @pytest.mark.parametrize(
        ("window", "reason"),
        [
            (None, "no_override_matched"),
            (200_000, "modelContextWindow<=250000,resolvedModelContextWindow=200000"),
            (400_000, "no_override_matched"),
        ],
    )
    def test_ab4_window_bounds_need_a_known_window(self, window: int | None, reason: str) -> None:
        config = config_of(rule(0.3, modelContextWindowMax=250_000))
        assert resolve_threshold(config, CallContext(context_window=window)).reason == reason

    def test_ab5_the_provider_completes_the_model(self) -> None:
        assert CallContext("gpt-5.5", "legacy").model_ref == "legacy/gpt-5.5"
        assert CallContext("openai/gpt-5.5", "legacy").model_ref == "openai/gpt-5.5"

    def test_a_model_beats_session_and_both_windows(self) -> None:
        config = config_of(
            rule(
                0.1,
                sessionPattern="**",
                modelContextWindowMin=1,
                modelContextWindowMax=10**6,
            ),
            rule(0.2, model="m"),
        )
        context = CallContext("m", context_window=1000, session_key="s")
        assert resolve_threshold(config, context).fraction == 0.2

    @given(
        st.lists(
            st.builds(
                ThresholdRule,
                st.sampled_from((0.1, 0.2, 0.3)),
                model=st.sampled_from((None, "m", "p/m")),
                session_pattern=st.sampled_from((None, "a:*", "b:**")),
                window_min=st.sampled_from((None, *WINDOWS)),
                window_max=st.sampled_from((None, *WINDOWS)),
            ).filter(lambda rule: rule.specificity > 0),
            max_size=6,
        ),
        st.builds(
            CallContext,
            st.sampled_from((None, "m", "n")),
            st.sampled_from((None, "p")),
            st.sampled_from((None, *WINDOWS)),
            st.sampled_from((None, "a:1", "b:1:2")),
        ),
    )
    def test_it_is_what_the_rules_say_read_one_by_one(
        self, rules: list[ThresholdRule], context: CallContext
    ) -> None:
        def holds(rule: ThresholdRule) -> bool:
            window, key = context.context_window, context.session_key
            return (
                (rule.model is None or rule.model in (context.model, context.model_ref))
                and (
                    rule.session_pattern is None or (key or "").startswith(rule.session_pattern[0])
                )
                and (rule.window_min is None or (window is not None and window >= rule.window_min))
                and (rule.window_max is None or (window is not None and window <= rule.window_max))
            )

        found = resolve_threshold(Config(context_threshold_overrides=tuple(rules)), context)
        matching = [(-one.specificity, at) for at, one in enumerate(rules) if holds(one)]
        assert found.rule_index == (min(matching)[1] if matching else None)


class TestPersisted:
    """AB6: what a debt was made under, and what holds now."""

    def settled(
        self, persisted: PersistedThreshold, *rules: dict[str, Any], **context: Any
    ) -> Threshold:
        config, known = config_of(*rules), CallContext(**context)
        return settled_threshold(persisted, resolve_threshold(config, known), config, known)

    def test_an_override_that_a_rule_still_makes_is_kept(self) -> None:
        found = self.settled(PersistedThreshold(0.1, "override"), rule(0.1, model="m"))
        assert (found.fraction, found.is_stale) == (0.1, False)

    def test_an_override_that_no_rule_makes_is_given_up(self) -> None:
        found = self.settled(PersistedThreshold(0.02, "override"), rule(0.1, model="m"))
        assert (found.fraction, found.is_stale) == (0.75, True)

    def test_an_override_gives_way_to_another_live_one(self) -> None:
        rules = rule(0.1, model="m"), rule(0.3, sessionPattern="s")
        found = self.settled(PersistedThreshold(0.1, "override"), *rules, session_key="s")
        assert (found.fraction, found.is_stale) == (0.3, True)

    def test_the_global_one_gives_way_to_an_equal_override_with_its_sizes(self) -> None:
        sized = {**rule(0.75, model="m"), "freshTailCount": 8, "leafChunkTokens": 9000}
        found = self.settled(PersistedThreshold(0.75, "global", 4), sized, model="m")
        assert (found.fresh_tail_count, found.leaf_chunk_tokens, found.is_stale) == (8, 9000, True)

    def test_the_global_one_is_kept_while_it_is_the_same(self) -> None:
        found = self.settled(PersistedThreshold(0.75, "global", 4))
        assert (found.fresh_tail_count, found.is_stale) == (4, False)


class TestPressure:
    def test_ab7_above_the_threshold_is_over_it_and_at_it_is_not(self) -> None:
        assert not measure_pressure(450, None, 450).is_over
        assert measure_pressure(451, None, 450).is_over

    def test_ab7_what_the_provider_counted_decides_where_it_is_more(self) -> None:
        found = measure_pressure(2, 500, 450)
        assert (found.current_tokens, found.is_over) == (500, True)

    def test_ab8_without_an_excess_there_is_none(self) -> None:
        found = measure_pressure(300, 250, 450)
        assert (found.current_tokens, found.overhead_tokens, found.is_over) == (300, 0, False)

    def test_ab31_the_stored_context_makes_room_for_the_rest(self) -> None:
        assert goal_tokens(measure_pressure(7000, 12_000, 8200), 8200) == 3200

    def test_it_is_never_asked_for_less_than_a_quarter_of_the_threshold(self) -> None:
        assert goal_tokens(measure_pressure(5000, 12_900, 8000), 8000) == 2000

    def test_case_66_what_is_beyond_us_is_not_compacted(self, database: Path) -> None:
        summarise = Scripted()
        with memory(database, summarise) as engine:
            engine.ingest(turns(200), token_budget=10**9)
            result = engine.compact(token_budget=30_000, current_tokens=93_486)
        assert (result.status, result.passes, summarise.calls) == ("exhausted", 0, 0)
        assert "73,486" in result.reason
        assert result.overhead_tokens == 73_486

    def test_ab31_as_a_whole(self, database: Path) -> None:
        with memory(database, Scripted()) as engine:
            engine.ingest(turns(70), token_budget=10**9)
            result = engine.compact(token_budget=10_934, current_tokens=12_000)
        assert (result.status, result.target_tokens) == ("done", 3200)
        assert result.tokens_after <= 3200


class TestSizes:
    def test_an_override_sets_tail_and_chunks_for_everything(self) -> None:
        config = config_of({**rule(0.5, model="m"), "freshTailCount": 3, "leafChunkTokens": 900})
        found = effective_config(config, resolve_threshold(config, CallContext("m")))
        assert (found.context_threshold, found.fresh_tail_count, found.leaf_chunk_tokens) == (
            0.5,
            3,
            900,
        )

    def test_without_an_override_nothing_is_made_anew(self) -> None:
        config = Config()
        assert effective_config(config, resolve_threshold(config, CallContext())) is config

    def test_a_turn_s_model_decides_when_it_is_in_debt_and_how_it_is_drained(
        self, database: Path
    ) -> None:
        sized = {**rule(0.2, model="small"), "freshTailCount": 4}
        overrides = config_of(sized).context_threshold_overrides
        with memory(database, Scripted(), context_threshold_overrides=overrides) as engine:
            assert not engine.after_turn(turns(5), token_budget=1000).batch.is_over_threshold
            turn = engine.after_turn(turns(1, first=5), token_budget=1000, model="small")
            assert turn.batch.is_over_threshold
            (one,) = engine.maintain().drained
            loaded = engine.store.frontier_of(1, None)
        assert loaded is not None
        assert (one.compaction.target_tokens, int((loaded[1].kinds == 0).sum())) == (200, 4)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("[1]", "[0] must be an object"),
        ('[{"contextThreshold": 0.5}]', "[0].match must be an object"),
        ('[{"match": {}, "contextThreshold": 0.5}]', "must have one of model"),
        ('[{"match": {"modell": "m"}, "contextThreshold": 0.5}]', "[0].match.modell is unknown"),
        ('[{"match": {"model": "m"}, "contextThreshold": 0.5, "x": 1}]', "[0].x is unknown"),
        ('[{"match": {"model": " "}, "contextThreshold": 0.5}]', "must be a text"),
        ('[{"match": {"model": "m"}}]', "contextThreshold must be a number from 0 to 1"),
        ('[{"match": {"model": "m"}, "contextThreshold": 1.5}]', "from 0 to 1"),
        (
            '[{"match": {"modelContextWindowMin": 9, "modelContextWindowMax": 8},'
            ' "contextThreshold": 0.5}]',
            "is above",
        ),
        (
            '[{"match": {"model": "m"}, "contextThreshold": 0.5, "freshTailCount": 0}]',
            "positive integer",
        ),
    ],
)
def test_a_rule_with_a_mistake_says_where(rules: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(overrides={"contextThresholdOverrides": json.loads(rules)}, environ={})
    assert message in str(raised.value)
