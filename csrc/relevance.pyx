"""Kernel `relevance`: how much each of many items has to do with a prompt.

Items are hashed terms and their counts, as the `text` kernel makes them, one item's after the
other's. Weights follow the items that are asked about: a term that few of them have counts most.
Source: design, benchmarks section 5; scikit-learn's smooth inverse document frequency; BM25
(Robertson and Zaragoza, 2009) for the saturation.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

import numpy as np

from lcm_types cimport check_array

cdef enum:
    # A term that no bit of the filter stands for is not the prompt's.
    FILTER_BITS = 65536
    FIRST_MATCHES = 1024

# One term of the prompt, found in one item; `place` is the item's in the result.
cdef struct Match:
    Py_ssize_t place
    Py_ssize_t term
    uint32_t count

cdef struct Prompt:
    const uint32_t* terms
    Py_ssize_t length
    uint8_t* filter
    Py_ssize_t* slots
    Py_ssize_t mask
    int64_t* items
    double* weights

cdef struct Matches:
    Match* found
    Py_ssize_t length
    Py_ssize_t capacity


def score_items(
    prompt_terms, prompt_counts, offsets, terms, counts, lengths, rows, saturation, length_share
):
    """Score items by the terms they share with a prompt.

    The score is the sum, over the prompt's terms, of how often the prompt has it, times its weight
    squared, times how often the item has it, saturated. The weight is ``ln((1 + n) / (1 + df)) +
    1``, where df of the n items have the term. Without saturation this is the dot product of the
    vectors that scikit-learn's ``TfidfVectorizer(norm=None)`` makes.

    Parameters
    ----------
    prompt_terms, prompt_counts : numpy.ndarray
        uint32, shape (q,): the prompt's distinct terms and how often it has each.
    offsets, terms, counts : numpy.ndarray
        int64, shape (r + 1,), and uint32, shape (m,): the terms of r items, as `count_terms`
        returns them.
    lengths : numpy.ndarray
        int64, shape (r,): how many terms each has in all, 0 or more.
    rows : numpy.ndarray
        int64, shape (n,): the items to score, as indexes from 0 to r - 1.
    saturation : float
        Above 0. The more an item repeats a term, the less each repetition adds: k times count is
        worth at most ``saturation + 1`` times one. ``inf``: each adds the same.
    length_share : float
        0 to 1: how far counts are set off against the item's length.

    Returns
    -------
    numpy.ndarray
        float64, shape (n,): 0 for an item without any term of the prompt.

    Raises
    ------
    TypeError
        If an array is not a numpy array of its dtype.
    ValueError
        If an array is not one-dimensional, C-contiguous and of its length, a row is outside 0 to
        r - 1, offsets do not ascend within the terms, a term of the prompt is repeated, or a
        number is out of range.

    Notes
    -----
    Linear in the terms of the rows, one probe of a filter each; works without the interpreter
    lock. Takes 24 bytes for each shared term.

    Examples
    --------
    >>> import numpy as np
    >>> from lcm_fast.kernels import count_terms
    >>> offsets, terms, counts = count_terms(["tea with milk", "coffee with milk", "water"])
    >>> _, prompt, once = count_terms(["tea with sugar"])
    >>> lengths = np.array([3, 3, 1])
    >>> score_items(
    ...     prompt, once, offsets, terms, counts, lengths, np.arange(3), 1.2, 0.0
    ... ).round(2).tolist()
    [4.53, 1.66, 0.0]
    """
    check_array("prompt_terms", prompt_terms, "uint32", -1)
    cdef const uint32_t[::1] prompt_view = prompt_terms
    check_array("prompt_counts", prompt_counts, "uint32", prompt_view.shape[0])
    cdef const uint32_t[::1] times_view = prompt_counts
    check_array("offsets", offsets, "int64", -1)
    cdef const int64_t[::1] offset_view = offsets
    check_array("terms", terms, "uint32", -1)
    cdef const uint32_t[::1] term_view = terms
    check_array("counts", counts, "uint32", term_view.shape[0])
    cdef const uint32_t[::1] count_view = counts
    check_array("lengths", lengths, "int64", max(0, offset_view.shape[0] - 1))
    cdef const int64_t[::1] length_view = lengths
    check_array("rows", rows, "int64", -1)
    cdef const int64_t[::1] row_view = rows
    cdef double limit = saturation
    cdef double share = length_share
    if not limit > 0:
        raise ValueError(f"saturation is {limit}, expected more than 0")
    if not 0 <= share <= 1:
        raise ValueError(f"length_share is {share}, expected 0 to 1")
    check_rows(row_view, offset_view, length_view, term_view.shape[0])
    scores = np.zeros(row_view.shape[0], dtype=np.float64)
    cdef double[::1] score_view = scores
    if prompt_view.shape[0] == 0 or row_view.shape[0] == 0 or term_view.shape[0] == 0:
        check_distinct(prompt_terms)
        return scores
    cdef double average = np.mean(lengths[rows])
    cdef Prompt prompt
    cdef Matches matches
    cdef bint complete
    matches.length = 0
    matches.capacity = FIRST_MATCHES
    matches.found = <Match*> malloc(FIRST_MATCHES * sizeof(Match))
    make_prompt(prompt_view, &prompt)
    try:
        if matches.found == NULL or prompt.slots == NULL:
            raise MemoryError()
        check_distinct(prompt_terms)
        with nogil:
            complete = find_matches(
                &prompt, &row_view[0], row_view.shape[0], &offset_view[0], &term_view[0],
                &count_view[0], &matches,
            )
            if complete:
                add_up(
                    &prompt, &matches, &times_view[0], &row_view[0], row_view.shape[0],
                    &length_view[0], average, limit, share, &score_view[0],
                )
        if not complete:
            raise MemoryError()
    finally:
        free(prompt.filter)
        free(prompt.slots)
        free(prompt.items)
        free(prompt.weights)
        free(matches.found)
    return scores


cdef int check_rows(
    const int64_t[::1] rows,
    const int64_t[::1] offsets,
    const int64_t[::1] lengths,
    Py_ssize_t term_count,
) except -1:
    cdef Py_ssize_t i
    cdef int64_t row
    for i in range(rows.shape[0]):
        row = rows[i]
        if not 0 <= row < offsets.shape[0] - 1:
            raise ValueError(f"rows[{i}] is {row}, expected 0 to {offsets.shape[0] - 2}")
        if not 0 <= offsets[row] <= offsets[row + 1] <= term_count:
            raise ValueError(
                f"offsets[{row}] and the next are {offsets[row]} and {offsets[row + 1]},"
                f" expected to ascend from 0 to {term_count}"
            )
        if lengths[row] < 0:
            raise ValueError(f"lengths[{row}] is {lengths[row]}, expected 0 or more")
    return 0


cdef int check_distinct(object terms) except -1:
    if len(set(terms.tolist())) < len(terms):
        raise ValueError("prompt_terms repeats a term")
    return 0


cdef void make_prompt(const uint32_t[::1] terms, Prompt* prompt) noexcept:
    """Fill the filter and the table of slots; `slots` is NULL when there is no memory for them."""
    cdef Py_ssize_t size = 64
    cdef Py_ssize_t i
    cdef Py_ssize_t at
    prompt.terms = &terms[0]
    prompt.length = terms.shape[0]
    while size < 4 * prompt.length:
        size *= 2
    prompt.mask = size - 1
    prompt.filter = <uint8_t*> calloc(FILTER_BITS // 8, 1)
    prompt.items = <int64_t*> calloc(prompt.length, sizeof(int64_t))
    prompt.weights = <double*> calloc(prompt.length, sizeof(double))
    prompt.slots = NULL
    if prompt.filter == NULL or prompt.items == NULL or prompt.weights == NULL:
        return
    prompt.slots = <Py_ssize_t*> malloc(size * sizeof(Py_ssize_t))
    if prompt.slots == NULL:
        return
    memset(prompt.slots, 0xFF, size * sizeof(Py_ssize_t))
    for i in range(prompt.length):
        prompt.filter[terms[i] % FILTER_BITS // 8] |= 1 << (terms[i] % 8)
        at = terms[i] & prompt.mask
        while prompt.slots[at] >= 0:
            at = (at + 1) & prompt.mask
        prompt.slots[at] = i


cdef bint find_matches(
    Prompt* prompt,
    const int64_t* rows,
    Py_ssize_t row_count,
    const int64_t* offsets,
    const uint32_t* terms,
    const uint32_t* counts,
    Matches* matches,
) noexcept nogil:
    """Note where the prompt's terms occur, and in how many items each; False: no memory left."""
    cdef Py_ssize_t place
    cdef Py_ssize_t term
    cdef int64_t i
    cdef uint32_t value
    for place in range(row_count):
        for i in range(offsets[rows[place]], offsets[rows[place] + 1]):
            value = terms[i]
            if not prompt.filter[value % FILTER_BITS // 8] & (1 << (value % 8)):
                continue
            term = place_of(prompt, value)
            if term < 0:
                continue
            if matches.length == matches.capacity and not grow(matches):
                return False
            matches.found[matches.length].place = place
            matches.found[matches.length].term = term
            matches.found[matches.length].count = counts[i]
            matches.length += 1
            prompt.items[term] += 1
    return True


cdef inline Py_ssize_t place_of(Prompt* prompt, uint32_t value) noexcept nogil:
    """Return which term of the prompt a value is, -1 when it is none."""
    cdef Py_ssize_t at = value & prompt.mask
    while prompt.slots[at] >= 0:
        if prompt.terms[prompt.slots[at]] == value:
            return prompt.slots[at]
        at = (at + 1) & prompt.mask
    return -1


cdef bint grow(Matches* matches) noexcept nogil:
    cdef Match* larger = <Match*> realloc(
        matches.found, 2 * matches.capacity * sizeof(Match)
    )
    if larger == NULL:
        return False
    matches.found = larger
    matches.capacity *= 2
    return True


cdef void add_up(
    Prompt* prompt,
    Matches* matches,
    const uint32_t* times,
    const int64_t* rows,
    Py_ssize_t row_count,
    const int64_t* lengths,
    double average,
    double saturation,
    double length_share,
    double* scores,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef Match match
    cdef double weight
    cdef double count
    cdef double relative
    for i in range(prompt.length):
        weight = log((1.0 + row_count) / (1.0 + prompt.items[i])) + 1.0
        prompt.weights[i] = times[i] * weight * weight
    for i in range(matches.length):
        match = matches.found[i]
        count = match.count
        if saturation < INFINITY:
            relative = lengths[rows[match.place]] / average if average > 0 else 1.0
            count = count * (saturation + 1.0) / (
                count + saturation * (1.0 - length_share + length_share * relative)
            )
        scores[match.place] += prompt.weights[match.term] * count
