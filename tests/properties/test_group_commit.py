"""Whatever mix of writes meets in a group: exactly those that returned are stored."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.errors import StoreBusyError
from lcm_fast.store.connection import open_writer
from lcm_fast.store.writer import Writer

Write = Callable[[apsw.Connection], str]


class RefusedError(Exception):
    """What a write in these tests fails with."""


def stores(word: str) -> Write:
    def apply(db: apsw.Connection) -> str:
        db.execute("INSERT INTO noted VALUES (?)", (word,))
        return word

    return apply


def raises(word: str) -> Write:
    def apply(db: apsw.Connection) -> str:
        db.execute("INSERT INTO noted VALUES (?)", (word,))
        raise RefusedError

    return apply


def is_refused_by_the_database(word: str) -> Write:
    def apply(db: apsw.Connection) -> str:
        db.execute("INSERT INTO noted VALUES (?), (?)", (word, word))
        return word

    return apply


def ends_the_transaction(word: str) -> Write:
    def apply(db: apsw.Connection) -> str:
        db.execute("ROLLBACK")
        raise RefusedError

    return apply


def is_interrupted_once(word: str) -> Write:
    left = [KeyboardInterrupt]

    def apply(db: apsw.Connection) -> str:
        db.execute("INSERT INTO noted VALUES (?)", (word,))
        if left:
            raise left.pop()
        return word

    return apply


KINDS = (stores, raises, is_refused_by_the_database, ends_the_transaction, is_interrupted_once)
FAILING = (raises, is_refused_by_the_database, ends_the_transaction)

kinds = st.one_of(st.just(stores), st.sampled_from(KINDS))
threads_of_kinds = st.lists(st.lists(kinds, min_size=1, max_size=8), min_size=1, max_size=8)
queue_limits = st.sampled_from([1, 2, 5, 1024])


class Run:
    """What became of the writes of some threads, all released at once."""

    def __init__(self, writer: Writer, works: list[list[Callable[[str], Write]]]) -> None:
        self.returned: list[list[str]] = [[] for _ in works]  # by thread
        self.raised: Counter[type[BaseException]] = Counter()
        self._writer = writer
        self._barrier = threading.Barrier(len(works))
        threads = [
            threading.Thread(target=self._write, args=(number, kinds))
            for number, kinds in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _write(self, number: int, kinds: list[Callable[[str], Write]]) -> None:
        self._barrier.wait()
        for at, kind in enumerate(kinds):
            try:
                result = self._writer.submit(kind(f"{number}.{at}"))
            except BaseException as error:
                self.raised[type(error)] += 1
            else:
                self.returned[number].append(result)


@contextmanager
def opened(queue_limit: int = 1024, queue_wait_ms: int = 30_000) -> Iterator[Writer]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "words.db")
        db = open_writer(path, durability="normal", busy_timeout_ms=1000)
        db.execute("CREATE TABLE noted (word TEXT NOT NULL UNIQUE)")
        writer = Writer(db, path, queue_limit=queue_limit, queue_wait_ms=queue_wait_ms)
        yield writer
        writer.close()


def noted(writer: Writer) -> list[str]:
    return [word for (word,) in writer._db.execute("SELECT word FROM noted ORDER BY rowid")]


@settings(max_examples=60, deadline=None)
@given(threads_of_kinds, queue_limits)
def test_exactly_the_writes_that_returned_are_stored(
    works: list[list[Callable[[str], Write]]], queue_limit: int
) -> None:
    with opened(queue_limit) as writer:
        run = Run(writer, works)
        assert sorted(noted(writer)) == sorted(chain.from_iterable(run.returned))


@settings(max_examples=30, deadline=None)
@given(threads_of_kinds, queue_limits)
def test_the_writes_of_a_thread_are_stored_in_its_order(
    works: list[list[Callable[[str], Write]]], queue_limit: int
) -> None:
    with opened(queue_limit) as writer:
        run = Run(writer, works)
        stored = noted(writer)
    for number, returned in enumerate(run.returned):
        assert [word for word in stored if word.startswith(f"{number}.")] == returned


@settings(max_examples=30, deadline=None)
@given(threads_of_kinds, queue_limits)
def test_every_write_has_its_own_outcome(
    works: list[list[Callable[[str], Write]]], queue_limit: int
) -> None:
    failing = sum(kind in FAILING for kinds in works for kind in kinds)
    interrupted = sum(kind is is_interrupted_once for kinds in works for kind in kinds)
    with opened(queue_limit) as writer:
        run = Run(writer, works)
    interrupts = run.raised.pop(KeyboardInterrupt, 0)
    # An interrupt meets whoever applies the write, maybe a caller whose own write would fail.
    assert interrupts <= interrupted
    assert failing - interrupts <= run.raised.total() <= failing


@settings(max_examples=30, deadline=None)
@given(threads_of_kinds)
def test_what_found_no_place_is_refused_and_not_stored(
    works: list[list[Callable[[str], Write]]],
) -> None:
    with opened(queue_limit=1, queue_wait_ms=0) as writer:
        run = Run(writer, works)
        stats = writer.stats()
        assert sorted(noted(writer)) == sorted(chain.from_iterable(run.returned))
        assert stats.refused == run.raised[StoreBusyError]
