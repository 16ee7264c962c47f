"""The engine for asyncio: nothing waits on the event loop, nothing is lost to a cancellation."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import aclosing, closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import chain, entry, said, write_session

import lcm_fast
from lcm_fast import Engine, aio
from lcm_fast.aio import AsyncEngine
from lcm_fast.errors import ConfigError, DatabaseError, MessageError, NotFoundError

TASKS = 64
WORKERS = 8
METHODS = sorted(
    name for name in dir(Engine) if not name.startswith("_") and callable(getattr(Engine, name))
)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


@contextmanager
def held_by_another(path: Path) -> Iterator[apsw.Connection]:
    """Hold the write lock as another process would, until the block ends or rolls it back."""
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


async def ticking_until(condition: Callable[[], bool]) -> int:
    """Let the event loop turn until this is so; return how often it did."""
    ticks = 0
    while not condition():
        await asyncio.sleep(0)
        ticks += 1
    return ticks


def waiting(engine: AsyncEngine) -> int:
    writer = engine._engine.store._writer
    assert writer is not None
    return writer.stats().waiting


async def stored(engine: AsyncEngine, **address: str) -> list[str]:
    return [row.content for row in await engine.messages(limit=1000, **address)]


class Gate:
    """Work that says when it has begun and ends when it may."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, *ignored: Any) -> str:
        self.begun.set()
        self.may_end.wait()
        return "done"


class SlowSettings(Mapping[str, Any]):
    """Settings that are read through a gate."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        self.gate()
        return iter(())

    def __len__(self) -> int:
        return 1


class TestMethods:
    def test_there_is_one_for_each_of_the_engine(self) -> None:
        own = [name for name in vars(AsyncEngine) if not name.startswith("_") and name != "run"]
        assert sorted(own) == METHODS

    @pytest.mark.parametrize("name", METHODS)
    def test_each_takes_what_the_engine_s_takes(self, name: str) -> None:
        of_async, of_engine = (
            [
                (one.name, one.kind, one.default)
                for one in inspect.signature(getattr(kind, name)).parameters.values()
            ]
            for kind in (AsyncEngine, Engine)
        )
        assert of_async == of_engine

    @pytest.mark.parametrize("name", METHODS)
    def test_each_is_awaitable_or_an_async_iterator(self, name: str) -> None:
        method = getattr(AsyncEngine, name)
        assert inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)

    def test_results_are_those_of_the_engine(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:
                await engine.ingest([said("hello", 1)])
                assembly = await engine.assemble(token_budget=1000)
                assert assembly.messages == [said("hello", 1)]

        run(main)

    def test_errors_are_those_of_the_engine(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:
                with pytest.raises(MessageError, match=r"messages\[0\]"):
                    await engine.ingest([{"role": "wizard"}])

        run(main)

    def test_run_calls_any_function_with_the_engine(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:
                await engine.ingest([said("hello")])
                assert (await engine.run(lcm_fast.status)).totals["messages"] == 1

        run(main)

    def test_a_list_changed_after_the_call_is_stored_as_it_was(self, database: Path) -> None:
        async def main() -> None:
            gate = Gate()
            async with aio.open(database, workers=1) as engine:
                blocker = asyncio.create_task(engine.run(gate))
                batch = [said("a", 1), said("b", 2)]
                call = asyncio.create_task(engine.ingest(batch))
                await ticking_until(gate.begun.is_set)
                batch.clear()
                gate.may_end.set()
                await asyncio.gather(blocker, call)
                assert await stored(engine) == ["a", "b"]

        run(main)

    def test_progress_is_reported_on_the_event_loop(self, database: Path, tmp_path: Path) -> None:
        session = write_session(tmp_path / "s.jsonl", chain(said("hello", 1)))
        threads: list[int] = []

        async def main() -> None:
            async with aio.open(database) as engine:
                await engine.bootstrap(
                    session, progress=lambda done, total: threads.append(threading.get_ident())
                )
            await asyncio.sleep(0)

        run(main)
        assert set(threads) == {threading.get_ident()}

    def test_a_summariser_sees_the_context_of_the_call(self, database: Path) -> None:
        caller = contextvars.ContextVar("caller", default="nobody")
        seen: set[str] = set()

        def summarise(request: Any) -> str:
            seen.add(caller.get())
            return "short"

        async def main() -> None:
            async with aio.open(database, summarizer=summarise) as engine:
                await engine.ingest([said(f"{n} " * 300, n) for n in range(100)])
                caller.set("me")
                await engine.compact(token_budget=10_000)

        run(main)
        assert seen == {"me"}


class TestEventLoop:
    def test_it_turns_while_another_process_holds_the_lock(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:
                with held_by_another(database) as other:
                    call = asyncio.create_task(engine.ingest([said("hello")]))
                    await ticking_until(lambda: waiting(engine) == 1)
                    for _ in range(1000):
                        await asyncio.sleep(0)
                    assert not call.done()
                    other.execute("ROLLBACK")
                    assert (await call).ingested == 1

        run(main)

    def test_reads_are_answered_while_another_process_holds_the_lock(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:
                await engine.ingest([said("before", 1)])
                with held_by_another(database) as other:
                    call = asyncio.create_task(engine.ingest([said("after", 2)]))
                    await ticking_until(lambda: waiting(engine) == 1)
                    assert await stored(engine) == ["before"]
                    other.execute("ROLLBACK")
                    await call

        run(main)

    def test_it_turns_while_a_summariser_is_slow_and_turns_are_stored(self, database: Path) -> None:
        async def main() -> None:
            gate = Gate()
            async with aio.open(database, workers=1, summarizer=gate) as engine:
                await engine.ingest([said(f"{n} " * 300, n) for n in range(100)])
                compaction = asyncio.create_task(engine.compact(token_budget=10_000))
                await ticking_until(gate.begun.is_set)
                assert (await engine.ingest([said("meanwhile")])).ingested == 1
                gate.may_end.set()
                assert (await compaction).summaries_created > 0

        run(main)


class TestManyTasks:
    def test_each_message_is_stored_once(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:

                async def write(n: int) -> None:
                    for at in range(0, 8, 4):
                        batch = [said(f"{n}.{at + more}", at + more) for more in range(4)]
                        await engine.ingest(batch, session_key=f"task {n}")

                await asyncio.gather(*map(write, range(TASKS)))
                for n in range(TASKS):
                    expected = [f"{n}.{at}" for at in range(8)]
                    assert await stored(engine, session_key=f"task {n}") == expected

        run(main)

    def test_one_commit_serves_all_that_wait_for_the_writer(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database, workers=WORKERS) as engine:
                with held_by_another(database) as other:
                    calls = [
                        asyncio.create_task(engine.ingest([said("a")], session_key=str(n)))
                        for n in range(WORKERS)
                    ]
                    await ticking_until(lambda: waiting(engine) == WORKERS)
                    other.execute("ROLLBACK")
                    await asyncio.gather(*calls)
                stats = await engine.run(lambda sync: sync.store._writer.stats())
                # The first to come was waiting for the other process already.
                assert (stats.commits, stats.entries) == (2, WORKERS)

        run(main)

    def test_no_more_calls_than_workers_wait_for_the_writer(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database, workers=WORKERS) as engine:
                with held_by_another(database) as other:
                    calls = [
                        asyncio.create_task(engine.ingest([said("a")], session_key=str(n)))
                        for n in range(TASKS)
                    ]
                    await ticking_until(lambda: waiting(engine) == WORKERS)
                    names = [thread.name for thread in threading.enumerate()]
                    other.execute("ROLLBACK")
                    await asyncio.gather(*calls)
                assert sum(name.startswith("lcm-fast-calls") for name in names) == WORKERS

        run(main)


class TestCancellation:
    def test_a_write_that_has_begun_is_stored(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:
                with held_by_another(database) as other:
                    call = asyncio.create_task(engine.ingest([said("begun")]))
                    await ticking_until(lambda: waiting(engine) == 1)
                    call.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await call
                    other.execute("ROLLBACK")
                await ticking_until(lambda: waiting(engine) == 0)
                assert await stored(engine) == ["begun"]

        run(main)

    def test_a_write_that_has_not_begun_is_not_stored(self, database: Path) -> None:
        async def main() -> None:
            gate = Gate()
            async with aio.open(database, workers=1) as engine:
                blocker = asyncio.create_task(engine.run(gate))
                call = asyncio.create_task(engine.ingest([said("not begun")]))
                await ticking_until(gate.begun.is_set)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                gate.may_end.set()
                await blocker
                with pytest.raises(NotFoundError):
                    await engine.messages()

        run(main)

    def test_of_an_opening_leaves_nothing_open(self, database: Path) -> None:
        async def main() -> None:
            gate = Gate()
            settings = SlowSettings(gate)

            async def open_it() -> AsyncEngine:
                return await aio.open(database, config=settings)

            opening = asyncio.create_task(open_it())
            await ticking_until(gate.begun.is_set)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            gate.may_end.set()
            await ticking_until(
                lambda: not any("lcm-fast-open" in one.name for one in threading.enumerate())
            )

        run(main)
        assert str(database) not in open_files()


class TestClosing:
    def test_it_waits_for_the_calls_that_were_made(self, database: Path) -> None:
        async def main() -> None:
            gate = Gate()
            engine = await aio.open(database, workers=1)
            calls = [
                asyncio.create_task(engine.run(gate)),
                asyncio.create_task(engine.ingest([said("made")])),
            ]
            await ticking_until(gate.begun.is_set)
            closing_it = asyncio.create_task(engine.close())
            await asyncio.sleep(0)
            gate.may_end.set()
            await closing_it
            assert (await asyncio.gather(*calls))[1].ingested == 1

        run(main)

    def test_a_call_after_it_says_that_the_memory_is_closed(self, database: Path) -> None:
        async def main() -> None:
            engine = await aio.open(database)
            await engine.close()
            with pytest.raises(DatabaseError, match="closed before this call"):
                await engine.ingest([said("late")])

        run(main)

    def test_a_second_one_does_nothing(self, database: Path) -> None:
        async def main() -> None:
            async with await aio.open(database) as engine:
                await engine.close()

        run(main)

    def test_it_leaves_no_thread_and_no_file(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:
                await engine.ingest([said("hello")])

        run(main)
        threads = [one.name for one in threading.enumerate() if one.name.startswith("lcm-fast-ca")]
        assert (threads, str(database) in open_files()) == ([], False)


class TestExport:
    def test_entries_come_as_received(self, database: Path, tmp_path: Path) -> None:
        entries = [entry(f"e{n}", None, said(f"{n}", n)) for n in range(600)]
        session = write_session(tmp_path / "s.jsonl", entries)

        async def main() -> None:
            async with aio.open(database) as engine:
                await engine.bootstrap(session)
                exported = [raw async for raw in engine.export_entries(session_key="s")]
                assert b"".join(raw + b"\n" for raw in exported) == session.read_bytes()

        run(main)

    def test_one_that_is_left_early_gives_its_snapshot_back(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:
                await engine.ingest([said(f"{n}", n) for n in range(600)])
                async with aclosing(engine.export_entries()) as entries:
                    await anext(entries)
                await engine.ingest([said("after", 1000)])
                with closing(apsw.Connection(str(database))) as other:
                    other.execute("PRAGMA busy_timeout = 0")
                    busy, *_ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                assert busy == 0

        run(main)

    def test_one_that_is_cancelled_in_the_middle_of_a_read_ends(self, database: Path) -> None:
        async def main() -> None:
            gate = Gate()
            async with aio.open(database) as engine:
                await engine.ingest([said("a")])
                inner = engine._engine.export_entries

                def slowly(**address: Any) -> Iterator[bytes]:
                    for raw in inner(**address):
                        gate()
                        yield raw

                engine._engine.export_entries = slowly  # type: ignore[method-assign]
                entries = engine.export_entries()
                reading = asyncio.create_task(anext(entries))
                await ticking_until(gate.begun.is_set)
                reading.cancel()
                await asyncio.sleep(0)
                gate.may_end.set()
                with pytest.raises(asyncio.CancelledError):
                    await reading

        run(main)

    def test_an_unknown_conversation_is_an_error(self, database: Path) -> None:
        async def main() -> None:
            async with aio.open(database) as engine:
                with pytest.raises(NotFoundError):
                    await anext(engine.export_entries(session_key="nobody"))

        run(main)


def test_fewer_than_one_worker_are_refused(database: Path) -> None:
    with pytest.raises(ConfigError, match="workers is 0"):
        aio.open(database, workers=0)


def test_an_opening_that_fails_raises_what_the_engine_s_raises(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(DatabaseError, match="is a directory"):
            await aio.open(tmp_path)

    run(main)


def open_files() -> set[str]:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system does not list open files")
    return {str(one.readlink()) for one in folder.iterdir() if one.is_symlink()}
