"""When two faces of a message are one: what both say, and how a face differs from another.

Hosts space texts otherwise, wrap them, mask secrets, clear and cut old outputs. Pure functions over
texts and message bodies; must not decide where a message stands: callers compare messages that
stand at the same place (spec: storage 2.6, 2.8 step 10, 2.11.2; decision 11).

In doubt two messages stay two. Ids are compared as they are, never as text that may be masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..transcripts import shapes
from ..transcripts.kinds import REASONING_TYPES, is_call, is_result
from ..types import Role, ToolCall
from .payloads import reference_id
from .preamble import (
    canonical_content,
    is_decorated_face,
    matches_body,
    without_carried_summaries,
)

__all__ = ["identity_text", "is_delivery_mirror", "is_revision"]

_MIRROR_MODEL = "delivery-mirror"
_TEXT_TYPES = ("text", "input_text", "output_text")
_RESULT_KEYS = ("content", "output", "result")
_MAX_DEPTH = 6

_SPACES = re.compile(" {2,}")
# What stands for a secret: a run of * or •, a label in brackets, head…tail of a token. Each
# alternative begins with a fixed character, so that a search runs fast over long texts.
_MASK = re.compile(
    r"(?:\*\*\*\**|•••+|\.\.\.\*\*\*\**|…\*\*\*\**)(?:…|\.\.\.)?"
    r"|\[(?i:redacted)[^\]\n]{0,80}\]|<(?i:redacted)[^>\n]{0,80}>|…(?i:redacted)…"
    r"|…(?<=\w…)(?=\w)"
)
_IN_TOKEN = "…"

_MOST_PLACEHOLDER_CHARACTERS = 200
_BRACKETS = ("[]", "()", "<>", "{}")
_ELLIPSIS = re.compile(r"\.\.\.|…")
_PRUNED_WORDS = (
    "archived|cleared|collapsed|compacted|compressed|cut|deleted|discarded|dropped|elided|evicted"
    "|externali[sz]ed|hidden|offloaded|omitted|pruned|removed|shortened|skipped|snipped|stripped"
    "|trimmed|truncated"
)
_OUTPUT_WORDS = "contents?|outputs?|responses?|results?"
_CUT_WORDS = (
    "a|by|bytes|characters|chars|context|first|for|from|full|host|in|kb|kept|last|lines?|mb|middle"
    "|more|of|old|original|remaining|rest|save|space|text|the|to|tokens|tool|total|was|were|words"
)
_PRUNED = re.compile(rf"\b(?:{_PRUNED_WORDS})\b", re.IGNORECASE)
_OUTPUT = re.compile(rf"\b(?:{_OUTPUT_WORDS})\b", re.IGNORECASE)
_MARKER = re.compile(
    rf"(?:[\W\d_]|(?<![^\W\d_])(?:{_PRUNED_WORDS}|{_OUTPUT_WORDS}|{_CUT_WORDS})(?![^\W\d_]))*",
    re.IGNORECASE,
)
# What sets a marker off from the words before it.
_FRAME = re.compile(r"\W*(?:[\[(<{…\n]|\.\.\.|--|==|\*\*)")
# So much of a text must be left for a cut without a word that says so.
_LEAST_KEPT_CHARACTERS = 16
# More than the punctuation between a text and the words of a marker.
_MARKER_EDGE = 8
_BLOCK_CHARACTERS = 1024


def identity_text(role: str, content: str) -> str:
    r"""Return what is equal for two faces of one message; nearly always the very text given.

    Of a user's text: without our summaries before it, in its canonical form, runs of spaces as one,
    blank edges trimmed. Line breaks and tabs inside tell messages apart.

    >>> identity_text("user", " a  b\tc\n"), identity_text("assistant", "a  b")
    ('a b\tc', 'a  b')
    """
    if role != "user":
        return content
    return _spaced_alike(canonical_content(role, without_carried_summaries(content)))


def is_delivery_mirror(body: Mapping[str, Any]) -> bool:
    """Tell whether a message is a host's copy of a reply it delivered."""
    return body.get("model") == _MIRROR_MODEL and shapes.role_of(body) == "assistant"


def is_revision(stored: Mapping[str, Any], incoming: Mapping[str, Any]) -> str | None:
    """Return in which way a message is another form of one that stands at the same place.

    Which of the two came first makes no difference.

    Returns
    -------
    str or None
        "" when they are equal throughout; None when they are different messages; otherwise the
        first that holds of:

        - ``"mirror"``: one is the delivery mirror of the other, a reply with the same text;
        - ``"metadata"``: text, calls and pictures are equal, other fields are not;
        - ``"whitespace"``: the texts are equal up to runs of spaces and blank edges;
        - ``"decorated"``: a user's text, in one with what a host puts before it;
        - ``"redacted"``: equal up to masks in one of them; results need equal call ids;
        - ``"pruned"``: a result with equal call ids, in one of them a placeholder or cut short; or
          pictures gone, with placeholders in their place.

    Complexity: linear in the texts.

    >>> before = {"role": "tool", "tool_call_id": "c1", "content": "key=sk-ABC"}
    >>> is_revision(before, {**before, "content": "key=***"})
    'redacted'
    """
    if stored == incoming:
        return ""
    one, other = _face(stored), _face(incoming)
    if one is None or other is None or one.role != other.role:
        return None
    if is_delivery_mirror(stored) != is_delivery_mirror(incoming):
        return "mirror" if one.text and one.text == other.text else None
    if one.calls != other.calls or _answer_others(one, other):
        return None
    if one.pictures != other.pictures and one.role != "tool":
        return _change_of_pictures(one, other)
    return _change_of_text(one, other) or _change_of_result(one, other)


class _Face(NamedTuple):
    """What of a message counts here; text with runs of spaces as one and blank edges trimmed.

    `pictures` are all blocks that are neither text nor a call, a result or reasoning.
    """

    role: Role
    exact: str
    text: str
    texts: list[str]
    calls: tuple[ToolCall, ...]
    arguments: list[tuple[str, Any]]
    answers: frozenset[str]
    pictures: list[Any]

    @property
    def is_named(self) -> bool:
        """Whether call ids say which message it is, so that its text need not."""
        return bool(self.answers or self.calls)


def _face(body: Mapping[str, Any]) -> _Face | None:
    """Return what counts of a message, None when nothing of it tells it from others."""
    role = shapes.role_of(body)
    if role is None:
        return None
    texts: list[str] = []
    pictures: list[Any] = []
    if "command" in body and "content" not in body:
        texts.append(shapes.content_of(body))
    else:
        for key in ("content", "output", "refusal"):
            _collect(body.get(key), texts, pictures, 0)
    if body.get("function_call"):
        pictures.append(body["function_call"])
    exact = "\n".join(texts)
    face = _Face(
        role=role,
        exact=exact,
        text=_spaced_alike(exact),
        texts=texts,
        calls=shapes.tool_calls(body),
        arguments=[(name, _decoded(value)) for name, value in shapes.call_arguments(body)],
        answers=frozenset(shapes.tool_answers(body)),
        pictures=pictures,
    )
    is_telling = face.text or face.arguments or face.answers or face.pictures
    return face if is_telling else None


def _collect(value: Any, texts: list[str], pictures: list[Any], depth: int) -> None:
    if isinstance(value, str):
        if value:
            texts.append(value)
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        for item in value:
            _collect(item, texts, pictures, depth + 1)
    elif is_result(value) and depth < _MAX_DEPTH:
        for key in _RESULT_KEYS:
            _collect(value.get(key), texts, pictures, depth + 1)
    elif isinstance(value, dict) and value.get("type") in _TEXT_TYPES:
        _collect(value.get("text"), texts, pictures, depth)
    elif isinstance(value, dict) and value.get("type") in REASONING_TYPES:
        return
    elif value is not None and not is_call(value):
        pictures.append(value)


def _decoded(arguments: Any) -> Any:
    """Return a call's arguments as a value; chat messages have them as JSON text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _answer_others(one: _Face, other: _Face) -> bool:
    """Tell whether two results answer different calls; one may have lost its ids."""
    return one.answers != other.answers and bool(one.answers) and bool(other.answers)


def _change_of_text(one: _Face, other: _Face) -> str | None:
    if one.pictures != other.pictures:
        return None
    if one.arguments == other.arguments:
        if one.exact == other.exact:
            return "metadata"
        if one.text == other.text:
            return "whitespace"
        if one.role == "user":
            kind = _change_around_text(one.text, other.text)
            if kind is not None:
                return kind
    if one.role == "tool" and not _answer_the_same(one, other):
        return None
    return "redacted" if _is_masked_form(one, other) or _is_masked_form(other, one) else None


def _change_around_text(one: str, other: str) -> str | None:
    canonical = canonical_content("user", one), canonical_content("user", other)
    if canonical[0] == canonical[1]:
        return "metadata"
    return "decorated" if _is_wrapped(one, other) or _is_wrapped(other, one) else None


def _is_wrapped(live: str, bare: str) -> bool:
    own = without_carried_summaries(live).strip()
    return (
        own == bare
        or is_decorated_face(own, bare)
        or matches_body(own, bare, with_injected_context=True)
    )


def _answer_the_same(one: _Face, other: _Face) -> bool:
    return bool(one.answers) and one.answers == other.answers


def _change_of_result(one: _Face, other: _Face) -> str | None:
    if one.role != "tool" or not _answer_the_same(one, other):
        return None
    is_pruned = _stands_for(one, other) or _stands_for(other, one)
    return "pruned" if is_pruned else None


def _change_of_pictures(one: _Face, other: _Face) -> str | None:
    """Return whether one message is the other with its pictures gone, its words the same."""
    bare, whole = (one, other) if not one.pictures else (other, one)
    if bare.pictures or one.arguments != other.arguments:
        return None
    words = [text for text in bare.texts if not _is_bracketed_placeholder(text.strip())]
    is_marked = len(words) < len(bare.texts)
    return "pruned" if is_marked and _spaced_alike("\n".join(words)) == whole.text else None


def _spaced_alike(text: str) -> str:
    return (_SPACES.sub(" ", text) if "  " in text else text).strip()


def _is_masked_form(masked: _Face, whole: _Face) -> bool:
    """Tell whether a message is another in which spans of text or arguments are masked."""
    needs_words = not (masked.is_named and whole.is_named)
    # As they are first: spaces beside a mask may be what it hides.
    if masked.text != whole.text and not (
        _hides(masked.exact, whole.exact, needs_words=needs_words)
        or _hides(masked.text, whole.text, needs_words=needs_words)
    ):
        return False
    pairs: list[tuple[Any, Any]] = [(masked.arguments, whole.arguments)]
    while pairs:
        here, there = pairs.pop()
        if isinstance(here, str) and isinstance(there, str):
            if here != there and not _hides(here, there, needs_words=needs_words):
                return False
        elif isinstance(here, dict) and isinstance(there, dict) and here.keys() == there.keys():
            pairs += [(here[key], there[key]) for key in here]
        elif isinstance(here, list | tuple) and isinstance(there, list | tuple):
            if len(here) != len(there):
                return False
            pairs += zip(here, there, strict=True)
        elif here != there:
            return False
    return True


def _hides(masked: str, whole: str, *, needs_words: bool) -> bool:
    """Tell whether a text is another with spans of it masked.

    Each mask stands for one character or more. With `needs_words`, a letter or digit must be left:
    a text that is nothing but a mask could be any other.
    """
    at = literal_begin = 0
    is_token = False
    has_words = not needs_words
    is_first = True
    for mask in _MASK.finditer(masked):
        literal = masked[literal_begin : mask.start()]
        has_words = has_words or any(map(str.isalnum, literal))
        found = _place(literal, whole, at, is_first=is_first, is_token=is_token)
        if found < 0:
            return False
        at = found + len(literal)
        literal_begin, is_first, is_token = mask.end(), False, mask.group() == _IN_TOKEN
    last = masked[literal_begin:]
    has_words = has_words or any(map(str.isalnum, last))
    hidden_end = len(whole) - len(last)
    if is_first or not has_words or hidden_end <= at or not whole.endswith(last):
        return False
    return not (is_token and _has_space(whole, at, hidden_end))


def _place(literal: str, whole: str, at: int, *, is_first: bool, is_token: bool) -> int:
    """Return where what stands before a mask is found in the whole text, -1 when it is not.

    The text between two masks comes at least one character after what precedes it.
    """
    if is_first:
        return 0 if whole.startswith(literal) else -1
    found = whole.find(literal, at + 1)
    return -1 if found >= 0 and is_token and _has_space(whole, at, found) else found


def _has_space(text: str, begin: int, end: int) -> bool:
    return any(map(str.isspace, text[begin:end]))


def _stands_for(short: _Face, whole: _Face) -> bool:
    """Tell whether a result's text is a placeholder for another's, or a piece of it."""
    text = short.text
    if reference_id(short.exact) is not None or _is_bracketed_placeholder(text):
        return True
    if len(text) >= len(whole.text) or _is_brief_json(text):
        return False
    return _is_worded_placeholder(text) or _is_cut(text, whole.text)


def _is_bracketed_placeholder(text: str) -> bool:
    """Tell whether a text is like "[output cleared]" or "[...]"."""
    if len(text) > _MOST_PLACEHOLDER_CHARACTERS:
        return False
    if text[:1] + text[-1:] not in _BRACKETS:
        return _ELLIPSIS.fullmatch(text) is not None
    inner = text[1:-1]
    if text[0] in inner or text[-1] in inner or _is_brief_json(text):
        return False
    return _ELLIPSIS.fullmatch(inner) is not None or _PRUNED.search(inner) is not None


def _is_worded_placeholder(text: str) -> bool:
    """Tell whether a text is like "Tool output omitted to save context", without brackets."""
    if len(text) > _MOST_PLACEHOLDER_CHARACTERS:
        return False
    return _PRUNED.search(text) is not None and _OUTPUT.search(text) is not None


def _is_brief_json(text: str) -> bool:
    """Tell whether a text is a value as tools return them, however its words sound."""
    return len(text) <= _MOST_PLACEHOLDER_CHARACTERS and _decoded(text) is not text


def _is_cut(short: str, whole: str) -> bool:
    """Tell whether a text is the head of another, or its head and tail around a marker.

    A note in brackets that ends the text and says what was cut counts as part of the marker.
    """
    body, _, note = short.rpartition("\n")
    if _is_bracketed_placeholder(note) and _PRUNED.search(note):
        rest = body.rstrip()
        return bool(rest) and (whole.startswith(rest) or _is_cut_inside(rest, whole))
    return _is_cut_inside(short, whole)


def _is_cut_inside(short: str, whole: str) -> bool:
    head = _common_prefix(short, whole)
    if head == len(short):
        return head >= _LEAST_KEPT_CHARACTERS
    begin = _before_marker(short, head)
    most = min(len(short), len(whole)) - begin
    reversed_short = short[::-1]
    tail = _common_prefix(reversed_short[:most], whole[::-1][:most])
    marker = short[begin : len(short) - _before_marker(reversed_short, tail)]
    return _is_marker(marker, is_telling=head + tail >= _LEAST_KEPT_CHARACTERS)


def _is_marker(text: str, *, is_telling: bool) -> bool:
    """Tell whether a text says that something was cut here, and nothing else.

    Dots alone do when what stands around them is telling.
    """
    if len(text) > _MOST_PLACEHOLDER_CHARACTERS or not _MARKER.fullmatch(text):
        return False
    if _PRUNED.search(text):
        return _FRAME.match(text) is not None
    return is_telling and _ELLIPSIS.search(text) is not None


def _before_marker(text: str, at: int) -> int:
    """Return a place at the edge of a marker, given one that may be inside of it: a text can go on
    as its marker begins."""
    if at < len(text) and text[at].isalpha():
        while at and text[at - 1].isalpha():
            at -= 1
    least = max(0, at - _MARKER_EDGE)
    while at > least and not text[at - 1].isalnum():
        at -= 1
    return at


def _common_prefix(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    length = min(len(one), len(other))
    for begin in range(0, length, _BLOCK_CHARACTERS):
        here, there = (text[begin : begin + _BLOCK_CHARACTERS] for text in (one, other))
        if here != there:
            for place, (left, right) in enumerate(zip(here, there, strict=False)):
                if left != right:
                    return begin + place
            break
    return length
