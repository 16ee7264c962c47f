"""Do long real sessions come under small budgets, and are their exact names still there?

The longest sessions of a folder are stored and compacted with the offline summariser under each
budget: once with the fresh tail capped at a quarter of it, once as configured by default. An
identifier is kept when it stands in a summary of the view, or in the fresh tail.

    python benchmarks/compaction_targets.py [--sessions N] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import LcmError
from lcm_fast.summarize.salience import find_identifiers

FOLDER = Path(__file__).parents[2] / "shared" / "data"
SESSIONS = ("openclaw-v3", "openclaw-v3-long", "openclaw-v3-chats", "pi-sessions-v1")
BUDGETS = (8_000, 32_000, 100_000)


def longest(folder: Path, count: int) -> list[Path]:
    """Return the sessions that take most tokens."""
    sizes: list[tuple[int, Path]] = []
    with tempfile.TemporaryDirectory() as scratch, lcm_fast.open(Path(scratch, "m.db")) as engine:
        for path in sorted(path for name in SESSIONS for path in (folder / name).rglob("*.jsonl")):
            try:
                result = engine.bootstrap(path, session_key=str(path))
            except LcmError:
                continue  # these folders hold broken files on purpose
            conversation = engine.conversation(session_key=result.session_key)
            sizes.append((conversation.frontier_tokens, path))
    return [path for _, path in sorted(sizes, reverse=True)[:count]]


def identifiers_in_view(engine: Engine) -> set[str]:
    loaded = engine.store.frontier_of(1, None)
    assert loaded is not None
    frontier = loaded[1]
    messages = engine.store.messages([int(one) for one in frontier.message_ids if one >= 0])
    summaries = engine.store.summaries([name for name in frontier.summary_ids if name])
    return {name for row in [*messages, *summaries] for name in find_identifiers(row.content)}


def compact(path: Path, budget: int, tail_tokens: int | None) -> str:
    config = {"freshTailMaxTokens": tail_tokens, "timezone": "UTC"}
    with (
        tempfile.TemporaryDirectory() as folder,
        lcm_fast.open(Path(folder, "memory.db"), config=config) as engine,
    ):
        engine.bootstrap(path, session_key="session")
        before = identifiers_in_view(engine)
        result = engine.compact(session_key="session", token_budget=budget, target="budget")
        kept = len(before & identifiers_in_view(engine)) / max(len(before), 1)
    return (
        f"{result.tokens_before:>9,} -> {result.tokens_after:>7,}  {result.status:<9}"
        f" {result.passes:>3} passes {result.duration_ms / 1000:>6.1f} s"
        f"  {kept:>4.0%} of {len(before):,} identifiers  {result.reason}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--data", type=Path, default=os.environ.get("LCM_FAST_DATA", FOLDER))
    options = parser.parse_args()
    for path in longest(Path(options.data), options.sessions):
        print(path.name)
        for budget in BUDGETS:
            print(f"  {budget:>7,} quarter {compact(path, budget, budget // 4)}")
            print(f"  {budget:>7,} default {compact(path, budget, None)}")


if __name__ == "__main__":
    main()
