"""Does the model see what it needs? Evidence that an assembly still holds, measured on LongMemEval.

A long conversation is stored and its question asked as prompt, with a budget of 5, 10 and 20 % of
the conversation's tokens and a fresh tail of 8. Counted are the turns annotated as evidence that
the assembly shows whole. "Replayed" asks for an assembly before every answer of the conversation as
well, so that what was shown before has its say (see prefix_stability.py).

    python benchmarks/evidence_retention.py [--set s|joined] [--limit QUESTIONS] [--data FOLDER]

The set S has a whole haystack for each question. The oracle set has the sessions with evidence
alone: "joined" puts those of 25 questions into one conversation, shuffled with a fixed seed, and
asks each question of it; every other question is one half, so that a policy tuned on the one can be
looked at on the other.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.kernels import analyse_terms, select_context
from lcm_fast.store import Address

FOLDER = Path(__file__).parents[2] / "shared" / "data"
SHARES = (0.05, 0.1, 0.2)
TAIL = 8
JOINED = 25
SEED = 5


@dataclass(frozen=True)
class Question:
    """A question, and the texts of the turns that answer it."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """Turns, and what is asked of them."""

    turns: list[dict[str, str]]
    questions: list[Question]


def read(path: Path, limit: int | None) -> list[dict[str, Any]]:
    with path.open() as lines:
        return [json.loads(line) for line in islice(lines, limit)]


def question_of(entry: dict[str, Any]) -> Question:
    turns = [turn for session in entry["haystack_sessions"] for turn in session]
    evidence = frozenset(turn["content"] for turn in turns if turn.get("has_answer"))
    return Question(entry["question"], evidence)


def conversation_of(
    sessions: list[list[dict[str, Any]]], questions: list[Question]
) -> Conversation:
    turns = [{"role": turn["role"], "content": turn["content"]} for one in sessions for turn in one]
    return Conversation(turns, [one for one in questions if one.evidence])


def whole_haystacks(entries: list[dict[str, Any]]) -> Iterator[Conversation]:
    for entry in entries:
        yield conversation_of(entry["haystack_sessions"], [question_of(entry)])


def joined(entries: list[dict[str, Any]]) -> Iterator[Conversation]:
    shuffled = random.Random(SEED)
    shuffled.shuffle(entries)
    for begin in range(0, len(entries), JOINED):
        group = entries[begin : begin + JOINED]
        sessions = [session for entry in group for session in entry["haystack_sessions"]]
        shuffled.shuffle(sessions)
        yield conversation_of(sessions, [question_of(entry) for entry in group])


def shown_texts(engine: Engine, budget: int, prompt: str) -> set[str]:
    messages = engine.assemble(token_budget=budget, prompt=prompt).messages
    return {message["content"] for message in messages}


def by_term_frequency(engine: Engine, budget: int, prompt: str) -> set[str]:
    """Choose as the peer does (spec R16), but over the words of any script."""
    found = engine.store.frontier(Address("default"), {})
    assert found is not None
    frontier = found[1]
    ids = frontier.message_ids.tolist()
    texts = engine.store.texts(ids)
    asked = set(analyse_terms(prompt))
    scores = []
    for message_id in ids:
        terms = analyse_terms(texts[message_id])
        scores.append(sum(term in asked for term in terms) / max(1, len(terms)))
    tail = frontier.fresh_tail_start(TAIL, None)
    best_first = np.array(sorted(range(tail), key=lambda i: (-scores[i], -i)), dtype=np.int64)
    mask, _ = select_context(
        frontier.ordinals,
        frontier.openers,
        frontier.tokens,
        np.zeros(len(ids), np.uint8),
        tail,
        budget,
        best_first,
    )
    return {texts[ids[index]] for index in np.flatnonzero(mask).tolist()}


POLICIES = ("chronological", "term frequency", "prompt-aware", "prompt-aware, replayed")


def opened(path: Path, *, prompt_aware: bool) -> Engine:
    config = lcm_fast.Config(
        fresh_tail_count=TAIL,
        prompt_aware_eviction=prompt_aware,
        context_threshold=1,
        replay_flood_threshold_external=10**6,
    )
    return lcm_fast.open(path, config=config)


def held(conversation: Conversation, policy: str) -> Iterator[tuple[int, float, int, int]]:
    """Yield (question, share, evidence turns shown, evidence turns)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory.db")
        choose = by_term_frequency if policy == "term frequency" else shown_texts
        total = sum(len(turn["content"]) // 4 for turn in conversation.turns)
        for share in SHARES:
            path.unlink(missing_ok=True)
            with opened(path, prompt_aware=policy.startswith("prompt")) as engine:
                budget = int(share * total)
                for turn in conversation.turns if "replayed" in policy else ():
                    if turn["role"] == "assistant":
                        engine.assemble(token_budget=budget)
                    engine.ingest([turn], token_budget=10**9)
                if "replayed" not in policy:
                    engine.ingest(conversation.turns, token_budget=10**9)
                for number, question in enumerate(conversation.questions):
                    texts = choose(engine, budget, question.text)
                    yield number, share, len(question.evidence & texts), len(question.evidence)


def cell(halves: Any) -> str:
    """Return the share of evidence that was shown, and that of each half of the questions."""
    shown, there = halves.sum(axis=0)
    of_halves = ", ".join(f"{part[0] / part[1]:.3f}" for part in halves if part[1])
    return f"{shown / there:.3f} ({of_halves})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=("s", "joined"), default="s")
    parser.add_argument("--limit", type=int, metavar="QUESTIONS")
    parser.add_argument("--data", type=Path, default=os.environ.get("LCM_FAST_DATA", FOLDER))
    options = parser.parse_args()
    name = "longmemeval_s_20" if options.set == "s" else "longmemeval_oracle"
    entries = read(options.data / "longmemeval" / f"{name}.jsonl", options.limit)
    conversations = list(joined(entries) if options.set == "joined" else whole_haystacks(entries))
    questions = sum(len(one.questions) for one in conversations)
    table = Table("policy", *(f"{share:.0%}" for share in SHARES), box=None)
    for policy in POLICIES:
        counts = np.zeros((len(SHARES), 2, 2), dtype=int)
        for conversation in track(conversations, policy, console=Console(stderr=True)):
            for number, share, shown, there in held(conversation, policy):
                counts[SHARES.index(share), number % 2] += (shown, there)
        table.add_row(policy, *map(cell, counts))
    print(f"{questions} questions of {len(conversations)} conversations; both halves in brackets")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
