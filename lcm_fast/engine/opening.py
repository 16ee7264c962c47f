"""Open an engine: its configuration, its store, its summariser."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ..config import Config, load_config
from ..kernels import estimate_tokens
from ..store import Durability, Store
from ..summarize import ExtractiveSummarizer, as_summarizer
from .engine import Engine

__all__ = ["open_engine"]


def open_engine(
    path: str | os.PathLike[str] | None = None,
    *,
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    summarizer: Any = None,
    token_counter: Callable[[str], int] | None = None,
    durability: Durability = "full",
) -> Engine:
    """Open a memory, made when it is not there yet.

    Parameters
    ----------
    path
        The database; default ``databasePath`` of the configuration, else
        ``${OPENCLAW_STATE_DIR:-~/.openclaw}/lcm.db``.
    config
        A `Config`, a mapping of keys that overrides environment and defaults, or a configuration
        file.
    summarizer
        A `Summarizer`, or a callable that takes a `SummaryRequest` and returns text. Default:
        offline, extractive.
    token_counter
        Counts the tokens of a text. Default: the estimate of the documents.
    durability
        ``"full"``: a call returns when its messages are safe on disk. ``"normal"``: safe against a
        crash of the process, not of the machine.

    Raises
    ------
    ConfigError
        A configuration value, or the summariser, is unusable.
    ForeignDatabaseError
        The file is another program's; it is not touched.
    DatabaseError
        The database cannot be opened.

    Examples
    --------
    >>> import tempfile, lcm_fast
    >>> with tempfile.TemporaryDirectory() as folder, lcm_fast.open(f"{folder}/demo.db") as engine:
    ...     stored = engine.ingest([{"role": "user", "content": "hello"}])
    ...     stored.ingested, engine.assemble(token_budget=1000).messages
    (1, [{'role': 'user', 'content': 'hello'}])
    """
    settings = _settings(config)
    chosen = as_summarizer(summarizer) if summarizer is not None else ExtractiveSummarizer()
    store = Store.open(path if path is not None else settings.database_path, durability=durability)
    return Engine(store, settings, chosen, token_counter or estimate_tokens)


def _settings(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None,
) -> Config:
    if isinstance(config, Config):
        return config
    if isinstance(config, Mapping):
        return load_config(overrides=config)
    return load_config(config)
