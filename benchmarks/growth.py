"""Does ingest grow slower with the conversation? Batches of 100, the last ten against the first.

``python benchmarks/growth.py [MESSAGES...]``, by default 10,000 and 100,000. The first batch, which
makes the conversation, is left out. Every batch is durable when its call returns.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from generate import messages

import lcm_fast

SIZES = (10_000, 100_000)
SEED = 20_260_319
BATCH = 100
TEN = 10


def times(size: int) -> list[float]:
    """Return the seconds that each batch took."""
    found = []
    with (
        tempfile.TemporaryDirectory() as folder,
        lcm_fast.open(Path(folder) / "memory.db") as engine,
    ):
        batch = []
        for message in messages(size, SEED):
            batch.append(message)
            if len(batch) == BATCH:
                started = time.perf_counter()
                assert engine.ingest(batch).ingested == BATCH
                found.append(time.perf_counter() - started)
                batch = []
    return found[1:]


def main(sizes: list[int]) -> None:
    """Print throughput and growth for each size."""
    print(f"{'messages':>10}  {'messages/s':>10}  {'last ten / first ten':>20}")
    for size in sizes:
        taken = times(size)
        growth = statistics.median(taken[-TEN:]) / statistics.median(taken[:TEN])
        print(f"{size:>10,}  {BATCH * len(taken) / sum(taken):>10,.0f}  {growth:>20.2f}")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or list(SIZES))
