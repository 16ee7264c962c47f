"""Store a batch: what is new of it in the record and the view, what came again where it stands.

One transaction, the caller's. Rows are built first, then inserted together. The number of
statements depends on the batch alone, never on the length of the conversation (design:
architecture, sections 3 and 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import apsw

from ..types import Message
from . import (
    branches,
    carried,
    commits,
    conversations,
    cursors,
    debt,
    known_rows,
    large_files,
    links,
    model_calls,
    quarantine,
)
from .codec import RecordCodec
from .floods import find_flood
from .placing import Places, Tail, make_room, move, out_of_order, place
from .recognise import Known, find_known
from .rows import Address, AppendOutcome, Batch, Conversation
from .seen_again import note_forms

__all__ = ["append"]

Packed = list[tuple[int, bytes]]


def append(
    db: apsw.Connection, address: Address, batch: Batch, packed: Packed, codec: RecordCodec
) -> AppendOutcome:
    """Store what is new of a batch; `packed` holds the packed raw bytes of its messages.

    Raises
    ------
    CommitConflictError
        The batch's advancement key was used for another payload.
    """
    conversation = conversations.resolve(db, address, batch.received_at)
    number = conversation.conversation_id
    if batch.commit is not None and commits.is_committed(db, number, batch.commit):
        return _repeated(number, batch)
    known = find_known(db, conversation, batch, codec)
    storing = _Storing(db, conversation, batch, packed, known)
    storing.set_floods_aside()
    storing.find_places()
    storing.build()
    storing.insert()
    storing.add_files(codec)
    revised = note_forms(db, number, batch, packed, known, codec, storing.transcript_id)
    moved = branches.follow(db, number, *storing.branch_changes())
    places, follow = storing.places_of_carried(), storing.is_anchored
    carried.keep(db, number, batch, places, codec, follow=follow)
    carried.keep_twins(db, number, batch, known.twins, storing.seq_before, codec)
    frontier_tokens = storing.count(moved)
    if batch.commit is not None:
        commits.note(db, number, batch.commit, batch.received_at)
    storing.move_cursor()
    is_in_debt = _leave_in_debt(db, number, batch, frontier_tokens)
    return storing.outcome(moved=moved, revised=revised, is_in_debt=is_in_debt)


def _leave_in_debt(db: apsw.Connection, number: int, batch: Batch, frontier_tokens: int) -> bool:
    """Note what the host told of its model call; tell whether the threshold is crossed."""
    if batch.debt is None:
        return False
    terms, now = batch.debt, batch.received_at
    if not terms.facts.is_empty:
        model_calls.note_facts(db, number, terms.facts, now)
    ratio = 1.0
    if terms.counter is not None:
        model_calls.learn(db, number, terms.facts, terms.counter, now)
        ratio = model_calls.ratio_of(db, number, terms.counter, terms.facts.model)
    return debt.request(db, number, frontier_tokens, ratio, terms, now)


def _repeated(conversation_id: int, batch: Batch) -> AppendOutcome:
    return AppendOutcome(
        conversation_id=conversation_id,
        message_ids=[],
        duplicates=len(batch.messages),
        tokens=0,
        moved=0,
        is_repeated_commit=True,
    )


@dataclass(slots=True)
class _Storing:
    """A batch on its way into the tables."""

    db: apsw.Connection
    conversation: Conversation
    batch: Batch
    packed: Packed
    known: Known
    new: list[int] = field(default_factory=list)
    same_as: dict[int, int] = field(default_factory=dict)  # an entry that stands twice in the batch
    quarantined: int = 0
    places: Places = field(default_factory=Places)
    seqs: dict[int, int] = field(default_factory=dict)  # position -> seq, for all but twins
    is_reordered: bool = False
    last_seq: int = 0
    begins_after: int = 0  # seq of the row before the batch's first message
    ids: dict[int, int] = field(default_factory=dict)  # position -> message id of the new
    tokens: int = 0
    shown_tokens: int = 0
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    items: list[tuple[Any, ...]] = field(default_factory=list)
    transcript_id: int | None = None

    def __post_init__(self) -> None:
        if self.batch.cursor is not None:
            number = self.conversation.conversation_id
            self.transcript_id = cursors.number_of(
                self.db, number, self.batch.cursor, self.batch.received_at
            )
        first_of: dict[tuple[str, bytes, str | None], int] = {}
        for position, message in enumerate(self.batch.messages):
            if position in self.known.rows:
                continue
            if message.entry_id is not None:
                entry = message.entry_id, message.identity, message.created_at
                first = first_of.setdefault(entry, position)
                if first != position:
                    self.same_as[position] = first
                    continue
            self.new.append(position)

    def set_floods_aside(self) -> None:
        """Put what the flood guard refuses into quarantine."""
        number = self.conversation.conversation_id
        last_known = max(self.known.rows, default=-1)
        flood = find_flood(self.db, number, self.batch, self.new, last_known)
        if flood is None:
            return
        self.quarantined = len(flood.positions)
        quarantine.set_aside(
            self.db,
            number,
            [self.batch.messages[n] for n in flood.positions],
            [self.packed[n] for n in flood.positions],
            flood.reason,
            self.batch.received_at,
        )
        refused = set(flood.positions)
        self.new = [position for position in self.new if position not in refused]

    def find_places(self) -> None:
        """Give every message of the batch its seq: make room for new ones, move misplaced ones."""
        number, last_seq = self.conversation.conversation_id, self.conversation.last_seq
        starts_after = known_rows.seq_of(self.db, self.batch.after)
        ends_before = self._ends_before()
        stored = {
            position: row.seq
            for position, row in sorted(self.known.rows.items())
            if position not in self.known.twins
        }
        misplaced = self._misplaced(stored, starts_after or 0)
        tail = Tail(self.db, number, last_seq)
        staying = {n: seq for n, seq in stored.items() if n not in misplaced}
        self.places = places = place(
            self.batch,
            staying,
            sorted([*self.new, *misplaced]),
            last_seq=last_seq,
            starts_after=starts_after,
            ends_before=ends_before,
            tail=tail,
        )
        if places.gaps:
            make_room(self.db, number, places, last_seq)
        self.seqs = {position: places.moved(seq) for position, seq in staying.items()}
        self.seqs |= places.seqs(last_seq)
        for position in misplaced:
            move(self.db, number, places.moved(stored[position]), self.seqs[position])
        self.seqs |= {n: self.seqs[first] for n, first in self.same_as.items()}
        self.is_reordered = bool(places.gaps or misplaced)
        self.last_seq = max([places.moved(last_seq), *self.seqs.values()])
        if starts_after is not None:
            self.begins_after = places.moved(starts_after)
        elif self.seqs:
            self.begins_after = self.seqs[min(self.seqs)] - 1
        elif self.batch.carried:
            self.begins_after = known_rows.last_shown_seq(self.db, number)

    def _ends_before(self) -> int | None:
        """Return the seq of the first row that a later batch of the transcript is."""
        row = known_rows.by_id(self.db, self.batch.before)
        if row is None or any(one.entry_id == row.entry_id for one in self.batch.messages):
            return None  # what this batch says of it is known already
        return row.seq

    def _misplaced(self, stored: dict[int, int], after: int) -> set[int]:
        """Return the positions whose rows stand otherwise than the transcript has them.

        What a summary covers stays where it is.
        """
        if self.batch.source == "live":
            return set()
        positions = list(stored)
        wrong = [positions[n] for n in out_of_order(list(stored.values()), after)]
        if not wrong:
            return set()
        ids = [self.known.rows[position].message_id for position in wrong]
        movable = known_rows.in_view(self.db, ids)
        rows = {position: self.known.rows[position] for position in wrong}
        return {n for n, row in rows.items() if row.excluded or row.message_id in movable}

    def build(self) -> None:
        """Make the rows of the new messages."""
        number = self.conversation.conversation_id
        next_id = _last_message_id(self.db) + 1
        openers = links.link(self.db, number, self.batch, self.new, self.seqs)
        keys = self._event_keys()
        for message_id, position in enumerate(self.new, next_id):
            message = self.batch.messages[position]
            seq, opener = self.seqs[position], openers.get(position, self.seqs[position])
            self.ids[position] = message_id
            self.tokens += message.token_count
            self.rows.append(
                (
                    message_id,
                    number,
                    seq,
                    message.role,
                    message.content,
                    message.token_count,
                    message.created_at or self.batch.received_at,
                    message.timed,
                    message.identity,
                    self._is_claim(message),
                    self.transcript_id,
                    message.entry_id,
                    message.parent_id,
                    keys.get(position),
                    message.excluded,
                    message.wire_tokens,
                    opener,
                    *self.packed[position],
                )
            )
            if message.excluded is None:
                self.items.append(
                    (number, seq, message_id, message.role, message.wire_tokens, opener)
                )
                self.shown_tokens += message.wire_tokens

    def insert(self) -> None:
        """Insert the rows."""
        self.db.executemany(
            "INSERT INTO messages (message_id, conversation_id, seq, role, content, token_count,"
            " created_at, timed, identity_hash, claimed, transcript_id, transcript_entry_id,"
            " parent_entry_id, stable_event_key, excluded, wire_tokens, opener_seq, raw_codec, raw)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            self.rows,
        )
        self.db.executemany(
            "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, role,"
            " depth, wire_tokens, opener) VALUES (?, ?, 'message', ?, ?, -1, ?, ?)",
            self.items,
        )
        if self.is_reordered:
            links.take_up_orphans(self.db, self.conversation.conversation_id)

    def add_files(self, codec: RecordCodec) -> None:
        """Note the payloads that are files of their own, and how their messages are shown."""
        with_files = [n for n in self.new if self.batch.messages[n].files]
        if not with_files:
            return
        large_files.insert(
            self.db,
            self.conversation.conversation_id,
            [(self.ids[n], file) for n in with_files for file in self.batch.messages[n].files],
            self.batch.received_at,
        )
        self.db.executemany(
            "UPDATE messages SET shown_codec = ?, shown = ? WHERE message_id = ?",
            [
                (*codec.pack(shown, ""), self.ids[n])
                for n in with_files
                if (shown := self.batch.messages[n].shown) is not None
            ],
        )

    def branch_changes(self) -> tuple[dict[int, str | None], dict[int, str | None]]:
        """Return, by seq, what was said and what a transcript now says of rows being in the view.

        Of an entry that stands in the batch twice the last copy counts.
        """
        was: dict[int, str | None] = {}
        now: dict[int, str | None] = {}
        if self.batch.source == "live":
            return was, now
        for position in sorted(self.seqs):
            message = self.batch.messages[position]
            if message.entry_id is None:
                continue
            seq = self.seqs[position]
            row = self.known.rows.get(position)
            if row is not None:
                was[seq] = row.excluded
            elif position not in self.same_as:
                was[seq] = message.excluded
            now[seq] = message.excluded
        return was, now

    def seq_before(self, position: int) -> int:
        """Return the seq of the nearest message that stands before a position of the batch."""
        return next(
            (self.seqs[n] for n in range(position - 1, -1, -1) if n in self.seqs),
            self.begins_after,
        )

    @property
    def is_anchored(self) -> bool:
        """Whether some message tells where the batch stands."""
        return bool(self.seqs) or self.batch.after is not None

    def places_of_carried(self) -> list[int]:
        """Return the seq after which each of the batch's carried entries stands."""
        return [self.seq_before(entry.after) for entry in self.batch.carried]

    def count(self, moved: int) -> int:
        """Add what is new to the conversation's counters; return the frontier's tokens.

        `moved` rows have changed between being in the view and not.
        """
        if not self.new and not self.is_reordered:
            return self._frontier_tokens() if moved else self.conversation.frontier_tokens
        rows = self.db.execute(
            "UPDATE conversations SET last_seq = :last_seq,"
            " message_count = message_count + :n, message_tokens = message_tokens + :tokens,"
            " excluded_count = excluded_count + :excluded,"
            " frontier_items = frontier_items + :items,"
            " frontier_tokens = frontier_tokens + :shown,"
            " view_revision = view_revision + :reordered,"
            " last_ingest_at = CASE WHEN :n THEN :now ELSE last_ingest_at END, updated_at = :now"
            " WHERE conversation_id = :id RETURNING frontier_tokens",
            {
                "last_seq": self.last_seq,
                "n": len(self.new),
                "tokens": self.tokens,
                "excluded": len(self.new) - len(self.items),
                "items": len(self.items),
                "shown": self.shown_tokens,
                "reordered": self.is_reordered,
                "now": self.batch.received_at,
                "id": self.conversation.conversation_id,
            },
        )
        return int(next(rows)[0])

    def _frontier_tokens(self) -> int:
        rows = self.db.execute(
            "SELECT frontier_tokens FROM conversations WHERE conversation_id = ?",
            (self.conversation.conversation_id,),
        )
        return int(next(rows)[0])

    def move_cursor(self) -> None:
        """Put the transcript's cursor behind the batch's last row."""
        if self.batch.cursor is None or self.transcript_id is None:
            return
        cursor = self.batch.cursor.behind(self._last_row())
        cursors.move(self.db, self.transcript_id, cursor, self.batch.received_at)

    def outcome(self, *, moved: int, revised: int, is_in_debt: bool) -> AppendOutcome:
        """Return what was done."""
        return AppendOutcome(
            conversation_id=self.conversation.conversation_id,
            message_ids=[self.ids[position] for position in self.new],
            duplicates=len(self.batch.messages) - len(self.new) - self.quarantined,
            tokens=self.tokens,
            moved=moved,
            quarantined=self.quarantined,
            revised=revised,
            last=self._last_row(),
            is_in_debt=is_in_debt,
        )

    def _last_row(self) -> int | None:
        for position in range(len(self.batch.messages) - 1, -1, -1):
            origin = self.same_as.get(position, position)
            if origin in self.ids:
                return self.ids[origin]
            if origin in self.known.rows and origin not in self.known.twins:
                return self.known.rows[origin].message_id
        return self.batch.after

    def _is_claim(self, message: Message) -> bool:
        return self.batch.source != "live" or message.entry_id is not None

    def _event_keys(self) -> dict[int, str]:
        """Return the event keys that may be stored: an event stands in one row only."""
        used = set(self.known.event_keys)
        free = {}
        for position in self.new:
            key = self.batch.messages[position].event_key
            if key is not None and key not in used:
                free[position] = key
                used.add(key)
        return free


def _last_message_id(db: apsw.Connection) -> int:
    rows = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'")
    return next((int(seq) for (seq,) in rows), 0)
