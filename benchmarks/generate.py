"""Write a seeded synthetic session of any size, for benchmarks.

    python benchmarks/generate.py 10000 session.jsonl [--seed 1]

The conversation is that of the benchmark notes: texts of 50 to 2,000 characters (416 on average),
27 % tool results, 8 % of the prose in Chinese, Japanese or Korean, 2 % with emoji, words as
frequent as in natural language, a new topic every 120 messages. The same seed and size give the
same bytes. Messages are made one at a time, so that a million take no more memory than a hundred.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["entries", "messages", "topics", "write_session"]

DEFAULT_SEED = 1
START_MS = 1_700_000_000_000
MESSAGES_PER_TOPIC = 120
TOPICS = 40
WORDS = 12_000
TOOLS = ("bash", "read", "grep", "edit")
_COMMON = (
    "the of to and a in is it that for on was with as be at by this from have or an not are but "
    "we they which you all can has there if will one when out up so what about more would into no "
    "them then its only some could time these two may first do any like now my over such our must "
    "before way back where after also did many through down should because long just each how use"
)
_ONSETS = "b c d f g h k l m n p r s t v w br cl cr dr fl gr pl pr sl st tr ch sh th"
_VOWELS = "a e i o u ai ea io ou"
_CODAS = ("", "", "n", "r", "s", "t", "l", "m", "nd", "st")
# Slots of the table a 16-bit random number picks a word from.
_SLOTS = 1 << 16

Message = dict[str, Any]


class _Words:
    """Words in their natural frequencies (Zipf), and the topics made of the rarer ones."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"words {seed}")
        invented: dict[str, None] = {}
        onsets, vowels = _ONSETS.split(), _VOWELS.split()
        while len(invented) < WORDS:
            syllables = (onsets, vowels, _CODAS) * rng.choice((1, 2, 2, 3))
            invented["".join(map(rng.choice, syllables))] = None
        self.rare = list(invented)
        ranked = _COMMON.split() + self.rare
        weights = [1 / (rank + 2.7) ** 1.02 for rank in range(len(ranked))]
        scale = (_SLOTS - len(ranked)) / sum(weights)
        table: list[str] = []
        for word, weight in zip(ranked, weights, strict=True):
            table += [word] * (1 + int(weight * scale))
        self.table = table + ranked[:1] * (_SLOTS - len(table))
        self.topics = tuple(tuple(rng.choices(self.rare, k=12)) for _ in range(TOPICS))


class _Author:
    """Makes texts and tool output of a wanted length; all randomness comes from one generator."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.words = _Words(seed)
        self.topic = self.words.topics[0]
        han = [chr(code) for code in self.rng.sample(range(0x4E00, 0x9000), 2500)]
        kana = [chr(code) for code in range(0x3041, 0x3097)]
        hangul = [chr(code) for code in self.rng.sample(range(0xAC00, 0xD7A0), 800)]
        self.scripts = (han, han, kana, hangul)
        self.outputs: tuple[Callable[[int], str], ...] = (self._hits, self._listing, self._code)

    def length(self) -> int:
        """Draw the length of a text, in characters."""
        return min(2000, max(50, int(self.rng.lognormvariate(5.9, 1.0))))

    def text(self, length: int) -> str:
        """Write prose: 8 % in an East Asian script, 2 % with emoji at its end."""
        kind = self.rng.random()
        if kind < 0.08:
            return self._east_asian(max(50, length // 2))
        if kind < 0.10:
            faces = "".join(chr(0x1F600 + self.rng.randrange(60)) for _ in range(4))
            return self._prose(max(50, length - 5)) + " " + faces
        return self._prose(length)

    def output(self, length: int) -> str:
        """Write what a tool prints: search hits, a file listing or code."""
        (write,) = self.rng.choices(self.outputs, weights=(40, 35, 25))
        return write(length)[:length]

    def some(self, count: int) -> list[str]:
        """Draw words, every ninth of them the topic's."""
        table = self.words.table
        words = [table[slot] for slot in memoryview(self.rng.randbytes(2 * count)).cast("H")]
        words[::9] = self.rng.choices(self.topic, k=len(range(0, count, 9)))
        return words

    def rare(self, count: int) -> list[str]:
        return self.rng.choices(self.words.rare, k=count)

    def _prose(self, length: int) -> str:
        sentences: list[str] = []
        size = 0
        while size < length:
            words = self.some(self.rng.randrange(6, 18))
            sentence = " ".join(words).capitalize() + self.rng.choice("...?!") + " "
            sentences.append(sentence)
            size += len(sentence)
        return "".join(sentences)[:length]

    def _east_asian(self, length: int) -> str:
        script = self.rng.choice(self.scripts)
        clauses: list[str] = []
        size = 0
        while size < length:
            clause = "".join(self.rng.choices(script, k=self.rng.randrange(4, 20)))
            clauses.append(clause + self.rng.choice("，。、！ "))
            size += len(clauses[-1])
        return "".join(clauses)[:length]

    def _hits(self, length: int) -> str:
        hits = []
        for _ in range(max(1, length // 120)):
            folder, name = self.rare(2)
            hits.append(
                {
                    "path": f"/srv/{folder}/{name}.ts",
                    "line": self.rng.randrange(3000),
                    "score": round(self.rng.random(), 4),
                    "text": " ".join(self.some(7)),
                }
            )
        return json.dumps(hits, indent=2 if self.rng.random() < 0.25 else None)

    def _listing(self, length: int) -> str:
        lines = []
        for _ in range(max(1, length // 60)):
            folder, name = self.rare(2)
            size, minutes = self.rng.randrange(10**6), self.rng.randrange(24 * 60 * 28)
            day, minute = divmod(minutes, 24 * 60)
            lines.append(
                f"-rw-r--r-- 1 app app {size:7d} Nov {day + 1:2d} "
                f"{minute // 60:02d}:{minute % 60:02d} src/{folder}/{name}.py"
            )
        return "\n".join(lines)

    def _code(self, length: int) -> str:
        functions = []
        for _ in range(max(1, length // 70)):
            verb, noun, first, second, call, other = self.rare(6)
            functions.append(
                f"def {verb}_{noun}({first}, {second}=None):\n"
                f"    return {call}({other}) + {self.rng.randrange(999)}"
            )
        return "\n".join(functions)


def topics(seed: int = DEFAULT_SEED) -> tuple[tuple[str, ...], ...]:
    """Return the words of each topic, in the order the conversation takes them up."""
    return _Words(seed).topics


def messages(n: int, seed: int = DEFAULT_SEED) -> Iterator[Message]:
    """Yield `n` messages in the OpenClaw shape, with times in milliseconds.

    Tool results follow the call they answer; the conversation may end between the two.
    """
    author = _Author(seed)
    time_ms = START_MS
    for count, message in enumerate(itertools.islice(_turns(author), n)):
        author.topic = author.words.topics[(count + 1) // MESSAGES_PER_TOPIC % TOPICS]
        time_ms += author.rng.randrange(900, 9000)
        message["timestamp"] = time_ms
        yield message


def _turns(author: _Author) -> Iterator[Message]:
    """Yield turns without end: a request, up to three tool exchanges, an answer."""
    calls = itertools.count()
    while True:
        yield {"role": "user", "content": [_block(author.text(author.length()))]}
        for _ in range(author.rng.choice((0, 0, 1, 1, 2, 3))):
            call_id = f"call_{next(calls)}_{author.rng.getrandbits(24):06x}"
            tool = author.rng.choice(TOOLS)
            yield _call(author, call_id, tool)
            yield _result(author, call_id, tool)
        yield _answer([_block(author.text(author.length()))], "stop")


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _answer(content: list[Message], stop_reason: str) -> Message:
    return {
        "role": "assistant",
        "content": content,
        "provider": "anthropic",
        "model": "m",
        "stopReason": stop_reason,
    }


def _call(author: _Author, call_id: str, tool: str) -> Message:
    (name,) = author.rare(1)
    arguments = {"path": f"/srv/{name}.py", "query": " ".join(author.some(3))}
    call = {"type": "toolCall", "id": call_id, "name": tool, "arguments": arguments}
    return _answer([_block(author.text(author.rng.randrange(50, 200))), call], "toolUse")


def _result(author: _Author, call_id: str, tool: str) -> Message:
    return {
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": tool,
        "content": [_block(author.output(author.length()))],
        "isError": False,
    }


def entries(n: int, seed: int = DEFAULT_SEED) -> Iterator[dict[str, Any]]:
    """Yield the entries of a session file: a header, then `n` messages, each the child of the
    last."""
    yield {
        "type": "session",
        "version": 3,
        "id": f"generated-{seed}-{n}",
        "timestamp": _iso(START_MS),
        "cwd": "/srv",
    }
    parent: str | None = None
    for number, message in enumerate(messages(n, seed)):
        entry_id = f"{number:08x}"
        yield {
            "type": "message",
            "id": entry_id,
            "parentId": parent,
            "timestamp": _iso(message["timestamp"]),
            "message": message,
        }
        parent = entry_id


def _iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")


def write_session(n: int, path: Path, seed: int = DEFAULT_SEED) -> None:
    """Write a session of `n` messages to a file, as it is made."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb", buffering=1 << 20) as file:
        for entry in entries(n, seed):
            file.write(encode(entry) + b"\n")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Write a synthetic session of N messages.")
    parser.add_argument("n", type=int, metavar="N", help="how many messages")
    parser.add_argument("out", type=Path, metavar="OUT", help="file to write")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="default %(default)s")
    options = parser.parse_args(arguments)
    write_session(options.n, options.out, options.seed)


if __name__ == "__main__":
    main(sys.argv[1:])
