"""Group commit: many writers, one transaction, each failing alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import make_engine, said, texts, violations

from lcm_fast.engine import Engine
from lcm_fast.errors import DatabaseError, MessageError
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
    """A writer whose lock is held until all that is queued behind it has arrived."""

    def __init__(self, path: Path) -> None:
        self.db = open_writer(str(path), durability="normal", busy_timeout_ms=1000)
        self.db.execute("CREATE TABLE noted (word TEXT NOT NULL UNIQUE)")
        self.writer = Writer(self.db, str(path))
        self._started = threading.Event()
        self._go_on = threading.Event()

    def group(self, works: list[Callable[[apsw.Connection], Any]]) -> list[BaseException | None]:
        """Submit works so that all but the first are applied in one group, in their order."""
        raised: list[BaseException | None] = [None] * len(works)
        blocker = threading.Thread(target=self.writer.submit, args=(self._block,))
        blocker.start()
        self._started.wait()
        threads = []
        for n, work in enumerate(works):
            thread = threading.Thread(target=self._submit, args=(n, work, raised))
            thread.start()
            threads.append(thread)
            while len(self.writer._queue) <= n:
                thread.join(0.001)
        self._go_on.set()
        for thread in (blocker, *threads):
            thread.join()
        return raised

    def words(self) -> list[str]:
        return [word for (word,) in self.db.execute("SELECT word FROM noted ORDER BY rowid")]

    def _block(self, db: apsw.Connection) -> None:
        self._started.set()
        self._go_on.wait()

    def _submit(
        self,
        n: int,
        work: Callable[[apsw.Connection], Any],
        raised: list[BaseException | None],
    ) -> None:
        try:
            self.writer.submit(work)
        except Exception as error:
            raised[n] = error


@pytest.fixture
def held(tmp_path: Path) -> Any:
    writer = Held(tmp_path / "words.db")
    yield writer
    writer.writer.close()


def note(word: str) -> Callable[[apsw.Connection], None]:
    return lambda db: db.execute("INSERT INTO noted VALUES (?)", (word,)) and None


def refuse(db: apsw.Connection) -> None:
    db.execute("INSERT INTO noted VALUES ('half')")
    raise RefusedError


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


def test_what_is_queued_together_is_applied_in_its_order(held: Held) -> None:
    held.group([note(word) for word in "abcdef"])
    assert held.words() == list("abcdef")


def test_an_entry_that_fails_leaves_the_others_of_its_group_committed(held: Held) -> None:
    raised = held.group([note("a"), refuse, note("b")])
    assert ([type(error) for error in raised], held.words()) == (
        [type(None), RefusedError, type(None)],
        ["a", "b"],
    )


def test_an_entry_the_database_refuses_fails_alone(held: Held) -> None:
    raised = held.group([note("a"), note("a"), note("b")])
    assert ([isinstance(error, DatabaseError) for error in raised], held.words()) == (
        [False, True, False],
        ["a", "b"],
    )


def test_entries_are_applied_again_when_another_ends_their_transaction(held: Held) -> None:
    def end_it(db: apsw.Connection) -> None:
        db.execute("ROLLBACK")
        raise RefusedError

    raised = held.group([note("a"), end_it, note("b")])
    assert ([type(error) for error in raised], held.words()) == (
        [type(None), RefusedError, type(None)],
        ["a", "b"],
    )


def test_more_entries_than_a_group_holds_are_all_applied(held: Held) -> None:
    raised = held.group([note(str(n)) for n in range(300)])
    assert (raised, len(held.words())) == ([None] * 300, 300)


def test_an_interrupt_ends_its_group_and_leaves_the_writer_usable(held: Held) -> None:
    def interrupt(db: apsw.Connection) -> None:
        db.execute("INSERT INTO noted VALUES ('half')")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        held.writer.submit(interrupt)
    held.writer.submit(note("a"))
    assert held.words() == ["a"]


def test_a_result_is_what_the_write_returned(held: Held) -> None:
    assert held.writer.submit(lambda db: 42) == 42


def test_two_engines_on_one_file_share_its_conversations(database: Path) -> None:
    with make_engine(database) as one, make_engine(database) as other:
        one.ingest([said("from one", 1)])
        other.ingest([said("from one", 1), said("from the other", 2)])
        assert texts(one) == ["from one", "from the other"]
