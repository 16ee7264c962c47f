"""Twin of the `text` kernel: the analyser that cuts text of any script into search terms.

Search and relevance use the same terms (architecture, sections 4 and 6). Text is NFKC-normalised
and case-folded; words, CJK characters and pairs, identifiers whole and in parts, numbers and dates
become terms in order of appearance; punctuation and symbols separate them.
"""

from __future__ import annotations

from collections import Counter
from unicodedata import category, normalize

import numpy as np
import numpy.typing as npt

__all__ = ["analyse_terms", "count_terms", "stem"]

LONGEST_TERM = 64
BLOCK = 512

JOINERS = frozenset("_-./:@#\\")
URL_JOINERS = frozenset("?=&%+~")
OUTER_PUNCTUATION = "".join(sorted(JOINERS | URL_JOINERS))

CJK_RANGES = (
    (0x1100, 0x11FF),
    (0x3005, 0x3007),
    (0x3041, 0x3096),
    (0x3099, 0x309A),
    (0x309D, 0x309F),
    (0x30A1, 0x30FA),
    (0x30FC, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
INVISIBLE_RANGES = (
    (0x00AD, 0x00AD),
    (0x0640, 0x0640),
    (0x200C, 0x200D),
    (0x2060, 0x2060),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xE0100, 0xE01EF),
)
# Characters that NFKC makes an ASCII one.
WIDE_FORMS = {0x00A0: " ", 0x3000: " "} | {
    point: chr(point - 0xFEE0) for point in range(0xFF01, 0xFF5F)
}

UNSTEMMED = frozenset(
    ("alias", "anything", "canvas", "during", "embed", "everything", "news", "nothing", "something")
)
VOWELS = frozenset("aeiou")
DOUBLED = frozenset("bdgmnprt")
BEFORE_LE = frozenset("bcdfgkptz")
SILENT_E_AFTER_CONSONANT = frozenset(
    first + last
    for first, lasts in (("a", "dgmprt"), ("i", "dlnr"), ("o", "dk"), ("u", "dlmrt"))
    for last in lasts
)
ES_PLURALS = ("sses", "shes", "xes", "zzes", "tches", "nches", "rches", "eaches", "oaches")


def analyse_terms(text: str) -> list[str]:
    """See `lcm_fast.kernels.analyse_terms`."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    normal = text if text.isascii() else _normalise(text)
    terms: list[str] = []
    start = 0
    while start < len(normal):
        if _is_cjk(normal[start]):
            end = _end_of_cjk(normal, start)
            _add_cjk(normal[start:end], terms)
        elif _is_word(normal[start]) or normal[start] in JOINERS:
            end = _end_of_compound(normal, start)
            _add_compound(normal[start:end], terms)
        else:
            end = start + 1
        start = end
    return terms


def count_terms(
    texts: list[str],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """See `lcm_fast.kernels.count_terms`."""
    if not isinstance(texts, list):
        raise TypeError(f"texts must be a list, not {type(texts).__name__}")
    offsets, terms, counts = [0], list[int](), list[int]()
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{i}] must be a str, not {type(text).__name__}")
        counted = Counter(map(_hash, analyse_terms(text)))
        terms += counted.keys()
        counts += counted.values()
        offsets.append(len(terms))
    return (
        np.array(offsets, dtype=np.int64),
        np.array(terms, dtype=np.uint32),
        np.array(counts, dtype=np.uint32),
    )


def _hash(term: str) -> int:
    """Return FNV-1a over the code points, finished as MurmurHash3 does."""
    value = 2166136261
    for character in term:
        value = (value ^ ord(character)) * 16777619 % 2**32
    value = (value ^ (value >> 16)) * 0x85EBCA6B % 2**32
    value = (value ^ (value >> 13)) * 0xC2B2AE35 % 2**32
    return value ^ (value >> 16)


def _in_ranges(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(character) <= last for first, last in ranges)


def _is_cjk(character: str) -> bool:
    return _in_ranges(character, CJK_RANGES) and category(character)[0] in "LMN"


def _is_word(character: str) -> bool:
    return category(character)[0] in "LMN" and not _is_cjk(character)


def _normalise(text: str) -> str:
    """Return `text` in NFKC, without invisible characters.

    Normalisation sorts runs of combining marks in quadratic time, so it is given blocks, cut
    before an ASCII character where there is one, or one that it makes ASCII.
    """
    visible = "".join(c for c in text if not _in_ranges(c, INVISIBLE_RANGES)).translate(WIDE_FORMS)
    blocks = []
    start = 0
    while start < len(visible):
        end = min(start + BLOCK, len(visible))
        while end < min(start + 2 * BLOCK, len(visible)) and not visible[end].isascii():
            end += 1
        blocks.append(normalize("NFKC", visible[start:end]))
        start = end
    return "".join(blocks)


def _end_of_cjk(text: str, start: int) -> int:
    end = start + 1
    while end < len(text) and _is_cjk(text[end]):
        end += 1
    return end


def _end_of_compound(text: str, start: int) -> int:
    """Return where the run of word characters and joiners ends; a URL takes its query along."""
    end = start
    in_url = False
    while end < len(text):
        character = text[end]
        if not (
            _is_word(character) or character in JOINERS or (in_url and character in URL_JOINERS)
        ):
            break
        end += 1
        if end - start >= 3 and text[end - 3 : end] == "://":
            in_url = True
    return end


def _add_cjk(run: str, terms: list[str]) -> None:
    """Add each character, and each pair right after its first character."""
    for i, character in enumerate(run):
        terms.append(character)
        if i + 1 < len(run):
            terms.append(run[i : i + 2])


def _add_compound(run: str, terms: list[str]) -> None:
    """Add the run as a whole where it has several segments, then each segment."""
    segments = _segments(run)
    if len(segments) > 1:
        whole = run.strip(OUTER_PUNCTUATION).casefold()
        if len(whole) <= LONGEST_TERM:
            terms.append(whole)
            if _is_decimal(whole):
                return
    for segment in segments:
        _add_segment(segment, terms)


def _segments(run: str) -> list[str]:
    """Return the pieces between joiners that hold a letter or a digit."""
    segments = []
    begin = 0
    for i in range(len(run) + 1):
        if i == len(run) or run[i] in JOINERS or run[i] in URL_JOINERS:
            segment = run[begin:i]
            if any(category(c)[0] != "M" for c in segment):
                segments.append(segment)
            begin = i + 1
    return segments


def _is_decimal(whole: str) -> bool:
    left, dot, right = whole.partition(".")
    return dot == "." and all(part.isascii() and part.isdigit() for part in (left, right))


def _add_segment(segment: str, terms: list[str]) -> None:
    """Add a word's stem, or an identifier and its humps; what is very long is cut."""
    folded = segment.casefold()
    if len(folded) > LONGEST_TERM:
        terms.append(folded[:LONGEST_TERM])
        return
    humps = _humps(segment)
    if len(humps) == 1:
        terms.append(stem(folded))
        return
    terms.append(folded)
    terms.extend(stem(hump.casefold()) for hump in humps)


def _humps(segment: str) -> list[str]:
    """Cut a segment where a camelCase hump begins: aB, ABc and 1Bc, but not the plural of URLs."""
    kinds = [category(c) for c in segment]
    humps = []
    begin = 0
    for i in range(1, len(segment)):
        if kinds[i] not in ("Lu", "Lt"):
            continue
        opens_word = i + 1 < len(segment) and kinds[i + 1] == "Ll" and segment[i + 1 :] != "s"
        if kinds[i - 1] == "Ll" or (kinds[i - 1] in ("Lu", "Lt", "Nd") and opens_word):
            humps.append(segment[begin:i])
            begin = i
    humps.append(segment[begin:])
    return humps


def stem(word: str) -> str:
    """Return the light English stem of a folded word; anything but 4 or more ASCII letters stays.

    | ending | becomes | where |
    |---|---|---|
    | -ies, -ied | -y | in 5 letters or more |
    | -es | nothing | after ss, sh, x, zz and most ch |
    | -s | nothing | not after s, u, i |
    | -ed, -ing | nothing | with a vowel before it, and not -eed |
    | double consonant left by these | single | b d g m n p r t |
    | root that lost a silent e | gets it back | by its last letters, or one vowel next to last |

    >>> [stem(word) for word in "queries matches caches stopped caching updated status".split()]
    ['query', 'match', 'cache', 'stop', 'cache', 'update', 'status']
    """
    if len(word) < 4 or not (word.isascii() and word.isalpha()) or word in UNSTEMMED:
        return word
    return _strip_verb_ending(_strip_plural(word))


def _strip_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(ES_PLURALS):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _strip_verb_ending(word: str) -> str:
    if word.endswith("ied"):
        return word[:-3] + "y" if len(word) > 4 else word
    if word.endswith("ing") and len(word) > 4:
        root = word[:-3]
    elif word.endswith("ed") and len(word) > 3 and not word.endswith("eed"):
        root = word[:-2]
    else:
        return word
    if not any(_is_vowel(root, i) for i in range(len(root))):
        return word
    if len(root) > 3 and root[-1] == root[-2] and root[-1] in DOUBLED:
        return root[:-1]
    return root + "e" if _lost_e(root) else root


def _is_vowel(word: str, i: int) -> bool:
    return word[i] in VOWELS or (word[i] == "y" and i > 0)


def _lost_e(root: str) -> bool:
    """Whether a verb root looks as if it lost a silent e before -ed or -ing."""
    last = root[-1]
    before = root[-2:-1]
    if last in "uv" or (last in "sz" and before != last):
        return True
    if last == "c":
        return not root.endswith("ync")
    if last == "l" and before in BEFORE_LE:
        return True
    if root.endswith(("ang", "dg", "rg", "cach", "creat", "iat", "uat", "uir")):
        return True
    if len(root) > 3 and root[-2:] in SILENT_E_AFTER_CONSONANT:
        return root[-3] not in VOWELS
    return _is_short(root)


def _is_short(root: str) -> bool:
    """Whether the root's only vowel is next to last, as in *stor(ed)* or *mak(ing)*."""
    vowels = [i for i in range(len(root)) if _is_vowel(root, i)]
    return len(root) > 2 and vowels == [len(root) - 2] and root[-1] not in "wxy"
