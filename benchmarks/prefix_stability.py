"""How much of one prompt's beginning the next one repeats, byte for byte, on replayed sessions.

A session is stored message by message, and an assembly made before each answer of the assistant, as
a host does for every model call. A provider's prompt cache serves the beginning that two successive
prompts share; the table gives its share of the earlier prompt's tokens, over all calls at which the
conversation no longer fits the budget.

    python benchmarks/prefix_stability.py [--budget TOKENS] [--limit SESSIONS] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import lcm_fast
from lcm_fast.assembly.recently_used import RecentlyUsed
from lcm_fast.kernels import estimate_tokens
from lcm_fast.transcripts import shapes

FOLDER = Path(__file__).parents[2] / "shared" / "data"
FOLDERS = ("openclaw-v3-long", "pi-sessions-v1", "openclaw-v3")
TAIL = 16
NEVER = 10**9


@dataclass(frozen=True)
class Policy:
    """A setting, and whether an assembly knows what the one before showed."""

    name: str
    prompt_aware: bool
    step: float
    remembers: bool = True


POLICIES = (
    Policy("chronological, filled up each time", prompt_aware=False, step=0),
    Policy("chronological, in steps (default)", prompt_aware=False, step=0.1),
    Policy("prompt-aware, anew each time", prompt_aware=True, step=0, remembers=False),
    Policy("prompt-aware, in steps", prompt_aware=True, step=0.1),
)


def sessions(data: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of each session, those of the longest first."""
    paths = [path for folder in FOLDERS for path in (data / folder).glob("*.jsonl")]
    for path in sorted(paths, key=lambda one: -one.stat().st_size):
        with tempfile.TemporaryDirectory() as folder, lcm_fast.open(f"{folder}/m.db") as engine:
            engine.bootstrap(path, session_key="default")
            entries = map(json.loads, engine.export_entries())
            yield [entry for entry in entries if shapes.role_of(entry.get("message", entry))]


def prompts(
    entries: list[dict[str, Any]], policy: Policy, budget: int
) -> Iterator[tuple[list[str], bool]]:
    """Yield each prompt as its messages' JSON, and whether the conversation fits no longer."""
    config = lcm_fast.Config(
        fresh_tail_count=TAIL,
        prompt_aware_eviction=policy.prompt_aware,
        eviction_step=policy.step,
        context_threshold=1,
        replay_flood_threshold_external=NEVER,
        replay_flood_threshold_internal=NEVER,
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        lcm_fast.open(f"{folder}/m.db", config=config) as engine,
    ):
        if not policy.remembers:
            engine._assemblies = RecentlyUsed(0)
        for entry in entries:
            message = entry.get("message", entry)
            if shapes.role_of(message) == "assistant":
                assembly = engine.assemble(token_budget=budget)
                texts = [json.dumps(one, sort_keys=True) for one in assembly.messages]
                yield texts, assembly.stats.selection != "full-fit"
            engine.ingest([entry], token_budget=NEVER)


def tokens(texts: list[str]) -> int:
    return sum(map(estimate_tokens, texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=32_000, metavar="TOKENS")
    parser.add_argument("--limit", type=int, default=8, metavar="SESSIONS")
    parser.add_argument("--data", type=Path, default=os.environ.get("LCM_FAST_DATA", FOLDER))
    options = parser.parse_args()
    chosen = list(islice(sessions(options.data), options.limit))
    table = Table("policy", "shared beginning", "of the best", "calls", box=None)
    shares: dict[str, float] = {}
    calls = 0
    for policy in POLICIES:
        shared = total = calls = 0
        for entries in track(chosen, policy.name, console=Console(stderr=True)):
            for (before, _), (after, is_over) in pairwise(prompts(entries, policy, options.budget)):
                if is_over:
                    same = takewhile(
                        lambda pair: pair[0] == pair[1], zip(before, after, strict=False)
                    )
                    shared += tokens([one for one, _ in same])
                    total += tokens(before)
                    calls += 1
        shares[policy.name] = shared / total if total else 1.0
    best = max(shares.values())
    for name, share in shares.items():
        table.add_row(name, f"{share:.1%}", f"{share / best:.1%}", str(calls))
    print(f"{len(chosen)} sessions, {options.budget:,} tokens, fresh tail {TAIL}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
