"""How much memory an engine takes that serves ten long conversations of a large store.

The store holds so many messages in conversations of 10,000. A process of its own then opens it,
assembles in ten of them, chronologically and by a prompt, and goes on with each for some turns.
Ends with 1 when that took more than 200 MB at any time.

    python benchmarks/memory.py [--messages N]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from generate import messages

import lcm_fast

LENGTH = 10_000
ACTIVE = 10
TURNS = 20
BATCH = 2_000
BUDGET = 100_000
MOST_MB = 200
NEVER = 10**9
PROMPT = "which index did the migration drop, and what did the test of the parser say?"


def key_of(number: int) -> str:
    return f"agent:main:{number}"


def build(path: Path, count: int) -> None:
    """Store conversations of 10,000 messages each."""
    with lcm_fast.open(path, config={"tokenCounter": "documented"}, durability="normal") as engine:
        for number in range(max(ACTIVE, count // LENGTH)):
            made = messages(LENGTH, number)
            while batch := list(islice(made, BATCH)):
                engine.ingest(batch, session_key=key_of(number), token_budget=NEVER)


def megabytes(name: str) -> float:
    """Return a figure of this process' memory: VmRSS now, VmHWM the most there was."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def serve(path: Path) -> None:
    """Work with ten conversations, and print what memory it takes after each step."""
    print(f"{'interpreter and imports':<40} {megabytes('VmRSS'):>6.0f} MB")
    for prompt_aware in (False, True):
        mode = "by a prompt" if prompt_aware else "chronological"
        config = lcm_fast.Config(prompt_aware_eviction=prompt_aware)
        with lcm_fast.open(path, config=config) as engine:
            for turn in range(TURNS):
                for number in range(ACTIVE):
                    key = key_of(number)
                    context = engine.assemble(session_key=key, token_budget=BUDGET, prompt=PROMPT)
                    assert context.stats.dropped > 0
                    said = {"role": "user", "content": f"{mode} {turn}: {PROMPT}"}
                    answer = {"role": "assistant", "content": f"{mode} {turn}: it says so"}
                    engine.ingest([said, answer], session_key=key, token_budget=NEVER)
                if turn in (0, TURNS - 1):
                    step = f"{mode}, turn {turn + 1} in {ACTIVE} conversations"
                    print(f"{step:<40} {megabytes('VmRSS'):>6.0f} MB")
    print(f"{'most at any time':<40} {megabytes('VmHWM'):>6.0f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return int(megabytes("VmHWM") > MOST_MB)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        started = time.perf_counter()
        build(path, options.messages)
        size = path.stat().st_size / 1024**2
        took = time.perf_counter() - started
        print(f"{options.messages:,} messages stored in {took:.0f} s, {size:,.0f} MB", flush=True)
        child = [sys.executable, __file__, "--serve", str(path)]
        return subprocess.run(child, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
