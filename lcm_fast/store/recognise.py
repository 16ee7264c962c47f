"""Tell which messages of a batch the record holds already; reads only, under the write lock.

Strongest evidence first (decision 11): entry id, a provider's event key, what is said and when, a
live row that a transcript now shows, a history sent whole, another form of a message at its place.
Ambiguity may store a message twice; it never leaves one out that is new. The number of statements
depends on neither the batch nor the conversation, the rows read on the batch alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import apsw
import numpy as np

from ..kernels import align
from ..types import OWN_TIME, UNTIMED, Message
from . import cursors, known_rows
from .branches import ABANDONED_BRANCH
from .codec import RecordCodec
from .known_rows import KnownRow
from .rows import Batch, Conversation

__all__ = ["EDITED", "Known", "find_known"]

# Why a message whose entry is stored with other content at the same time counts as the same one.
EDITED = "edited"

# Of a history sent whole, this share must stand as it was stored; the rest must be revisions of it.
_UNCHANGED_SHARE = 0.5
# How many more rows than messages are looked at where a transcript goes on.
_SLACK = 16


@dataclass(slots=True)
class Known:
    """What of a batch is stored.

    Attributes
    ----------
    rows
        Position in the batch -> the row it is.
    revisions
        Position -> in which way the message is another form of its row.
    twins
        Positions of entries that show a stored entry once more under another id.
    event_keys
        Those of the batch that a stored message has.
    """

    rows: dict[int, KnownRow] = field(default_factory=dict)
    revisions: dict[int, str] = field(default_factory=dict)
    twins: set[int] = field(default_factory=set)
    event_keys: set[str] = field(default_factory=set)


def find_known(
    db: apsw.Connection, conversation: Conversation, batch: Batch, codec: RecordCodec
) -> Known:
    """Return what of a batch is stored already."""
    if not conversation.message_count or not batch.messages:
        return Known()
    recogniser = _Recogniser(db, conversation, batch, codec)
    recogniser.by_entry_id()
    recogniser.by_event_key()
    recogniser.by_time()
    if batch.source == "live":
        recogniser.by_resent_history()
        recogniser.beside_known()
    else:
        recogniser.by_order()
        recogniser.by_earlier_revision()
    recogniser.by_place()
    return recogniser.known


class _Recogniser:
    """The batch on its way to being recognised: each step takes rows for messages without one."""

    def __init__(
        self,
        db: apsw.Connection,
        conversation: Conversation,
        batch: Batch,
        codec: RecordCodec,
    ) -> None:
        self.known = Known()
        self._db = db
        self._conversation = conversation
        self._number = conversation.conversation_id
        self._batch = batch
        self._codec = codec
        self._taken: set[int] = set()
        self._resumes_after = known_rows.seq_of(db, batch.after)
        # Rows that only this transcript, or an earlier state of its session, has shown.
        self._own = set[int]()
        if batch.cursor is not None:
            path, header = batch.cursor.path, batch.cursor.header_id
            self._own.update(cursors.of_session(db, self._number, path, header))

    def by_entry_id(self) -> None:
        """Take the row with a message's entry id, when it says the same or is a form of it."""
        waiting = [(n, m) for n, m in self._open() if m.entry_id is not None]
        if not waiting:
            return
        rows: dict[str, list[KnownRow]] = {}
        ids = (message.entry_id for _, message in waiting)
        for row in known_rows.by_entry_id(self._db, self._number, filter(None, ids)):
            rows.setdefault(row.entry_id or "", []).append(row)
        changed = []
        for position, message in waiting:
            found = rows.get(message.entry_id or "", [])
            same = next((row for row in found if _says_the_same(row, message)), None)
            if same is not None:
                self._take(position, same)
            elif found:
                changed.append((position, message, found))
        for position, message, found in changed:
            for row in found:
                if row.message_id in self._taken:
                    continue
                kind = self._change(row, message)
                if kind is not None:
                    self._take(position, row, kind)
                    break

    def by_event_key(self) -> None:
        """Take the row of the same provider's event."""
        waiting = [(n, m) for n, m in self._open() if m.event_key is not None]
        if not waiting:
            return
        keys = (message.event_key for _, message in waiting)
        rows = known_rows.by_event_key(self._db, self._number, filter(None, keys))
        self.known.event_keys = set(rows)
        for position, message in waiting:
            row = rows.get(message.event_key or "")
            if row is None or not self._is_free(row, message):
                continue
            if row.identity == message.identity:
                self._take(position, row)
            elif (kind := self._revision(row, message)) is not None:
                self._take(position, row, kind)

    def by_time(self) -> None:
        """Take the row that says the same at the same time."""
        waiting = [(n, m) for n, m in self._open() if m.timed != UNTIMED]
        if not waiting:
            return
        wanted = [(m.identity, m.created_at or "") for _, m in waiting]
        rows: dict[tuple[bytes, str], list[KnownRow]] = {}
        for row in known_rows.by_identity_and_time(self._db, self._number, wanted):
            rows.setdefault((row.identity, row.created_at), []).append(row)
        for position, message in waiting:
            same = rows.get((message.identity, message.created_at or ""), [])
            free = next((row for row in same if self._is_free(row, message)), None)
            if free is not None:
                self._take(position, free)
            elif same and _is_exactly_timed(message):
                self.known.rows[position] = same[-1]
                self.known.twins.add(position)

    def by_order(self) -> None:
        """Take, in the order of the transcript, the rows that say the same and that no other entry
        of it is."""
        waiting = self._open()
        identities = [message.identity for _, message in waiting]
        if not waiting:
            return
        rows = self._rows_in_order(identities)
        free = [row for row in rows if self._is_untouched(row)]
        # What the transcript has shown before is sooner shown again than what it has not.
        self._take_aligned([row for row in free if row.claimed], waiting)
        self._take_aligned([row for row in free if not row.claimed], self._open())
        by_identity: dict[bytes, list[KnownRow]] = {}
        for row in free:
            by_identity.setdefault(row.identity, []).append(row)
        for position, message in self._open():
            for row in by_identity.get(message.identity, ()):
                if self._may_be(row, message):
                    self._take(position, row)
                    break

    def by_earlier_revision(self) -> None:
        """Take the row that came in this form before."""
        waiting = self._open()
        if not waiting:
            return
        identities = [message.identity for _, message in waiting]
        rows: dict[bytes, list[KnownRow]] = {}
        for identity, row in known_rows.by_revision(self._db, self._number, identities):
            if self._is_untouched(row):
                rows.setdefault(identity, []).append(row)
        for position, message in waiting:
            for row in rows.get(message.identity, ()):
                if self._may_be(row, message):
                    self._take(position, row)
                    break

    def by_resent_history(self) -> None:
        """Take the whole record, or its end, when a live batch begins with it.

        Hosts that send their full list each turn give neither ids nor times. One message alone is
        no evidence: a user may say "ok" twice.
        """
        batch, count = self._batch, self._conversation.message_count
        waiting = self._open()
        is_whole = 1 < len(batch.messages) >= count
        if not waiting or not (is_whole or batch.is_covered):
            return
        rows = known_rows.newest(self._db, self._number, min(count, len(batch.messages)))
        rows = [row for row in rows if row.excluded != ABANDONED_BRANCH]
        free = [row for row in rows if row.message_id not in self._taken]
        if batch.is_covered:
            self._take_overlap(rows)
        elif not self._take_head(rows):
            self._take_changed_head(free, waiting)

    def beside_known(self) -> None:
        """Take the neighbours of rows known for certain, as long as they say the same."""
        anchors = sorted(self.known.rows)
        if not anchors or not self._open():
            return
        seqs = [self.known.rows[position].seq for position in anchors]
        reach = len(self._batch.messages)
        first = max(min(seqs) - reach, 1)
        span = max(seqs) + reach - first + 1
        if span > 4 * reach + len(anchors):
            return  # scattered over the record: no stretch of it was sent again
        rows = known_rows.after(self._db, self._number, first - 1, span)
        by_seq = {row.seq: row for row in rows}
        for position in anchors:
            for step in (-1, 1):
                self._walk(position, step, by_seq)

    def by_place(self) -> None:
        """Take rows that stand between known neighbours and are another form of the message."""
        for begin, end in _runs([position for position, _ in self._open()]):
            before, after = self.known.rows.get(begin - 1), self.known.rows.get(end)
            if self._batch.source == "live" and (before is None or after is None):
                continue
            self._take_revised(range(begin, end), self._rows_between(before, after, end - begin))

    def _rows_in_order(self, identities: list[bytes]) -> list[KnownRow]:
        """Return the rows that say the same, in order, as far as this transcript may have shown
        them."""
        if self._batch.source == "transcript":
            only_unclaimed = not self._own
            return known_rows.by_identity(
                self._db, self._number, identities, unclaimed_only=only_unclaimed
            )
        rows = {
            row.message_id: row
            for row in known_rows.by_identity(
                self._db, self._number, identities, unclaimed_only=True
            )
        }
        # What a transcript lost and shows again stands right behind its cursor.
        start, wanted = self._resumes_after or 0, set(identities)
        for row in known_rows.after(self._db, self._number, start, len(identities) + _SLACK):
            if row.identity in wanted:
                rows[row.message_id] = row
        return sorted(rows.values(), key=lambda row: row.seq)

    def _open(self) -> list[tuple[int, Message]]:
        return [(n, m) for n, m in enumerate(self._batch.messages) if n not in self.known.rows]

    def _take(self, position: int, row: KnownRow, revision: str = "") -> None:
        self.known.rows[position] = row
        self._taken.add(row.message_id)
        if revision:
            self.known.revisions[position] = revision

    def _is_free(self, row: KnownRow, message: Message) -> bool:
        """Tell whether no other message of the batch, or entry of the transcript, is this row."""
        if row.message_id in self._taken or self._is_behind(row):
            return False
        if row.entry_id is None or message.entry_id in (None, row.entry_id):
            return True
        return self._batch.source == "transcript" and not self._batch.in_transcript(row.entry_id)

    def _is_untouched(self, row: KnownRow) -> bool:
        """Tell whether a row is free for a message that names neither its id nor its time."""
        if row.message_id in self._taken:
            return False
        if not row.claimed or self._batch.source == "live":
            return True
        if row.entry_id is not None and self._batch.in_transcript(row.entry_id):
            return False
        return row.transcript_id in self._own and not self._is_behind(row)

    def _is_behind(self, row: KnownRow) -> bool:
        """Tell whether a row was met in the part of the transcript that was read before."""
        return bool(row.claimed) and row.seq <= (self._resumes_after or 0)

    def _may_be(self, row: KnownRow, message: Message) -> bool:
        return self._is_free(row, message) and _times_agree(row, message)

    def _change(self, row: KnownRow, message: Message) -> str | None:
        """Return in which way a message is another form of a row that bears its id."""
        if row.role == message.role and _are_of_one_time(row, message):
            return EDITED
        return self._revision(row, message) if _times_agree(row, message) else None

    def _revision(self, row: KnownRow, message: Message) -> str | None:
        if row.role != message.role:
            return None
        content, flags, blob = known_rows.raw_of(self._db, row.message_id)
        return self._batch.revision_of(self._codec.unpack(flags, blob, content), message)

    def _take_aligned(
        self, rows: Sequence[KnownRow], waiting: Sequence[tuple[int, Message]]
    ) -> None:
        """Take rows in order; from the head where the batch goes on where the last one ended."""
        head = 0
        if rows and (self._resumes_after is not None or rows[0].seq == 1):
            while head < min(len(rows), len(waiting)) and (
                rows[head].identity == waiting[head][1].identity
                and self._may_be(rows[head], waiting[head][1])
            ):
                self._take(waiting[head][0], rows[head])
                head += 1
        rows, waiting = rows[head:], waiting[head:]
        stretch = _last_stretch(rows, waiting)
        if stretch is not None:
            places = list(range(stretch, stretch + len(waiting)))
        else:
            places = align(
                _digests(row.identity for row in rows),
                _digests(message.identity for _, message in waiting),
            ).tolist()
        for (position, message), place in zip(waiting, places, strict=True):
            if place >= 0 and self._may_be(rows[place], message):
                self._take(position, rows[place])

    def _take_overlap(self, rows: Sequence[KnownRow]) -> None:
        """Take the longest end of the rows that is a beginning of the batch."""
        for length in range(len(rows), 0, -1):
            if self._is_head(rows[-length:]):
                self._take_all(rows[-length:])
                return

    def _take_head(self, rows: Sequence[KnownRow]) -> bool:
        if not rows or not self._is_head(rows):
            return False
        self._take_all(rows)
        return True

    def _is_head(self, rows: Sequence[KnownRow]) -> bool:
        messages = self._batch.messages
        return len(rows) <= len(messages) and all(
            row.identity == message.identity and _times_agree(row, message)
            for row, message in zip(rows, messages, strict=False)
        )

    def _take_all(self, rows: Sequence[KnownRow]) -> None:
        for position, row in enumerate(rows):
            if position not in self.known.rows:
                self._take(position, row)

    def _take_changed_head(
        self, rows: Sequence[KnownRow], waiting: Sequence[tuple[int, Message]]
    ) -> None:
        """Take the whole record when it comes again with some messages in another form."""
        places = align(
            _digests(row.identity for row in rows),
            _digests(message.identity for _, message in waiting),
        )
        same = {
            waiting[n][0]: rows[place]
            for n, place in enumerate(places.tolist())
            if place >= 0 and _times_agree(rows[place], waiting[n][1])
        }
        if len(same) < 2 or len(same) < _UNCHANGED_SHARE * len(rows):
            return
        trial = dict(same)
        revisions = {}
        free = 0  # first position that no row before took
        for row, (begin, end) in _between_matched(rows, same, len(self._batch.messages)):
            found = self._first_revision(row, range(max(begin, free), end))
            if found is None and row.excluded is None:
                return
            if found is not None:
                position, revisions[position] = found
                trial[position] = row
                free = position + 1
        for position, row in trial.items():
            self._take(position, row, revisions.get(position, ""))

    def _first_revision(self, row: KnownRow, positions: Iterable[int]) -> tuple[int, str] | None:
        """Return the first position that is another form of a row, and in which way."""
        for position in positions:
            message = self._batch.messages[position]
            if position in self.known.rows or not self._may_be(row, message):
                continue
            kind = self._revision(row, message)
            if kind is not None:
                return position, kind
        return None

    def _walk(self, position: int, step: int, by_seq: dict[int, KnownRow]) -> None:
        seq = self.known.rows[position].seq
        while True:
            position, seq = position + step, seq + step
            row = by_seq.get(seq)
            if row is None or position in self.known.rows:
                return
            if not 0 <= position < len(self._batch.messages):
                return
            message = self._batch.messages[position]
            if row.identity != message.identity or not self._may_be(row, message):
                return
            self._take(position, row)

    def _rows_between(
        self, before: KnownRow | None, after: KnownRow | None, count: int
    ) -> list[KnownRow]:
        start = before.seq if before else self._resumes_after
        limit = count + _SLACK
        if start is None and after is None:
            start = known_rows.last_shown_seq(self._db, self._number)
        if start is None:
            assert after is not None
            return known_rows.before(self._db, self._number, after.seq, limit)
        rows = known_rows.after(self._db, self._number, start, limit)
        return [row for row in rows if after is None or row.seq < after.seq]

    def _take_revised(self, positions: Iterable[int], rows: Sequence[KnownRow]) -> None:
        begin = 0
        for number, position in enumerate(positions):
            message = self._batch.messages[position]
            for n in range(begin, min(len(rows), max(begin, number) + _SLACK)):
                row = rows[n]
                if not (self._may_be(row, message) and self._is_untouched(row)):
                    continue
                kind = self._revision(row, message)
                if kind is not None:
                    self._take(position, row, kind)
                    begin = n + 1
                    break


def _says_the_same(row: KnownRow, message: Message) -> bool:
    return row.identity == message.identity and _times_agree(row, message)


def _are_of_one_time(row: KnownRow, message: Message) -> bool:
    return bool(row.timed and message.timed) and row.created_at == message.created_at


def _times_agree(row: KnownRow, message: Message) -> bool:
    return not (row.timed and message.timed) or row.created_at == message.created_at


def _is_exactly_timed(message: Message) -> bool:
    """Tell whether a message's own time is fine enough that no other says the same at it."""
    time = message.created_at or ""
    return message.timed == OWN_TIME and message.entry_id is not None and not time.endswith(".000Z")


def _digests(identities: Iterable[bytes]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.frombuffer(b"".join(one[:8] for one in identities), dtype=np.int64)


def _between_matched(
    rows: Sequence[KnownRow], matched: dict[int, KnownRow], end: int
) -> Iterator[tuple[KnownRow, tuple[int, int]]]:
    """Yield each row that is not matched, with the positions between its matched neighbours."""
    at = {row.message_id: position for position, row in matched.items()}
    following = [end] * (len(rows) + 1)
    for n in range(len(rows) - 1, -1, -1):
        following[n] = at.get(rows[n].message_id, following[n + 1])
    begin = 0
    for n, row in enumerate(rows):
        if row.message_id in at:
            begin = at[row.message_id] + 1
        else:
            yield row, (begin, following[n])


def _last_stretch(rows: Sequence[KnownRow], waiting: Sequence[tuple[int, Message]]) -> int | None:
    """Return where the rows say last what all the messages say, one after the other."""
    said = b"".join(row.identity for row in rows)
    wanted = b"".join(message.identity for _, message in waiting)
    size = len(wanted) // len(waiting) if waiting else 0
    found = said.rfind(wanted) if size else -1
    while found >= 0 and found % size:
        found = said.rfind(wanted, 0, found + len(wanted) - 1)
    return found // size if found >= 0 else None


def _runs(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Return the stretches of consecutive numbers, end exclusive."""
    runs: list[tuple[int, int]] = []
    for position in positions:
        if runs and runs[-1][1] == position:
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
    return runs
