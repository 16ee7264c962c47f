"""How much sooner a long backlog is summarised side by side, by a summariser that takes its time.

    python benchmarks/catch_up.py [--messages N] [--seconds S]

Prints the wall time for several values of ``summaryConcurrency``; every run makes the same leaves.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from generate import messages

import lcm_fast
from lcm_fast.summarize import SummaryRequest

CONCURRENCIES = (1, 2, 4, 8)


def seconds_for(count: int, seconds: float, concurrency: int) -> tuple[int, float]:
    """Return how many leaves were made, and the seconds it took."""

    def slow(request: SummaryRequest) -> str:
        time.sleep(seconds)
        return f"in brief: {len(request.items)} messages"

    config = lcm_fast.Config(
        timezone="UTC",
        summary_concurrency=concurrency,
        summary_max_calls_per_window=10**6,
        max_sweep_iterations=10**6,
        summary_prefix_target_tokens=10**9,
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        lcm_fast.open(Path(folder, "memory.db"), config=config, summarizer=slow) as engine,
    ):
        engine.ingest(messages(count, 1), token_budget=10**9)
        started = time.perf_counter()
        result = engine.compact(token_budget=10**9, force=True)
        return result.summaries_created, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one summary")
    options = parser.parse_args()
    first = 0.0
    for concurrency in CONCURRENCIES:
        leaves, taken = seconds_for(options.messages, options.seconds, concurrency)
        first = first or taken
        print(f"{concurrency} at a time: {leaves} leaves in {taken:.1f} s, {first / taken:.1f}x")


if __name__ == "__main__":
    main()
