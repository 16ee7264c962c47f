"""A process is killed at 200 points of a sweep; the next one finishes it.

Nothing is lost, and nothing that was published is summarised again (issue: kills; case 379).
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import violations
from upkeep import Scripted, turns

import lcm_fast

POINTS = 200
CONFIG = {
    "fresh_tail_count": 2,
    "leaf_chunk_tokens": 600,
    "leaf_min_fanout": 2,
    "condensed_target_tokens": 1,
    "summary_prefix_target_tokens": 100,
    "max_sweep_iterations": 40,
    "summary_max_calls_per_window": 1000,
}

# Forks a child for each point of sys.argv[2:]; it dies there, by the n-th statement it writes with
# or by the n-th call of its summariser. With no point it prints how many of both there are.
DIES = """
    import os, signal, sys
    import lcm_fast.engine  # once, not in each child

    config = {config!r}

    def sweep(path, dies_at):
        left = dies_at
        def step():
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return True
        def summarise(request):
            step()
            return "notes on " + request.items[0].text[:12] + " word" * 40
        engine = lcm_fast.open(path, config=config, summarizer=summarise)
        engine.store._writer._db.exec_trace = lambda *_: step()
        engine.maintain()
        engine.close()
        return -left

    if len(sys.argv) == 2:
        print(sweep(sys.argv[1], 0))
    for point in sys.argv[2:]:
        child = os.fork()
        if not child:
            sweep(f"{{sys.argv[1]}}.{{point}}", int(point))
            os._exit(0)
        _, end = os.waitpid(child, 0)
        assert os.WIFSIGNALED(end), point
"""


def in_debt(path: Path) -> Path:
    config = lcm_fast.Config(**CONFIG)  # type: ignore[arg-type]
    with lcm_fast.open(path, config=config) as engine:
        said = [{"role": m["role"], "content": m["content"][:8] + " word" * 400} for m in turns(20)]
        assert engine.after_turn(said, token_budget=2000).batch.is_over_threshold
    return path


def run(*arguments: object) -> str:
    script = textwrap.dedent(DIES).format(config=CONFIG)
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is killed in mid-sweep by forking")
def test_a_sweep_that_was_killed_at_any_point_is_finished_by_the_next_process(
    tmp_path: Path,
) -> None:
    pristine = in_debt(tmp_path / "pristine.db")
    shutil.copy(pristine, tmp_path / "measured.db")
    last = int(run(tmp_path / "measured.db"))
    # How many statements there are depends a little on which summary is ready first.
    points = random.Random(4).sample(range(1, last * 9 // 10), POINTS)
    for point in points:
        shutil.copy(pristine, tmp_path / f"killed.db.{point}")
    run(tmp_path / "killed.db", *points)
    for point in points:
        finished_after(tmp_path / f"killed.db.{point}")


def finished_after(path: Path) -> None:
    """Maintain a memory that a killed process left; what it had published stays as it is."""
    summarise = Scripted("notes" + " word" * 40)
    with lcm_fast.open(path, config=CONFIG, summarizer=summarise, durability="normal") as engine:
        assert violations(engine.store) == []
        before = {row.summary_id: row for row in engine.summaries(limit=200)}
        covered = covered_messages(engine)
        engine.maintain()
        assert violations(engine.store) == []
        after = {row.summary_id: row for row in engine.summaries(limit=200)}
        assert {key: after[key] for key in before} == before
        assert engine.store.open_debts()[0] == 0
        assert engine.conversation().frontier_tokens <= 1500
    asked = {item.id for one in summarise.requests if one.kind == "leaf" for item in one.items}
    assert not asked & covered


def covered_messages(engine: lcm_fast.Engine) -> set[str]:
    """Ids of the messages that no item of the frontier is."""
    loaded = engine.store.frontier_of(1, None)
    assert loaded is not None
    raw = {f"msg_{number}" for number in loaded[1].message_ids if number >= 0}
    return {f"msg_{row.message_id}" for row in engine.messages(limit=200)} - raw
