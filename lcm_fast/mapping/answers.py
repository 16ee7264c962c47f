"""What a model answered for one item: its text, or the JSON value in it, checked by a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import ConfigError, SummarizerContentError

__all__ = ["check_schema", "read_answer"]

_FENCE = "```"


def check_schema(schema: Mapping[str, Any] | None) -> None:
    """Check a JSON schema before anything is asked.

    Raises
    ------
    ConfigError
        It is none, or the package that checks answers is not installed.
    """
    if schema is None:
        return
    jsonschema = _jsonschema()
    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ConfigError(
            f"schema: {error.message} at {error.json_path}", hint="it must be a JSON schema"
        ) from error


def read_answer(text: str, schema: Mapping[str, Any] | None) -> str:
    """Return the result of an answer: the text itself, or compact JSON where there is a schema.

    Raises
    ------
    SummarizerContentError
        There is no JSON in it, or the value breaks the schema; says where.

    Examples
    --------
    >>> read_answer(" yes ", None)
    'yes'
    """
    if schema is None:
        return text.strip()
    value = _first_value(text)
    jsonschema = _jsonschema()
    validator = jsonschema.validators.validator_for(schema)(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if error is not None:
        raise SummarizerContentError(f"at {error.json_path}: {error.message}")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _first_value(text: str) -> Any:
    """Return the first JSON value of a text, whether it stands alone, fenced or among words."""
    if _FENCE in text:
        fenced = text.split(_FENCE)[1]
        text = fenced.partition("\n")[2] if "\n" in fenced else fenced
    decoder = json.JSONDecoder()
    text = text.strip()
    starts = [0, *(at for at, char in enumerate(text) if char in "{[")]
    for start in starts:
        try:
            return decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
    raise SummarizerContentError("at $: the answer holds no JSON value")


def _jsonschema() -> Any:
    try:
        import jsonschema  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise ConfigError(
            "schema: answers cannot be checked without the package jsonschema",
            hint='pip install "lcm-fast[map]"',
        ) from error
    return jsonschema
