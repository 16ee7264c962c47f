"""What a turn of four messages costs on conversations of growing length: statements, steps, rows.

``python benchmarks/turn_cost.py [SIZE...]``, by default 10, 10,000 and 1,000,000 messages. Steps
are those of SQLite's virtual machine; rows are those a statement went through without an index. The
counts must not grow; ends with 1 when they do.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw

import lcm_fast

SIZES = (10, 10_000, 1_000_000)
BATCH = 10_000
TURNS = 20
# A B-tree grows by a level now and then: that many times as many steps are no growth.
TOLERANCE = 1.5


def turn(at: int) -> list[dict[str, Any]]:
    """Return a turn that no other equals: a question, a tool exchange, an answer."""
    call_id = f"call_{at:016d}"
    call = {"type": "toolCall", "id": call_id, "name": "read", "arguments": {"path": f"{at}.py"}}
    bodies: list[dict[str, Any]] = [
        {"role": "user", "content": f"what is in {at}.py?"},
        {"role": "assistant", "content": [call]},
        {"role": "toolResult", "toolCallId": call_id, "content": f"line {at}"},
        {"role": "assistant", "content": "It holds one line."},
    ]
    return [
        {**body, "timestamp": 1_800_000_000_001 + 4000 * at + n} for n, body in enumerate(bodies)
    ]


def filled(path: Path, size: int) -> lcm_fast.Engine:
    """Return an engine whose default conversation holds so many messages."""
    engine = lcm_fast.open(path)
    turns = (message for at in range(-size // 4, 0) for message in turn(at))
    stored = 0
    while stored < size:
        batch = [
            message for _, message in zip(range(min(BATCH, size - stored)), turns, strict=False)
        ]
        stored += engine.ingest(batch).ingested
    return engine


def cost(engine: lcm_fast.Engine) -> tuple[float, float, float, float]:
    """Return statements, steps, rows and milliseconds of a turn, on average."""
    writer = engine.store._writer
    assert writer is not None
    profiles: list[dict[str, Any]] = []
    writer._db.trace_v2(apsw.SQLITE_TRACE_PROFILE, profiles.append)
    started = time.perf_counter()
    for at in range(1, TURNS + 1):
        assert engine.ingest(turn(at)).ingested == len(turn(at))
    elapsed = time.perf_counter() - started
    writer._db.trace_v2(0, None)
    counts = [profile["stmt_status"] for profile in profiles]
    return (
        len(counts) / TURNS,
        sum(one["SQLITE_STMTSTATUS_VM_STEP"] for one in counts) / TURNS,
        sum(one["SQLITE_STMTSTATUS_FULLSCAN_STEP"] for one in counts) / TURNS,
        elapsed * 1000 / TURNS,
    )


def main(sizes: list[int]) -> int:
    """Print the table; return 1 when the cost grows with the conversation."""
    print(f"{'messages':>10}  {'statements':>10}  {'steps':>8}  {'rows':>6}  {'ms':>6}")
    costs = []
    for size in sizes:
        with (
            tempfile.TemporaryDirectory() as folder,
            filled(Path(folder) / "memory.db", size) as engine,
        ):
            costs.append(cost(engine))
        statements, steps, rows, milliseconds = costs[-1]
        print(
            f"{size:>10,}  {statements:>10.1f}  {steps:>8.0f}  {rows:>6.1f}  {milliseconds:>6.2f}"
        )
    first, last = costs[0], costs[-1]
    grows = last[0] != first[0] or last[2] != first[2] or last[1] > TOLERANCE * first[1]
    return int(grows)


if __name__ == "__main__":
    sys.exit(main([int(size) for size in sys.argv[1:]] or list(SIZES)))
