"""Group commit: many writers, one transaction, each failing alone."""

from __future__ import annotations

import _thread
import functools
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import make_engine, said, texts, violations

from lcm_fast.engine import Engine
from lcm_fast.errors import DatabaseError, MessageError, StoreBusyError
from lcm_fast.store.connection import open_writer
from lcm_fast.store.writer import Writer

THREADS = 8
BATCHES = 50


class RefusedError(Exception):
    """What a write in these tests fails with."""


def together(works: list[Callable[[], Any]]) -> list[BaseException | None]:
    """Run every work on a thread of its own, all released at once; return what each raised."""
    barrier = threading.Barrier(len(works))
    raised: list[BaseException | None] = [None] * len(works)

    def run(n: int, work: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            work()
        except Exception as error:
            raised[n] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


class Held:
    """A writer that is kept busy until all that is to wait for it has arrived."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.raised: list[BaseException | None] = []
        self._threads: list[threading.Thread] = []
        self._go_on = threading.Event()

    def __enter__(self) -> Held:
        started = threading.Event()

        def block(db: apsw.Connection) -> None:
            started.set()
            self._go_on.wait()

        self._start(lambda: self.writer.submit(block))
        started.wait()
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()
        for thread in self._threads:
            thread.join()

    def add(self, call: Callable[[], Any]) -> None:
        """Make a call on a thread of its own; return when it waits for the writer."""
        waiting = self.writer.stats().waiting
        number = len(self.raised)
        self.raised.append(None)

        def run() -> None:
            try:
                call()
            except BaseException as error:
                self.raised[number] = error

        self._start(run)
        wait_until(lambda: self.writer.stats().waiting > waiting)

    def release(self) -> None:
        self._go_on.set()

    def _start(self, run: Callable[[], Any]) -> None:
        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()


class Words:
    """A writer on a table of words."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.db = open_writer(str(path), durability="normal", busy_timeout_ms=1000)
        self.db.execute("CREATE TABLE IF NOT EXISTS noted (word TEXT NOT NULL UNIQUE)")
        self.writer = Writer(self.db, str(path), **options)

    def group(self, works: list[Callable[[apsw.Connection], Any]]) -> list[BaseException | None]:
        """Submit works so that they are applied in one group, in their order."""
        with Held(self.writer) as held:
            for work in works:
                held.add(lambda work=work: self.writer.submit(work))
        return held.raised

    def noted(self) -> list[str]:
        return [word for (word,) in self.db.execute("SELECT word FROM noted ORDER BY rowid")]


class Clock:
    """A clock that stands still unless it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(30_000):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError("it did not come to that")


@pytest.fixture
def words(tmp_path: Path) -> Iterator[Words]:
    opened = Words(tmp_path / "words.db")
    yield opened
    opened.writer.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Words]:
    """A writer with a queue of two places, in which nobody waits for a place."""
    opened = Words(tmp_path / "small.db", queue_limit=2, queue_wait_ms=0)
    yield opened
    opened.writer.close()


def writer_of(engine: Engine) -> Writer:
    writer = engine.store._writer
    assert writer is not None
    return writer


def note(word: str) -> Callable[[apsw.Connection], None]:
    return lambda db: db.execute("INSERT INTO noted VALUES (?)", (word,)) and None


def refuse(db: apsw.Connection) -> None:
    db.execute("INSERT INTO noted VALUES ('half')")
    raise RefusedError


def interrupted_once(work: Callable[[apsw.Connection], Any]) -> Callable[[apsw.Connection], Any]:
    """Return a write during which an interrupt reaches the thread that applies it first."""
    runs = itertools.count()

    def run(db: apsw.Connection) -> None:
        if next(runs) == 0:
            raise KeyboardInterrupt
        work(db)

    return run


def test_batches_of_many_threads_are_all_stored_in_the_order_of_each(engine: Engine) -> None:
    def write(n: int) -> Callable[[], None]:
        def run() -> None:
            for at in range(BATCHES):
                engine.ingest([said(f"{n}.{at}", at)], session_key=f"thread {n}")

        return run

    assert together([write(n) for n in range(THREADS)]) == [None] * THREADS
    for n in range(THREADS):
        expected = [f"{n}.{at}" for at in range(BATCHES)]
        assert texts(engine, session_key=f"thread {n}") == expected
    assert violations(engine.store) == []


def test_threads_that_write_one_conversation_lose_nothing(engine: Engine) -> None:
    works = [lambda n=n: engine.ingest([said(f"{n}", n)]) for n in range(THREADS)]
    together(works)
    assert sorted(texts(engine)) == [str(n) for n in range(THREADS)]


def test_a_bad_batch_among_good_ones_fails_alone(engine: Engine) -> None:
    batches = [[said(f"{n}", n)] for n in range(THREADS)]
    batches[3].append({"role": "wizard"})
    raised = together([lambda batch=batch: engine.ingest(batch) for batch in batches])
    assert [type(error) for error in raised if error] == [MessageError]
    assert len(texts(engine)) == THREADS - 1


@pytest.mark.parametrize("threads", [1, 8, 64])
def test_one_commit_serves_all_callers_that_wait_for_the_writer(
    engine: Engine, threads: int
) -> None:
    writer = writer_of(engine)
    commits: list[int] = []
    with Held(writer) as held:
        writer._db.set_commit_hook(lambda: commits.append(1) or False)
        for n in range(threads):
            batch = [said(f"{n}.{at}", at) for at in range(4)]
            key = f"thread {n}"
            held.add(lambda batch=batch, key=key: engine.ingest(batch, session_key=key))
    # the first is of the write that held it
    assert (len(commits), writer.stats().largest_group) == (2, threads)


@pytest.mark.parametrize("threads", [1, 8, 64])
def test_threads_that_write_at_once_store_each_message_once(engine: Engine, threads: int) -> None:
    def write(n: int) -> Callable[[], None]:
        def run() -> None:
            for at in range(0, 8, 4):
                batch = [said(f"{n}.{at + more}", at + more) for more in range(4)]
                engine.ingest(batch, session_key=f"thread {n}")

        return run

    together([write(n) for n in range(threads)])
    stored = [texts(engine, session_key=f"thread {n}") for n in range(threads)]
    assert stored == [[f"{n}.{at}" for at in range(8)] for n in range(threads)]


def test_what_is_queued_together_is_applied_in_its_order(words: Words) -> None:
    words.group([note(word) for word in "abcdef"])
    assert words.noted() == list("abcdef")


def test_an_entry_that_fails_leaves_the_others_of_its_group_committed(words: Words) -> None:
    raised = words.group([note("a"), refuse, note("b")])
    assert ([type(error) for error in raised], words.noted()) == (
        [type(None), RefusedError, type(None)],
        ["a", "b"],
    )


def test_an_entry_the_database_refuses_fails_alone(words: Words) -> None:
    raised = words.group([note("a"), note("a"), note("b")])
    assert ([isinstance(error, DatabaseError) for error in raised], words.noted()) == (
        [False, True, False],
        ["a", "b"],
    )


def test_entries_are_applied_again_when_another_ends_their_transaction(words: Words) -> None:
    def end_it(db: apsw.Connection) -> None:
        db.execute("ROLLBACK")
        raise RefusedError

    raised = words.group([note("a"), end_it, note("b")])
    assert ([type(error) for error in raised], words.noted()) == (
        [type(None), RefusedError, type(None)],
        ["a", "b"],
    )


def test_entries_are_applied_again_when_one_could_not_even_begin(words: Words) -> None:
    savepoints = itertools.count()

    def cut_the_second(_: object, sql: str, __: object) -> bool:
        if sql.startswith("SAVEPOINT") and next(savepoints) == 1:
            raise RefusedError
        return True

    words.db.exec_trace = cut_the_second
    raised = words.group([note("a"), note("b"), note("c")])
    assert ([type(error) for error in raised], words.noted()) == (
        [type(None), RefusedError, type(None)],
        ["a", "c"],
    )


def test_entries_that_cannot_be_committed_raise_an_error_each_of_its_own(words: Words) -> None:
    raised = words.group([lambda db: db.set_commit_hook(lambda: True), note("b")])
    words.db.set_commit_hook(None)
    kinds = [isinstance(error, DatabaseError) for error in raised]
    assert (kinds, raised[0] is raised[1], words.noted()) == ([True, True], False, [])


def test_more_entries_than_a_group_holds_are_all_applied(words: Words) -> None:
    raised = words.group([note(str(n)) for n in range(300)])
    assert (raised, words.noted()) == ([None] * 300, [str(n) for n in range(300)])


def test_a_result_is_what_the_write_returned(words: Words) -> None:
    assert words.writer.submit(lambda db: 42) == 42


def test_two_engines_on_one_file_share_its_conversations(database: Path) -> None:
    with make_engine(database) as one, make_engine(database) as other:
        one.ingest([said("from one", 1)])
        other.ingest([said("from one", 1), said("from the other", 2)])
        assert texts(one) == ["from one", "from the other"]


def test_a_write_from_inside_a_write_is_an_error_and_no_deadlock(words: Words) -> None:
    with pytest.raises(DatabaseError) as caught:
        words.writer.submit(lambda db: words.writer.submit(note("inner")))
    assert caught.value.code == "nested_write"


def test_a_write_that_meets_a_close_is_stored_or_refused(tmp_path: Path) -> None:
    words = Words(tmp_path / "closed.db")
    works = [lambda n=n: words.writer.submit(note(str(n))) for n in range(THREADS)]
    raised = together([*works, words.writer.close])
    again = Words(tmp_path / "closed.db")
    stored = set(again.noted())
    again.writer.close()
    assert {str(n) for n in range(THREADS) if raised[n] is None} == stored


def test_a_write_after_a_close_is_refused(tmp_path: Path) -> None:
    words = Words(tmp_path / "closed.db")
    words.writer.close()
    with pytest.raises(DatabaseError, match="closed"):
        words.writer.submit(note("a"))


class TestQueue:
    def test_a_caller_that_finds_no_place_in_time_is_refused(self, small: Words) -> None:
        with Held(small.writer) as held:
            held.add(lambda: small.writer.submit(note("second")))
            with pytest.raises(StoreBusyError) as caught:
                small.writer.submit(note("third"))
        assert (caught.value.code, "2 writes are ahead" in caught.value.detail) == (
            "queue_full",
            True,
        )

    def test_of_a_refused_write_nothing_is_stored(self, small: Words) -> None:
        with Held(small.writer) as held:
            held.add(lambda: small.writer.submit(note("second")))
            with pytest.raises(StoreBusyError):
                small.writer.submit(note("third"))
        small.writer.submit(note("fourth"))
        assert small.noted() == ["second", "fourth"]

    def test_a_caller_that_finds_no_place_waits_for_one(self, tmp_path: Path) -> None:
        words = Words(tmp_path / "waits.db", queue_limit=2)
        raised = words.group([note(word) for word in "abcde"])
        assert (raised, words.noted()) == ([None] * 5, list("abcde"))
        words.writer.close()

    def test_no_group_is_larger_than_the_queue(self, tmp_path: Path) -> None:
        words = Words(tmp_path / "groups.db", queue_limit=2)
        words.group([note(word) for word in "abcde"])
        assert words.writer.stats().largest_group == 2
        words.writer.close()


class TestStats:
    def test_callers_that_wait_are_counted_while_they_wait(self, words: Words) -> None:
        with Held(words.writer) as held:
            for word in "abc":
                held.add(lambda word=word: words.writer.submit(note(word)))
            waiting = words.writer.stats().waiting
        assert (waiting, words.writer.stats().waiting) == (4, 0)  # the one that holds it, and three

    def test_commits_and_what_they_served_are_counted(self, words: Words) -> None:
        words.group([note("a"), refuse, note("b")])
        stats = words.writer.stats()
        assert (stats.commits, stats.entries, stats.failed) == (2, 3, 1)

    def test_refused_calls_are_counted(self, small: Words) -> None:
        with Held(small.writer) as held:
            held.add(lambda: small.writer.submit(note("second")))
            with pytest.raises(StoreBusyError):
                small.writer.submit(note("third"))
        assert small.writer.stats().refused == 1

    def test_the_time_from_call_to_outcome_is_counted(self, tmp_path: Path) -> None:
        clock = Clock()
        words = Words(tmp_path / "clock.db", monotonic=clock)
        with Held(words.writer) as held:
            clock.now = 2.0
            held.add(lambda: words.writer.submit(note("a")))
            clock.now = 5.0
        stats = words.writer.stats()
        assert (stats.longest_wait_ms, stats.total_wait_ms) == (5000.0, 8000.0)
        words.writer.close()


class TestInterrupts:
    def test_one_ends_its_own_call_and_leaves_the_writer_usable(self, words: Words) -> None:
        def interrupt(db: apsw.Connection) -> None:
            db.execute("INSERT INTO noted VALUES ('half')")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            words.writer.submit(interrupt)
        words.writer.submit(note("a"))
        assert words.noted() == ["a"]

    def test_the_other_callers_of_the_group_are_served(self, words: Words) -> None:
        raised = words.group([interrupted_once(note("a")), note("b"), note("c")])
        kinds = [type(error) for error in raised]
        assert (kinds, words.noted()) == ([KeyboardInterrupt, *[type(None)] * 2], ["b", "c"])

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, RefusedError])
    def test_one_that_arrives_with_the_commit_leaves_the_group_committed(
        self, words: Words, kind: type[BaseException]
    ) -> None:
        def interrupt_at_commit(db: apsw.Connection) -> None:
            db.execute("INSERT INTO noted VALUES ('a')")
            # in C alone, so that it is noticed when the commit has been made
            once = map(_thread.interrupt_main, [signal.SIGUSR1])
            db.set_commit_hook(functools.partial(any, once))

        def interrupt(number: int, frame: object) -> None:
            raise kind

        before = signal.signal(signal.SIGUSR1, interrupt)
        with Held(words.writer) as held:
            others = threading.Thread(target=self._join_and_release, args=(held,))
            others.start()
            with pytest.raises(kind):
                held.writer.submit(interrupt_at_commit)
            others.join()
        signal.signal(signal.SIGUSR1, before)
        assert (held.raised, words.noted()) == ([None], ["a", "b"])

    def test_one_that_ends_a_wait_takes_the_write_back(self, words: Words) -> None:
        def interrupt_when_it_waits() -> None:
            wait_until(lambda: words.writer.stats().waiting == 2)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        with Held(words.writer) as held:
            interrupter = threading.Thread(target=interrupt_when_it_waits)
            interrupter.start()
            with pytest.raises(KeyboardInterrupt):
                held.writer.submit(note("taken back"))
            interrupter.join()
        words.writer.submit(note("later"))
        assert words.noted() == ["later"]

    @staticmethod
    def _join_and_release(held: Held) -> None:
        wait_until(lambda: held.writer.stats().waiting == 2)
        held.add(lambda: held.writer.submit(note("b")))
        held.release()
