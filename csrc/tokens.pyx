"""Kernel `tokens`: estimates of a text's tokens, the documented and the calibrated one.

The documented estimate and truncation by it (compaction spec, section B):

A code point costs 1/4 token, one of a CJK range 3/2, any other above U+FFFF 2; the sum is rounded
up once. Everything is counted in quarters. One-byte strings hold nothing but quarters, so their
length is the answer; wider ones are counted range by range, in loops that compilers turn into
vector code.

The calibrated estimate (design, benchmarks 4) adds up what each character costs after the one
before it, by their classes and by how long its class has run: one table, one step a character.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t

import numpy as np

from lcm_types cimport to_count

from . import calibration as _table

cdef extern from "Python.h":
    bint PyUnicode_Check(object text)
    int PyUnicode_KIND(object text)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef enum:
    # Counters of 16 bits stay exact, and short, within a block.
    BLOCK = 4096
    # Finer blocks for truncation: the last one is counted again, character by character.
    TRUNCATION_BLOCK = 256
    NOGIL_CHARACTERS = 65536
    # A class takes longer over each character than the ranges above.
    CALIBRATED_NOGIL_CHARACTERS = 4096

cdef enum:
    CODE_POINTS = 0x110000
    CLASSES = 32
    RUN_PLACES = 8
    # By class, place in its run and next class.
    TRANSITIONS = 8192

cdef uint8_t[CODE_POINTS] classes
# By state (a class and the place in its run) and the next class: what that costs, above the state
# it leads to in the low byte.
cdef int32_t[TRANSITIONS] transitions
cdef int32_t first_state = _table.START * _table.RUN
cdef int64_t scale = _table.SCALE

ctypedef fused character_t:
    uint8_t
    uint16_t
    uint32_t


def estimate_tokens(text):
    """Estimate the tokens of a text.

    Parameters
    ----------
    text : str
        Any string; a lone surrogate counts as one character.

    Returns
    -------
    int
        Tokens; 0 for the empty string.

    Raises
    ------
    TypeError
        If `text` is not a str.

    Notes
    -----
    Constant time for one-byte (ASCII and Latin-1) strings, linear otherwise. Long strings are
    counted without the interpreter lock. Source: compaction spec, B1 to B3.

    Examples
    --------
    >>> estimate_tokens("Hello world"), estimate_tokens("你好世界")
    (3, 6)
    """
    if not PyUnicode_Check(text):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    return (count_text(text) + 3) // 4


def estimate_tokens_many(texts):
    """Estimate the tokens of each text of a list.

    Parameters
    ----------
    texts : list of str
        The texts.

    Returns
    -------
    numpy.ndarray
        Tokens, int64, one per text.

    Raises
    ------
    TypeError
        If `texts` is not a list, or holds something that is not a str; the message names its index.

    Notes
    -----
    Linear in the characters of strings wider than one byte, constant per one-byte string.

    Examples
    --------
    >>> estimate_tokens_many(["Hello world", "", "你好世界"]).tolist()
    [3, 0, 6]
    """
    if not isinstance(texts, list):
        raise TypeError(f"texts must be a list, not {type(texts).__name__}")
    cdef list items = texts
    cdef Py_ssize_t i
    cdef Py_ssize_t length = len(items)
    result = np.empty(length, dtype=np.int64)
    cdef int64_t[::1] estimates = result
    for i in range(length):
        text = items[i]
        if not PyUnicode_Check(text):
            raise TypeError(f"texts[{i}] must be a str, not {type(text).__name__}")
        estimates[i] = (
            count_quarters(PyUnicode_KIND(text), PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text))
            + 3
        ) // 4
    return result


def estimate_tokens_calibrated(text):
    """Estimate the tokens of a text as o200k_base would have them.

    Parameters
    ----------
    text : str
        Any string.

    Returns
    -------
    int
        Tokens, at least 1 unless the text is empty.

    Raises
    ------
    TypeError
        If `text` is not a str.

    Notes
    -----
    Linear; long strings are read without the interpreter lock. For messages of 200 characters or
    more of prose, code, JSON and CJK; other scripts are guessed at. Source: design, benchmarks 4.

    Examples
    --------
    >>> estimate_tokens_calibrated("We decided to use the queue."), estimate_tokens_calibrated("")
    (7, 0)
    """
    if not PyUnicode_Check(text):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    cdef int kind = PyUnicode_KIND(text)
    cdef const void* characters = PyUnicode_DATA(text)
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    cdef int64_t parts
    if length == 0:
        return 0
    if length < CALIBRATED_NOGIL_CHARACTERS:
        parts = add_costs_of_kind(kind, characters, length)
    else:
        with nogil:
            parts = add_costs_of_kind(kind, characters, length)
    return max(1, (parts + scale - 1) // scale)


def truncate_tokens(text, max_tokens):
    """Return the longest prefix of a text whose estimate is at most `max_tokens`.

    Parameters
    ----------
    text : str
        Any string.
    max_tokens : int
        Tokens; at 0 or below the prefix is empty.

    Returns
    -------
    str
        The prefix, cut between code points.

    Raises
    ------
    TypeError
        If `text` is not a str or `max_tokens` not an integer.
    ValueError
        If `max_tokens` does not fit 64 bits.

    Notes
    -----
    Linear in the prefix; constant plus the copy for one-byte strings. Source: compaction spec, B4.

    Examples
    --------
    >>> truncate_tokens("Hello world", 2)
    'Hello wo'
    """
    if not PyUnicode_Check(text):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    cdef int64_t tokens = to_count("max_tokens", max_tokens)
    cdef int64_t room = 4 * min(max(tokens, 0), INT64_MAX // 4)
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    cdef Py_ssize_t end = find_cut(PyUnicode_KIND(text), PyUnicode_DATA(text), length, room)
    return text if end == length else text[:end]


cdef int64_t count_text(object text):
    cdef int kind = PyUnicode_KIND(text)
    cdef const void* characters = PyUnicode_DATA(text)
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    cdef int64_t quarters
    if kind == 1 or length < NOGIL_CHARACTERS:
        return count_quarters(kind, characters, length)
    with nogil:
        quarters = count_quarters(kind, characters, length)
    return quarters


cdef int64_t count_quarters(int kind, const void* characters, Py_ssize_t length) noexcept nogil:
    if kind == 1:
        return length
    if kind == 2:
        return count_quarters_of_2_bytes(<const uint16_t*> characters, length)
    return count_quarters_of_4_bytes(<const uint32_t*> characters, length)


cdef int64_t count_quarters_of_2_bytes(
    const uint16_t* characters, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t block
    cdef Py_ssize_t i
    cdef uint16_t cjk
    cdef int64_t total = 0
    while begin < length:
        block = min(<Py_ssize_t> BLOCK, length - begin)
        cjk = 0
        for i in range(begin, begin + block):
            cjk += is_cjk_of_2_bytes(characters[i])
        total += cjk
        begin += block
    return length + 5 * total


cdef inline uint16_t is_cjk_of_2_bytes(uint16_t character) noexcept nogil:
    return (
        ((character >= 0x3000) & (character <= 0x30FF))
        | ((character >= 0x3400) & (character <= 0x4DBF))
        | ((character >= 0x4E00) & (character <= 0x9FFF))
        | ((character >= 0xAC00) & (character <= 0xD7AF))
        | ((character >= 0xFF00) & (character <= 0xFFEF))
    )


cdef int64_t count_quarters_of_4_bytes(
    const uint32_t* characters, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t block
    cdef Py_ssize_t i
    cdef uint32_t extra
    cdef int64_t total = 0
    while begin < length:
        block = min(<Py_ssize_t> BLOCK, length - begin)
        extra = 0
        for i in range(begin, begin + block):
            extra += extra_quarters(characters[i])
        total += extra
        begin += block
    return length + total


cdef inline uint32_t extra_quarters(uint32_t character) noexcept nogil:
    """Quarters above one: 5 for CJK, 7 for the rest of what lies above U+FFFF."""
    cdef uint32_t cjk = (
        ((character >= 0x3000) & (character <= 0x30FF))
        | ((character >= 0x3400) & (character <= 0x4DBF))
        | ((character >= 0x4E00) & (character <= 0x9FFF))
        | ((character >= 0xAC00) & (character <= 0xD7AF))
        | ((character >= 0xFF00) & (character <= 0xFFEF))
    )
    cdef uint32_t astral_cjk = (
        ((character >= 0x20000) & (character <= 0x2A6DF))
        | ((character >= 0x2A700) & (character <= 0x2EBEF))
    )
    cdef uint32_t astral = character > 0xFFFF
    return 5 * cjk + 7 * astral - 2 * astral_cjk


cdef Py_ssize_t find_cut(
    int kind, const void* characters, Py_ssize_t length, int64_t room
) noexcept nogil:
    """Return how many characters cost at most `room` quarters."""
    cdef Py_ssize_t width = kind
    cdef const uint8_t* start = <const uint8_t*> characters
    cdef Py_ssize_t end = 0
    cdef Py_ssize_t block
    cdef int64_t cost
    if kind == 1:
        return min(length, room)
    while end < length:
        block = min(<Py_ssize_t> TRUNCATION_BLOCK, length - end)
        cost = count_quarters(kind, start + end * width, block)
        if cost > room:
            break
        room -= cost
        end += block
    while end < length:
        room -= count_quarters(kind, start + end * width, 1)
        if room < 0:
            break
        end += 1
    return end


cdef int64_t add_costs_of_kind(
    int kind, const void* characters, Py_ssize_t length
) noexcept nogil:
    if kind == 1:
        return add_costs(<const uint8_t*> characters, length)
    if kind == 2:
        return add_costs(<const uint16_t*> characters, length)
    return add_costs(<const uint32_t*> characters, length)


cdef int64_t add_costs(const character_t* characters, Py_ssize_t length) noexcept nogil:
    cdef int32_t state = first_state
    cdef int32_t transition
    cdef int64_t parts = 0
    cdef Py_ssize_t i
    for i in range(length):
        transition = transitions[state * CLASSES + classes[characters[i]]]
        parts += transition >> 8
        state = transition & 255
    return parts


cdef int fill_classes() except -1:
    cdef Py_ssize_t point
    for number, characters in enumerate(_table.CHARACTERS, _table.OTHER + 1):
        for character in characters:
            classes[<Py_ssize_t> ord(character)] = number
    for first, last, number in _table.RANGES:
        for point in range(first, last + 1):
            classes[point] = number
    return 0


cdef int fill_transitions() except -1:
    cdef int before, place, after, next_place
    cdef int32_t cost
    for before in range(CLASSES):
        for place in range(RUN_PLACES):
            for after in range(CLASSES):
                next_place = min(place + 1, RUN_PLACES - 1) if after == before else 0
                cost = _table.AFTER[before][after] + _table.IN_RUN[after][next_place]
                transitions[(before * RUN_PLACES + place) * CLASSES + after] = (
                    cost * 256 + after * RUN_PLACES + next_place
                )
    return 0


fill_classes()
fill_transitions()
