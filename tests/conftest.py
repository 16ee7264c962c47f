"""Fixtures shared by all tests."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.kernels import estimate_tokens
from lcm_fast.store import Store
from lcm_fast.summarize import ExtractiveSummarizer

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real conversations: LCM_FAST_DATA, or ../shared/data beside the project."""
    folder = Path(os.environ.get("LCM_FAST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real conversations here: set LCM_FAST_DATA to their folder")
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The path of a database that does not exist yet."""
    return tmp_path / "memory.db"


@pytest.fixture
def store(database: Path) -> Iterator[Store]:
    """An empty store."""
    opened = Store.open(database)
    yield opened
    opened.close()


@pytest.fixture
def engine(database: Path) -> Iterator[Engine]:
    """An engine on an empty store, with default settings and a clock that ticks a second a call."""
    with make_engine(database) as opened:
        yield opened


def make_engine(database: Path, **settings: object) -> Engine:
    """Open an engine whose results depend on its input alone."""
    return Engine(
        Store.open(database),
        lcm_fast.Config(timezone="UTC", **settings),  # type: ignore[arg-type]
        ExtractiveSummarizer(),
        estimate_tokens,
        now=ticking_clock(),
    )


def ticking_clock() -> Callable[[], str]:
    """Return a clock that starts at 2026-01-01 and moves one second with each call."""
    seconds = itertools.count()

    def now() -> str:
        second = next(seconds)
        return f"2026-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000Z"

    return now
