"""Print `lcm_categories.pxd`: the character classes of tiktoken's patterns, as ranges.

tiktoken's regex engine brings a Unicode version of its own (16.0 in tiktoken 0.14), which is newer
than `unicodedata` of most Pythons, so the classes are asked of tiktoken itself:

    python csrc/generate_categories.py > csrc/lcm_categories.pxd
"""

from __future__ import annotations

from collections.abc import Iterator

import tiktoken

CODE_POINTS = 0x110000
SURROGATES = range(0xD800, 0xE000)
UPPER, LOWER, ALTERNATING = 1, 2, 128
CLASSES = {
    "UPPER": r"[\p{Lu}\p{Lt}]",
    "LOWER": r"\p{Ll}",
    "LETTER": r"[\p{Lm}\p{Lo}]",
    "MARK": r"\p{M}",
    "NUMBER": r"\p{N}",
    "SPACE": r"[\s&&[^\r\n]]",
    "NEWLINE": r"[\r\n]",
}
LINE = 98
HEAD = '''"""The character classes of tiktoken's patterns; made by `generate_categories.py`.

Ranges of code points, first and last, class by class in the order of the flags; what is in none is
punctuation, symbol or unassigned. ALTERNATING: upper case at even distances from the first.
"""

from libc.stdint cimport uint32_t

cdef enum:
'''


def classify() -> bytearray:
    """Return the flag of each code point's class."""
    flags = bytearray(CODE_POINTS)
    text = "".join(chr(point) for point in range(CODE_POINTS) if point not in SURROGATES)
    ranks = {bytes([byte]): byte for byte in range(256)}
    for bit, pattern in enumerate(CLASSES.values()):
        encoding = tiktoken.Encoding(
            "classes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
        )
        for character in bytes(encoding.encode_ordinary(text)).decode():
            flags[ord(character)] = 1 << bit
    return flags


def ranges(flags: bytearray) -> Iterator[tuple[int, int, int]]:
    """Yield (first, last, flag) of every run of one class."""
    first = 0
    while first < CODE_POINTS:
        end = end_of_alternation(flags, first)
        flag = ALTERNATING
        if end - first < 4:
            end, flag = first + 1, flags[first]
            while end < CODE_POINTS and flags[end] == flag and not alternates(flags, end):
                end += 1
        if flag:
            yield first, end - 1, flag
        first = end


def alternates(flags: bytearray, first: int) -> bool:
    return end_of_alternation(flags, first) - first >= 4


def end_of_alternation(flags: bytearray, first: int) -> int:
    end = first
    while end + 1 < CODE_POINTS and (flags[end], flags[end + 1]) == (UPPER, LOWER):
        end += 2
    return end


def wrap(numbers: list[str]) -> Iterator[str]:
    line = "   "
    for number in numbers:
        if len(line) + len(number) + 2 > LINE:
            yield line
            line = "   "
        line += f" {number},"
    yield line


def main() -> None:
    """Print the file."""
    found: dict[int, list[tuple[int, int]]] = {}
    for first, last, flag in ranges(classify()):
        found.setdefault(flag, []).append((first, last))
    names = [*CLASSES, "ALTERNATING"]
    print(HEAD + "".join(f"    {name} = {1 << bit}\n" for bit, name in enumerate(names)))
    print("cdef extern from *:")
    print('    """')
    for bit, name in enumerate(names):
        numbers = [f"0x{point:X}" for pair in found[1 << bit] for point in pair]
        print(f"    static const uint32_t lcm_{name.lower()}[] = {{")
        print("\n".join(wrap(numbers)))
        print("    };")
    print('    """')
    for bit, name in enumerate(names):
        count = 2 * len(found[1 << bit])
        print(f'    const uint32_t[{count}] {name}_RANGES "lcm_{name.lower()}"')


if __name__ == "__main__":
    main()
