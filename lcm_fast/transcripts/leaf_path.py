"""Which records of a branched session lead to its leaf, and which were abandoned.

Pure functions over the links between records; must not read files. The leaf is the last record, its
path the chain of parents up to the root (spec: storage 3.2). Whenever the links do not add up to
one tree, every record counts as on the path: showing too much loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Link", "goes_on", "is_linear", "leaf_offsets"]


class Link(NamedTuple):
    """One record's place: the byte offset that names it, its id, its parent's id.

    `names_parent` is False when the record has no parent field at all, which is not the same as a
    parent of null: that one declares a root. `entry_id` is None for a message without an id.
    """

    offset: int
    entry_id: str | None
    parent_id: str | None
    names_parent: bool


def is_linear(links: Iterable[Link]) -> bool:
    """Tell whether every record is the child of the one before, or one has no id to hang a tree on.

    Such a session has nothing to leave out: whatever parent the first record names, the path is
    either all of it or flattened. Stops at the first record that decides.

    Notes
    -----
    Complexity: linear; memory constant.

    Examples
    --------
    >>> is_linear([Link(0, "a", None, True), Link(9, "b", "a", True)])
    True
    >>> is_linear([Link(0, "a", None, True), Link(9, "b", "a", True), Link(18, "c", "a", True)])
    False
    """
    previous: str | None = None
    for link in links:
        if link.entry_id is None:
            return True
        if previous is not None and link.parent_id != previous:
            return False
        previous = link.entry_id
    return True


def goes_on(links: Iterable[Link], last_entry_id: str | None) -> bool:
    """Tell whether records continue the one before them, each the child of the last.

    Records without ids continue a session without ids.

    >>> goes_on([Link(9, "b", "a", True)], "a"), goes_on([Link(9, "c", "a", True)], "b")
    (True, False)
    """
    previous = last_entry_id
    for link in links:
        if link.entry_id is None:
            return last_entry_id is None
        if previous is None or link.parent_id != previous:
            return False
        previous = link.entry_id
    return True


def leaf_offsets(links: Iterable[Link]) -> frozenset[int] | None:
    """Return the offsets of the records on the leaf's path, or None when all are (flatten).

    Flattened is a session in which a record has no id, or whose chain meets an unknown parent, runs
    in a circle, or ends at a record, not the first, that does not say whether it is a root. Of
    records with one id the last counts.

    Notes
    -----
    Complexity: linear in the records; memory of one table of ids.

    Examples
    --------
    >>> tree = [Link(0, "a", None, True), Link(9, "b", "a", True), Link(18, "c", "a", True)]
    >>> sorted(leaf_offsets(tree))
    [0, 18]
    """
    by_id: dict[str, Link] = {}
    first: Link | None = None
    leaf: Link | None = None
    for link in links:
        if link.entry_id is None:
            return None
        by_id[link.entry_id] = link
        first = first or link
        leaf = link
    return _walk(by_id, leaf, first)


def _walk(by_id: dict[str, Link], leaf: Link | None, first: Link | None) -> frozenset[int] | None:
    path: set[int] = set()
    link = leaf
    while link is not None and link.offset not in path:
        path.add(link.offset)
        if link.parent_id is None:
            return frozenset(path) if link.names_parent or link is first else None
        link = by_id.get(link.parent_id)
    return None
