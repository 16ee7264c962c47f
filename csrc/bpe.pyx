"""Kernel `bpe`: counts the tokens of o200k_base and cl100k_base exactly, and makes none of them.

A text is cut into pieces by the encoding's pattern, a state machine over code points; a piece that
is a token of the vocabulary counts 1, any other is merged pair by pair, lowest rank first (design,
benchmarks 3). Merging begins with bytes, and with characters of three bytes where that is known to
come to the same. The vocabulary comes in as bytes: nothing here reads files.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

cimport cython
import numpy as np

from lcm_categories cimport (
    ALTERNATING_RANGES,
    LETTER,
    LETTER_RANGES,
    LOWER,
    LOWER_RANGES,
    MARK,
    MARK_RANGES,
    NEWLINE,
    NEWLINE_RANGES,
    NUMBER,
    NUMBER_RANGES,
    SPACE,
    SPACE_RANGES,
    UPPER,
    UPPER_RANGES,
)

cdef extern from "Python.h":
    bint PyUnicode_Check(object text)
    bint PyUnicode_IS_ASCII(object text)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    object PyUnicode_AsUTF8String(object text)

cdef extern from *:
    """
    #include <stdint.h>
    #define LCM_SPREAD 0x9E3779B97F4A7C15ULL
    #if defined(_MSC_VER) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define LCM_FIRST_BYTES(bytes, count) ((bytes) & (UINT64_MAX >> (64 - 8 * (count))))
    #else
    #define LCM_FIRST_BYTES(bytes, count) ((bytes) >> (64 - 8 * (count)))
    #endif
    #if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define LCM_FIRST_MARK(marks) (__builtin_ctzll(marks) >> 3)
    #else
    static int LCM_FIRST_MARK(uint64_t marks) {
        const uint8_t *bytes = (const uint8_t *) &marks;
        int first = 0;
        while (bytes[first] == 0) first++;
        return first;
    }
    #endif
    """
    # What a word is multiplied with to spread its bits.
    uint64_t SPREAD "LCM_SPREAD"
    # The first of eight bytes, in the order of memory, that is not 0; there must be one.
    int first_mark "LCM_FIRST_MARK" (uint64_t marks) noexcept nogil
    # The first one to eight of eight bytes.
    uint64_t first_bytes "LCM_FIRST_BYTES" (uint64_t bytes, Py_ssize_t count) noexcept nogil

cdef enum:
    CODE_POINTS = 0x110000
    LONGEST_TOKEN = 255
    # A group of base64 may go past the longest token before that is seen.
    TOKEN_ROOM = 258
    # Pieces up to this many bytes are merged in a plain loop, which is quadratic; others by a heap.
    SHORT = 128
    SHORT_ENDS = 129
    LANES = 16
    NOGIL_BYTES = 4096
    PRESENT_BITS = 0x200000
    # Pieces up to this many bytes are remembered, and how many.
    KNOWN_BYTES = 62
    KNOWN_BITS = 14
    KNOWN = 16384
    # Characters of three bytes in UTF-8 are below; so are the numbers of places between two.
    WIDE_POINTS = 0x10000

cdef enum:
    CASED = UPPER | LOWER
    LETTERS = CASED | LETTER
    # What o200k_base takes as upper case, as lower case, and as either.
    EITHER = LETTER | MARK
    AS_UPPER = UPPER | EITHER
    AS_LOWER = LOWER | EITHER
    BLANK = SPACE | NEWLINE

# A pair on the heap: its rank above the place of its first byte.
cdef int PLACE_BITS = 40
cdef uint64_t PLACE = 0xFFFFFFFFFFULL
cdef int32_t NO_PAIR = 0x7FFFFFFF
cdef uint32_t NO_RANK = 0xFFFFFFFF
cdef tuple ENCODINGS = ("cl100k_base", "o200k_base")

cdef uint8_t[CODE_POINTS] classes
cdef uint8_t[256] base64_values

cdef struct Token:
    # The token itself up to 8 bytes, which is compared; a hash of it beyond.
    uint64_t word
    uint32_t offset
    # Its length in the low byte, 0 where the slot is free; its rank above.
    uint32_t tail

cdef struct Vocabulary:
    Token* slots
    uint64_t mask
    int shift
    # The tokens of more than 8 bytes, one after the other.
    uint8_t* spellings
    # A bit for each token's hash: most pairs are no token, and this is small enough to stay cached.
    uint64_t* present
    # The rank of each pair of bytes.
    uint32_t* pairs
    # A bit for each character of three bytes that merging may begin with, and for each place
    # between two where a token may begin or end inside one of them.
    uint64_t* whole
    uint64_t* crossed
    Py_ssize_t longest

# A piece and its tokens; no piece where the length is 0.
cdef struct Known:
    uint8_t length
    uint8_t count
    uint8_t[KNOWN_BYTES] piece


@cython.final
@cython.auto_pickle(False)
cdef class TokenCounter:
    """Counts tokens as tiktoken does, without making them.

    Parameters
    ----------
    encoding_name : str
        ``"o200k_base"`` or ``"cl100k_base"``: which pattern cuts the text.
    vocabulary : bytes
        What the encoding's ``.tiktoken`` file holds: a token in base64, a space and its rank on
        each line.

    Raises
    ------
    TypeError
        If `encoding_name` is not a str or `vocabulary` not bytes.
    ValueError
        If there is no such encoding; if a line cannot be read, by its number; if one of the 256
        bytes is no token.

    Notes
    -----
    Threads may share a counter; it remembers pieces for one of them at a time. Source: design,
    benchmarks 3.

    Examples
    --------
    >>> from base64 import b64encode
    >>> tokens = [bytes([byte]) for byte in range(256)] + [b"he", b"ll", b"hell"]
    >>> lines = [b"%s %d" % (b64encode(token), rank) for rank, token in enumerate(tokens)]
    >>> counter = TokenCounter("o200k_base", b"\\n".join(lines))
    >>> counter.count("hello"), counter.count_many(["hell", "no", ""]).tolist()
    (2, [1, 2, 0])
    """

    cdef readonly str encoding_name
    cdef bint is_o200k
    cdef Vocabulary vocabulary
    # Read and written only by who has set the flag, which is done under the interpreter lock.
    cdef Known* known
    cdef bint is_known_in_use

    def __cinit__(self, encoding_name, vocabulary):
        if not isinstance(encoding_name, str):
            raise TypeError(f"encoding_name must be a str, not {type(encoding_name).__name__}")
        if not isinstance(vocabulary, bytes):
            raise TypeError(f"vocabulary must be bytes, not {type(vocabulary).__name__}")
        if encoding_name not in ENCODINGS:
            raise ValueError(
                f"encoding_name is {encoding_name!r}, expected 'cl100k_base' or 'o200k_base'"
            )
        self.encoding_name = encoding_name
        self.is_o200k = encoding_name == "o200k_base"
        self.known = <Known*> calloc(KNOWN, sizeof(Known))
        if self.known == NULL:
            raise MemoryError()
        read_vocabulary(&self.vocabulary, vocabulary)

    def __dealloc__(self):
        free(self.known)
        free(self.vocabulary.crossed)
        free(self.vocabulary.whole)
        free(self.vocabulary.slots)
        free(self.vocabulary.present)
        free(self.vocabulary.spellings)
        free(self.vocabulary.pairs)

    def count(self, text):
        """Return how many tokens a text has; what looks like a special token is plain text.

        Parameters
        ----------
        text : str
            Any string; a lone surrogate counts as U+FFFD.

        Raises
        ------
        TypeError
            If `text` is not a str.

        Notes
        -----
        O(n log n) on any text, linear on ordinary text. Long texts are counted without the
        interpreter lock.
        """
        if not PyUnicode_Check(text):
            raise TypeError(f"text must be a str, not {type(text).__name__}")
        cdef int64_t steps = 0
        return self.count_text(text, &steps)

    def count_many(self, texts):
        """Return how many tokens each text of a list has, as an int64 array.

        Raises
        ------
        TypeError
            If `texts` is not a list, or holds something that is not a str; the message names its
            index.
        """
        if not isinstance(texts, list):
            raise TypeError(f"texts must be a list, not {type(texts).__name__}")
        cdef list items = texts
        cdef Py_ssize_t i
        cdef int64_t steps = 0
        result = np.empty(len(items), dtype=np.int64)
        cdef int64_t[::1] counts = result
        for i in range(len(counts)):
            text = items[i]
            if not PyUnicode_Check(text):
                raise TypeError(f"texts[{i}] must be a str, not {type(text).__name__}")
            counts[i] = self.count_text(text, &steps)
        return result

    def count_steps(self, text):
        """Return how many pairs were looked at to count a text: its growth, for tests."""
        cdef int64_t steps = 0
        self.count_text(text, &steps)
        return steps

    cdef int64_t count_text(self, object text, int64_t* steps) except -1:
        cdef const uint8_t* characters
        cdef Py_ssize_t length
        cdef int64_t count
        cdef Known* known = NULL if self.is_known_in_use else self.known
        if PyUnicode_IS_ASCII(text):
            characters = <const uint8_t*> PyUnicode_DATA(text)
            length = PyUnicode_GET_LENGTH(text)
        else:
            encoded = utf8_of(text)
            characters = encoded
            length = len(encoded)
        if known != NULL:
            self.is_known_in_use = True
        if length < NOGIL_BYTES:
            count = count_bytes(&self.vocabulary, self.is_o200k, known, characters, length, steps)
        else:
            with nogil:
                count = count_bytes(
                    &self.vocabulary, self.is_o200k, known, characters, length, steps
                )
        if known != NULL:
            self.is_known_in_use = False
        if count < 0:
            raise MemoryError()
        return count


cdef bytes utf8_of(object text):
    """Return a text in UTF-8; surrogates are paired where they can be, others replaced."""
    try:
        return PyUnicode_AsUTF8String(text)
    except UnicodeEncodeError:
        paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return PyUnicode_AsUTF8String(paired)


cdef int fill_classes() except -1:
    cdef Py_ssize_t i
    cdef uint32_t point
    fill_class(UPPER_RANGES, sizeof(UPPER_RANGES), UPPER)
    fill_class(LOWER_RANGES, sizeof(LOWER_RANGES), LOWER)
    fill_class(LETTER_RANGES, sizeof(LETTER_RANGES), LETTER)
    fill_class(MARK_RANGES, sizeof(MARK_RANGES), MARK)
    fill_class(NUMBER_RANGES, sizeof(NUMBER_RANGES), NUMBER)
    fill_class(SPACE_RANGES, sizeof(SPACE_RANGES), SPACE)
    fill_class(NEWLINE_RANGES, sizeof(NEWLINE_RANGES), NEWLINE)
    for i in range(0, <Py_ssize_t> (sizeof(ALTERNATING_RANGES) // sizeof(uint32_t)), 2):
        for point in range(ALTERNATING_RANGES[i], ALTERNATING_RANGES[i + 1] + 1):
            classes[point] = LOWER if (point - ALTERNATING_RANGES[i]) & 1 else UPPER
    return 0


cdef void fill_class(const uint32_t* ranges, size_t size, uint8_t flag) noexcept:
    cdef size_t i
    for i in range(0, size // sizeof(uint32_t), 2):
        memset(&classes[ranges[i]], flag, ranges[i + 1] - ranges[i] + 1)


cdef int fill_base64() except -1:
    cdef Py_ssize_t i
    cdef bytes digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    memset(base64_values, 255, sizeof(base64_values))
    for i in range(64):
        base64_values[<uint8_t> digits[i]] = <uint8_t> i
    return 0


# -- the vocabulary --------------------------------------------------------------------------------

cdef int read_vocabulary(Vocabulary* vocabulary, bytes source) except -1:
    """Fill the tables from the lines of a `.tiktoken` file."""
    cdef const uint8_t* line = source
    cdef const uint8_t* end = line + len(source)
    cdef uint8_t[TOKEN_ROOM] token
    cdef Py_ssize_t length
    cdef int64_t rank = 0
    cdef Py_ssize_t number = 0
    cdef uint32_t used = 0
    allocate(vocabulary, len(source), source.count(b"\n") + 1)
    while line < end:
        number += 1
        if line[0] == c"\n":
            line += 1
            continue
        length = read_token(&line, end, token)
        rank = read_rank(&line, end) if length else -1
        if rank < 0:
            raise ValueError(f"vocabulary line {number} is not a token in base64 and its rank")
        used = add_token(vocabulary, token, length, <uint32_t> rank, used)
    fill_pairs(vocabulary)
    check_bytes(vocabulary)
    return fill_whole(vocabulary)


cdef int allocate(Vocabulary* vocabulary, Py_ssize_t size, Py_ssize_t tokens) except -1:
    vocabulary.shift = 56
    while (1 << (64 - vocabulary.shift)) < tokens + tokens // 4:
        vocabulary.shift -= 1
    vocabulary.mask = (1 << (64 - vocabulary.shift)) - 1
    vocabulary.slots = <Token*> calloc(vocabulary.mask + 1, sizeof(Token))
    vocabulary.spellings = <uint8_t*> malloc(size + 1)
    vocabulary.pairs = <uint32_t*> malloc(65536 * sizeof(uint32_t))
    vocabulary.present = <uint64_t*> calloc(PRESENT_BITS // 64, sizeof(uint64_t))
    vocabulary.whole = <uint64_t*> calloc(WIDE_POINTS // 64, sizeof(uint64_t))
    vocabulary.crossed = <uint64_t*> calloc(WIDE_POINTS // 64, sizeof(uint64_t))
    if not (vocabulary.present and vocabulary.slots and vocabulary.spellings and vocabulary.pairs):
        raise MemoryError()
    if not (vocabulary.whole and vocabulary.crossed):
        raise MemoryError()
    return 0


cdef Py_ssize_t read_token(const uint8_t** line, const uint8_t* end, uint8_t* token) noexcept:
    """Decode base64 up to the space after it; return the token's length, 0 when there is none."""
    cdef const uint8_t* at = line[0]
    cdef Py_ssize_t length = 0
    cdef int padding = 0
    while at + 4 < end and at[0] != c" " and padding == 0:
        padding = (at[3] == c"=") + (at[3] == c"=" and at[2] == c"=")
        if length >= LONGEST_TOKEN or not read_group(at, padding, token + length):
            return 0
        length += 3 - padding
        at += 4
    if at == end or at[0] != c" " or length > LONGEST_TOKEN:
        return 0
    line[0] = at + 1
    return length


cdef inline bint read_group(const uint8_t* digits, int padding, uint8_t* token) noexcept:
    """Decode four digits into three bytes; tell whether all of them are digits."""
    cdef uint32_t first = base64_values[digits[0]]
    cdef uint32_t second = base64_values[digits[1]]
    cdef uint32_t third = 0 if padding == 2 else base64_values[digits[2]]
    cdef uint32_t fourth = 0 if padding else base64_values[digits[3]]
    token[0] = <uint8_t> (first << 2 | second >> 4)
    token[1] = <uint8_t> (second << 4 | third >> 2)
    token[2] = <uint8_t> (third << 6 | fourth)
    return (first | second | third | fourth) < 64


cdef int64_t read_rank(const uint8_t** line, const uint8_t* end) noexcept:
    """Read a number and the end of its line; -1 when that is not what is there."""
    cdef const uint8_t* at = line[0]
    cdef int64_t rank = 0
    while at < end and c"0" <= at[0] <= c"9" and rank < 1 << 22:
        rank = 10 * rank + at[0] - c"0"
        at += 1
    if at == line[0] or rank >= 1 << 22:
        return -1
    if at < end and at[0] == c"\r":
        at += 1
    if at < end:
        if at[0] != c"\n":
            return -1
        at += 1
    line[0] = at
    return rank


cdef inline uint64_t load_8(const uint8_t* piece) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, piece, 8)
    return word


@cython.overflowcheck(False)
cdef inline uint64_t word_of(
    const uint8_t* piece, Py_ssize_t length, const uint8_t* end
) noexcept nogil:
    """Return what stands for a piece of this length: all its bytes up to 8, a hash beyond.

    Parameters
    ----------
    end
        Up to where there are bytes to read: eight of them at once make no choice by length.
    """
    cdef uint64_t word = 0
    cdef Py_ssize_t i
    if length <= 8:
        if end - piece >= 8:
            word = load_8(piece)
        else:
            memcpy(&word, piece, length)
        return first_bytes(word, length)
    word = load_8(piece + length - 8)
    for i in range(0, length - 8, 8):
        word = (word ^ word >> 29) * SPREAD + load_8(piece + i)
    return word


@cython.overflowcheck(False)
cdef inline uint64_t hash_of(uint64_t word, Py_ssize_t length) noexcept nogil:
    word = (word ^ word >> 32) * SPREAD + <uint64_t> length
    return (word ^ word >> 29) * SPREAD


cdef inline bint has_bit(const uint64_t* bits, uint32_t number) noexcept nogil:
    return bits[number >> 6] >> (number & 63) & 1


cdef inline void set_bit(uint64_t* bits, uint32_t number) noexcept nogil:
    bits[number >> 6] |= 1ULL << (number & 63)


cdef inline void clear_bit(uint64_t* bits, uint32_t number) noexcept nogil:
    bits[number >> 6] &= ~(1ULL << (number & 63))


cdef uint32_t add_token(
    Vocabulary* vocabulary, const uint8_t* token, Py_ssize_t length, uint32_t rank, uint32_t used
) noexcept:
    """Put a token into the table; return how much of the spellings is used by then."""
    cdef uint64_t word = word_of(token, length, token + length)
    cdef uint64_t mixed = hash_of(word, length)
    cdef uint64_t slot = mixed >> vocabulary.shift
    set_bit(vocabulary.present, <uint32_t> (mixed % PRESENT_BITS))
    while vocabulary.slots[slot].tail:
        slot = (slot + 1) & vocabulary.mask
    vocabulary.slots[slot].word = word
    vocabulary.slots[slot].offset = used
    vocabulary.slots[slot].tail = rank << 8 | <uint32_t> length
    vocabulary.longest = max(vocabulary.longest, length)
    memcpy(vocabulary.spellings + used, token, length)
    return used + <uint32_t> length


cdef inline uint32_t rank_of(
    const Vocabulary* vocabulary, const uint8_t* piece, Py_ssize_t length, const uint8_t* end
) noexcept nogil:
    """Return the rank of a piece, NO_RANK when it is no token; `end` as in `word_of`."""
    cdef uint64_t word
    cdef uint64_t mixed
    cdef uint64_t slot
    cdef const Token* token
    if length > vocabulary.longest:
        return NO_RANK
    word = word_of(piece, length, end)
    mixed = hash_of(word, length)
    if not has_bit(vocabulary.present, <uint32_t> (mixed % PRESENT_BITS)):
        return NO_RANK
    slot = mixed >> vocabulary.shift
    while True:
        token = &vocabulary.slots[slot]
        if token.word == word and (token.tail & 255) == <uint32_t> length and (
            length <= 8 or memcmp(vocabulary.spellings + token.offset, piece, length) == 0
        ):
            return token.tail >> 8
        if token.tail == 0:
            return NO_RANK
        slot = (slot + 1) & vocabulary.mask


cdef void fill_pairs(Vocabulary* vocabulary) noexcept:
    cdef uint8_t[2] pair
    cdef int i
    for i in range(65536):
        pair[0] = <uint8_t> (i >> 8)
        pair[1] = <uint8_t> i
        vocabulary.pairs[i] = rank_of(vocabulary, pair, 2, &pair[2])


cdef int check_bytes(const Vocabulary* vocabulary) except -1:
    cdef uint8_t byte
    cdef int i
    for i in range(256):
        byte = <uint8_t> i
        if rank_of(vocabulary, &byte, 1, &byte + 1) == NO_RANK:
            raise ValueError(f"vocabulary has no token for byte {i}")
    return 0


# -- characters of three bytes ---------------------------------------------------------------------
#
# To begin with a whole character instead of its bytes changes nothing where three things hold. It
# is a token by itself. No token begins or ends inside it in this text, so that nothing can keep its
# bytes from one another (`crossed`). And every token that has the whole of it ranks behind all that
# it is made of, so that none could have come before it was made (`whole`).

cdef inline uint32_t wide_point(const uint8_t* character) noexcept nogil:
    """Return the code point of a character of three bytes."""
    return (
        (character[0] & 0x0Fu) << 12 | (character[1] & 0x3Fu) << 6 | (character[2] & 0x3Fu)
    )


cdef inline uint32_t place_between(uint8_t last, uint8_t first, uint8_t second) noexcept nogil:
    """Return the number of a place, from the last byte before it and the first two after it."""
    return (last & 0x3Fu) << 10 | (first & 0x0Fu) << 6 | (second & 0x3Fu)


cdef inline Py_ssize_t width_of(uint8_t first) noexcept nogil:
    """Return the bytes of a character by its first one."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


cdef inline bint is_inner(uint8_t byte) noexcept nogil:
    """Tell whether a byte is one of a character but not its first."""
    return byte & 0xC0 == 0x80


cdef int fill_whole(Vocabulary* vocabulary) except -1:
    """Note which characters merging may begin with, from the tokens of a sound vocabulary."""
    cdef const Token* token
    cdef uint64_t slot
    cdef uint32_t point
    cdef uint32_t* made_of = <uint32_t*> malloc(WIDE_POINTS * sizeof(uint32_t))
    if made_of == NULL:
        raise MemoryError()
    for point in range(0x800, <uint32_t> WIDE_POINTS):
        made_of[point] = highest_rank(vocabulary, point)
        if made_of[point] != NO_RANK:
            set_bit(vocabulary.whole, point)
    for slot in range(vocabulary.mask + 1):
        token = &vocabulary.slots[slot]
        if token.tail:
            note_token(
                vocabulary,
                made_of,
                vocabulary.spellings + token.offset,
                token.tail & 255,
                token.tail >> 8,
            )
    free(made_of)
    return 0


cdef uint32_t highest_rank(const Vocabulary* vocabulary, uint32_t point) noexcept:
    """Return the highest rank of what a character is made of, itself included; NO_RANK when merging
    does not make it."""
    cdef uint8_t[3] character
    cdef uint32_t pair
    character[0] = <uint8_t> (0xE0 | point >> 12)
    character[1] = <uint8_t> (0x80 | point >> 6 & 0x3F)
    character[2] = <uint8_t> (0x80 | point & 0x3F)
    pair = min(
        vocabulary.pairs[character[0] << 8 | character[1]],
        vocabulary.pairs[character[1] << 8 | character[2]],
    )
    if pair == NO_RANK:
        return NO_RANK
    return max(pair, rank_of(vocabulary, character, 3, &character[3]))


cdef void note_token(
    Vocabulary* vocabulary,
    const uint32_t* made_of,
    const uint8_t* token,
    Py_ssize_t length,
    uint32_t rank,
) noexcept:
    """Note where a token cuts characters, and which it has whole without ranking behind them."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t width
    cdef bint is_cut
    cdef uint32_t point
    while at < length and is_inner(token[at]):
        at += 1
    is_cut = at > 0
    while at < length:
        width = width_of(token[at])
        if width == 3 and at and (is_cut or at + width > length):
            note_crossed(vocabulary, token + at - 1, length - at)
        is_cut = False
        if width == 3 and at + width <= length and length > width:
            point = wide_point(token + at)
            if rank <= made_of[point]:
                clear_bit(vocabulary.whole, point)
        at += width


cdef void note_crossed(
    Vocabulary* vocabulary, const uint8_t* before, Py_ssize_t length
) noexcept:
    """Note the place behind a byte, for every second byte where the token has only one."""
    cdef uint8_t second
    if not is_inner(before[0]):
        return
    if length > 1:
        set_bit(vocabulary.crossed, place_between(before[0], before[1], before[2]))
        return
    for second in range(0x80, 0xC0):
        set_bit(vocabulary.crossed, place_between(before[0], before[1], second))


cdef inline bint is_wide(const uint8_t* piece, Py_ssize_t length, Py_ssize_t at) noexcept nogil:
    return at < length and piece[at] & 0xF0 == 0xE0


cdef Py_ssize_t first_parts(
    const Vocabulary* vocabulary, const uint8_t* piece, Py_ssize_t length, uint8_t* begins
) noexcept nogil:
    """Cut a short piece into the parts that merging begins with; return how many.

    Parameters
    ----------
    begins
        Is filled with where each begins, and the length.
    """
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t count = 0
    cdef bint may_begin = True
    cdef bint may_end
    while at < length:
        begins[count] = <uint8_t> at
        count += 1
        if not is_wide(piece, length, at):
            at += 1
            may_begin = False
            continue
        may_end = at + 3 == length or (
            is_wide(piece, length, at + 3)
            and not has_bit(
                vocabulary.crossed, place_between(piece[at + 2], piece[at + 3], piece[at + 4])
            )
        )
        if not (may_begin and may_end and has_bit(vocabulary.whole, wide_point(piece + at))):
            begins[count] = <uint8_t> (at + 1)
            begins[count + 1] = <uint8_t> (at + 2)
            count += 2
        at += 3
        may_begin = may_end
    begins[count] = <uint8_t> length
    return count


# -- cutting into pieces ---------------------------------------------------------------------------

cdef inline uint32_t read(const uint8_t* text, Py_ssize_t* at) noexcept nogil:
    """Return the code point at a position of sound UTF-8, and move past it."""
    cdef const uint8_t* byte = text + at[0]
    if byte[0] < 0x80:
        at[0] += 1
        return byte[0]
    if byte[0] < 0xE0:
        at[0] += 2
        return (byte[0] & 0x1Fu) << 6 | (byte[1] & 0x3Fu)
    if byte[0] < 0xF0:
        at[0] += 3
        return wide_point(byte)
    at[0] += 4
    return (
        (byte[0] & 0x07u) << 18
        | (byte[1] & 0x3Fu) << 12
        | (byte[2] & 0x3Fu) << 6
        | (byte[3] & 0x3Fu)
    )


cdef inline uint8_t class_at(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t at, Py_ssize_t* after
) noexcept nogil:
    """Return the class at a position, and where the next begins; BLANK and no move at the end."""
    after[0] = at
    if at == length:
        return BLANK
    return classes[read(text, after)]


cdef inline Py_ssize_t end_of_ascii(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t at, uint8_t members
) noexcept nogil:
    """Pass ASCII letters, those of upper case if `members` has them, eight bytes at a time.

    The last seven bytes of a text are left to the caller.
    """
    cdef uint64_t bytes
    cdef uint64_t low
    cdef uint64_t letters
    cdef uint64_t others
    while length - at >= 8:
        bytes = load_8(text + at)
        low = bytes & 0x7F7F7F7F7F7F7F7FULL
        if members & UPPER:
            low |= 0x2020202020202020ULL
        # The high bit of each byte: set by a sum where the byte is at least "a", at most "z".
        letters = (low + 0x1F1F1F1F1F1F1F1FULL) & ~(low + 0x0505050505050505ULL) & ~bytes
        others = ~letters & 0x8080808080808080ULL
        if others:
            return at + first_mark(others)
        at += 8
    return at


cdef inline Py_ssize_t end_of_run(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t at, uint8_t members
) noexcept nogil:
    """Pass characters of these classes, letters of lower case among them."""
    cdef Py_ssize_t after
    at = end_of_ascii(text, length, at, members)
    after = at
    while at < length and classes[read(text, &after)] & members:
        at = after
    return at


cdef inline Py_ssize_t end_of_digits(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t at
) noexcept nogil:
    """Pass up to two more numbers."""
    cdef Py_ssize_t after = at
    cdef int _
    for _ in range(2):
        if at == length or not classes[read(text, &after)] & NUMBER:
            break
        at = after
    return at


cdef inline Py_ssize_t end_of_contraction(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t at
) noexcept nogil:
    """Pass 's, 't, 're, 've, 'm, 'll or 'd in any case, if it is there; s is also U+017F."""
    cdef uint8_t first
    cdef uint8_t second
    if length - at < 2 or text[at] != c"'":
        return at
    first = text[at + 1] | 0x20
    if first == c"s" or first == c"t" or first == c"m" or first == c"d":
        return at + 2
    if length - at < 3:
        return at
    if text[at + 1] == 0xC5 and text[at + 2] == 0xBF:
        return at + 3
    second = text[at + 2] | 0x20
    if (first == c"l" and second == c"l") or (
        (first == c"r" or first == c"v") and second == c"e"
    ):
        return at + 3
    return at


cdef inline Py_ssize_t end_of_symbols(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t at, bint with_slash
) noexcept nogil:
    """Pass what is neither blank, letter nor number, and the line ends after it."""
    cdef Py_ssize_t after = at
    while at < length and not classes[read(text, &after)] & (BLANK | LETTERS | NUMBER):
        at = after
    while at < length and (
        text[at] == c"\r" or text[at] == c"\n" or (with_slash and text[at] == c"/")
    ):
        at += 1
    return at


cdef inline Py_ssize_t end_of_blanks(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t at, bint all_at_the_end
) noexcept nogil:
    """Cut a run of blanks: after its last line end, else before its last blank.

    At the end of the text cl100k_base takes all of it first, o200k_base what has no line end.
    """
    cdef Py_ssize_t begin = at
    cdef Py_ssize_t after = at
    cdef Py_ssize_t last = at
    cdef Py_ssize_t line_end = 0
    cdef uint8_t flags
    while at < length:
        flags = classes[read(text, &after)]
        if not flags & BLANK:
            break
        last = at
        at = after
        if flags & NEWLINE:
            line_end = at
    if at == length and (all_at_the_end or line_end == 0):
        return at
    if line_end:
        return line_end
    return last if last > begin else at


cdef inline Py_ssize_t end_of_word(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t begin, bint with_lower
) noexcept nogil:
    """Pass an o200k_base word: upper case, then lower; letters without case are both.

    A run of upper case alone ends after its last letter without case, if it has one. `with_lower`:
    a word of upper case alone does not do, and `begin` is returned.
    """
    cdef Py_ssize_t at = begin
    cdef Py_ssize_t after = begin
    cdef Py_ssize_t either = begin
    cdef uint8_t flags = 0
    while at < length:
        flags = classes[read(text, &after)]
        if not flags & AS_UPPER:
            break
        at = after
        if flags & EITHER:
            either = at
    if at < length and flags & LOWER:
        at = end_of_run(text, length, at, AS_LOWER)
    elif either > begin:
        at = either
    elif with_lower:
        return begin
    return end_of_contraction(text, length, at) if at > begin else begin


cdef inline Py_ssize_t end_of_o200k_piece(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t begin
) noexcept nogil:
    cdef Py_ssize_t second
    cdef Py_ssize_t third
    cdef Py_ssize_t end
    cdef uint8_t flags = class_at(text, length, begin, &second)
    if flags & LETTERS:
        return end_of_word(text, length, begin, False)
    if flags & NUMBER:
        return end_of_digits(text, length, second)
    if not flags & NEWLINE:
        end = end_of_word(text, length, second, flags & MARK)
        if end > second:
            return end
        if flags & MARK:
            return end_of_word(text, length, begin, False)
    if not flags & BLANK:
        return end_of_symbols(text, length, begin, True)
    if text[begin] == c" " and not class_at(text, length, second, &third) & (
        BLANK | LETTERS | NUMBER
    ):
        return end_of_symbols(text, length, second, True)
    return end_of_blanks(text, length, begin, False)


cdef inline Py_ssize_t end_of_cl100k_piece(
    const uint8_t* text, Py_ssize_t length, Py_ssize_t begin
) noexcept nogil:
    cdef Py_ssize_t second
    cdef Py_ssize_t third
    cdef Py_ssize_t end = end_of_contraction(text, length, begin)
    cdef uint8_t flags = class_at(text, length, begin, &second)
    if end > begin:
        return end
    if flags & LETTERS:
        return end_of_run(text, length, second, LETTERS)
    if flags & NUMBER:
        return end_of_digits(text, length, second)
    if not flags & NEWLINE:
        end = end_of_run(text, length, second, LETTERS)
        if end > second:
            return end
    if not flags & BLANK:
        return end_of_symbols(text, length, begin, False)
    if text[begin] == c" " and not class_at(text, length, second, &third) & (
        BLANK | LETTERS | NUMBER
    ):
        return end_of_symbols(text, length, second, False)
    return end_of_blanks(text, length, begin, True)


# -- counting --------------------------------------------------------------------------------------

cdef int64_t count_bytes(
    const Vocabulary* vocabulary,
    bint is_o200k,
    Known* known,
    const uint8_t* text,
    Py_ssize_t length,
    int64_t* steps,
) noexcept nogil:
    """Return the tokens of a text in UTF-8, or -1 when memory ran out.

    Parameters
    ----------
    known
        Pieces that were merged before, by their hash; NULL for none.
    """
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t end
    cdef Py_ssize_t merged
    cdef int64_t count = 0
    while begin < length:
        if is_o200k:
            end = end_of_o200k_piece(text, length, begin)
        else:
            end = end_of_cl100k_piece(text, length, begin)
        merged = 1
        if rank_of(vocabulary, text + begin, end - begin, text + length) == NO_RANK:
            merged = merge(vocabulary, known, text + begin, end - begin, text + length, steps)
            if merged < 0:
                return -1
        count += merged
        steps[0] += 1
        begin = end
    return count


cdef inline Py_ssize_t merge(
    const Vocabulary* vocabulary,
    Known* known,
    const uint8_t* piece,
    Py_ssize_t length,
    const uint8_t* end,
    int64_t* steps,
) noexcept nogil:
    """Return the tokens of a piece that is none itself; -1 when memory ran out."""
    cdef Known* slot
    if length > SHORT:
        return merge_long(vocabulary, piece, length, end, steps)
    if length > KNOWN_BYTES or known == NULL:
        return merge_short(vocabulary, piece, length, end, steps)
    slot = known + (hash_of(word_of(piece, length, end), length) >> (64 - KNOWN_BITS))
    if slot.length != length or memcmp(slot.piece, piece, length) != 0:
        slot.count = <uint8_t> merge_short(vocabulary, piece, length, end, steps)
        slot.length = <uint8_t> length
        memcpy(slot.piece, piece, length)
    return slot.count


cdef Py_ssize_t merge_short(
    const Vocabulary* vocabulary,
    const uint8_t* piece,
    Py_ssize_t length,
    const uint8_t* end,
    int64_t* steps,
) noexcept nogil:
    """Merge the pair of lowest rank, the first of them, until there is none; return the parts."""
    cdef int32_t[SHORT] pairs
    cdef uint8_t[SHORT_ENDS] begins
    cdef uint8_t[SHORT_ENDS] next
    cdef uint8_t[SHORT_ENDS] before
    cdef Py_ssize_t count = first_parts(vocabulary, piece, length, begins)
    cdef Py_ssize_t size = (count + LANES - 1) // LANES * LANES
    cdef Py_ssize_t parts = count
    cdef const uint8_t* two
    cdef Py_ssize_t at
    cdef int32_t lowest
    for at in range(count + 1):
        next[at] = <uint8_t> (at + 1)
        before[at] = <uint8_t> (at - 1)
    for at in range(count - 1):
        if begins[at + 2] - begins[at] == 2:
            two = piece + begins[at]
            pairs[at] = pair_at(vocabulary.pairs[two[0] << 8 | two[1]], at)
        else:
            set_pair(vocabulary, piece, end, count, pairs, begins, next, at)
    for at in range(count - 1, size):
        pairs[at] = NO_PAIR
    while True:
        lowest = NO_PAIR
        for at in range(size):
            lowest = min(lowest, pairs[at])
        steps[0] += size
        if lowest == NO_PAIR:
            return parts
        parts -= 1
        at = lowest & 255
        pairs[next[at]] = NO_PAIR
        next[at] = next[next[at]]
        before[next[at]] = <uint8_t> at
        set_pair(vocabulary, piece, end, count, pairs, begins, next, at)
        if at > 0:
            set_pair(vocabulary, piece, end, count, pairs, begins, next, before[at])


cdef inline int32_t pair_at(uint32_t rank, Py_ssize_t at) noexcept nogil:
    return NO_PAIR if rank == NO_RANK else <int32_t> (rank << 8 | <uint32_t> at)


cdef inline void set_pair(
    const Vocabulary* vocabulary,
    const uint8_t* piece,
    const uint8_t* end,
    Py_ssize_t count,
    int32_t* pairs,
    const uint8_t* begins,
    const uint8_t* next,
    Py_ssize_t at,
) noexcept nogil:
    cdef Py_ssize_t begin = begins[at]
    pairs[at] = NO_PAIR
    if next[at] < count:
        pairs[at] = pair_at(
            rank_of(vocabulary, piece + begin, begins[next[next[at]]] - begin, end), at
        )


cdef struct Merges:
    # By the byte where a part begins: where the next and the one before begin, and the rank of the
    # part with the next.
    Py_ssize_t* next
    Py_ssize_t* before
    uint32_t* ranks
    # Pairs that may be merged, ordered by rank, then place; those merged meanwhile are passed over.
    uint64_t* heap
    Py_ssize_t size


cdef Py_ssize_t merge_long(
    const Vocabulary* vocabulary,
    const uint8_t* piece,
    Py_ssize_t length,
    const uint8_t* end,
    int64_t* steps,
) noexcept nogil:
    """As `merge_short`, in O(n log n); -1 when memory ran out."""
    cdef Merges merges
    cdef Py_ssize_t parts = -1
    merges.next = <Py_ssize_t*> malloc(length * sizeof(Py_ssize_t))
    merges.before = <Py_ssize_t*> malloc(length * sizeof(Py_ssize_t))
    merges.ranks = <uint32_t*> malloc(length * sizeof(uint32_t))
    merges.heap = <uint64_t*> malloc(2 * length * sizeof(uint64_t))
    if merges.next and merges.before and merges.ranks and merges.heap:
        parts = merge_all(&merges, vocabulary, piece, length, end, steps)
    free(merges.next)
    free(merges.before)
    free(merges.ranks)
    free(merges.heap)
    return parts


cdef Py_ssize_t merge_all(
    Merges* merges,
    const Vocabulary* vocabulary,
    const uint8_t* piece,
    Py_ssize_t length,
    const uint8_t* end,
    int64_t* steps,
) noexcept nogil:
    cdef Py_ssize_t parts = length
    cdef Py_ssize_t at
    cdef Py_ssize_t after
    cdef uint64_t lowest
    merges.size = 0
    for at in range(length):
        merges.next[at] = at + 1
        merges.before[at] = at - 1
    for at in range(length):
        set_rank(merges, vocabulary, piece, length, end, at, steps)
    while merges.size:
        lowest = pop(merges, steps)
        at = <Py_ssize_t> (lowest & PLACE)
        if merges.ranks[at] != <uint32_t> (lowest >> PLACE_BITS):
            continue
        after = merges.next[at]
        merges.ranks[after] = NO_RANK
        merges.next[at] = merges.next[after]
        if merges.next[at] < length:
            merges.before[merges.next[at]] = at
        parts -= 1
        set_rank(merges, vocabulary, piece, length, end, at, steps)
        if at > 0:
            set_rank(merges, vocabulary, piece, length, end, merges.before[at], steps)
    return parts


cdef inline void set_rank(
    Merges* merges,
    const Vocabulary* vocabulary,
    const uint8_t* piece,
    Py_ssize_t length,
    const uint8_t* end,
    Py_ssize_t at,
    int64_t* steps,
) noexcept nogil:
    """Note the rank of a part with the next, and put the pair on the heap if they merge."""
    cdef Py_ssize_t next = merges.next[at]
    merges.ranks[at] = NO_RANK
    if next == length:
        return
    merges.ranks[at] = rank_of(vocabulary, piece + at, merges.next[next] - at, end)
    if merges.ranks[at] != NO_RANK:
        push(merges, <uint64_t> merges.ranks[at] << PLACE_BITS | <uint64_t> at, steps)


cdef inline void push(Merges* merges, uint64_t pair, int64_t* steps) noexcept nogil:
    cdef Py_ssize_t at = merges.size
    cdef Py_ssize_t parent
    merges.size += 1
    while at > 0:
        parent = (at - 1) // 2
        if merges.heap[parent] <= pair:
            break
        merges.heap[at] = merges.heap[parent]
        at = parent
        steps[0] += 1
    merges.heap[at] = pair


cdef inline uint64_t pop(Merges* merges, int64_t* steps) noexcept nogil:
    cdef uint64_t lowest = merges.heap[0]
    cdef uint64_t pair
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t child = 1
    merges.size -= 1
    pair = merges.heap[merges.size]
    while child < merges.size:
        if child + 1 < merges.size and merges.heap[child + 1] < merges.heap[child]:
            child += 1
        if pair <= merges.heap[child]:
            break
        merges.heap[at] = merges.heap[child]
        at = child
        child = 2 * at + 1
        steps[0] += 1
    merges.heap[at] = pair
    return lowest


fill_classes()
fill_base64()
