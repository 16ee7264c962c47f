"""Breaks entries into quotes and says what each is worth before its terms are weighed.

A quote is a sentence or line of one entry, or a tool call with its telling argument. Prefers what a
person looks for afterwards: requests, decisions, failures, exact names. Every place in a message
counts the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..kernels import analyse_terms
from .notes import Entry
from .salience import find_identifiers, is_negative, statement_weight
from .sentences import Fragment, cut_fragment, split_fragments

__all__ = ["CALL_SIGN", "LINE_SIGN", "Quote", "collect_quotes"]

CALL_SIGN = "→ "
LINE_SIGN = "·"

_CALL_HEADER = re.compile(r"^Tool input \(([^\n]*)\):$", re.MULTILINE)
_ARGUMENT = re.compile(r"^([A-Za-z_][\w-]{0,40}): (\S.*)$", re.MULTILINE)
_ARGUMENT_NAME = re.compile(r"^[a-z_][\w-]{0,40}: (?=\S)", re.MULTILINE)
_FIELD = re.compile(r"\w: ?\S")
_TELLING_ARGUMENTS = (
    *("command", "cmd", "script", "path", "file_path", "filePath", "filename", "file", "url"),
    *("targetUrl", "query", "pattern", "sessionId", "name", "action", "task", "message"),
)
_CALL = re.compile(rf"{CALL_SIGN}[\w.:-]{{1,64}}(?:: |$)")
_JOINED_QUOTES = re.compile(rf" […{LINE_SIGN}] | (?={_CALL.pattern})")

_ROLE_WEIGHT = {"assistant": 1.0, "summary": 1.0, "system": 0.6, "tool": 0.5}
_CALL_WEIGHT = 0.45
_ARGUMENT_WEIGHT = 0.5
_OPENING_OF_REQUEST_WEIGHT = 1.4
_REPORTED_FAILURE_WEIGHT = 2.4
_FEW_TERMS = 3
_LONGEST_FIGURES = 60
_FEW_TERMS_WEIGHT = 0.5
_LEAD_IN_WEIGHT = 0.5
_FIGURES_WEIGHT = 0.15
_CODE_WEIGHT = 0.4
_LAST_WORD_WEIGHT = 1.3


class Quote(NamedTuple):
    """Something an entry says, with what it takes to judge it.

    `entry` is the entry's number; `factor` the worth of role and kind of statement.
    """

    entry: int
    text: str
    quotable: bool
    factor: float
    terms: list[str]
    identifiers: list[str]


class _Piece(NamedTuple):
    text: str
    quotable: bool
    weight: float


def collect_quotes(entries: Sequence[Entry], max_tokens: int) -> list[Quote]:
    """Return all quotes of the entries, in order.

    Parameters
    ----------
    entries
        In order of time.
    max_tokens
        Longest quote.

    Complexity
    ----------
    Linear in the length of the texts.
    """
    quotes: list[Quote] = []
    user_weight = _user_weight(entries)
    last_word = _number_of_last_word(entries)
    for number, entry in enumerate(entries):
        if entry.mentions:
            quotes.append(_quote(number, _Piece(entry.text, False, 1.0)))
            continue
        failure_due = entry.is_error
        opening = entry.role == "user" and user_weight > 1.3
        for piece in _pieces(entry, max_tokens):
            if not piece.quotable:
                quotes.append(_quote(number, piece))
                continue
            weight = piece.weight * _ROLE_WEIGHT.get(entry.role, user_weight)
            if number == last_word:
                weight *= _LAST_WORD_WEIGHT
            if opening:
                weight *= _OPENING_OF_REQUEST_WEIGHT
            elif failure_due and is_negative(piece.text):
                weight *= _REPORTED_FAILURE_WEIGHT
                failure_due = False
            opening = False
            quotes.append(_quote(number, piece._replace(weight=weight), entry.role))
    return quotes


def _user_weight(entries: Sequence[Entry]) -> float:
    """Return the worth of a user's words: the rarer they are, the more each of them carries."""
    share = sum(entry.role == "user" for entry in entries) / max(1, len(entries))
    return 1.25 + max(0.0, 0.4 - share) * 2.0


def _number_of_last_word(entries: Sequence[Entry]) -> int:
    """Return the number of the assistant's newest words: they tell where the task stands."""
    for number in reversed(range(len(entries))):
        if entries[number].role == "assistant" and not _CALL_HEADER.match(entries[number].text):
            return number
    return -1


def _quote(number: int, piece: _Piece, role: str = "") -> Quote:
    terms = analyse_terms(piece.text)
    identifiers = find_identifiers(piece.text)
    has_content = bool(identifiers) or len(set(terms)) >= _FEW_TERMS
    quotable = piece.quotable and not _says_nothing(piece.text, role, has_content)
    factor = piece.weight
    if quotable:
        factor *= statement_weight(piece.text, len(identifiers))
        factor *= _form_weight(piece.text, len(terms))
    return Quote(number, piece.text, quotable, factor, terms, identifiers)


def _says_nothing(text: str, role: str, has_content: bool) -> bool:
    """Tell what is not worth a line in any notes: filler words, and a tool's table of figures."""
    if role == "user" or is_negative(text):
        return False
    is_table_row = role == "tool" and len(text) > _LONGEST_FIGURES and _is_figures(text)
    return is_table_row or not has_content


def _form_weight(text: str, terms: int) -> float:
    """Return the factor for how a fragment is put: in a word or two, as a lead-in, as figures."""
    weight = _FEW_TERMS_WEIGHT if terms < _FEW_TERMS else 1.0
    if text.endswith((":", "：")):
        weight *= _LEAD_IN_WEIGHT
    if _is_figures(text) or _is_record(text):
        weight *= _FIGURES_WEIGHT
    return weight


def _is_figures(text: str) -> bool:
    """Tell a row of figures from a statement."""
    return sum(map(str.isalpha, text)) * 2 <= len(text) - text.count(" ")


def _is_record(text: str) -> bool:
    """Tell the fields of a record from a statement."""
    return ("{" in text or "}" in text) and len(_FIELD.findall(text)) >= 3


def _pieces(entry: Entry, max_tokens: int) -> Iterator[_Piece]:
    begin = 0
    tool: str | None = None
    for header in _CALL_HEADER.finditer(entry.text):
        yield from _section(entry.text[begin : header.start()], tool, max_tokens)
        tool, begin = header.group(1), header.end()
    yield from _section(entry.text[begin:], tool, max_tokens)


def _section(text: str, tool: str | None, max_tokens: int) -> Iterator[_Piece]:
    if tool is None:
        for part in _JOINED_QUOTES.split(text):
            yield from _weighed(split_fragments(part, max_tokens), 1.0)
        return
    telling, rest = _telling_argument(text)
    call = f"{CALL_SIGN}{tool}: {telling}" if telling else f"{CALL_SIGN}{tool}"
    for number, piece in enumerate(cut_fragment(call, max_tokens)):
        yield _Piece(piece, number == 0, _CALL_WEIGHT)
    rest = _ARGUMENT_NAME.sub("", rest)
    for fragment in split_fragments(rest, max_tokens):
        quotable = fragment.quotable and not fragment.is_code and " " in fragment.text
        yield _Piece(fragment.text, quotable, _ARGUMENT_WEIGHT)


def _weighed(fragments: Iterable[Fragment], weight: float) -> Iterator[_Piece]:
    for fragment in fragments:
        kind = _CALL_WEIGHT if _CALL.match(fragment.text) else weight
        worth = kind * _CODE_WEIGHT if fragment.is_code else kind
        yield _Piece(fragment.text, fragment.quotable, worth)


def _telling_argument(text: str) -> tuple[str, str]:
    """Return the argument that says most about a call, on one line, and the text without it."""
    found = {match.group(1): match for match in reversed(list(_ARGUMENT.finditer(text)))}
    if not found:
        return "", text
    key = next((key for key in _TELLING_ARGUMENTS if key in found), next(reversed(found)))
    match = found[key]
    return match.group(2).strip(), f"{text[: match.start()]}\n{text[match.end() :]}"
