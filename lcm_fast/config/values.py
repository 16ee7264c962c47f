"""Check one configuration value against its key: the value in its proper type, or a clear error.

Strict: nothing is guessed, clamped or dropped (decision 9). Must not know where values come from
beyond the label it prints.
"""

from __future__ import annotations

import math
import re
import zoneinfo
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .overrides import RuleError, ThresholdRule, read_rule
from .schema import Key, Kind

__all__ = ["is_zone", "parse_text", "parse_value"]

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class _UnfitError(Exception):
    """A value that is not of its key's kind; carries what to add to the message, if anything."""


def parse_value(key: Key, value: object, source: str) -> Any:
    """Return a value in the type its key wants.

    Parameters
    ----------
    value
        As JSON or Python has it; numbers and booleans may be written as strings.
    source
        Where it was set, for the message.

    Raises
    ------
    ConfigError
        The value is of another kind or out of range; names key, value, source and what is allowed.

    Examples
    --------
    >>> from lcm_fast.config.schema import KEYS
    >>> parse_value(KEYS["freshTailCount"], "24", "file openclaw.json")
    24
    """
    try:
        return _PARSERS[key.kind](key, value)
    except _UnfitError as unfit:
        why = f": {unfit}" if str(unfit) else ""
        raise ConfigError(
            f"{key.name} is {value!r} ({source}){why}", hint=f"it must be {key.expected}"
        ) from None


def parse_text(key: Key, text: str, source: str) -> Any:
    """Return the value an environment variable's text stands for; lists are separated by commas.

    Raises
    ------
    ConfigError
        As for `parse_value`.
    """
    if key.kind == "list":
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if key.kind == "providers":
        pairs = [part.strip().partition("/") for part in text.split(",") if part.strip()]
        listed = [{"provider": provider, "model": model} for provider, _, model in pairs]
        try:
            return _providers(key, listed)
        except _UnfitError:
            return parse_value(key, text, source)
    return parse_value(key, text, source)


def _boolean(_key: Key, value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise _UnfitError


def _integer(key: Key, value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _UnfitError
    _check_range(key, value)
    return value


def _number(key: Key, value: object) -> float:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _UnfitError
    _check_range(key, value)
    return float(value)


def _check_range(key: Key, value: float) -> None:
    if key.minimum is not None and value < key.minimum:
        raise _UnfitError
    if key.maximum is not None and value > key.maximum:
        raise _UnfitError


def _string(_key: Key, value: object) -> str:
    if not isinstance(value, str):
        raise _UnfitError
    return value.strip()


def _path(_key: Key, value: object) -> Path:
    text = str(value) if isinstance(value, Path) else value
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise _UnfitError
    try:
        return Path(text.strip()).expanduser()
    except RuntimeError as error:
        raise _UnfitError(str(error)) from None


def _zone(key: Key, value: object) -> str:
    name = _string(key, value)
    if not is_zone(name):
        raise _UnfitError
    return name


def is_zone(name: str) -> bool:
    """Tell whether a time zone of this name is known here; UTC is, with or without zone files."""
    try:
        return name == "UTC" or bool(zoneinfo.ZoneInfo(name))
    except (KeyError, OSError, ValueError):
        return False


def _list(_key: Key, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        raise _UnfitError
    if not all(isinstance(item, str) for item in value):
        raise _UnfitError("every item must be a text")
    return tuple(item.strip() for item in value if item.strip())


def _choice(key: Key, value: object) -> str:
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in key.choices:
        raise _UnfitError
    return word


def _providers(_key: Key, value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list | tuple):
        raise _UnfitError
    return tuple(_provider(item, index) for index, item in enumerate(value))


def _provider(item: object, index: int) -> tuple[str, str]:
    if isinstance(item, tuple) and len(item) == 2:
        item = {"provider": item[0], "model": item[1]}
    if not isinstance(item, Mapping) or set(item) != {"provider", "model"}:
        raise _UnfitError(f"item {index} must have provider and model, and nothing else")
    if not all(isinstance(part, str) and part.strip() for part in item.values()):
        raise _UnfitError(f"provider and model of item {index} must be texts that are not empty")
    return item["provider"].strip(), item["model"].strip()


def _rules(_key: Key, value: object) -> tuple[ThresholdRule, ...]:
    if not isinstance(value, list | tuple):
        raise _UnfitError
    try:
        return tuple(read_rule(rule, f"[{index}]") for index, rule in enumerate(value))
    except RuleError as error:
        raise _UnfitError(str(error)) from None


_PARSERS: Mapping[Kind, Callable[[Key, object], Any]] = {
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "string": _string,
    "path": _path,
    "zone": _zone,
    "list": _list,
    "choice": _choice,
    "providers": _providers,
    "rules": _rules,
}
