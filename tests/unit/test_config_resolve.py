"""The configuration as a whole: sources and their order, files, aliases, notes, defaults."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lcm_fast.config import EFFECTIVE_KEYS, Config, load_config
from lcm_fast.errors import ConfigError, NotFoundError

WriteFile = Callable[..., Path]


@pytest.fixture
def write_file(tmp_path: Path) -> WriteFile:
    def write(keys: Mapping[str, Any], name: str = "lcm.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(keys))
        return path

    return write


def as_host_file(keys: Mapping[str, Any], **entry: Any) -> dict[str, Any]:
    return {"plugins": {"entries": {"lossless-claw": {"config": keys, **entry}}}}


def codes(config: Config) -> list[str]:
    return [note.code for note in config.notes]


class TestSources:
    def test_nothing_set_gives_the_defaults(self, tmp_path: Path) -> None:
        environ = {"OPENCLAW_STATE_DIR": str(tmp_path)}
        assert load_config(environ=environ) == Config(database_path=tmp_path / "lcm.db")

    def test_the_environment_beats_the_file(self, write_file: WriteFile) -> None:
        config = load_config(
            write_file({"freshTailCount": 10}), environ={"LCM_FRESH_TAIL_COUNT": "20"}
        )
        assert config.fresh_tail_count == 20

    def test_the_file_beats_the_default(self, write_file: WriteFile) -> None:
        assert load_config(write_file({"freshTailCount": 10}), environ={}).fresh_tail_count == 10

    def test_an_argument_beats_the_environment(self) -> None:
        environ = {"LCM_FRESH_TAIL_COUNT": "20"}
        config = load_config(environ=environ, overrides={"fresh_tail_count": 30})
        assert config.fresh_tail_count == 30

    def test_an_argument_of_none_is_not_set(self) -> None:
        environ = {"LCM_FRESH_TAIL_COUNT": "20"}
        config = load_config(environ=environ, overrides={"freshTailCount": None})
        assert config.fresh_tail_count == 20

    def test_an_empty_variable_is_not_set(self, write_file: WriteFile) -> None:
        config = load_config(
            write_file({"freshTailCount": 10}), environ={"LCM_FRESH_TAIL_COUNT": " "}
        )
        assert config.fresh_tail_count == 10

    def test_an_empty_variable_of_a_list_empties_it(self) -> None:
        config = load_config(environ={"LCM_STRIP_INJECTED_CONTEXT_TAGS": ""})
        assert config.strip_injected_context_tags == ()

    def test_null_in_a_file_is_not_set(self, write_file: WriteFile) -> None:
        assert load_config(write_file({"freshTailCount": None}), environ={}).fresh_tail_count == 64

    def test_every_value_names_its_source(self, write_file: WriteFile) -> None:
        path = write_file({"leafMinFanout": 6})
        config = load_config(
            path, environ={"LCM_FRESH_TAIL_COUNT": "20"}, overrides={"sweepMaxDepth": 2}
        )
        named = {name: source for name, source in config.sources.items() if source != "default"}
        assert named == {
            "freshTailCount": "env LCM_FRESH_TAIL_COUNT",
            "leafMinFanout": f"file {path}",
            "sweepMaxDepth": "argument",
        }

    def test_a_bad_value_is_an_error_even_where_another_source_wins(
        self, write_file: WriteFile
    ) -> None:
        path = write_file({"freshTailCount": "many"})
        with pytest.raises(ConfigError, match=r"file .*lcm\.json"):
            load_config(path, environ={"LCM_FRESH_TAIL_COUNT": "20"})

    def test_foreign_variables_are_left_alone(self) -> None:
        assert load_config(environ={"LCM_SOMETHING_ELSE": "x"}).notes == ()


class TestFiles:
    def test_the_keys_may_stand_in_a_host_file(self, write_file: WriteFile) -> None:
        path = write_file(as_host_file({"freshTailCount": 7}), "openclaw.json")
        assert load_config(path, environ={}).fresh_tail_count == 7

    def test_our_own_entry_of_a_host_file_comes_first(self, write_file: WriteFile) -> None:
        host = as_host_file({"freshTailCount": 7})
        host["plugins"]["entries"]["lcm-fast"] = {"config": {"freshTailCount": 8}}
        assert load_config(write_file(host), environ={}).fresh_tail_count == 8

    def test_a_disabled_entry_of_a_host_file_disables(self, write_file: WriteFile) -> None:
        assert not load_config(write_file(as_host_file({}, enabled=False)), environ={}).enabled

    def test_a_host_file_without_our_entry_sets_nothing(self, write_file: WriteFile) -> None:
        path = write_file({"agents": {"list": []}}, "openclaw.json")
        assert set(load_config(path, environ={}).sources.values()) == {"default"}

    def test_the_environment_may_name_the_file(self, write_file: WriteFile) -> None:
        path = write_file({"freshTailCount": 7})
        config = load_config(environ={"OPENCLAW_CONFIG_PATH": str(path)})
        assert config.fresh_tail_count == 7

    def test_the_host_file_of_the_state_directory_is_found(
        self, write_file: WriteFile, tmp_path: Path
    ) -> None:
        write_file(as_host_file({"freshTailCount": 7}), "openclaw.json")
        config = load_config(environ={"OPENCLAW_STATE_DIR": str(tmp_path)})
        assert config.fresh_tail_count == 7

    def test_a_host_file_nobody_named_may_be_unreadable(self, tmp_path: Path) -> None:
        (tmp_path / "openclaw.json").write_text("{ // a comment\n}")
        config = load_config(environ={"OPENCLAW_STATE_DIR": str(tmp_path)})
        assert codes(config) == ["config_file_ignored"]

    def test_a_named_file_that_is_missing_is_not_found(self, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match=r"gone\.json"):
            load_config(tmp_path / "gone.json", environ={})

    def test_broken_json_is_located_by_line_and_column(self, tmp_path: Path) -> None:
        path = tmp_path / "lcm.json"
        path.write_text('{\n  "enabled": yes\n}')
        with pytest.raises(ConfigError, match=r"lcm\.json:2:14"):
            load_config(path, environ={})

    def test_a_byte_order_mark_is_survived(self, tmp_path: Path) -> None:
        path = tmp_path / "lcm.json"
        path.write_bytes(b'\xef\xbb\xbf{"freshTailCount": 9}')
        assert load_config(path, environ={}).fresh_tail_count == 9

    @pytest.mark.parametrize("content", [b"[]", b"\xff\xfe", b"3"])
    def test_a_file_that_holds_no_object_is_an_error(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "lcm.json"
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=r"lcm\.json"):
            load_config(path, environ={})

    def test_a_directory_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError):
            load_config(tmp_path, environ={})

    def test_an_unknown_key_is_an_error_with_the_nearest_name(self, write_file: WriteFile) -> None:
        with pytest.raises(ConfigError) as caught:
            load_config(write_file({"freshTailCuont": 5}), environ={})
        assert caught.value.hint == "did you mean freshTailCount?"

    def test_an_unknown_key_of_an_object_is_an_error(self, write_file: WriteFile) -> None:
        with pytest.raises(ConfigError, match=r"autoRotateSessionFiles\.size"):
            load_config(write_file({"autoRotateSessionFiles": {"size": 5}}), environ={})

    def test_an_object_key_that_is_no_object_is_an_error(self, write_file: WriteFile) -> None:
        with pytest.raises(ConfigError, match="autoRotateSessionFiles"):
            load_config(write_file({"autoRotateSessionFiles": True}), environ={})


class TestDatabasePath:
    def test_it_follows_the_state_directory(self) -> None:
        config = load_config(environ={"OPENCLAW_STATE_DIR": "  /srv/state  "})
        assert config.database_path == Path("/srv/state/lcm.db")

    @pytest.mark.parametrize("blank", ["", "   "])
    def test_a_blank_state_directory_is_the_home_directory_s(self, blank: str) -> None:
        config = load_config(environ={"OPENCLAW_STATE_DIR": blank})
        assert config.database_path == Path.home() / ".openclaw" / "lcm.db"

    def test_its_older_name_works_and_is_noted(self, write_file: WriteFile) -> None:
        config = load_config(write_file({"dbPath": "/old.db"}), environ={})
        assert (config.database_path, codes(config)) == (Path("/old.db"), ["alias"])

    def test_it_wins_over_its_older_name_with_a_note(self, write_file: WriteFile) -> None:
        path = write_file({"dbPath": "/old.db", "databasePath": "/new.db"})
        config = load_config(path, environ={})
        assert (config.database_path, codes(config)) == (Path("/new.db"), ["alias_ignored"])


class TestAliases:
    @pytest.mark.parametrize(
        ("environ", "keys", "depth"),
        [
            ({"LCM_INCREMENTAL_MAX_DEPTH": "2"}, {"sweepMaxDepth": 5, "incrementalMaxDepth": 4}, 2),
            ({"LCM_SWEEP_MAX_DEPTH": "6", "LCM_INCREMENTAL_MAX_DEPTH": "2"}, {}, 6),
            ({}, {"sweepMaxDepth": 5, "incrementalMaxDepth": 4}, 5),
            ({}, {"incrementalMaxDepth": 4}, 4),
        ],
    )
    def test_the_sweep_depth_takes_the_documented_order(
        self, write_file: WriteFile, environ: dict[str, str], keys: dict[str, int], depth: int
    ) -> None:
        assert load_config(write_file(keys), environ=environ).sweep_max_depth == depth


class TestNotes:
    def test_a_key_for_later_is_accepted_and_reported(self, write_file: WriteFile) -> None:
        config = load_config(write_file({"transcriptGcEnabled": True}), environ={})
        assert codes(config) == ["not_effective"]

    def test_a_key_for_later_is_checked_all_the_same(self, write_file: WriteFile) -> None:
        with pytest.raises(ConfigError, match="transcriptGcEnabled"):
            load_config(write_file({"transcriptGcEnabled": "perhaps"}), environ={})

    def test_a_retired_key_is_accepted_and_reported(self, write_file: WriteFile) -> None:
        keys = {"cacheAwareCompaction": {"enabled": True}}
        assert codes(load_config(write_file(keys), environ={})) == ["deprecated"]

    def test_the_documented_example_is_accepted(self, write_file: WriteFile) -> None:
        keys = {
            "enabled": True,
            "databasePath": "/srv/lcm.db",
            "largeFilesDir": "/srv/lcm-files",
            "ignoreSessionPatterns": [],
            "contextThreshold": 0.75,
            "freshTailMaxTokens": 24000,
            "incrementalMaxDepth": 1,
            "summaryModel": "",
            "fallbackProviders": [],
            "timezone": "America/Los_Angeles",
            "maxAssemblyTokenBudget": 30000,
            "dynamicLeafChunkTokens": {"enabled": True, "max": 40000},
        }
        assert load_config(write_file(keys), environ={}).fresh_tail_max_tokens == 24000

    @pytest.mark.parametrize("zone", ["Asia/Shanghai", ":Asia/Shanghai"])
    def test_the_system_variable_sets_the_time_zone(self, zone: str) -> None:
        assert load_config(environ={"TZ": zone}).timezone == "Asia/Shanghai"

    @pytest.mark.parametrize("zone", ["CET-1CEST", ":/etc/localtime", "Europe"])
    def test_a_system_variable_of_another_form_is_noted_not_refused(self, zone: str) -> None:
        config = load_config(environ={"TZ": zone})
        assert (config.timezone, codes(config)) == (None, ["timezone_ignored"])


class TestConfig:
    def test_it_is_checked_when_made_by_hand(self) -> None:
        with pytest.raises(ConfigError, match="freshTailCount is 0"):
            Config(fresh_tail_count=0)

    def test_none_where_a_value_is_needed_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="leafChunkTokens"):
            Config(leaf_chunk_tokens=None)

    def test_values_given_by_hand_are_told_from_defaults(self) -> None:
        sources = Config(fresh_tail_count=5).sources
        assert (sources["freshTailCount"], sources["leafChunkTokens"]) == ("argument", "default")

    def test_a_changed_copy_names_the_change_as_an_argument(self) -> None:
        config = dataclasses.replace(load_config(environ={}), leaf_min_fanout=3)
        assert config.sources["leafMinFanout"] == "argument"

    def test_it_cannot_be_changed(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            Config().enabled = False

    def test_it_survives_pickling(self) -> None:
        config = load_config(environ={"TZ": "nonsense"})
        copy = pickle.loads(pickle.dumps(config))
        assert (copy, copy.notes, copy.sources) == (config, config.notes, config.sources)

    def test_it_has_a_field_for_every_effective_key_and_no_other(self) -> None:
        fields = {field.name for field in dataclasses.fields(Config)} - {"sources", "notes"}
        assert len(fields) == len(EFFECTIVE_KEYS)

    @pytest.mark.parametrize(
        ("budget_tokens", "target"),
        [(1, 2000), (4096, 2000), (8192, 3072), (32000, 12000), (64000, 20000), (10**9, 20000)],
    )
    def test_the_summary_prefix_target_grows_with_the_budget_up_to_a_chunk(
        self, budget_tokens: int, target: int
    ) -> None:
        assert Config().summary_prefix_target(budget_tokens) == target

    def test_a_configured_summary_prefix_target_is_taken(self) -> None:
        assert Config(summary_prefix_target_tokens=50).summary_prefix_target(10**6) == 50

    @pytest.mark.parametrize(
        ("leaf_chunk_tokens", "tokens"),
        [(1, 6000), (20_000, 6000), (20_004, 6001), (80_000, 24_000)],
    )
    def test_a_fork_shows_three_tenths_of_a_chunk_and_never_less_than_6000_tokens(
        self, leaf_chunk_tokens: int, tokens: int
    ) -> None:
        assert Config(leaf_chunk_tokens=leaf_chunk_tokens).bootstrap_tokens == tokens

    def test_configured_bootstrap_tokens_are_taken(self) -> None:
        assert Config(bootstrap_max_tokens=12_345).bootstrap_tokens == 12_345

    def test_large_files_are_kept_beside_the_database(self) -> None:
        assert Config().large_files_folder("/srv/lcm.db") == Path("/srv/lcm-files")

    def test_a_configured_folder_of_large_files_is_taken(self) -> None:
        config = Config(large_files_dir="~/payloads")
        assert config.large_files_folder("/srv/lcm.db") == Path.home() / "payloads"

    def test_patterns_may_be_written_as_one_text(self, write_file: WriteFile) -> None:
        path = write_file({"ignoreSessionPatterns": "agent:*:cron:*, agent:main:subagent:**,"})
        patterns = load_config(path, environ={}).ignore_session_patterns
        assert patterns == ("agent:*:cron:*", "agent:main:subagent:**")
