"""Twin of the `bpe` kernel: tiktoken itself counts, from the same vocabulary.

tiktoken is the definition of what the kernel must give (design, benchmarks 3). It panics on long
runs of blanks; each of those is one piece, which is counted apart and replaced by one blank.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import TYPE_CHECKING

import numpy as np

from .checks import Int64Array

if TYPE_CHECKING:
    from tiktoken import Encoding

__all__ = ["TokenCounter"]

PATTERNS = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
LONGEST_TOKEN = 255
RANKS = 1 << 22
LINE = re.compile(rb"((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3})?={0,2}) ([0-9]+)\r?")
BLANK = r"[\t\v\f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
LONG_BLANKS = re.compile(f"{BLANK}{{100000,}}(?!{BLANK}|[\r\n])")


class TokenCounter:
    """See `lcm_fast.kernels.TokenCounter`."""

    def __init__(self, encoding_name: str, vocabulary: bytes) -> None:
        if not isinstance(encoding_name, str):
            raise TypeError(f"encoding_name must be a str, not {type(encoding_name).__name__}")
        if not isinstance(vocabulary, bytes):
            raise TypeError(f"vocabulary must be bytes, not {type(vocabulary).__name__}")
        if encoding_name not in PATTERNS:
            raise ValueError(
                f"encoding_name is {encoding_name!r}, expected 'cl100k_base' or 'o200k_base'"
            )
        self.encoding_name = encoding_name
        self._encoding = _make_encoding(encoding_name, _read_vocabulary(vocabulary))

    def count(self, text: str) -> int:
        """See `lcm_fast.kernels.TokenCounter.count`."""
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, not {type(text).__name__}")
        count = 0
        parts = []
        begin = 0
        for run in LONG_BLANKS.finditer(text):
            if run.end() == len(text) and self.encoding_name == "cl100k_base":
                break
            last = "" if run.end() == len(text) else text[run.end() - 1]
            blanks = text[run.start() : run.end() - len(last)]
            count += len(self._encoding._encode_single_piece(blanks)) - 1
            parts += [text[begin : run.start()], " ", last]
            begin = run.end()
        return count + len(self._encoding.encode_ordinary("".join([*parts, text[begin:]])))

    def count_many(self, texts: list[str]) -> Int64Array:
        """See `lcm_fast.kernels.TokenCounter.count_many`."""
        if not isinstance(texts, list):
            raise TypeError(f"texts must be a list, not {type(texts).__name__}")
        counts = []
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts[{i}] must be a str, not {type(text).__name__}")
            counts.append(self.count(text))
        return np.array(counts, dtype=np.int64)


def _make_encoding(name: str, ranks: dict[bytes, int]) -> Encoding:
    from tiktoken import Encoding  # noqa: PLC0415 -- not on the default path

    return Encoding(name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={})


def _read_vocabulary(vocabulary: bytes) -> dict[bytes, int]:
    ranks = {}
    for number, line in enumerate(vocabulary.split(b"\n"), 1):
        if line:
            token, rank = _read_line(line, number)
            ranks[token] = rank
    for byte in range(256):
        if bytes([byte]) not in ranks:
            raise ValueError(f"vocabulary has no token for byte {byte}")
    return ranks


def _read_line(line: bytes, number: int) -> tuple[bytes, int]:
    found = LINE.fullmatch(line)
    if found and len(found[1]) % 4 == 0:
        token, rank = b64decode(found[1]), int(found[2])
        if 0 < len(token) <= LONGEST_TOKEN and rank < RANKS:
            return token, rank
    raise ValueError(f"vocabulary line {number} is not a token in base64 and its rank")
