"""How far our counts of prompts are from what models counted, before and after calibration.

A real session is stored turn by turn, as a host does: an assembly that leaves nothing out, then the
answer, with the usage that the session recorded for it. Successive prompts are compared by how much
they differ, as the host's own instructions are not in the session. A difference is judged with the
ratio that was in use before it was learnt from. Where the host compacted or trimmed what it sent,
which a session does not tell, the difference is not of our messages: pairs further apart than any
tokeniser are left out, and counted.

    python benchmarks/usage_calibration.py [--counter NAME] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import lcm_fast
from lcm_fast.compaction.usage import observed_prompt_tokens
from lcm_fast.transcripts import shapes

FOLDER = Path(__file__).parents[2] / "shared" / "data"
FOLDERS = ("openclaw-v3-long", "pi-sessions-v1", "openclaw-v3")
EVERYTHING = 10**9
LEAST_PAIRS = 20
LEAST_DIFFERENCE = 100
APART = 2.5


@dataclass
class Sums:
    """Tokens by which successive prompts of a model differ, added up."""

    pairs: int = 0
    left_out: int = 0
    observed: int = 0
    counted: float = 0.0
    corrected: float = 0.0
    off_counted: float = 0.0
    off_corrected: float = 0.0

    def add(self, observed: int, counted: int, ratio: float) -> None:
        if not counted / APART <= observed <= counted * APART:
            self.left_out += 1
            return
        self.pairs += 1
        self.observed += observed
        self.counted += counted
        self.corrected += counted * ratio
        self.off_counted += abs(counted - observed)
        self.off_corrected += abs(counted * ratio - observed)


def turns(path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of a session up to and with each answer of the assistant."""
    with tempfile.TemporaryDirectory() as folder, lcm_fast.open(f"{folder}/m.db") as engine:
        engine.bootstrap(path, session_key="default")
        entries = [json.loads(raw) for raw in engine.export_entries()]
    turn: list[dict[str, Any]] = []
    for entry in entries:
        message = entry.get("message", {})
        if shapes.role_of(message):
            turn.append(entry)
            if message["role"] == "assistant":
                yield turn
                turn = []


def replay(engine: lcm_fast.Engine, path: Path, sums: dict[str, Sums]) -> None:
    """Store a session turn by turn in a conversation of its own and add up what is found."""
    before: tuple[str, int, int] | None = None
    for turn in turns(path):
        answer = turn[-1]["message"]
        model, observed = answer.get("model"), observed_prompt_tokens(answer.get("usage"))
        # What was asked stands before the assembly, so that this counts the whole prompt.
        engine.ingest(turn[:-1], session_key=path.stem, token_budget=EVERYTHING)
        context = engine.assemble(session_key=path.stem, token_budget=EVERYTHING, model=model)
        counted = round(context.estimated_tokens / context.token_ratio)
        engine.after_turn(
            turn[-1:],
            session_key=path.stem,
            usage=observed or None,
            model=model,
            token_budget=EVERYTHING,
        )
        if not observed or model is None:
            continue
        if before is not None and before[0] == model and counted > before[2] + LEAST_DIFFERENCE:
            sums[model].add(observed - before[1], counted - before[2], context.token_ratio)
        before = model, observed, counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counter", default="auto", metavar="NAME")
    parser.add_argument("--data", type=Path, default=os.environ.get("LCM_FAST_DATA", FOLDER))
    options = parser.parse_args()
    config = lcm_fast.Config(
        token_counter=options.counter,
        context_threshold=1,
        replay_flood_threshold_external=EVERYTHING,
        replay_flood_threshold_internal=EVERYTHING,
    )
    sums: dict[str, Sums] = defaultdict(Sums)
    paths = [path for folder in FOLDERS for path in sorted((options.data / folder).glob("*.jsonl"))]
    with (
        tempfile.TemporaryDirectory() as folder,
        lcm_fast.open(f"{folder}/m.db", config=config, durability="normal") as engine,
    ):
        for path in track(paths, "replaying", console=Console(stderr=True)):
            replay(engine, path, sums)
        known = {row.model: row for row in engine.store.calibrations()}
        counter = engine.token_counter.name
    table = Table(
        "model", "pairs", "left out", "ratio", "off in all", "calibrated", "a pair", "calibrated"
    )
    for model, found in sorted(sums.items(), key=lambda pair: -pair[1].pairs):
        if found.pairs >= LEAST_PAIRS:
            table.add_row(
                model,
                str(found.pairs),
                str(found.left_out),
                f"{known[model].ratio:.3f}" if model in known else "-",
                f"{found.counted / found.observed - 1:+.1%}",
                f"{found.corrected / found.observed - 1:+.1%}",
                f"{found.off_counted / found.observed:.1%}",
                f"{found.off_corrected / found.observed:.1%}",
            )
    print(f"counted by {counter}; differences of successive prompts against what models counted")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
