"""Calls side by side whose results come one by one, in the order of their inputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")
R = TypeVar("R")


def in_order(
    function: Callable[[T], R], inputs: Iterable[T], *, concurrency: int
) -> Generator[R, None, None]:
    """Yield `function` of each input, in their order, up to `concurrency` calls at a time.

    An input is taken, on the caller's thread, only when a call for it can begin; so an iterator
    that stops in the light of earlier results does so in time. What a call raises is raised where
    its result would have been; then, as when the caller closes it, the calls under way are waited
    for and no other is begun. Left early it must be closed, as by `contextlib.closing`: closing
    waits for threads, which whatever collects garbage may not do.

    >>> list(in_order(abs, [-3, 2, -1], concurrency=2))
    [3, 2, 1]
    """
    waiting = iter(inputs)
    under_way: deque[Future[R]] = deque()
    with ThreadPoolExecutor(concurrency, thread_name_prefix="lcm-fast-side-by-side") as pool:
        while True:
            while len(under_way) < concurrency:
                try:
                    under_way.append(pool.submit(function, next(waiting)))
                except StopIteration:
                    break
            if not under_way:
                return
            yield under_way.popleft().result()
