"""Two processes, several threads each, at work on the same conversations: nothing comes apart."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from conftest import violations

import lcm_fast

STEPS = 40
CONFIG = {
    "fresh_tail_count": 2,
    "leaf_chunk_tokens": 600,
    "leaf_min_fanout": 2,
    "condensed_min_fanout": 2,
    "condensed_target_tokens": 1,
    "summary_prefix_target_tokens": 300,
    "summary_max_calls_per_window": 1_000_000,
    "summary_concurrency": 3,
    "fallback_max_tokens": 64,
}
WORKS = """
    import random, sys, threading
    import lcm_fast

    seed, steps = int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)

    def summarise(request):
        mood = chance.random()
        if mood < 0.1:
            raise ConnectionError("no route")
        if mood < 0.3:
            return ""
        return f"in brief {{mood}}"

    def work(engine, thread):
        for step in range(steps):
            key = f"session {{chance.randrange(2)}}"
            what = chance.random()
            said = f"{{seed}} {{thread}} {{step}} " + "word " * chance.randrange(200)
            if what < 0.6:
                engine.after_turn(
                    [{{"role": "user", "content": said}}], session_key=key, token_budget=2000
                )
            elif what < 0.8:
                engine.compact(session_key=key, token_budget=2000, force=what < 0.7)
            elif what < 0.9:
                engine.maintain()
            else:
                engine.assemble(session_key=key, token_budget=2000)

    with lcm_fast.open(
        sys.argv[1], config={config!r}, summarizer=summarise, durability="normal", worker=True
    ) as engine:
        threads = [threading.Thread(target=work, args=(engine, n)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
"""


def test_the_memory_is_whole_afterwards(database: Path) -> None:
    lcm_fast.open(database).close()
    script = textwrap.dedent(WORKS).format(config=CONFIG)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(database), str(seed), str(STEPS)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in (1, 2)
    ]
    assert [process.communicate()[1] for process in processes] == ["", ""]
    with lcm_fast.open(database) as engine:
        assert violations(engine.store) == []
        assert lcm_fast.status(engine).totals["summaries"]["leaf"] > 0
