"""Kernel `frontier`: where the fresh tail starts, and what fits a token budget beside it.

A frontier is parallel arrays, oldest item first: strictly increasing ordinals, kinds (0 message, 1
summary), openers (the ordinal of the item that opened the tool exchange an item belongs to; its
own elsewhere) and token counts. An index is a valid boundary when no item at or after it has its
opener before it. An opener counts only where it is an earlier item of the array; where kinds are
known it must be a message, since a summary takes the ordinal of what it replaced and opens
nothing. Source: decisions 1 and 2.
"""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from lcm_types cimport (
    MESSAGE,
    NOGIL_ITEMS,
    check_array,
    check_indexes,
    check_kinds,
    check_ordinals,
    check_tokens,
    find_opener,
    to_count,
    to_limit,
    to_position,
)

cdef enum:
    PINNED = 1
    IN_TAIL = 2
    CHOSEN = 4
    SKIPPED = 8
    SELECTED = 7


def select_fresh_tail(kinds, ordinals, openers, tokens, count, max_tokens=-1):
    """Return the index at which the fresh tail starts.

    The walk goes from the newest item back over units, the segments between valid boundaries. The
    unit of the newest message is always in the tail; a further one is while the tail holds fewer
    than `count` messages and stays within `max_tokens`. Summaries inside the tail consume no
    count; the tail starts with a message.

    Parameters
    ----------
    kinds : numpy.ndarray
        uint8, shape (n,): 0 message, 1 summary.
    ordinals, openers : numpy.ndarray
        int64, shape (n,); ordinals strictly increasing.
    tokens : numpy.ndarray
        int64, shape (n,), each 0 or more.
    count : int
        Messages to protect; 0 or below protects none.
    max_tokens : int
        Tokens the whole tail may take beyond the newest unit; below 0 there is no cap.

    Returns
    -------
    int
        0 to n; n when nothing is protected.

    Raises
    ------
    TypeError
        If an array is not a numpy array of its dtype, or a count is not an integer.
    ValueError
        If an array is not one-dimensional, C-contiguous and of the length of `ordinals`, if
        ordinals do not increase, a kind is unknown, a token count is negative, or a sum or count
        exceeds 64 bits.

    Notes
    -----
    Linear in n for the checks; the walk itself stops at the tail's start. Runs without the
    interpreter lock from 4096 items on.

    Examples
    --------
    >>> import numpy as np
    >>> ordinals = np.arange(4)
    >>> openers = np.array([0, 1, 1, 3])
    >>> select_fresh_tail(np.zeros(4, np.uint8), ordinals, openers, np.full(4, 10), 2)
    1
    """
    check_array("ordinals", ordinals, "int64", -1)
    cdef const int64_t[::1] ordinal_view = ordinals
    cdef Py_ssize_t length = ordinal_view.shape[0]
    check_ordinals(ordinal_view)
    check_array("kinds", kinds, "uint8", length)
    cdef const uint8_t[::1] kind_view = kinds
    check_kinds(kind_view)
    check_array("openers", openers, "int64", length)
    cdef const int64_t[::1] opener_view = openers
    check_array("tokens", tokens, "int64", length)
    cdef const int64_t[::1] token_view = tokens
    check_tokens(token_view)
    cdef int64_t message_count = to_count("count", count)
    cdef int64_t token_cap = to_count("max_tokens", max_tokens)
    cdef Py_ssize_t start
    if length == 0 or message_count <= 0:
        return length
    if length < NOGIL_ITEMS:
        return walk_tail(
            &kind_view[0], &ordinal_view[0], &opener_view[0], &token_view[0],
            length, message_count, token_cap,
        )
    with nogil:
        start = walk_tail(
            &kind_view[0], &ordinal_view[0], &opener_view[0], &token_view[0],
            length, message_count, token_cap,
        )
    return start


cdef Py_ssize_t walk_tail(
    const uint8_t* kinds,
    const int64_t* ordinals,
    const int64_t* openers,
    const int64_t* tokens,
    Py_ssize_t length,
    int64_t count,
    int64_t max_tokens,
) noexcept nogil:
    cdef Py_ssize_t start = length
    cdef Py_ssize_t lowest = length
    cdef Py_ssize_t i = length
    cdef Py_ssize_t opener
    cdef int64_t messages = 0
    cdef int64_t unit_messages = 0
    cdef int64_t total = 0
    while i > 0 and messages < count:
        i -= 1
        opener = find_opener(ordinals, openers[i], 0, i)
        if kinds[opener] == MESSAGE and opener < lowest:
            lowest = opener
        elif i < lowest:
            lowest = i
        unit_messages += kinds[i] == MESSAGE
        total += tokens[i]
        if lowest < i or unit_messages == 0:
            continue
        if messages > 0 and 0 <= max_tokens < total:
            break
        messages += unit_messages
        unit_messages = 0
        start = i
    return start


def select_context(ordinals, openers, tokens, pinned, tail_start, budget, order=None, reserve=0):
    """Choose the items that fit a token budget: pinned ones, the fresh tail, then in `order`.

    While pinned items and tail alone exceed the budget, the tail yields units from its old end,
    down to the newest unit. Before the tail, exchanges are decided whole, at their first member in
    `order`: taken when they fit what remains, skipped otherwise. An exchange with a pinned member,
    or with one in the tail, is kept whole.

    Parameters
    ----------
    ordinals, openers, tokens : numpy.ndarray
        int64, shape (n,), as for `select_fresh_tail`.
    pinned : numpy.ndarray
        uint8, shape (n,): items to include whatever they cost (any value but 0).
    tail_start : int
        Index at which the fresh tail starts, 0 to n; n when there is none.
    budget : int
        Tokens, 0 or more.
    order : numpy.ndarray, optional
        int64, shape (k,): indexes of the items to choose from, best first; others are not chosen.
        Default: all, newest first.
    reserve : int
        Tokens of the budget, 0 or more, that are not filled with chosen items.

    Returns
    -------
    tuple of numpy.ndarray and int
        Mask, uint8, shape (n,), 1 for chosen items; and the index at which the tail starts now.

    Raises
    ------
    TypeError
        If an array is not a numpy array of its dtype, or a count is not an integer.
    ValueError
        As for `select_fresh_tail`; also if `tail_start` is outside 0 to n, `budget` or `reserve`
        negative, or an index of `order` outside 0 to n - 1.

    Notes
    -----
    O(n log n) time at worst, linear where results follow their calls; 18 bytes of scratch per
    item. Runs without the interpreter lock from 4096 items on. The choice exceeds the budget only
    where pinned exchanges and the newest unit alone do.

    Examples
    --------
    >>> import numpy as np
    >>> ordinals = np.arange(4)
    >>> tokens = np.array([10, 90, 10, 10])
    >>> mask, start = select_context(ordinals, ordinals, tokens, np.zeros(4, np.uint8), 3, 30)
    >>> mask.tolist(), start
    ([1, 0, 1, 1], 3)
    >>> best_first = np.array([0, 2])
    >>> none = np.zeros(4, np.uint8)
    >>> select_context(ordinals, ordinals, tokens, none, 3, 20, best_first)[0].tolist()
    [1, 0, 0, 1]
    """
    check_array("ordinals", ordinals, "int64", -1)
    cdef const int64_t[::1] ordinal_view = ordinals
    cdef Py_ssize_t length = ordinal_view.shape[0]
    check_ordinals(ordinal_view)
    check_array("openers", openers, "int64", length)
    cdef const int64_t[::1] opener_view = openers
    check_array("tokens", tokens, "int64", length)
    cdef const int64_t[::1] token_view = tokens
    check_tokens(token_view)
    check_array("pinned", pinned, "uint8", length)
    cdef const uint8_t[::1] pinned_view = pinned
    cdef Py_ssize_t start = to_position("tail_start", tail_start, length)
    cdef int64_t budget_tokens = to_limit("budget", budget)
    if order is None:
        order = np.arange(length - 1, -1, -1, dtype=np.int64)
    check_array("order", order, "int64", -1)
    cdef const int64_t[::1] order_view = order
    check_indexes("order", order_view, length)
    cdef int64_t reserved = to_limit("reserve", reserve)
    mask = np.empty(length, dtype=np.uint8)
    if length == 0:
        return mask, start
    cdef uint8_t[::1] mask_view = mask
    cdef int64_t[::1] heads = np.empty(length, dtype=np.int64)
    cdef int64_t[::1] group_tokens = np.zeros(length, dtype=np.int64)
    cdef uint8_t[::1] states = np.zeros(length, dtype=np.uint8)
    if length < NOGIL_ITEMS:
        start = choose(
            &ordinal_view[0], &opener_view[0], &token_view[0], &pinned_view[0], length, start,
            budget_tokens, &order_view[0] if order_view.shape[0] else NULL, order_view.shape[0],
            reserved, &heads[0], &group_tokens[0], &states[0], &mask_view[0],
        )
        return mask, start
    with nogil:
        start = choose(
            &ordinal_view[0], &opener_view[0], &token_view[0], &pinned_view[0], length, start,
            budget_tokens, &order_view[0] if order_view.shape[0] else NULL, order_view.shape[0],
            reserved, &heads[0], &group_tokens[0], &states[0], &mask_view[0],
        )
    return mask, start


cdef Py_ssize_t choose(
    const int64_t* ordinals,
    const int64_t* openers,
    const int64_t* tokens,
    const uint8_t* pinned,
    Py_ssize_t length,
    Py_ssize_t tail_start,
    int64_t budget,
    const int64_t* order,
    Py_ssize_t order_length,
    int64_t reserve,
    int64_t* heads,
    int64_t* group_tokens,
    uint8_t* states,
    uint8_t* mask,
) noexcept nogil:
    """Fill `mask`; tokens and state of an exchange stand at the index of its head."""
    cdef Py_ssize_t i
    cdef int64_t fixed = 0
    for i in range(length):
        heads[i] = i
        heads[i] = heads[find_opener(ordinals, openers[i], 0, i)]
        group_tokens[heads[i]] += tokens[i]
        if pinned[i]:
            states[heads[i]] |= PINNED
    for i in range(tail_start, length):
        states[heads[i]] |= IN_TAIL
    for i in range(length):
        if states[i]:
            fixed += group_tokens[i]
    if fixed > budget:
        mark_boundaries(heads, length, mask)
        tail_start = yield_tail(
            heads, group_tokens, states, mask, length, tail_start, budget, &fixed
        )
    if fixed <= budget:
        fill(heads, group_tokens, states, order, order_length, budget - fixed - reserve)
    for i in range(length):
        mask[i] = (states[heads[i]] & SELECTED) != 0
    return tail_start


cdef void mark_boundaries(
    const int64_t* heads, Py_ssize_t length, uint8_t* boundaries
) noexcept nogil:
    cdef Py_ssize_t i = length
    cdef int64_t lowest = length
    while i > 0:
        i -= 1
        lowest = min(lowest, heads[i])
        boundaries[i] = lowest == i


cdef Py_ssize_t yield_tail(
    const int64_t* heads,
    const int64_t* group_tokens,
    uint8_t* states,
    const uint8_t* boundaries,
    Py_ssize_t length,
    Py_ssize_t tail_start,
    int64_t budget,
    int64_t* fixed,
) noexcept nogil:
    """Move the tail's start forward, unit by unit, until `fixed` is within the budget."""
    cdef Py_ssize_t newest = length - 1
    cdef int64_t head
    while not boundaries[newest]:
        newest -= 1
    while fixed[0] > budget and tail_start < newest:
        while True:
            head = heads[tail_start]
            if states[head] == IN_TAIL:
                fixed[0] -= group_tokens[head]
            states[head] &= PINNED
            tail_start += 1
            if boundaries[tail_start]:
                break
    return tail_start


cdef void fill(
    const int64_t* heads,
    const int64_t* group_tokens,
    uint8_t* states,
    const int64_t* order,
    Py_ssize_t order_length,
    int64_t remaining,
) noexcept nogil:
    """Decide the exchanges that are not kept anyway, in the order of their best members."""
    cdef Py_ssize_t i
    cdef int64_t head
    for i in range(order_length):
        head = heads[order[i]]
        if states[head]:
            continue
        if group_tokens[head] <= remaining:
            remaining -= group_tokens[head]
            states[head] = CHOSEN
        else:
            states[head] = SKIPPED
