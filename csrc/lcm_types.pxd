"""What the kernels share: the checks on arrays and counts, and the search for an item's opener.

The twins make the same checks, in the same order and with the same texts, in
`lcm_fast/kernels/reference/checks.py`. Everything here is inline: kernels do not cimport one
another.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t

cdef enum:
    MESSAGE = 0
    # From about this many items on, a pass takes longer than handing over the interpreter lock.
    NOGIL_ITEMS = 4096


cdef inline int check_array(str name, object array, str dtype, Py_ssize_t length) except -1:
    """Reject what is not a C-contiguous vector of `dtype` with `length` items (any when < 0)."""
    import numpy

    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"{name} must be a numpy array, not {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"{name} must be an array of {dtype}, not {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must have 1 dimension, not {array.ndim}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous")
    if length >= 0 and len(array) != length:
        raise ValueError(f"{name} has {len(array)} items, expected {length}")
    return 0


cdef inline int check_ordinals(const int64_t[::1] ordinals) except -1:
    """Reject ordinals that do not increase from item to item."""
    cdef Py_ssize_t i
    cdef bint falls = False
    for i in range(1, ordinals.shape[0]):
        falls |= ordinals[i] <= ordinals[i - 1]
    if not falls:
        return 0
    for i in range(1, ordinals.shape[0]):
        if ordinals[i] <= ordinals[i - 1]:
            raise ValueError(
                f"ordinals[{i}] is {ordinals[i]}, not above {ordinals[i - 1]} before it"
            )
    return 0


cdef inline int check_kinds(const uint8_t[::1] kinds) except -1:
    """Reject kinds other than 0 (message) and 1 (summary)."""
    cdef Py_ssize_t i
    cdef uint8_t bits = 0
    for i in range(kinds.shape[0]):
        bits |= kinds[i]
    if bits <= 1:
        return 0
    for i in range(kinds.shape[0]):
        if kinds[i] > 1:
            raise ValueError(f"kinds[{i}] is {kinds[i]}, expected 0 (message) or 1 (summary)")
    return 0


cdef inline int check_tokens(const int64_t[::1] tokens) except -1:
    """Reject negative token counts, and counts whose sum a 64-bit integer cannot hold."""
    cdef Py_ssize_t i
    cdef int64_t bits = 0
    cdef int64_t total = 0
    if tokens.shape[0] == 0:
        return 0
    for i in range(tokens.shape[0]):
        bits |= tokens[i]
    # The bits of all counts together are at least the largest count.
    if 0 <= bits <= INT64_MAX // tokens.shape[0]:
        return 0
    for i in range(tokens.shape[0]):
        if tokens[i] < 0:
            raise ValueError(f"tokens[{i}] is {tokens[i]}, expected 0 or more")
        if tokens[i] > INT64_MAX - total:
            raise ValueError(f"tokens add up to more than {INT64_MAX} at tokens[{i}]")
        total += tokens[i]
    return 0


cdef inline int check_indexes(str name, const int64_t[::1] indexes, Py_ssize_t length) except -1:
    """Reject indexes outside 0 to `length` - 1."""
    cdef Py_ssize_t i
    for i in range(indexes.shape[0]):
        if not 0 <= indexes[i] < length:
            raise ValueError(f"{name}[{i}] is {indexes[i]}, expected 0 to {length - 1}")
    return 0


cdef inline int64_t to_count(str name, object value) except? -1:
    """Return `value` as an int that fits 64 bits; any sign."""
    import operator

    count = operator.index(value)
    if not INT64_MIN <= count <= INT64_MAX:
        raise ValueError(f"{name} is {count}, outside the range of a 64-bit count")
    return count


cdef inline int64_t to_limit(str name, object value) except -1:
    """Return `value` as a count of 0 or more."""
    cdef int64_t count = to_count(name, value)
    if count < 0:
        raise ValueError(f"{name} is {count}, expected 0 or more")
    return count


cdef inline Py_ssize_t to_position(str name, object value, Py_ssize_t length) except -1:
    """Return `value` as an index between items: 0 to `length`, both included."""
    cdef int64_t position = to_count(name, value)
    if not 0 <= position <= length:
        raise ValueError(f"{name} is {position}, expected 0 to {length}")
    return position


cdef inline Py_ssize_t find_opener(
    const int64_t* ordinals, int64_t opener, Py_ssize_t first, Py_ssize_t item
) noexcept nogil:
    """Return the index in [first, item) whose ordinal is `opener`, or `item` when there is none.

    Results follow their call closely, so the search doubles its steps back from the item.
    """
    cdef Py_ssize_t low = item
    cdef Py_ssize_t high = item
    cdef Py_ssize_t middle
    cdef Py_ssize_t step = 1
    if opener >= ordinals[item]:
        return item
    while low > first and ordinals[low] > opener:
        high = low
        low = low - step if low - first > step else first
        step *= 2
    while low < high:
        middle = low + (high - low) // 2
        if ordinals[middle] < opener:
            low = middle + 1
        else:
            high = middle
    return low if low < item and ordinals[low] == opener else item
