"""Cuts text of any script into sentences, lines and clauses that can be quoted whole.

Works from punctuation and line structure alone, without language data. Never cuts inside a word or
an identifier; marks code, so that it is not quoted at length. All work is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ..kernels import estimate_tokens

__all__ = ["Fragment", "cut_fragment", "printable", "split_fragments"]

_TERMINAL_ESCAPE = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|[@-_])?")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]+")
_WIDE_GAP = re.compile(r"(?<! ) {3,}+(?=\S)")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")

_FENCE = re.compile(r"\s*(?:```|~~~)")
_LINE_MARKUP = re.compile(r"\s*(?:[#>]+\s+|[-*+•·]\s+|\[[ xX]\]\s+)*")
_LINE_NUMBER = re.compile(r"\s*\d{1,6}\s?[\t|→:│]\s?")
_WORD = re.compile(r"\w")

# Marks that end a sentence wherever they stand, and marks that do so only before a blank.
_SENTENCE_END = re.compile(
    r"[。！？｡．][」』”’）)】》\"'\]!?！？。]*"
    r"|(?<![.!?…؟۔।॥։።။])[.!?…؟۔।॥։።။]++[\"'”’)\]»*_`]*+"
    r"(?=\s|[\u3040-\u30ff\u4e00-\u9fff])"
)
_VOWEL_OR_MARK = re.compile(r"[AEIOUYaeiouy\W_]|\d{3}")
_NEXT_CHARACTER = re.compile(r"\s*(\S)")
_CLAUSE_END = re.compile(r"[，；：、]|[,;:—–]\s*$")
# What a cut must not divide: a run of ASCII, or of letters of a script that puts blanks between
# words.
_ATOM = re.compile(
    r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]\s*"
    r"|[!-~]+\s*"
    r"|[^\s!-~\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\uffef\U00020000-\U0003ffff]+\s*"
    r"|\s+"
)
_LONGEST_WORD_CHARS = 240

_CODE_END = (";", "{", "}", "});", "},", "],", "(", "=>", "/>", "*/", "&&", "||", "\\")
_CODE_START = re.compile(
    r"(?:import|from|export|const|let|var|def|class|return|function|fn|func|package|using|public"
    r"|private|protected|static|async|await|elif|else|except|struct|enum|interface|type)\b.*[({=:;,'\"]"
    r"|(?:if|for|while|switch|catch) ?\(|//|/\*|\*/|#include|</?[a-zA-Z!]|@\w+[($]|[{}()\[\]]"
    r"|\"[^\"]{1,80}\": ?[\[{\"\d tfn-]"
)
_CODE_SYMBOLS = re.compile(r"[(){}\[\];=<>|&\"$]")
_LONGEST_QUOTED_CODE_LINES = 3
_SHORTEST_LISTING = 4
_LineKind = Literal["prose", "code", "fenced"]


class Fragment(NamedTuple):
    """A sentence, a line or a part of one; `quotable` is False inside long code."""

    text: str
    quotable: bool
    is_code: bool = False


def printable(text: str) -> str:
    """Return the text with control characters as blanks and lone surrogates replaced.

    Line feeds stay; wide gaps between columns shrink; everything else keeps its exact characters.
    """
    if "\x1b" in text:
        text = _TERMINAL_ESCAPE.sub(" ", text)
    text = _WIDE_GAP.sub("  ", _CONTROL.sub(" ", text))
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def split_fragments(text: str, max_tokens: int) -> Iterator[Fragment]:
    """Yield what can be quoted from a text, in order.

    Parameters
    ----------
    text
        Output of `printable`.
    max_tokens
        Longest fragment; longer sentences are cut between clauses or words and marked with an
        ellipsis. A single word above it is left out.

    Complexity
    ----------
    Linear in the length of the text.

    Examples
    --------
    >>> [fragment.text for fragment in split_fragments("Use v1.2. Ok?\\n- 好。是吗？", 50)]
    ['Use v1.2.', 'Ok?', '好。', '是吗？']
    """
    lines = list(_classified_lines(text))
    is_listing = _is_listing(lines)
    run: list[str] = []
    for line, kind in lines:
        if kind != "prose":
            run.append(line)
            continue
        yield from _code_fragments(run, max_tokens, is_listing)
        run = []
        for sentence in _sentences(line):
            for piece in cut_fragment(sentence, max_tokens):
                yield Fragment(piece, not is_listing)
    yield from _code_fragments(run, max_tokens, is_listing)


def cut_fragment(sentence: str, max_tokens: int) -> Iterator[str]:
    """Yield a sentence in pieces of at most `max_tokens`, an ellipsis where it is cut."""
    if estimate_tokens(sentence) <= max_tokens:
        yield sentence
        return
    pieces = list(_pieces(sentence, max_tokens - 2))
    for index, piece in enumerate(pieces):
        begin = "…" if index else ""
        end = "…" if index + 1 < len(pieces) else ""
        if piece:
            yield f"{begin}{piece}{end}"


def _classified_lines(text: str) -> Iterator[tuple[str, _LineKind]]:
    """Yield each line that says something, and what it is."""
    fenced = False
    for raw in text.split("\n"):
        if _FENCE.match(raw):
            fenced = not fenced
        elif _WORD.search(raw):
            kind: _LineKind = "code" if _looks_like_code(raw) else "prose"
            yield raw.strip(), "fenced" if fenced else kind


def _is_listing(lines: Sequence[tuple[str, _LineKind]]) -> bool:
    """Tell whether the text is a program: what looks like prose in it says nothing either."""
    code = sum(kind == "code" for _, kind in lines)
    prose = sum(kind == "prose" for _, kind in lines)
    return code >= _SHORTEST_LISTING and code * 2 > prose


def _looks_like_code(raw: str) -> bool:
    number = _LINE_NUMBER.match(raw)
    line = (raw[number.end() :] if number else raw).strip()
    if line.endswith(_CODE_END) or _CODE_START.match(line):
        return True
    return len(_CODE_SYMBOLS.findall(line)) * 8 > len(line)


def _code_fragments(run: list[str], max_tokens: int, is_listing: bool) -> Iterator[Fragment]:
    """Yield lines of code; a short piece can be quoted, a long one only mined for names."""
    is_short = len(run) <= _LONGEST_QUOTED_CODE_LINES and not is_listing
    for line in run:
        yield Fragment(line, is_short and estimate_tokens(line) <= max_tokens, True)


def _sentences(line: str) -> Iterator[str]:
    markup = _LINE_MARKUP.match(line)
    start = markup.end() if markup else 0
    for match in _SENTENCE_END.finditer(line, start):
        if match.group()[0] == "." and not _period_ends_sentence(line, start, match):
            continue
        if _WORD.search(line, start, match.end()):
            yield line[start : match.end()].strip()
        start = match.end()
    rest = line[start:].strip()
    if _WORD.search(rest):
        yield rest


def _period_ends_sentence(line: str, start: int, match: re.Match[str]) -> bool:
    """Tell a full stop from the point of an abbreviation, an initial or a list number."""
    window = line[max(start, match.start() - 12) : match.start()]
    token = "" if window[-1:].isspace() else (window.split() or [""])[-1]
    if len(token) <= 1:
        return not (token.isascii() and token.isalnum())
    if len(token) <= 3 and token.isascii() and not _VOWEL_OR_MARK.search(token):
        return False
    if "." in token and len(token) <= 5 and token.replace(".", "").isalpha():
        return False
    following = _NEXT_CHARACTER.match(line, match.end())
    return following is None or not following.group(1).islower()


def _pieces(sentence: str, max_tokens: int) -> Iterator[str]:
    """Yield pieces of a long sentence, cut at a clause mark where one is near, else between words.

    A word above the limit leaves an empty piece in its place.
    """
    room = 4 * max_tokens
    piece: list[str] = []
    used = 0
    clause = (0, 0)  # atoms and quarter tokens up to the last clause end
    for atom in _atoms(sentence):
        # The estimate counts quarters and rounds up once: four copies give the exact number of
        # quarters.
        weight = estimate_tokens(atom * 4)
        if used + weight > room and piece:
            cut, cut_weight = clause if clause[1] * 5 >= used * 2 else (len(piece), used)
            yield "".join(piece[:cut]).strip()
            piece, used, clause = piece[cut:], used - cut_weight, (0, 0)
        if weight > room:
            yield "".join(piece).strip()
            piece, used, clause = [], 0, (0, 0)
            continue
        piece.append(atom)
        used += weight
        if _CLAUSE_END.search(atom):
            clause = (len(piece), used)
    yield "".join(piece).strip()


def _atoms(sentence: str) -> Iterator[str]:
    for match in _ATOM.finditer(sentence):
        atom = match.group()
        if len(atom) <= _LONGEST_WORD_CHARS or atom[0].isascii():
            yield atom
        else:  # a script that writes without blanks
            yield from atom
