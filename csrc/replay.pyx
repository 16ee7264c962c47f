"""Kernel `replay`: what of a batch is stored already, and what repeats too often in a second.

Works on 64-bit digests in place of messages, and knows nothing of rows or conversations. Alignment
serves the recognition of resent history (spec: storage 2.11; decision 11), floods the replay guard
(spec: storage 2.10; decision 12). Equal values are brought together by sorting, not by hashing: no
choice of messages makes it slow.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

import numpy as np

from lcm_types cimport NOGIL_ITEMS, check_array, to_count

cdef enum:
    USER = 1
    TOOL = 3
    EMPTY = 0

# Values are sorted digit by digit.
cdef enum:
    DIGITS = 8
    DIGIT_BITS = 8
    DIGIT_VALUES = 256

cdef struct Entry:
    uint64_t value
    int64_t index

cdef struct Sides:
    const int64_t* stored
    const int64_t* batch
    Py_ssize_t stored_length
    Py_ssize_t batch_length

# What neither side has matched yet between two matches, ends exclusive.
cdef struct Gap:
    Py_ssize_t stored_begin
    Py_ssize_t stored_end
    Py_ssize_t batch_begin
    Py_ssize_t batch_end

cdef struct Candidates:
    const uint8_t* roles
    const int64_t* seconds
    const int64_t* contents
    const uint8_t* replayed
    const int64_t* persisted
    Py_ssize_t length

cdef object ENTRY = np.dtype([("value", np.uint64), ("index", np.int64)])


def align(stored, batch):
    """Return, for each message of a batch, which stored message it is.

    Anchors are values that occur once in `stored` and once in `batch`; the longest chain of them
    that is in order on both sides is kept. In each gap between two anchors matching goes on over
    equal neighbours, forwards from the older anchor, then backwards from the newer one; before
    the first anchor it goes backwards only, after the last one forwards only. Where there is no
    anchor at all, the longest end of `stored` that the batch begins with is matched.

    Parameters
    ----------
    stored : numpy.ndarray
        int64, shape (n,): digests of the stored messages, oldest first.
    batch : numpy.ndarray
        int64, shape (m,): digests of the messages of the batch, in order.

    Returns
    -------
    numpy.ndarray
        int64, shape (m,): an index into `stored`, or -1. Matches are of equal values, and their
        indices strictly increase.

    Raises
    ------
    TypeError
        If an array is not a numpy array of int64.
    ValueError
        If an array is not one-dimensional and C-contiguous.

    Notes
    -----
    O(n + m log m) time at worst, linear where the anchors are in order; 32 bytes of scratch per
    digest, 16 more per message of the batch. Runs without the interpreter lock from 4096 digests
    on. Source: patience sorting for the chain, of several longest ones that which its tails lead
    back to; Knuth, Morris and Pratt (1977) for the longest end.

    Examples
    --------
    >>> import numpy as np
    >>> align(np.array([5, 6, 7, 7]), np.array([6, 7, 8])).tolist()
    [1, 2, -1]
    """
    check_array("stored", stored, "int64", -1)
    cdef const int64_t[::1] stored_view = stored
    check_array("batch", batch, "int64", -1)
    cdef const int64_t[::1] batch_view = batch
    cdef Sides sides
    sides.stored_length = stored_view.shape[0]
    sides.batch_length = batch_view.shape[0]
    matches = np.full(sides.batch_length, -1, dtype=np.int64)
    if sides.stored_length == 0 or sides.batch_length == 0:
        return matches
    sides.stored = &stored_view[0]
    sides.batch = &batch_view[0]
    cdef Py_ssize_t length = sides.stored_length + sides.batch_length
    cdef int64_t[::1] match_view = matches
    cdef Entry[::1] entries = np.empty(2 * length, dtype=ENTRY)
    cdef int64_t[::1] links = np.empty(2 * sides.batch_length, dtype=np.int64)
    if length < NOGIL_ITEMS:
        match_batch(sides, &entries[0], &links[0], &match_view[0])
        return matches
    with nogil:
        match_batch(sides, &entries[0], &links[0], &match_view[0])
    return matches


cdef void match_batch(
    Sides sides, Entry* entries, int64_t* links, int64_t* matches
) noexcept nogil:
    """Fill `matches`, all -1; there is room for two entries per digest, two links per message."""
    if match_anchors(sides, entries, matches):
        keep_longest_chain(matches, sides.batch_length, links, links + sides.batch_length)
        fill_gaps(sides, matches)
    else:
        match_suffix(sides, links, matches)


cdef bint match_anchors(Sides sides, Entry* entries, int64_t* matches) noexcept nogil:
    """Match every value that occurs once on both sides, and return whether there is one."""
    cdef Py_ssize_t length = sides.stored_length + sides.batch_length
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t end
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(sides.stored_length):
        entries[i].value = <uint64_t>sides.stored[i]
        entries[i].index = i
    for i in range(sides.batch_length):
        entries[sides.stored_length + i].value = <uint64_t>sides.batch[i]
        entries[sides.stored_length + i].index = sides.stored_length + i
    entries = sort_entries(entries, entries + length, length)
    while begin < length:
        end = begin + 1
        while end < length and entries[end].value == entries[begin].value:
            end += 1
        if (
            end - begin == 2
            and entries[begin].index < sides.stored_length <= entries[begin + 1].index
        ):
            matches[entries[begin + 1].index - sides.stored_length] = entries[begin].index
            found = True
        begin = end
    return found


cdef void keep_longest_chain(
    int64_t* matches, Py_ssize_t length, int64_t* tails, int64_t* previous
) noexcept nogil:
    """Undo the matches outside the longest increasing chain.

    `tails[k]` is the batch index at which a chain of k + 1 matches can end so far, the one matched
    to the lowest stored index; `previous` links a match to the one before it in its chain.
    """
    cdef Py_ssize_t longest = 0
    cdef Py_ssize_t place
    cdef Py_ssize_t i
    cdef int64_t kept
    for i in range(length):
        if matches[i] < 0:
            continue
        place = find_place(matches, tails, longest, matches[i])
        previous[i] = tails[place - 1] if place > 0 else -1
        tails[place] = i
        if place == longest:
            longest += 1
    kept = tails[longest - 1]
    i = length
    while i > 0:
        i -= 1
        if i == kept:
            kept = previous[i]
        else:
            matches[i] = -1


cdef Py_ssize_t find_place(
    const int64_t* matches, const int64_t* tails, Py_ssize_t longest, int64_t index
) noexcept nogil:
    """Return the first k whose tail is not matched below `index`, `longest` when there is none."""
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = longest
    cdef Py_ssize_t middle
    # Batches mostly come in order.
    if longest > 0 and matches[tails[longest - 1]] < index:
        return longest
    while low < high:
        middle = low + (high - low) // 2
        if matches[tails[middle]] < index:
            low = middle + 1
        else:
            high = middle
    return low


cdef void fill_gaps(Sides sides, int64_t* matches) noexcept nogil:
    cdef Gap gap
    cdef Py_ssize_t i
    gap.stored_begin = gap.batch_begin = 0
    for i in range(sides.batch_length):
        if matches[i] < 0:
            continue
        gap.stored_end = matches[i]
        gap.batch_end = i
        # Before the first anchor there is no match to go on from.
        if gap.batch_begin > 0:
            extend_forwards(sides, &gap, matches)
        extend_backwards(sides, &gap, matches)
        gap.stored_begin = matches[i] + 1
        gap.batch_begin = i + 1
    gap.stored_end = sides.stored_length
    gap.batch_end = sides.batch_length
    extend_forwards(sides, &gap, matches)


cdef void extend_forwards(Sides sides, Gap* gap, int64_t* matches) noexcept nogil:
    while (
        gap.stored_begin < gap.stored_end
        and gap.batch_begin < gap.batch_end
        and sides.stored[gap.stored_begin] == sides.batch[gap.batch_begin]
    ):
        matches[gap.batch_begin] = gap.stored_begin
        gap.stored_begin += 1
        gap.batch_begin += 1


cdef void extend_backwards(Sides sides, Gap* gap, int64_t* matches) noexcept nogil:
    while (
        gap.stored_begin < gap.stored_end
        and gap.batch_begin < gap.batch_end
        and sides.stored[gap.stored_end - 1] == sides.batch[gap.batch_end - 1]
    ):
        gap.stored_end -= 1
        gap.batch_end -= 1
        matches[gap.batch_end] = gap.stored_end


cdef void match_suffix(Sides sides, int64_t* failures, int64_t* matches) noexcept nogil:
    """Match the longest end of stored that the batch begins with (Knuth, Morris and Pratt).

    `failures[i]` is the length of the longest proper prefix of the batch that ends at i.
    """
    cdef Py_ssize_t limit = min(sides.stored_length, sides.batch_length)
    cdef Py_ssize_t matched = 0
    cdef Py_ssize_t i
    failures[0] = 0
    for i in range(1, limit):
        matched = extend_prefix(sides.batch, failures, matched, sides.batch[i])
        failures[i] = matched
    matched = 0
    for i in range(sides.stored_length - limit, sides.stored_length):
        matched = extend_prefix(sides.batch, failures, matched, sides.stored[i])
    for i in range(matched):
        matches[i] = sides.stored_length - matched + i


cdef inline Py_ssize_t extend_prefix(
    const int64_t* batch, const int64_t* failures, Py_ssize_t matched, int64_t value
) noexcept nogil:
    """Return how long a prefix ends at `value`, when one of `matched` ended right before it."""
    while matched > 0 and batch[matched] != value:
        matched = failures[matched - 1]
    return matched + (batch[matched] == value)


def find_floods(
    roles, seconds, contents, replayed, persisted, external_threshold, internal_threshold
):
    """Find the groups of a batch that repeat what is stored, too often in one second.

    A group is what users say in a second, whatever it is, or what another role says in a second
    in the same words. Its total are its candidates that are replayed, and those stored already.
    Candidates that are empty or not replayed are in no group.

    Parameters
    ----------
    roles : numpy.ndarray
        uint8, shape (m,): 0 system, 1 user, 2 assistant, 3 tool.
    seconds : numpy.ndarray
        int64, shape (m,): the second a candidate was created in.
    contents : numpy.ndarray
        int64, shape (m,): digests of the contents; 0 for an empty one.
    replayed : numpy.ndarray
        uint8, shape (m,): any value but 0 where an identical message from an earlier second is
        stored.
    persisted : numpy.ndarray
        int64, shape (m,), each 0 or more: how many replayed messages of a candidate's group are
        stored. That of the group's first candidate counts.
    external_threshold, internal_threshold : int
        Total from which users, and all other roles, make a flood; 1 or more.

    Returns
    -------
    list of tuple of int
        (index of the first candidate, total) of each flood, in order of the former.

    Raises
    ------
    TypeError
        If an array is not a numpy array of its dtype, or a threshold is not an integer.
    ValueError
        If an array is not one-dimensional, C-contiguous and of the length of `roles`, if a role is
        unknown or a count negative, or if a threshold is below 1 or exceeds 64 bits.

    Notes
    -----
    Linear in m; 32 bytes of scratch per candidate. Runs without the interpreter lock from 4096
    candidates on.

    Examples
    --------
    >>> import numpy as np
    >>> users, yes = np.ones(3, np.uint8), np.ones(3, np.uint8)
    >>> none = np.zeros(3, np.int64)
    >>> find_floods(users, np.array([60, 60, 60]), np.array([4, 5, 6]), yes, none, 3, 32)
    [(0, 3)]
    """
    check_array("roles", roles, "uint8", -1)
    cdef const uint8_t[::1] role_view = roles
    cdef Py_ssize_t length = role_view.shape[0]
    check_roles(role_view)
    check_array("seconds", seconds, "int64", length)
    cdef const int64_t[::1] second_view = seconds
    check_array("contents", contents, "int64", length)
    cdef const int64_t[::1] content_view = contents
    check_array("replayed", replayed, "uint8", length)
    cdef const uint8_t[::1] replayed_view = replayed
    check_array("persisted", persisted, "int64", length)
    cdef const int64_t[::1] persisted_view = persisted
    check_persisted(persisted_view)
    cdef int64_t external = to_threshold("external_threshold", external_threshold)
    cdef int64_t internal = to_threshold("internal_threshold", internal_threshold)
    if length == 0:
        return []
    cdef Candidates candidates
    candidates.roles = &role_view[0]
    candidates.seconds = &second_view[0]
    candidates.contents = &content_view[0]
    candidates.replayed = &replayed_view[0]
    candidates.persisted = &persisted_view[0]
    candidates.length = length
    cdef Entry[::1] entries = np.empty(2 * length, dtype=ENTRY)
    cdef int64_t[::1] repeats = np.zeros(length, dtype=np.int64)
    if length < NOGIL_ITEMS:
        count_floods(candidates, external, internal, &entries[0], &repeats[0])
    else:
        with nogil:
            count_floods(candidates, external, internal, &entries[0], &repeats[0])
    # Python's integers hold every total, whatever is persisted.
    return [(i, persisted[i].item() + repeats[i]) for i in range(length) if repeats[i]]


cdef int check_roles(const uint8_t[::1] roles) except -1:
    cdef Py_ssize_t i
    for i in range(roles.shape[0]):
        if roles[i] > TOOL:
            raise ValueError(f"roles[{i}] is {roles[i]}, expected 0 (system) to 3 (tool)")
    return 0


cdef int check_persisted(const int64_t[::1] persisted) except -1:
    cdef Py_ssize_t i
    for i in range(persisted.shape[0]):
        if persisted[i] < 0:
            raise ValueError(f"persisted[{i}] is {persisted[i]}, expected 0 or more")
    return 0


cdef int64_t to_threshold(str name, object value) except -1:
    cdef int64_t threshold = to_count(name, value)
    if threshold < 1:
        raise ValueError(f"{name} is {threshold}, expected 1 or more")
    return threshold


cdef void count_floods(
    Candidates candidates, int64_t external, int64_t internal, Entry* entries, int64_t* repeats
) noexcept nogil:
    """Set `repeats`, all 0, to the size of each flooding group, at the first of its candidates."""
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t end
    cdef Py_ssize_t length = 0
    cdef Py_ssize_t i
    cdef int64_t first
    cdef int64_t threshold
    for i in range(candidates.length):
        if candidates.replayed[i] and candidates.contents[i] != EMPTY:
            entries[length].index = i
            length += 1
    entries = sort_by_group(candidates, entries, entries + candidates.length, length)
    while begin < length:
        first = entries[begin].index
        end = begin + 1
        while end < length and is_of_group(candidates, first, entries[end].index):
            end += 1
        threshold = external if candidates.roles[first] == USER else internal
        if end - begin >= threshold - candidates.persisted[first]:
            repeats[first] = end - begin
        begin = end


cdef Entry* sort_by_group(
    Candidates candidates, Entry* entries, Entry* spare, Py_ssize_t length
) noexcept nogil:
    """Bring the members of each group together, in their order; return where they are then."""
    cdef Entry* by_content
    cdef Entry* by_second
    cdef Py_ssize_t i
    for i in range(length):
        entries[i].value = content_of_group(candidates, entries[i].index)
    by_content = sort_entries(entries, spare, length)
    for i in range(length):
        by_content[i].value = <uint64_t>candidates.seconds[by_content[i].index]
    by_second = sort_entries(by_content, spare if by_content == entries else entries, length)
    for i in range(length):
        by_second[i].value = candidates.roles[by_second[i].index]
    return sort_entries(by_second, spare if by_second == entries else entries, length)


cdef inline uint64_t content_of_group(Candidates candidates, int64_t candidate) noexcept nogil:
    if candidates.roles[candidate] == USER:
        return EMPTY
    return <uint64_t>candidates.contents[candidate]


cdef inline bint is_of_group(
    Candidates candidates, int64_t first, int64_t candidate
) noexcept nogil:
    return (
        candidates.roles[candidate] == candidates.roles[first]
        and candidates.seconds[candidate] == candidates.seconds[first]
        and content_of_group(candidates, candidate) == content_of_group(candidates, first)
    )


cdef Entry* sort_entries(Entry* entries, Entry* spare, Py_ssize_t length) noexcept nogil:
    """Sort by value, keeping the order of equals; return which of the two buffers holds the result.

    A radix sort from the lowest digit up; digits that all values share are passed over.
    """
    cdef Py_ssize_t counts[DIGITS][DIGIT_VALUES]
    cdef Entry* source = entries
    cdef Entry* target = spare
    cdef Py_ssize_t i
    cdef int position
    if length < 2:
        return entries
    memset(counts, 0, sizeof(counts))
    for i in range(length):
        for position in range(DIGITS):
            counts[position][digit_of(entries[i].value, position)] += 1
    for position in range(DIGITS):
        if counts[position][digit_of(source[0].value, position)] < length:
            scatter(source, target, length, position, counts[position])
            source, target = target, source
    return source


cdef inline void scatter(
    const Entry* source, Entry* target, Py_ssize_t length, int position, Py_ssize_t* counts
) noexcept nogil:
    """Copy the entries in order of one digit of their values; `counts` become their places."""
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t count
    cdef Py_ssize_t i
    cdef int digit
    for digit in range(DIGIT_VALUES):
        count = counts[digit]
        counts[digit] = place
        place += count
    for i in range(length):
        digit = digit_of(source[i].value, position)
        target[counts[digit]] = source[i]
        counts[digit] += 1


cdef inline int digit_of(uint64_t value, int position) noexcept nogil:
    return (value >> (DIGIT_BITS * position)) & (DIGIT_VALUES - 1)
