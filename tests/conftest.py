"""Fixtures shared by all tests."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.kernels import estimate_tokens
from lcm_fast.store import Address, Store, audit
from lcm_fast.summarize import ExtractiveSummarizer

ROOT = Path(__file__).parent.parent
NIGHTLY_EXAMPLES = 20_000

settings.register_profile("nightly", max_examples=NIGHTLY_EXAMPLES, stateful_step_count=200)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real conversations: LCM_FAST_DATA, or ../shared/data beside the project."""
    folder = Path(os.environ.get("LCM_FAST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real conversations here: set LCM_FAST_DATA to their folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _documented_counts() -> Iterator[None]:
    """Count by the documented estimate where a test asks for no other: its counts are plain."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LCM_TOKEN_COUNTER", "documented")
        yield


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


def said(text: str, at: int | None = None, role: str = "user") -> dict[str, Any]:
    """Return a message; `at` is its time in seconds, none when it is left out."""
    message: dict[str, Any] = {"role": role, "content": text}
    return message if at is None else {**message, "timestamp": 1_700_000_000_000 + 1000 * at}


def entry(entry_id: str, parent_id: str | None, message: dict[str, Any]) -> dict[str, Any]:
    """Return a session file's entry that carries a message."""
    return {"type": "message", "id": entry_id, "parentId": parent_id, "message": message}


def chain(*messages: dict[str, Any], start: int = 0) -> list[dict[str, Any]]:
    """Return entries e0, e1, ... each the child of the one before."""
    return [
        entry(f"e{n}", f"e{n - 1}" if n else None, message)
        for n, message in enumerate(messages, start)
    ]


def write_session(path: Path, entries: Sequence[object]) -> Path:
    """Write an OpenClaw session file: a header, then these entries, one a line."""
    header = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-01-05T09:00:00Z"}
    path.write_text("".join(json.dumps(one) + "\n" for one in (header, *entries)))
    return path


def texts(engine: Engine, **address: str) -> list[str]:
    """Return the contents of a conversation's messages, in order."""
    return [row.content for row in engine.messages(limit=100_000, **address)]


def shown(engine: Engine, session_key: str = "default") -> list[str]:
    """Return the contents of the messages in a conversation's view, in order."""
    found = engine.store.frontier(Address(session_key), {})
    assert found is not None
    ids = [int(number) for number in found[1].message_ids if number >= 0]
    return [row.content for row in engine.store.messages(ids)]


def violations(store: Store) -> list[str]:
    """Return what breaks an invariant of the store, as recomputed from its rows."""
    questions = (audit.COVERAGE, audit.ORDINALS, audit.EDGES, audit.COUNTERS)
    findings = [store.audit(question) for question in questions]
    findings += [store.check_integrity(), store.check_foreign_keys()]
    return [sample for _, samples in findings for sample in samples]


class PowerCutError(Exception):
    """The process ends in the middle of a write."""


def power_fails(engine: Engine, at: int, work: Callable[[], object]) -> bool:
    """Do work; the power fails at its n-th statement that writes. Tell whether it came to that."""
    writer = engine.store._writer
    assert writer is not None
    left = at

    def count_down(*_: object) -> bool:
        nonlocal left
        left -= 1
        if left == 0:
            raise PowerCutError
        return True

    writer._db.exec_trace = count_down
    try:
        work()
    except PowerCutError:
        return True
    finally:
        writer._db.exec_trace = None
    return False
