"""Find every key's value: argument, then environment, then configuration file, then default.

Checks whatever is set anywhere, also what a stronger source overrides: a configuration with a
mistake in it says so (spec: configuration 1.1; decision 9).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError, NotFoundError
from .schema import EFFECTIVE_KEYS, KEYS, OBJECTS, Key, key_for_name, nearest_name, snake_case
from .settings import Config, Note, state_directory
from .values import is_zone, parse_text, parse_value

__all__ = ["load_config"]

# Entries of a host's configuration file that may hold ours; the first present counts.
_PLUGIN_IDS = ("lcm-fast", "lossless-claw")


class _Setting(NamedTuple):
    """A key's value in one source, already checked."""

    key: Key
    value: Any
    source: str


def load_config(
    file: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Resolve the configuration.

    Parameters
    ----------
    file
        A JSON file: the keys themselves, or a host's ``openclaw.json`` with them under
        ``plugins.entries["lossless-claw"].config`` (or ``"lcm-fast"``). Without it
        ``OPENCLAW_CONFIG_PATH`` names the file; without that ``openclaw.json`` in the state
        directory is read if it is there.
    overrides
        Values that beat every other source, by documented or by Python name; None means not set.
    environ
        The environment; the process's own by default.

    Raises
    ------
    NotFoundError
        The file that was named does not exist.
    ConfigError
        The file is no JSON (with line and column), a key is unknown (with the nearest name), or a
        value is unusable (with key, source and range).
    """
    environ = os.environ if environ is None else environ
    notes: list[Note] = []
    tiers = [
        _settings(overrides or {}, "argument"),
        _environment_settings(environ, notes),
        _file_settings(file, environ, notes),
    ]
    notes += [note for tier in tiers for note in _notes_on(tier)]
    chosen = {key.name: _choose(key.name, tiers) for key in EFFECTIVE_KEYS}
    found = {name: setting for name, setting in chosen.items() if setting is not None}
    values = {snake_case(name): setting.value for name, setting in found.items()}
    sources = {name: setting.source for name, setting in found.items()}
    if "databasePath" not in found:
        values["database_path"] = state_directory(environ) / "lcm.db"
        named = environ.get("OPENCLAW_STATE_DIR", "").strip()
        sources["databasePath"] = "env OPENCLAW_STATE_DIR" if named else "default"
    return Config(**values, sources=sources, notes=tuple(notes))


def _choose(name: str, tiers: list[dict[str, _Setting]]) -> _Setting | None:
    """Return the setting of the strongest source; within a source the older names come last."""
    names = [name, *(key.name for key in KEYS.values() if key.alias_of == name)]
    return next((tier[one] for tier in tiers for one in names if one in tier), None)


def _settings(values: Mapping[str, Any], source: str) -> dict[str, _Setting]:
    settings: dict[str, _Setting] = {}
    for name, value in _flatten(values, source):
        key = key_for_name(name)
        if key is None:
            raise _unknown(name, source)
        if value is not None:
            settings[key.name] = _Setting(key, parse_value(key, value, source), source)
    return settings


def _flatten(values: Mapping[str, Any], source: str) -> Iterator[tuple[str, Any]]:
    """Yield names and values, those of objects as ``object.sub``."""
    for name, value in values.items():
        if name not in OBJECTS:
            yield name, value
        elif isinstance(value, Mapping):
            yield from ((f"{name}.{sub}", inner) for sub, inner in value.items())
        elif value is not None:
            raise ConfigError(f"{name} is {value!r} ({source})", hint="it must be an object")


def _unknown(name: str, source: str) -> ConfigError:
    nearest = nearest_name(name)
    return ConfigError(
        f"unknown configuration key {name} ({source})",
        hint=f"did you mean {nearest}?" if nearest else "see the list of keys",
        code="unknown_key",
    )


def _environment_settings(environ: Mapping[str, str], notes: list[Note]) -> dict[str, _Setting]:
    settings: dict[str, _Setting] = {}
    for key in KEYS.values():
        text = environ.get(key.env) if key.env else None
        if text is None or (not text.strip() and key.kind != "list"):
            continue
        source = f"env {key.env}"
        if key.kind == "zone":
            text = text.strip().removeprefix(":")
            if not is_zone(text):
                notes.append(_foreign_zone(text))
                continue
        settings[key.name] = _Setting(key, parse_text(key, text, source), source)
    return settings


def _foreign_zone(text: str) -> Note:
    # TZ is not ours: other programs take POSIX rules and file names in it.
    return Note(
        "timezone_ignored",
        f"TZ is {text!r}, which is no IANA time zone",
        "set timezone in the configuration file",
    )


def _file_settings(
    file: str | os.PathLike[str] | None, environ: Mapping[str, str], notes: list[Note]
) -> dict[str, _Setting]:
    named = file or environ.get("OPENCLAW_CONFIG_PATH", "").strip()
    path = Path(named) if named else _host_file(environ)
    if path is None:
        return {}
    try:
        root = _read_json(path)
    except ConfigError as error:
        if named:
            raise
        # Nobody asked for this file, and hosts allow comments in theirs.
        hint = "put our keys into a file of their own"
        notes.append(Note("config_file_ignored", error.detail, hint))
        return {}
    return _settings(_keys_in(root, path), f"file {path}")


def _host_file(environ: Mapping[str, str]) -> Path | None:
    try:
        path = state_directory(environ) / "openclaw.json"
        return path if path.is_file() else None
    except (ConfigError, OSError):
        return None


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        root = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise NotFoundError(f"no configuration file at {path}", hint="check the path") from None
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}:{error.lineno}:{error.colno}: {error.msg}", hint="the file must be plain JSON"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(root, dict):
        raise ConfigError(f"{path} holds no object", hint='it must start with "{"')
    return root


def _keys_in(root: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the part of a configuration file that is ours."""
    if "plugins" not in root and path.name != "openclaw.json":
        return root
    entries = _object_at(_object_at(root, "plugins", path), "entries", path)
    entry_id = next((name for name in _PLUGIN_IDS if name in entries), None)
    if entry_id is None:
        return {}
    entry = _object_at(entries, entry_id, path)
    keys = _object_at(entry, "config", path)
    return {**keys, "enabled": False} if entry.get("enabled") is False else keys


def _object_at(holder: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    inner = holder.get(name)
    if inner is None:
        return {}
    if not isinstance(inner, Mapping):
        raise ConfigError(f"{path}: {name} is {inner!r}", hint="it must be an object")
    return inner


def _notes_on(tier: Mapping[str, _Setting]) -> Iterator[Note]:
    for key, _, source in tier.values():
        what = f"{key.name} ({source})"
        if key.alias_of and key.alias_of in tier:
            yield Note(
                "alias_ignored", f"{what} is ignored", f"{key.alias_of} is set as well; remove one"
            )
        elif key.alias_of:
            yield Note("alias", f"{what} is an older name", f"use {key.alias_of}")
        if key.deprecated:
            yield Note("deprecated", f"{what} has no effect any more", "remove it")
        elif not key.effective:
            yield Note("not_effective", f"{what} has no effect in this version", "")
