"""Kernel `chunking`: which messages become one leaf summary, which summaries one condensed.

Leaf chunks follow the compaction spec F1 to F3 and never cut a tool exchange (decisions 1);
condensation follows G1 and G2 over every contiguous same-depth run (decisions 7).
"""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from lcm_types cimport (
    MESSAGE,
    NOGIL_ITEMS,
    check_array,
    check_kinds,
    check_ordinals,
    check_tokens,
    find_opener,
    to_count,
    to_limit,
    to_position,
)


def plan_leaf_chunks(
    kinds, ordinals, openers, tokens, begin, boundary, max_tokens, max_chunks=-1
):
    """Plan the leaf summaries of the messages in [begin, boundary).

    A chunk is a run of messages, at least one. It ends before a message that would lift it above
    `max_tokens`, once it has reached them, and at a summary. A cut inside a tool exchange moves
    back to the exchange's start, or to its end where the chunk began with it; an exchange that a
    summary or `boundary` interrupts ends there. Summaries between chunks are skipped.

    Parameters
    ----------
    kinds : numpy.ndarray
        uint8, shape (n,): 0 message, 1 summary.
    ordinals, openers, tokens : numpy.ndarray
        int64, shape (n,), as for `select_fresh_tail`.
    begin, boundary : int
        Indices, 0 to n; no chunk where `begin` is not below `boundary`.
    max_tokens : int
        Tokens of a chunk, 0 or more; a single unit may exceed them.
    max_chunks : int
        Chunks to plan at most; below 0 all of them.

    Returns
    -------
    numpy.ndarray
        int64, shape (k, 2): [begin, end) index pairs, oldest first.

    Raises
    ------
    TypeError
        If an array is not a numpy array of its dtype, or a count is not an integer.
    ValueError
        As for `select_fresh_tail`; also if a position is outside 0 to n or `max_tokens` negative.

    Notes
    -----
    O(n log n) time at worst, linear where results follow their calls. Runs without the interpreter
    lock from 4096 items on.

    Examples
    --------
    >>> import numpy as np
    >>> ordinals = np.arange(5)
    >>> tokens = np.full(5, 100)
    >>> plan_leaf_chunks(np.zeros(5, np.uint8), ordinals, ordinals, tokens, 0, 4, 250).tolist()
    [[0, 2], [2, 4]]
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
    cdef Py_ssize_t first = to_position("begin", begin, length)
    cdef Py_ssize_t last = to_position("boundary", boundary, length)
    cdef int64_t chunk_tokens = to_limit("max_tokens", max_tokens)
    cdef int64_t most = to_count("max_chunks", max_chunks)
    cdef Py_ssize_t planned
    if first >= last or most == 0:
        return np.empty((0, 2), dtype=np.int64)
    if most < 0 or most > last - first:
        most = last - first
    chunks = np.empty((most, 2), dtype=np.int64)
    cdef int64_t[:, ::1] chunk_view = chunks
    cdef int64_t[::1] reach = np.empty(length, dtype=np.int64)
    if last - first < NOGIL_ITEMS:
        planned = plan_chunks(
            &kind_view[0], &ordinal_view[0], &opener_view[0], &token_view[0],
            first, last, chunk_tokens, most, &reach[0], &chunk_view[0, 0],
        )
    else:
        with nogil:
            planned = plan_chunks(
                &kind_view[0], &ordinal_view[0], &opener_view[0], &token_view[0],
                first, last, chunk_tokens, most, &reach[0], &chunk_view[0, 0],
            )
    return chunks[:planned].copy()


cdef Py_ssize_t plan_chunks(
    const uint8_t* kinds,
    const int64_t* ordinals,
    const int64_t* openers,
    const int64_t* tokens,
    Py_ssize_t begin,
    Py_ssize_t boundary,
    int64_t max_tokens,
    Py_ssize_t max_chunks,
    int64_t* reach,
    int64_t* chunks,
) noexcept nogil:
    """Write index pairs to `chunks` and return how many."""
    cdef Py_ssize_t planned = 0
    cdef Py_ssize_t i = begin
    mark_reach(kinds, ordinals, openers, begin, boundary, reach)
    while planned < max_chunks:
        while i < boundary and kinds[i] != MESSAGE:
            i += 1
        if i == boundary:
            break
        chunks[2 * planned] = i
        i = cut_chunk(kinds, tokens, reach, i, boundary, max_tokens)
        chunks[2 * planned + 1] = i
        planned += 1
    return planned


cdef void mark_reach(
    const uint8_t* kinds,
    const int64_t* ordinals,
    const int64_t* openers,
    Py_ssize_t begin,
    Py_ssize_t boundary,
    int64_t* reach,
) noexcept nogil:
    """Note for each message the last message of its run that names it as opener."""
    cdef Py_ssize_t run_begin = begin
    cdef Py_ssize_t i
    for i in range(begin, boundary):
        reach[i] = i
        if kinds[i] == MESSAGE:
            reach[find_opener(ordinals, openers[i], run_begin, i)] = i
        else:
            run_begin = i + 1


cdef Py_ssize_t cut_chunk(
    const uint8_t* kinds,
    const int64_t* tokens,
    const int64_t* reach,
    Py_ssize_t begin,
    Py_ssize_t boundary,
    int64_t max_tokens,
) noexcept nogil:
    """Return where the chunk from `begin` ends; a cut is valid beyond all that was reached."""
    cdef Py_ssize_t end = begin
    cdef Py_ssize_t last_valid = begin
    cdef int64_t furthest = begin
    cdef int64_t total = 0
    while end < boundary and kinds[end] == MESSAGE:
        if end > begin and tokens[end] > max_tokens - total:
            break
        total += tokens[end]
        furthest = max(furthest, reach[end])
        end += 1
        if furthest < end:
            last_valid = end
        if total >= max_tokens:
            break
    if last_valid > begin:
        return last_valid
    while furthest >= end:
        furthest = max(furthest, reach[end])
        end += 1
    return end


def plan_condensation(
    kinds,
    depths,
    tokens,
    meaningful,
    boundary,
    leaf_fanout,
    condensed_fanout,
    min_tokens,
    max_tokens,
    max_depth=-1,
):
    """Plan the next condensed summary before `boundary`: the lowest depth, then the oldest.

    A chunk is a run of summaries of one depth that starts at a meaningful one. It ends before a
    meaningful summary that would lift it above `max_tokens`, once it has reached them, and where
    the run ends. Summaries without meaning ride along, and add neither count nor tokens. The first
    chunk with enough meaningful summaries and tokens wins; the others hide nothing behind them.

    Parameters
    ----------
    kinds : numpy.ndarray
        uint8, shape (n,): 0 message, 1 summary.
    depths : numpy.ndarray
        int64, shape (n,); 0 or more for summaries, ignored for messages.
    tokens : numpy.ndarray
        int64, shape (n,), each 0 or more.
    meaningful : numpy.ndarray
        uint8, shape (n,): 0 for a summary whose content comes to nothing.
    boundary : int
        Index, 0 to n; items from there on are not looked at.
    leaf_fanout, condensed_fanout : int
        Meaningful summaries a chunk needs at depth 0, and above it; 0 or more.
    min_tokens, max_tokens : int
        Tokens a chunk needs, and those at which it ends; 0 or more.
    max_depth : int
        Summaries of this depth and deeper are left alone; below 0 none are.

    Returns
    -------
    tuple of int or None
        (depth, begin, end) of the sources, as indices [begin, end); None when no chunk qualifies.

    Raises
    ------
    TypeError
        If an array is not a numpy array of its dtype, or a count is not an integer.
    ValueError
        As for `select_fresh_tail`; also if a summary's depth, a fanout or a token limit is
        negative, or `boundary` outside 0 to n.

    Notes
    -----
    Linear in n. Runs without the interpreter lock from 4096 items on.

    Examples
    --------
    >>> import numpy as np
    >>> summaries, yes = np.ones(4, np.uint8), np.ones(4, np.uint8)
    >>> depths, tokens = np.array([1, 0, 0, 1]), np.full(4, 60)
    >>> plan_condensation(summaries, depths, tokens, yes, 4, 2, 2, 100, 1000)
    (0, 1, 3)
    """
    check_array("kinds", kinds, "uint8", -1)
    cdef const uint8_t[::1] kind_view = kinds
    cdef Py_ssize_t length = kind_view.shape[0]
    check_kinds(kind_view)
    check_array("depths", depths, "int64", length)
    cdef const int64_t[::1] depth_view = depths
    check_depths(depth_view, kind_view)
    check_array("tokens", tokens, "int64", length)
    cdef const int64_t[::1] token_view = tokens
    check_tokens(token_view)
    check_array("meaningful", meaningful, "uint8", length)
    cdef const uint8_t[::1] meaningful_view = meaningful
    cdef CondensationRule rule
    cdef Py_ssize_t last = to_position("boundary", boundary, length)
    rule.leaf_fanout = to_limit("leaf_fanout", leaf_fanout)
    rule.condensed_fanout = to_limit("condensed_fanout", condensed_fanout)
    rule.min_tokens = to_limit("min_tokens", min_tokens)
    rule.max_tokens = to_limit("max_tokens", max_tokens)
    rule.max_depth = to_count("max_depth", max_depth)
    cdef Condensation best
    if last == 0:
        return None
    if last < NOGIL_ITEMS:
        best = find_condensation(
            &kind_view[0], &depth_view[0], &token_view[0], &meaningful_view[0], last, rule
        )
    else:
        with nogil:
            best = find_condensation(
                &kind_view[0], &depth_view[0], &token_view[0], &meaningful_view[0], last, rule
            )
    return None if best.depth < 0 else (best.depth, best.begin, best.end)


cdef struct CondensationRule:
    int64_t leaf_fanout
    int64_t condensed_fanout
    int64_t min_tokens
    int64_t max_tokens
    int64_t max_depth


cdef struct Condensation:
    int64_t depth
    Py_ssize_t begin
    Py_ssize_t end


cdef int check_depths(const int64_t[::1] depths, const uint8_t[::1] kinds) except -1:
    cdef Py_ssize_t i
    for i in range(depths.shape[0]):
        if kinds[i] != MESSAGE and depths[i] < 0:
            raise ValueError(f"depths[{i}] is {depths[i]}, expected 0 or more for a summary")
    return 0


cdef Condensation find_condensation(
    const uint8_t* kinds,
    const int64_t* depths,
    const int64_t* tokens,
    const uint8_t* meaningful,
    Py_ssize_t boundary,
    CondensationRule rule,
) noexcept nogil:
    """Visit each run once, keeping the first eligible chunk of the lowest depth so far."""
    cdef Condensation best
    cdef Condensation found
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t end
    best.depth = -1
    best.begin = best.end = 0
    while begin < boundary:
        end = begin + 1
        if kinds[begin] == MESSAGE:
            begin = end
            continue
        while end < boundary and kinds[end] != MESSAGE and depths[end] == depths[begin]:
            end += 1
        if best.depth < 0 or depths[begin] < best.depth:
            found = search_run(depths[begin], tokens, meaningful, begin, end, rule)
            if found.depth >= 0:
                best = found
        begin = end
    return best


cdef Condensation search_run(
    int64_t depth,
    const int64_t* tokens,
    const uint8_t* meaningful,
    Py_ssize_t begin,
    Py_ssize_t end,
    CondensationRule rule,
) noexcept nogil:
    """Return the first eligible chunk of a run of summaries of one depth; depth -1 when none is."""
    cdef Condensation chunk
    cdef int64_t fanout = rule.leaf_fanout if depth == 0 else rule.condensed_fanout
    cdef int64_t count
    cdef int64_t total
    cdef Py_ssize_t i = begin
    chunk.depth = -1
    chunk.begin = chunk.end = begin
    if 0 <= rule.max_depth <= depth:
        return chunk
    while i < end:
        if not meaningful[i]:
            i += 1
            continue
        chunk.begin = i
        count = total = 0
        while i < end:
            if meaningful[i]:
                if count > 0 and tokens[i] > rule.max_tokens - total:
                    break
                total += tokens[i]
                count += 1
            i += 1
            if total >= rule.max_tokens:
                break
        chunk.end = i
        if count >= fanout and total >= rule.min_tokens:
            chunk.depth = depth
            return chunk
    return chunk
