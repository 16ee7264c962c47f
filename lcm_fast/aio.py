"""The engine for asyncio: the same methods, awaitable.

Every call runs on a thread of a private, bounded pool, so that no wait for a lock, a disk or a
summariser happens on the event loop. Must hold no policy of its own: each method is `Engine`'s
(design: architecture, section 5; interfaces).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from .config import Config
from .engine import Engine
from .engine.opening import open_on_loop
from .engine.worker import maintain_once
from .errors import ConfigError
from .store import Durability
from .store.connection import closed_error

__all__ = ["AsyncEngine", "open"]

P = ParamSpec("P")
T = TypeVar("T")

_DEFAULT_WORKERS = 8
_ENTRIES_A_READ = 256


def _awaitable(
    method: Callable[Concatenate[Engine, P], T], *, takes_long: bool = False
) -> Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, T]]:
    """Return a method of `AsyncEngine` that runs this one of `Engine` off the event loop."""

    @functools.wraps(method)
    async def call(self: AsyncEngine, /, *args: P.args, **kwargs: P.kwargs) -> T:
        bound: Callable[..., T] = functools.partial(method, self._engine)
        named = {name: _own(value, name) for name, value in kwargs.items()}
        work = functools.partial(bound, *map(_own, args), **named)
        return await self._run(work, takes_long=takes_long)

    return call


class AsyncEngine:
    """A memory of conversations for asyncio. Made by `open`; an async context manager.

    Its methods are those of `Engine`, awaitable, with the same arguments, results and errors.

    Threading: may be used from any event loop, and from several tasks at once; calls that write at
    the same time are committed together. Compactions have threads of their own: however slow the
    summariser, no turn waits for it. A list that is passed in is copied first. A `progress`
    callback is called on the event loop.

    Cancellation: a call that has not begun does nothing; one that has begun goes on in its thread
    to its end. Nothing is stored by halves, and `close` waits for it.
    """

    def __init__(self, engine: Engine, *, workers: int = _DEFAULT_WORKERS) -> None:
        self._engine = engine
        self._calls = _pool("calls", workers)
        self._long_calls = _pool("compactions", workers)
        self._worker: asyncio.Task[None] | None = None
        self._closed = False

    async def __aenter__(self) -> AsyncEngine:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    ingest = _awaitable(Engine.ingest)
    commit_turn = _awaitable(Engine.commit_turn)
    bootstrap = _awaitable(Engine.bootstrap)
    after_turn = _awaitable(Engine.after_turn)
    quarantined = _awaitable(Engine.quarantined)
    admit = _awaitable(Engine.admit)
    drop = _awaitable(Engine.drop)
    assemble = _awaitable(Engine.assemble)
    compact = _awaitable(Engine.compact, takes_long=True)
    plan_compaction = _awaitable(Engine.plan_compaction)
    maintain = _awaitable(Engine.maintain, takes_long=True)
    focus = _awaitable(Engine.focus, takes_long=True)
    refocus = _awaitable(Engine.refocus, takes_long=True)
    unfocus = _awaitable(Engine.unfocus, takes_long=True)
    focus_status = _awaitable(Engine.focus_status)
    map = _awaitable(Engine.map, takes_long=True)
    describe = _awaitable(Engine.describe)
    export = _awaitable(Engine.export)
    conversation = _awaitable(Engine.conversation)
    conversations = _awaitable(Engine.conversations)
    messages = _awaitable(Engine.messages)
    summaries = _awaitable(Engine.summaries)

    async def export_entries(
        self, *, session_key: str | None = None, session_id: str | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the bytes of each entry of a conversation as received, in order.

        The entries are those of one moment, which the database keeps until the iteration ends.

        Raises
        ------
        NotFoundError
            No such conversation.
        """
        find = functools.partial(
            self._engine.export_entries, session_key=session_key, session_id=session_id
        )
        pages = _Pages(await self._run(find))
        try:
            while page := await self._run(pages.read):
                for raw in page:
                    yield raw
        finally:
            if not self._closed:
                await self._run(pages.stop)

    async def run(
        self, function: Callable[Concatenate[Engine, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call ``function(engine, ...)`` off the event loop, such as `lcm_fast.status`."""
        return await self._run(functools.partial(function, self._engine, *args, **kwargs))

    async def start_worker(self) -> None:
        """Maintain this memory from a task of the running loop until it is closed; a second call
        does nothing. Summaries are made off the loop, as by `maintain`.
        """
        if self._worker is None:
            self._worker = asyncio.create_task(self._keep_up(), name="lcm-fast-maintenance")

    async def _keep_up(self) -> None:
        loop, woken, stop = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
        self._engine.upkeep.wake = functools.partial(_call_soon, loop, woken.set)
        once = functools.partial(
            maintain_once, lambda stopped: self._engine.maintain(cancel=stopped), stop
        )
        wait_s = 0.0
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), wait_s)
                woken.clear()
                wait_s = await self._run(once, takes_long=True)
        finally:
            stop.set()

    async def close(self) -> None:
        """Close the database once every call made so far has ended; a second call does nothing."""
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker
        self._closed = True
        await asyncio.wrap_future(_start("close", self._close))

    def _close(self) -> None:
        self._calls.shutdown()
        self._long_calls.shutdown()
        self._engine.close()

    async def _run(self, work: Callable[[], T], *, takes_long: bool = False) -> T:
        if self._closed:
            raise closed_error(self._engine.store.path)
        pool = self._long_calls if takes_long else self._calls
        return await asyncio.wrap_future(pool.submit(contextvars.copy_context().run, work))


class _Opening:
    """What `open` returns: awaited, an engine; in ``async with``, one that is closed after it."""

    def __init__(
        self,
        make: Callable[..., Engine],
        workers: int,
        *,
        has_worker: bool,
    ) -> None:
        self._make = make
        self._workers = workers
        self._has_worker = has_worker
        self._opened: AsyncEngine | None = None

    def __await__(self) -> Generator[Any, None, AsyncEngine]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncEngine:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _open(self) -> AsyncEngine:
        loop = asyncio.get_running_loop()
        future = _start("open", functools.partial(self._make, loop=loop))
        try:
            engine = AsyncEngine(await asyncio.wrap_future(future), workers=self._workers)
        except asyncio.CancelledError:
            future.add_done_callback(_close_unused)
            raise
        if self._has_worker:
            await engine.start_worker()
        return engine


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    summarizer: Any = None,
    token_counter: Callable[[str], int] | None = None,
    durability: Durability = "full",
    workers: int = _DEFAULT_WORKERS,
    worker: bool = False,
) -> _Opening:
    """Open a memory: ``async with open(path) as engine``, or ``engine = await open(path)``.

    Parameters
    ----------
    path, config, summarizer, token_counter, durability
        As for `lcm_fast.open`. The token counter and a summariser are called on threads of their
        own; one that is asynchronous runs on this event loop.
    workers
        Calls that run at once, at least 1; the others wait for their turn, in order. Compactions
        are counted apart.
    worker
        Maintain the memory from a task of this loop, as by `AsyncEngine.start_worker`.

    Raises
    ------
    ConfigError
        A configuration value, the summariser or `workers` is unusable.
    ForeignDatabaseError, DatabaseError
        As for `lcm_fast.open`.

    Examples
    --------
    >>> import asyncio, tempfile
    >>> from lcm_fast import aio
    >>> async def main(path):
    ...     async with aio.open(path) as engine:
    ...         await engine.ingest([{"role": "user", "content": "hello"}])
    ...         return (await engine.assemble(token_budget=1000)).messages
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(main(f"{folder}/demo.db"))
    [{'role': 'user', 'content': 'hello'}]
    """
    if workers < 1:
        raise ConfigError(f"workers is {workers!r}", hint="at least 1")
    make = functools.partial(
        open_on_loop,
        path,
        config=config,
        summarizer=summarizer,
        token_counter=token_counter,
        durability=durability,
    )
    return _Opening(make, workers, has_worker=worker)


class _Pages:
    """Reads an iterator in pieces, on whichever thread; may be stopped while one is read."""

    def __init__(self, entries: Iterator[bytes]) -> None:
        self._entries = entries
        self._lock = threading.Lock()

    def read(self) -> list[bytes]:
        with self._lock:
            return list(islice(self._entries, _ENTRIES_A_READ))

    def stop(self) -> None:
        with self._lock:
            if isinstance(self._entries, Generator):
                self._entries.close()


def _own(value: Any, name: str = "") -> Any:
    """Return an argument as a call in another thread may have it.

    A list is copied, as other tasks may change it meanwhile; a callback goes to the event loop.
    """
    if isinstance(value, list):
        return value.copy()
    if name == "progress" and value is not None:
        return functools.partial(asyncio.get_running_loop().call_soon_threadsafe, value)
    return value


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(callback)


def _pool(name: str, workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix=f"lcm-fast-{name}")


def _start(name: str, work: Callable[[], T]) -> Future[T]:
    """Run work on a thread that ends with it."""
    pool = _pool(name, 1)
    future = pool.submit(contextvars.copy_context().run, work)
    pool.shutdown(wait=False)
    return future


def _close_unused(opening: Future[Engine]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
