"""The light English stemmer of the `text` kernel, on a folded ASCII word in a buffer.

The rules are those of `stem` in `lcm_fast/kernels/reference/text.py`, which has their table.
"""

from libc.string cimport memcmp


cdef inline Py_ssize_t stem(char* word, Py_ssize_t length) noexcept:
    """Stem a folded ASCII word in place (see the twin for the rules); return its new length."""
    cdef Py_ssize_t i
    if length < 4 or is_unstemmed(word, length):
        return length
    for i in range(length):
        if not c"a" <= word[i] <= c"z":
            return length
    return strip_verb_ending(word, strip_plural(word, length))


cdef inline bint is_unstemmed(const char* word, Py_ssize_t length) noexcept:
    """Whether the word ends like none that is stemmed, or is one of the exceptions."""
    cdef char last = word[length - 1]
    if last == c"d":
        return is_word(word, length, b"embed", 5)
    if last == c"g":
        return (
            is_word(word, length, b"anything", 8)
            or is_word(word, length, b"during", 6)
            or is_word(word, length, b"everything", 10)
            or is_word(word, length, b"nothing", 7)
            or is_word(word, length, b"something", 9)
        )
    if last == c"s":
        return (
            is_word(word, length, b"alias", 5)
            or is_word(word, length, b"canvas", 6)
            or is_word(word, length, b"news", 4)
        )
    return True


cdef inline bint is_word(
    const char* word, Py_ssize_t length, const char* other, Py_ssize_t size
) noexcept:
    return length == size and memcmp(word, other, size) == 0


cdef inline bint ends_with(
    const char* word, Py_ssize_t length, const char* suffix, Py_ssize_t size
) noexcept:
    return length >= size and memcmp(word + length - size, suffix, size) == 0


cdef inline Py_ssize_t strip_plural(char* word, Py_ssize_t length) noexcept:
    if word[length - 1] != c"s":
        return length
    if length > 4 and ends_with(word, length, b"ies", 3):
        word[length - 3] = c"y"
        return length - 2
    if takes_es(word, length):
        return length - 2
    if word[length - 2] in (c"s", c"u", c"i"):
        return length
    return length - 1


cdef inline bint takes_es(const char* word, Py_ssize_t length) noexcept:
    """Whether the plural was made with -es, not -s."""
    return (
        ends_with(word, length, b"sses", 4)
        or ends_with(word, length, b"shes", 4)
        or ends_with(word, length, b"xes", 3)
        or ends_with(word, length, b"zzes", 4)
        or ends_with(word, length, b"tches", 5)
        or ends_with(word, length, b"nches", 5)
        or ends_with(word, length, b"rches", 5)
        or ends_with(word, length, b"eaches", 6)
        or ends_with(word, length, b"oaches", 6)
    )


cdef inline Py_ssize_t strip_verb_ending(char* word, Py_ssize_t length) noexcept:
    cdef Py_ssize_t root
    if ends_with(word, length, b"ied", 3):
        if length <= 4:
            return length
        word[length - 3] = c"y"
        return length - 2
    if length > 4 and ends_with(word, length, b"ing", 3):
        root = length - 3
    elif (
        length > 3
        and ends_with(word, length, b"ed", 2)
        and not ends_with(word, length, b"eed", 3)
    ):
        root = length - 2
    else:
        return length
    if count_vowels(word, root) == 0:
        return length
    if root > 3 and word[root - 1] == word[root - 2] and is_doubled(word[root - 1]):
        return root - 1
    if lost_e(word, root):
        word[root] = c"e"
        return root + 1
    return root


cdef inline bint is_plain_vowel(char letter) noexcept:
    return letter in (c"a", c"e", c"i", c"o", c"u")


cdef inline bint is_vowel(const char* word, Py_ssize_t i) noexcept:
    return is_plain_vowel(word[i]) or (word[i] == c"y" and i > 0)


cdef inline Py_ssize_t count_vowels(const char* word, Py_ssize_t length) noexcept:
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t i
    for i in range(length):
        count += is_vowel(word, i)
    return count


cdef inline bint is_doubled(char letter) noexcept:
    return letter in (c"b", c"d", c"g", c"m", c"n", c"p", c"r", c"t")


cdef inline bint lost_e(const char* root, Py_ssize_t length) noexcept:
    """Whether a verb root of 2 or more letters seems to have lost a silent e before -ed or -ing."""
    cdef char last = root[length - 1]
    cdef char before = root[length - 2]
    if last in (c"u", c"v") or (last in (c"s", c"z") and before != last):
        return True
    if last == c"c":
        return not ends_with(root, length, b"ync", 3)
    if last == c"l" and before in (
        c"b", c"c", c"d", c"f", c"g", c"k", c"p", c"t", c"z"
    ):
        return True
    if ends_like_e_verb(root, length):
        return True
    if length > 3 and has_silent_e(before, last):
        return not is_plain_vowel(root[length - 3])
    return is_short(root, length)


cdef inline bint ends_like_e_verb(const char* root, Py_ssize_t length) noexcept:
    return (
        ends_with(root, length, b"ang", 3)
        or ends_with(root, length, b"dg", 2)
        or ends_with(root, length, b"rg", 2)
        or ends_with(root, length, b"cach", 4)
        or ends_with(root, length, b"creat", 5)
        or ends_with(root, length, b"iat", 3)
        or ends_with(root, length, b"uat", 3)
        or ends_with(root, length, b"uir", 3)
    )


cdef inline bint has_silent_e(char vowel, char last) noexcept:
    """Whether an e usually follows the two letters, where a consonant stands before them."""
    if vowel == c"a":
        return last in (c"d", c"g", c"m", c"p", c"r", c"t")
    if vowel == c"i":
        return last in (c"d", c"l", c"n", c"r")
    if vowel == c"o":
        return last in (c"d", c"k")
    if vowel == c"u":
        return last in (c"d", c"l", c"m", c"r", c"t")
    return False


cdef inline bint is_short(const char* root, Py_ssize_t length) noexcept:
    """Whether the root's only vowel is next to last, as in stor(ed) or mak(ing)."""
    if length < 3 or root[length - 1] in (c"w", c"x", c"y"):
        return False
    return is_vowel(root, length - 2) and count_vowels(root, length) == 1
