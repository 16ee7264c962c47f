"""Kernel `text`: the analyser that cuts text of any script into search terms.

Search and relevance use the same terms (architecture, sections 4 and 6). A typed translation of
`lcm_fast/kernels/reference/text.py`, which explains the rules: characters are classified by table,
pages of it filled as scripts turn up; ASCII words are folded and stemmed in a buffer, and hashed
there when only their hashes are wanted.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from unicodedata import category, is_normalized, normalize

import numpy as np

from lcm_stem cimport stem

cdef extern from "Python.h":
    bint PyUnicode_Check(object text)
    bint PyUnicode_IS_ASCII(object text)
    int PyUnicode_KIND(object text)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    object PyUnicode_FromKindAndData(int kind, const void* buffer, Py_ssize_t length)
    object PyUnicode_New(Py_ssize_t length, uint32_t largest)
    object PyUnicode_Substring(object text, Py_ssize_t begin, Py_ssize_t end)

cdef extern from *:
    """
    #define HASH_BASIS 2166136261u
    #define HASH_PRIME 16777619u
    #define FIRST_FACTOR 0x85EBCA6Bu
    #define SECOND_FACTOR 0xC2B2AE35u
    """
    uint32_t HASH_BASIS
    uint32_t HASH_PRIME
    uint32_t FIRST_FACTOR
    uint32_t SECOND_FACTOR

cdef enum:
    LONGEST_TERM = 64
    # A stem is at most one letter longer than what it is made from.
    BUFFER = 66
    BLOCK = 512
    PAGE = 256
    PAGES = 0x1100

cdef enum:
    WORD = 1
    CJK = 2
    JOINER = 4
    URL_JOINER = 8
    UPPER = 16
    LOWER = 32
    DIGIT = 64
    MARK = 128
    # Normalisation leaves it as it is, whatever stands around it.
    INERT = 256

cdef frozenset JOINERS = frozenset("_-./:@#\\")
cdef frozenset URL_JOINERS = frozenset("?=&%+~")
cdef tuple CJK_RANGES = (
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
cdef dict CATEGORY_FLAGS = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Nd": DIGIT}

cdef uint16_t* class_pages[PAGES]
# The classes of ASCII once more, for reading without a check.
cdef uint16_t[128] ascii_classes

cdef struct Text:
    int kind
    const void* characters


@cython.internal
@cython.auto_pickle(False)
cdef class Terms:
    """Terms as they are found: as texts, or as hashes alone."""

    cdef list texts
    cdef uint32_t* hashes
    cdef Py_ssize_t length
    cdef Py_ssize_t capacity

    def __cinit__(self, list texts):
        self.texts = texts
        self.hashes = NULL
        self.length = self.capacity = 0

    def __dealloc__(self):
        free(self.hashes)

    cdef int add_ascii(self, const char* term, Py_ssize_t length) except -1:
        if self.texts is not None:
            self.texts.append(ascii_text(term, length))
            return 0
        cdef Text view
        view.kind = 1
        view.characters = term
        return self.add_hash(hash_of(view, 0, length))

    cdef int add_part(self, object text, Text source, Py_ssize_t begin, Py_ssize_t end) except -1:
        """Add a part of a text; `source` views the whole text."""
        if self.texts is not None:
            self.texts.append(PyUnicode_Substring(text, begin, end))
            return 0
        return self.add_hash(hash_of(source, begin, end))

    cdef int add_text(self, object text) except -1:
        return self.add_part(text, view_of(text), 0, PyUnicode_GET_LENGTH(text))

    cdef inline int add_hash(self, uint32_t value) except -1:
        cdef uint32_t* larger
        if self.length == self.capacity:
            larger = <uint32_t*> realloc(self.hashes, (2 * self.capacity + 256) * sizeof(uint32_t))
            if larger == NULL:
                raise MemoryError()
            self.hashes = larger
            self.capacity = 2 * self.capacity + 256
        self.hashes[self.length] = value
        self.length += 1
        return 0


def analyse_terms(text):
    """Cut a text into search terms, in order of appearance, duplicates kept.

    Parameters
    ----------
    text : str
        Any string, of any script; lone surrogates and NUL separate terms.

    Returns
    -------
    list of str
        Folded terms of at most 64 characters. Words: runs of letters, digits and marks, of which
        English-looking ones are stemmed. CJK: each character and each adjacent pair. Identifiers,
        paths, addresses, dates: the whole, unless longer than 64, then its parts and camelCase
        humps. Decimal numbers: the whole. Punctuation, symbols and emoji: nothing.

    Raises
    ------
    TypeError
        If `text` is not a str.

    Notes
    -----
    Linear in the length of the text, whatever it holds; keeps the interpreter lock, since it makes
    strings all along. Source: architecture, section 6.

    Examples
    --------
    >>> analyse_terms("Queries of a/b.py, getUserById")
    ['query', 'of', 'a/b.py', 'a', 'b', 'py', 'getuserbyid', 'get', 'user', 'by', 'id']
    >>> analyse_terms("2026-03-19 数据库")
    ['2026-03-19', '2026', '03', '19', '数', '数据', '据', '据库', '库']
    """
    if not PyUnicode_Check(text):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    cdef Terms terms = Terms([])
    analyse(text, terms)
    return terms.texts


def count_terms(texts):
    """Hash the search terms of many texts, and count how often each occurs in its text.

    Parameters
    ----------
    texts : list of str
        Any strings, n of them.

    Returns
    -------
    tuple of numpy.ndarray
        `offsets`, int64, shape (n + 1,): the terms of text i stand at offsets[i] to offsets[i + 1].
        `terms`, uint32, shape (m,): hashes of the distinct terms of each text, as they appear.
        `counts`, uint32, shape (m,): how often each occurs in its text.

    Raises
    ------
    TypeError
        If `texts` is not a list, or one of it is not a str.

    Notes
    -----
    The terms are those of `analyse_terms`. A hash is FNV-1a over code points, 32 bits, then the
    finaliser of MurmurHash3. Linear in the texts. Source: architecture, section 6; benchmarks,
    section 2.

    Examples
    --------
    >>> offsets, terms, counts = count_terms(["to be or not to be", "be"])
    >>> offsets.tolist(), counts.tolist(), len(set(terms.tolist()))
    ([0, 4, 5], [2, 2, 1, 1, 1], 4)
    """
    if not isinstance(texts, list):
        raise TypeError(f"texts must be a list, not {type(texts).__name__}")
    cdef Terms found = Terms(None)
    cdef Terms distinct = Terms(None)
    cdef Terms counts = Terms(None)
    cdef Slots slots = Slots()
    cdef Py_ssize_t i
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    cdef int64_t[::1] offset_view = offsets
    for i in range(len(texts)):
        if not PyUnicode_Check(texts[i]):
            raise TypeError(f"texts[{i}] must be a str, not {type(texts[i]).__name__}")
        found.length = 0
        analyse(texts[i], found)
        add_counts(found, distinct, counts, slots)
        offset_view[i + 1] = distinct.length
    return offsets, array_of(distinct), array_of(counts)


@cython.internal
@cython.auto_pickle(False)
cdef class Slots:
    """Where each value of a text was seen: an open table that is emptied by counting rounds."""

    cdef uint32_t* rounds
    cdef Py_ssize_t* places
    cdef Py_ssize_t mask
    cdef uint32_t round

    def __cinit__(self):
        self.rounds = NULL
        self.places = NULL
        self.mask = -1
        self.round = 0

    def __dealloc__(self):
        free(self.rounds)
        free(self.places)

    cdef int begin(self, Py_ssize_t values) except -1:
        """Empty the table, and make it twice as large as the values to come."""
        cdef Py_ssize_t size = 256
        self.round += 1
        if values * 2 <= self.mask + 1 and self.round:
            return 0
        while size < values * 2:
            size *= 2
        free(self.rounds)
        free(self.places)
        self.rounds = <uint32_t*> calloc(size, sizeof(uint32_t))
        self.places = <Py_ssize_t*> malloc(size * sizeof(Py_ssize_t))
        self.mask = size - 1
        self.round = 1
        if self.rounds == NULL or self.places == NULL:
            raise MemoryError()
        return 0


cdef object array_of(Terms values):
    array = np.empty(values.length, dtype=np.uint32)
    cdef uint32_t[::1] view = array
    if values.length:
        memcpy(&view[0], values.hashes, values.length * sizeof(uint32_t))
    return array


cdef int add_counts(Terms found, Terms distinct, Terms counts, Slots slots) except -1:
    """Add each value that was found once, in order of appearance, and how often it was."""
    cdef Py_ssize_t i
    cdef Py_ssize_t at
    cdef uint32_t value
    slots.begin(found.length)
    for i in range(found.length):
        value = found.hashes[i]
        at = value & slots.mask
        while slots.rounds[at] == slots.round and distinct.hashes[slots.places[at]] != value:
            at = (at + 1) & slots.mask
        if slots.rounds[at] == slots.round:
            counts.hashes[slots.places[at]] += 1
            continue
        slots.rounds[at] = slots.round
        slots.places[at] = distinct.length
        distinct.add_hash(value)
        counts.add_hash(1)
    return 0


cdef inline uint32_t hash_of(Text source, Py_ssize_t begin, Py_ssize_t end) noexcept:
    cdef uint32_t value = HASH_BASIS
    cdef Py_ssize_t i
    for i in range(begin, end):
        value = hashed_on(value, read(source, i))
    return finished(value)


@cython.overflowcheck(False)
cdef inline uint32_t hashed_on(uint32_t value, uint32_t character) noexcept:
    return (value ^ character) * HASH_PRIME


@cython.overflowcheck(False)
cdef inline uint32_t finished(uint32_t value) noexcept:
    value = (value ^ (value >> 16)) * FIRST_FACTOR
    value = (value ^ (value >> 13)) * SECOND_FACTOR
    return value ^ (value >> 16)


cdef int analyse(object text, Terms terms) except -1:
    normal = text
    cdef Text source = view_of(text)
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    if not PyUnicode_IS_ASCII(text):
        fill_pages(source, length)
        if not is_inert(source, 0, length):
            normal = normalise(narrow(text))
            source = view_of(normal)
            length = PyUnicode_GET_LENGTH(normal)
            fill_pages(source, length)
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t end
    cdef uint16_t flags
    while begin < length:
        end = begin + 1
        flags = class_of(read(source, begin))
        if flags & CJK:
            while end < length and class_of(read(source, end)) & CJK:
                end += 1
            add_cjk(normal, source, begin, end, terms)
        elif flags & (WORD | JOINER):
            end = end_of_plain_word(source, begin, length, terms)
            if end == begin:
                end = end_of_compound(source, begin, length)
                add_compound(normal, source, begin, end, terms)
        begin = end
    return 0


cdef Py_ssize_t end_of_plain_word(
    Text source, Py_ssize_t begin, Py_ssize_t length, Terms terms
) except -1:
    """Add the ASCII word that begins here, if that is all there is; return where it ends.

    Most of what there is to read: no capital but the first, no joiner but one behind it. For all
    else `begin` is returned and nothing added.
    """
    cdef char[BUFFER] buffer
    cdef Py_ssize_t latest = min(length, begin + LONGEST_TERM)
    cdef Py_ssize_t end = begin
    cdef uint32_t character = 0
    cdef uint32_t value = HASH_BASIS
    cdef uint16_t flags = 0
    while end < latest:
        character = read(source, end)
        flags = ascii_classes[character] if character < 128 else 0
        if not flags & WORD or (flags & UPPER and end > begin):
            break
        if flags & UPPER:
            character += 32
        buffer[end - begin] = <char> character
        value = hashed_on(value, character)
        end += 1
    if end == begin or end == latest:
        if end < length or end == begin:
            return begin
    elif character >= 128 or flags & WORD:
        return begin
    elif flags & JOINER:
        if end + 1 < length:
            character = read(source, end + 1)
            if character >= 128 or ascii_classes[character] & (WORD | JOINER):
                return begin
        add_plain(buffer, end - begin, value, terms)
        return end + 1
    add_plain(buffer, end - begin, value, terms)
    return end


cdef inline int add_plain(
    char* word, Py_ssize_t length, uint32_t value, Terms terms
) except -1:
    """Add the stem of a folded word; `value` is the running hash of the word as it stands."""
    cdef Py_ssize_t stemmed = stem(word, length)
    if terms.texts is None and stemmed == length:
        return terms.add_hash(finished(value))
    return terms.add_ascii(word, stemmed)


cdef inline Text view_of(object text):
    cdef Text view
    view.kind = PyUnicode_KIND(text)
    view.characters = PyUnicode_DATA(text)
    return view


cdef inline uint32_t read(Text source, Py_ssize_t i) noexcept:
    if source.kind == 1:
        return (<const uint8_t*> source.characters)[i]
    if source.kind == 2:
        return (<const uint16_t*> source.characters)[i]
    return (<const uint32_t*> source.characters)[i]


cdef inline void write(Text target, Py_ssize_t i, uint32_t character) noexcept:
    if target.kind == 1:
        (<uint8_t*> target.characters)[i] = <uint8_t> character
    elif target.kind == 2:
        (<uint16_t*> target.characters)[i] = <uint16_t> character
    else:
        (<uint32_t*> target.characters)[i] = character


cdef inline uint16_t class_of(uint32_t character) noexcept:
    """Return the class of an ASCII character, or of one whose page is filled."""
    if character < 128:
        return ascii_classes[character]
    return class_pages[character // PAGE][character % PAGE]


cdef int fill_pages(Text source, Py_ssize_t length) except -1:
    """Classify what characters a text has, with their pages."""
    cdef Py_ssize_t i
    for i in range(length):
        if class_pages[read(source, i) // PAGE] == NULL:
            fill_page(read(source, i) // PAGE)
    return 0


cdef uint16_t* fill_page(Py_ssize_t number) except NULL:
    """Classify the characters of one page of the table."""
    cdef uint16_t* page = <uint16_t*> malloc(PAGE * sizeof(uint16_t))
    cdef Py_ssize_t i
    if page == NULL:
        raise MemoryError()
    try:
        for i in range(PAGE):
            page[i] = classify(chr(number * PAGE + i))
    except BaseException:
        free(page)
        raise
    class_pages[number] = page
    return page


cdef int classify(str character) except -1:
    cdef int inert = INERT if stays_as_it_is(character) else 0
    if character in JOINERS:
        return inert | JOINER
    if character in URL_JOINERS:
        return inert | URL_JOINER
    kind = category(character)
    if kind[0] not in "LMN":
        return inert
    for first, last in CJK_RANGES:
        if first <= ord(character) <= last:
            return inert | CJK
    if kind[0] == "M":
        return WORD | MARK
    return inert | WORD | <int> CATEGORY_FLAGS.get(kind, 0)


cdef bint stays_as_it_is(str character):
    """Whether a character is visible, normal, and neither a mark nor a Hangul jamo.

    Of what can join the character before it, all else is in planes of rare scripts.
    """
    cdef uint32_t point = ord(character)
    if is_invisible(point) or 0x1100 <= point < 0x1200 or 0x10000 <= point < 0x1F000:
        return False
    return category(character)[0] != "M" and is_normalized("NFKC", character)


cdef bint is_inert(Text source, Py_ssize_t begin, Py_ssize_t end) noexcept:
    cdef Py_ssize_t i
    for i in range(begin, end):
        if not class_of(read(source, i)) & INERT:
            return False
    return True


cdef inline bint is_invisible(uint32_t character) noexcept:
    """Soft hyphen, Arabic elongation, joiners, variation selectors, byte-order mark."""
    return (
        character == 0x00AD
        or character == 0x0640
        or 0x200C <= character <= 0x200D
        or character == 0x2060
        or 0xFE00 <= character <= 0xFE0F
        or character == 0xFEFF
        or 0xE0100 <= character <= 0xE01EF
    )


cdef object narrow(object text):
    """Return `text` with the wide forms of ASCII as ASCII, as normalisation has them.

    They are frequent: to normalise what stands around each takes most of the time of CJK texts.
    """
    cdef Text source = view_of(text)
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    cdef Text narrowed
    cdef uint32_t character
    cdef Py_ssize_t i
    narrowed.kind = source.kind
    narrowed.characters = malloc(max(length * source.kind, 1))
    if narrowed.characters == NULL:
        raise MemoryError()
    for i in range(length):
        character = read(source, i)
        if 0xFF01 <= character <= 0xFF5E:
            character -= 0xFEE0
        elif character == 0x3000 or character == 0x00A0:
            character = c" "
        write(narrowed, i, character)
    try:
        return PyUnicode_FromKindAndData(source.kind, narrowed.characters, length)
    finally:
        free(<void*> narrowed.characters)


cdef object normalise(object text):
    """Return `text` in NFKC without invisible characters, block by block (see the twin)."""
    visible = drop_invisible(text)
    cdef Text source = view_of(visible)
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(visible)
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t end
    cdef Py_ssize_t latest
    cdef list blocks = []
    while begin < length:
        end = min(begin + BLOCK, length)
        latest = min(begin + 2 * BLOCK, length)
        while end < latest and read(source, end) >= 128:
            end += 1
        block = PyUnicode_Substring(visible, begin, end)
        blocks.append(block if is_inert(source, begin, end) else normalize("NFKC", block))
        begin = end
    return "".join(blocks)


cdef object drop_invisible(object text):
    cdef Text source = view_of(text)
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t i
    cdef list pieces = []
    for i in range(length):
        if not class_of(read(source, i)) & INERT and is_invisible(read(source, i)):
            if i > begin:
                pieces.append(PyUnicode_Substring(text, begin, i))
            begin = i + 1
    if begin == 0:
        return text
    pieces.append(PyUnicode_Substring(text, begin, length))
    return "".join(pieces)


cdef int add_cjk(
    object text, Text source, Py_ssize_t begin, Py_ssize_t end, Terms terms
) except -1:
    """Add each character, and each pair right after its first character."""
    cdef Py_ssize_t i
    cdef uint32_t value
    if terms.texts is None:
        for i in range(begin, end):
            value = hashed_on(HASH_BASIS, read(source, i))
            terms.add_hash(finished(value))
            if i + 1 < end:
                terms.add_hash(finished(hashed_on(value, read(source, i + 1))))
        return 0
    for i in range(begin, end):
        terms.add_part(text, source, i, i + 1)
        if i + 1 < end:
            terms.add_part(text, source, i, i + 2)
    return 0


cdef Py_ssize_t end_of_compound(Text source, Py_ssize_t begin, Py_ssize_t length) except -1:
    """Return where the run of word characters and joiners ends; a URL takes its query along."""
    cdef Py_ssize_t end = begin
    cdef uint16_t members = WORD | JOINER
    while end < length and class_of(read(source, end)) & members:
        end += 1
        if (
            end - begin >= 3
            and read(source, end - 1) == c"/"
            and read(source, end - 2) == c"/"
            and read(source, end - 3) == c":"
        ):
            members |= URL_JOINER
    return end


cdef int add_compound(
    object text, Text source, Py_ssize_t begin, Py_ssize_t end, Terms terms
) except -1:
    """Add the run as a whole where it has several segments, then each segment."""
    cdef Py_ssize_t first_end
    cdef Py_ssize_t first = next_segment(source, begin, end, &first_end)
    cdef Py_ssize_t second_end
    cdef Py_ssize_t second = next_segment(source, first_end, end, &second_end)
    if second < end and add_whole(text, source, begin, end, terms):
        return 0
    while first < end:
        if end_of_plain_word(source, first, first_end, terms) == first:
            add_segment(text, source, first, first_end, terms)
        first = next_segment(source, first_end, end, &first_end)
    return 0


cdef Py_ssize_t next_segment(
    Text source, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t* segment_end
) except -1:
    """Return the begin of the next piece that holds a letter or a digit, or `end`."""
    cdef bint meaningful = False
    cdef uint16_t flags
    cdef Py_ssize_t i
    for i in range(begin, end):
        flags = class_of(read(source, i))
        if flags & WORD:
            meaningful |= not flags & MARK
        elif meaningful:
            segment_end[0] = i
            return begin
        else:
            begin = i + 1
    segment_end[0] = end
    return begin if meaningful else end


cdef bint add_whole(
    object text, Text source, Py_ssize_t begin, Py_ssize_t end, Terms terms
) except -1:
    """Add the run without outer punctuation, unless too long; tell whether that is all of it."""
    while class_of(read(source, begin)) & (JOINER | URL_JOINER):
        begin += 1
    while class_of(read(source, end - 1)) & (JOINER | URL_JOINER):
        end -= 1
    if end - begin > LONGEST_TERM:
        return False
    if is_ascii(source, begin, end):
        add_folded(source, begin, end, terms)
        return is_decimal(source, begin, end)
    whole = PyUnicode_Substring(text, begin, end).casefold()
    if PyUnicode_GET_LENGTH(whole) <= LONGEST_TERM:
        terms.add_text(whole)
    return False


cdef inline bint is_ascii(Text source, Py_ssize_t begin, Py_ssize_t end) noexcept:
    cdef uint32_t bits = 0
    cdef Py_ssize_t i
    for i in range(begin, end):
        bits |= read(source, i)
    return bits < 128


cdef bint is_decimal(Text source, Py_ssize_t begin, Py_ssize_t end) noexcept:
    """Whether the text is digits, one point, digits."""
    cdef Py_ssize_t points = 0
    cdef Py_ssize_t i
    for i in range(begin, end):
        if read(source, i) == c".":
            points += 1
        elif not c"0" <= read(source, i) <= c"9":
            return False
    return points == 1


cdef inline Py_ssize_t fold_ascii(
    Text source, Py_ssize_t begin, Py_ssize_t end, char* buffer
) noexcept:
    cdef uint32_t character
    cdef Py_ssize_t i
    for i in range(begin, end):
        character = read(source, i)
        buffer[i - begin] = <char> (character + 32 if c"A" <= character <= c"Z" else character)
    return end - begin


cdef inline object ascii_text(const char* buffer, Py_ssize_t length):
    text = PyUnicode_New(length, 127)
    memcpy(PyUnicode_DATA(text), buffer, length)
    return text


cdef inline int add_folded(
    Text source, Py_ssize_t begin, Py_ssize_t end, Terms terms
) except -1:
    cdef char[BUFFER] buffer
    return terms.add_ascii(buffer, fold_ascii(source, begin, end, buffer))


cdef int add_segment(
    object text, Text source, Py_ssize_t begin, Py_ssize_t end, Terms terms
) except -1:
    """Add a word's stem, or an identifier and its humps; what is very long is cut."""
    cdef bint ascii_only = is_ascii(source, begin, end)
    cdef Py_ssize_t hump
    folded = None
    if not ascii_only:
        folded = PyUnicode_Substring(text, begin, end).casefold()
        if PyUnicode_GET_LENGTH(folded) > LONGEST_TERM:
            terms.add_part(folded, view_of(folded), 0, LONGEST_TERM)
            return 0
    elif end - begin > LONGEST_TERM:
        add_folded(source, begin, begin + LONGEST_TERM, terms)
        return 0
    hump = end_of_hump(source, begin, end)
    if hump < end and ascii_only:
        add_folded(source, begin, end, terms)
    elif hump < end:
        terms.add_text(folded)
    while begin < end:
        add_stem(text, source, begin, hump, terms)
        begin = hump
        if begin < end:
            hump = end_of_hump(source, begin, end)
    return 0


cdef Py_ssize_t end_of_hump(Text source, Py_ssize_t begin, Py_ssize_t end) except -1:
    """Return where the next camelCase hump begins: aB, ABc and 1Bc, but not the plural of URLs."""
    cdef uint16_t before
    cdef uint16_t after
    cdef Py_ssize_t i
    for i in range(begin + 1, end):
        if not class_of(read(source, i)) & UPPER:
            continue
        before = class_of(read(source, i - 1))
        if before & LOWER:
            return i
        if not before & (UPPER | DIGIT) or i + 1 == end:
            continue
        after = class_of(read(source, i + 1))
        if after & LOWER and not (i + 2 == end and read(source, i + 1) == c"s"):
            return i
    return end


cdef int add_stem(
    object text, Text source, Py_ssize_t begin, Py_ssize_t end, Terms terms
) except -1:
    """Add the stem of a word that is within the longest term."""
    cdef char[BUFFER] buffer
    cdef Py_ssize_t length
    if is_ascii(source, begin, end):
        length = fold_ascii(source, begin, end, buffer)
        return terms.add_ascii(buffer, stem(buffer, length))
    folded = PyUnicode_Substring(text, begin, end).casefold()
    if not PyUnicode_IS_ASCII(folded):
        return terms.add_text(folded)
    length = PyUnicode_GET_LENGTH(folded)
    memcpy(buffer, PyUnicode_DATA(folded), length)
    return terms.add_ascii(buffer, stem(buffer, length))


cdef int fill_ascii_classes() except -1:
    cdef Py_ssize_t i
    for i in range(128):
        ascii_classes[i] = classify(chr(i))
    return 0


fill_ascii_classes()
