"""Open an engine: its configuration, its store, its summariser."""

from __future__ import annotations

import os
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping
from typing import Any

from ..config import Config, load_config
from ..counting import choose_counter, given_counter
from ..store import Durability, Store
from ..summarize.backends import as_backend, backend_from_config
from .engine import Engine

__all__ = ["open_engine", "open_on_loop"]


def open_engine(
    path: str | os.PathLike[str] | None = None,
    *,
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    summarizer: Any = None,
    token_counter: Callable[[str], int] | None = None,
    durability: Durability = "full",
    worker: bool = False,
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
        A `Summarizer`, or a callable, also an asynchronous one, that takes a `SummaryRequest` and
        returns text. Default: the models or the program of the configuration, else offline,
        extractive.
    token_counter
        Counts the tokens of a text. Default: what ``tokenCounter`` of the configuration chooses.
    durability
        ``"full"``: a call returns when its messages are safe on disk. ``"normal"``: safe against a
        crash of the process, not of the machine.
    worker
        Maintain the memory from a thread of its own, as by `Engine.start_worker`.

    Raises
    ------
    ConfigError
        A configuration value, or the summariser, is unusable; the vocabulary of the encoding that
        ``tokenCounter`` names is not on this machine.
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
    engine = open_on_loop(
        path,
        config=config,
        summarizer=summarizer,
        token_counter=token_counter,
        durability=durability,
    )
    if worker:
        engine.start_worker()
    return engine


def open_on_loop(
    path: str | os.PathLike[str] | None,
    *,
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None,
    summarizer: Any,
    token_counter: Callable[[str], int] | None,
    durability: Durability,
    loop: AbstractEventLoop | None = None,
) -> Engine:
    """Open a memory as `open_engine` does; an asynchronous summariser runs on `loop`, or on one of
    its own for every call."""
    settings = _settings(config)
    counter = given_counter(token_counter) if token_counter else choose_counter(settings)
    if summarizer is None:
        backend = backend_from_config(settings, os.environ, counter.count)
    else:
        timeout_s = settings.summary_timeout_ms / 1000
        think = settings.enable_summary_thinking
        backend = as_backend(summarizer, timeout_s=timeout_s, loop=loop, think=think)
    store = Store.open(path if path is not None else settings.database_path, durability=durability)
    return Engine(store, settings, backend, counter.count, counter=counter)


def _settings(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None,
) -> Config:
    if isinstance(config, Config):
        return config
    if isinstance(config, Mapping):
        return load_config(overrides=config)
    return load_config(config)
