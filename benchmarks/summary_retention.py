"""Do summaries still hold what a question will need? Measured on LongMemEval.

Each question's conversation is stored and compacted with the offline summariser. Of every turn that
is annotated as evidence, the terms it shares with the answer are looked for in the one item of the
view that stands for it now. Beside it stands what cutting off each source at the same length keeps.

    python benchmarks/summary_retention.py [--set s|oracle] [--limit QUESTIONS] [--data FOLDER]

The set S has a whole haystack for each question, the oracle set the sessions with evidence alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import lcm_fast
from lcm_fast.kernels import analyse_terms, truncate_tokens
from lcm_fast.summarize import ExtractiveSummarizer, SummaryRequest

FOLDER = Path(__file__).parents[2] / "shared" / "data"
FILES = {"s": "longmemeval_s_20.jsonl", "oracle": "longmemeval_oracle.jsonl"}
COMMON_SHARE = 0.1
TAIL = 8
NO_LIMIT = 10**9


def cut_off(request: SummaryRequest) -> str:
    """Keep the beginning of the source, as the deterministic fallback does."""
    return truncate_tokens(request.text, request.target_tokens)


# name -> (configuration, token budget; None: every chunk becomes a leaf and stays one)
SETTINGS: dict[str, tuple[dict[str, Any], int | None]] = {
    "leaves of 600": ({"leaf_target_tokens": 600}, None),
    "leaves of 1,200": ({"leaf_target_tokens": 1200}, None),
    "leaves of 2,400": ({"leaf_target_tokens": 2400}, None),
    "under 100,000": ({}, 100_000),
    "under 32,000": ({}, 32_000),
    "under 8,000": ({}, 8_000),
}
SUMMARISERS = {"extractive": ExtractiveSummarizer(), "cut off": cut_off}


@dataclass
class Tally:
    """What was found of the evidence under one setting."""

    whole: int = 0
    shares: list[float] = field(default_factory=list)
    by_type: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    tokens_before: int = 0
    tokens_after: int = 0
    seconds: float = 0.0


def turns_of(question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a question's haystack as messages, each with whether it is evidence."""
    sessions = zip(question["haystack_dates"], question["haystack_sessions"], strict=True)
    for date, session in sorted(sessions, key=lambda pair: moment(pair[0])):
        for place, turn in enumerate(session):
            at = 1000 * (moment(date) + 60 * place)
            message = {"role": turn["role"], "content": turn["content"], "timestamp": at}
            yield {"message": message, "is_evidence": bool(turn.get("has_answer"))}


def moment(date: str) -> int:
    day, _, clock = date.split()
    return int(datetime.strptime(f"{day} {clock} +0000", "%Y/%m/%d %H:%M %z").timestamp())


def terms_of(text: str) -> set[str]:
    return set(analyse_terms(text))


def measure(question: dict[str, Any], summariser: Any, setting: str, tally: Tally) -> None:
    turns = list(turns_of(question))
    frequency = Counter(term for turn in turns for term in terms_of(turn["message"]["content"]))
    answer = {
        term
        for term in terms_of(str(question["answer"]))
        if frequency[term] <= COMMON_SHARE * len(turns)
    }
    config, budget = SETTINGS[setting]
    config = {
        "timezone": "UTC",
        "fresh_tail_count": TAIL,
        "summary_max_calls_per_window": 100_000,
        "max_sweep_iterations": 1000,
        "large_file_threshold_tokens": NO_LIMIT,
        **config,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory.db")
        with lcm_fast.open(path, config=config, summarizer=summariser) as engine:
            ids = engine.ingest([turn["message"] for turn in turns], token_budget=NO_LIMIT)
            started = time.perf_counter()
            result = engine.compact(token_budget=budget or NO_LIMIT, force=budget is None)
            tally.seconds += time.perf_counter() - started
        tally.tokens_before += result.tokens_before
        tally.tokens_after += result.tokens_after
        texts = texts_in_view(path)
    for number, turn in zip(ids.message_ids, turns, strict=True):
        wanted = answer & terms_of(turn["message"]["content"])
        if not turn["is_evidence"] or not wanted:
            continue
        share = len(wanted & terms_of(texts[number])) / len(wanted)
        tally.shares.append(share)
        tally.whole += share == 1
        tally.by_type[question["question_type"]].append(share)


def texts_in_view(path: Path) -> dict[int, str]:
    """Return, by message id, the text that stands for the message in the view."""
    with closing(sqlite3.connect(path)) as db:
        raw = db.execute(
            "SELECT message_id, content FROM context_items JOIN messages USING (message_id)"
        ).fetchall()
        covered = db.execute(
            "WITH RECURSIVE under (top, summary_id) AS ("
            " SELECT summary_id, summary_id FROM context_items WHERE summary_id IS NOT NULL"
            " UNION ALL SELECT top, parent_summary_id FROM summary_parents JOIN under"
            " USING (summary_id))"
            " SELECT message_id, content FROM under JOIN summary_messages USING (summary_id)"
            " JOIN summaries s ON s.summary_id = top"
        ).fetchall()
    return dict([*raw, *covered])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=list(FILES), default="s")
    parser.add_argument("--limit", type=int, default=500, help="questions")
    parser.add_argument("--data", type=Path, default=os.environ.get("LCM_FAST_DATA", FOLDER))
    options = parser.parse_args()
    path = Path(options.data) / "longmemeval" / FILES[options.set]
    with path.open(encoding="utf-8", newline="\n") as lines:
        questions = [json.loads(line) for line in islice(lines, options.limit)]
    print(f"{'setting':<16} {'summariser':<11} turns  all terms  mean   tokens in -> out     s")
    for setting in SETTINGS:
        for name, summariser in SUMMARISERS.items():
            tally = Tally()
            for question in questions:
                measure(question, summariser, setting, tally)
            found = len(tally.shares) or 1
            print(
                f"{setting:<16} {name:<11} {found:>5}  {tally.whole / found:>9.2f}"
                f"  {sum(tally.shares) / found:.2f}"
                f"  {tally.tokens_before:>9,} -> {tally.tokens_after:>9,} {tally.seconds:>6.1f}"
            )
            for kind, shares in sorted(tally.by_type.items()):
                print(f"{'':<28}{kind:<28} {len(shares):>3} {sum(shares) / len(shares):.2f}")


if __name__ == "__main__":
    main()
