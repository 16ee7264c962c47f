"""Read a transcript into a conversation: what is new of it, from where it was read to.

A transcript that has only grown is read from its end; any other is read whole, and what is stored
is recognised by the store. One that repeats what is stored in a form that cannot be told from new
is held back, with its age in `status`, until it can be told (spec: storage 3; decisions 11 and 13).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ..store import Address, Batch, Conversation, Cursor
from ..transcripts import AnyTranscript
from ..types import UNTIMED, Message
from .forks import NO_FORK, Fork, find_fork
from .normalise import message_from_entry, revision_of, storable
from .reading import Reading, Start
from .results import BootstrapResult
from .services import Services

__all__ = ["ingest_transcript"]

UP_TO_DATE = "already bootstrapped"
RECONCILED = "reconciled missing session messages"
FORK_BOUNDED = "fork-bounded bootstrap import"
HELD_BACK = "reconcile duplicate transcript replay"

_IDS_AT_ONCE = 2000
_WEIGHED_MESSAGES = 5000
_FEWEST_REPEATS = 3


def ingest_transcript(
    services: Services,
    transcript: AnyTranscript,
    address: Address,
    *,
    progress: Callable[[int, int], None],
    admit: bool = False,
) -> BootstrapResult:
    """Store what is new of a transcript.

    Parameters
    ----------
    progress
        Called after each batch with bytes read and bytes in all.
    admit
        Store a transcript that is held back.

    Raises
    ------
    SessionFileError
        The file is no session: no header and no message can be read in it; nothing is stored.
    """
    started = time.perf_counter()
    conversation = services.store.find_conversation(address)
    start = _start(services, transcript, conversation)
    if isinstance(start, Cursor):
        return _nothing_new(transcript, address, conversation, start)
    if conversation is not None and start.is_unanchored and not admit:
        reason = _why_held_back(services, transcript, conversation, start)
        if reason is not None:
            return _hold_back(services, transcript, address, conversation, reason)
    reading = Reading(services, transcript, address, start)
    for entry in transcript:
        if reading.is_full(entry):
            offset = reading.flush()
            progress(offset, transcript.size)
        reading.take(entry)
    reading.finish()
    progress(transcript.size, transcript.size)
    return reading.result((time.perf_counter() - started) * 1000, _reason(reading, conversation))


def _start(
    services: Services, transcript: AnyTranscript, conversation: Conversation | None
) -> Start | Cursor:
    """Return where and how to read, or the cursor behind which nothing is new."""
    path = storable(str(Path(transcript.path).absolute()))
    if conversation is None or not conversation.message_count:
        return Start(path, fork=find_fork(transcript, services))
    number = conversation.conversation_id
    cursor = services.store.cursor(number, path)
    if cursor is not None and cursor.frozen_since is None:
        if (cursor.size, cursor.mtime_ns) == (transcript.size, transcript.mtime_ns):
            return cursor
        if _has_only_grown(transcript, cursor):
            transcript.read_on_from(cursor.offset)
            return Start(
                path,
                source="appended",
                offset=cursor.offset,
                last_entry_id=cursor.last_entry_id,
                messages=cursor.messages,
                after=cursor.last_message_id,
                fork=Fork(cursor.shown_from, cursor.shown_from_id),
            )
    in_transcript = _membership(transcript.entry_ids())
    return Start(
        path,
        before=_first_known(services, transcript, number),
        is_unanchored=True,
        in_transcript=in_transcript,
        fork=_fork_again(services, transcript, cursor, in_transcript),
    )


def _fork_again(
    services: Services,
    transcript: AnyTranscript,
    cursor: Cursor | None,
    in_transcript: Callable[[str], bool],
) -> Fork:
    """Return where a session that is read whole once more begins to show: where it did before."""
    if cursor is None:
        return find_fork(transcript, services)
    fork = Fork(cursor.shown_from, cursor.shown_from_id)
    is_there = fork.first_shown_id is None or in_transcript(fork.first_shown_id)
    return fork if is_there else NO_FORK


def _has_only_grown(transcript: AnyTranscript, cursor: Cursor) -> bool:
    return (
        cursor.offset <= transcript.size
        and transcript.fingerprint(cursor.offset) == cursor.fingerprint
        and transcript.goes_on_from(cursor.offset, cursor.last_entry_id)
    )


def _first_known(services: Services, transcript: AnyTranscript, number: int) -> int | None:
    """Return the message id of the first entry of a transcript that is stored."""
    ids = map(storable, transcript.entry_ids())
    while some := list(itertools.islice(ids, _IDS_AT_ONCE)):
        found = services.store.first_known(number, some)
        if found is not None:
            return found
    return None


def _membership(entry_ids: Iterator[str]) -> Callable[[str], bool]:
    """Return a test for being one of these ids, in eight bytes an id.

    Two ids with one digest are taken for each other, which stores an entry anew rather than not at
    all.
    """
    digests = np.unique(np.fromiter((hash(storable(one)) for one in entry_ids), dtype=np.int64))

    def contains(entry_id: str) -> bool:
        place = int(np.searchsorted(digests, hash(entry_id)))
        return place < len(digests) and int(digests[place]) == hash(entry_id)

    return contains


def _why_held_back(
    services: Services, transcript: AnyTranscript, conversation: Conversation, start: Start
) -> str | None:
    """Return why a transcript cannot be told from a replay, None when it can.

    It cannot when nothing of it is known for certain, half of it or more says what is stored, and
    its times do not show that it is later.
    """
    messages = list(itertools.islice(_messages(services, transcript), _WEIGHED_MESSAGES))
    batch = Batch(
        messages=messages,
        received_at=services.now(),
        source="transcript",
        cursor=_cursor_at_start(transcript),
        in_transcript=start.in_transcript,
        revision_of=revision_of,
    )
    number = conversation.conversation_id
    known, repeated = services.store.recognise(number, batch)
    is_known_further_on = start.before is not None and len(messages) == _WEIGHED_MESSAGES
    if known or is_known_further_on or repeated < max(_FEWEST_REPEATS, (len(messages) + 1) // 2):
        return None
    if _are_later(services, conversation, messages):
        return None
    return (
        f"{HELD_BACK}: {repeated} of {len(messages)} messages say what is stored, with other ids"
        " and times"
    )


def _messages(services: Services, transcript: AnyTranscript) -> Iterator[Message]:
    found = (message_from_entry(entry, services.count_tokens) for entry in transcript)
    return (message for message in found if message is not None)


def _are_later(services: Services, conversation: Conversation, messages: list[Message]) -> bool:
    newest = services.store.messages_page(
        conversation.conversation_id, after_seq=conversation.last_seq - 1, limit=1
    )
    return all(
        message.timed != UNTIMED and (message.created_at or "") > newest[-1].created_at
        for message in messages
    )


def _hold_back(
    services: Services,
    transcript: AnyTranscript,
    address: Address,
    conversation: Conversation,
    reason: str,
) -> BootstrapResult:
    cursor = _cursor_at_start(transcript)
    services.store.freeze(conversation.conversation_id, cursor, reason, services.now())
    return BootstrapResult(
        session_key=address.session_key,
        session_id=address.session_id,
        conversation_id=conversation.conversation_id,
        format=transcript.format,
        bytes_read=transcript.report.bytes_read,
        reason=reason,
        is_frozen=True,
    )


def _cursor_at_start(transcript: AnyTranscript) -> Cursor:
    return Cursor(
        path=storable(str(Path(transcript.path).absolute())),
        header_id=transcript.session_id and storable(transcript.session_id),
        size=transcript.size,
        mtime_ns=transcript.mtime_ns,
        offset=0,
        last_entry_id=None,
    )


def _nothing_new(
    transcript: AnyTranscript, address: Address, conversation: Conversation | None, cursor: Cursor
) -> BootstrapResult:
    return BootstrapResult(
        session_key=address.session_key,
        session_id=address.session_id,
        conversation_id=conversation.conversation_id if conversation else None,
        format=transcript.format,
        duplicates=cursor.messages,
        pending_bytes=transcript.size - cursor.offset,
        reason=UP_TO_DATE,
    )


def _reason(reading: Reading, conversation: Conversation | None) -> str | None:
    if reading.start.fork.hidden and not reading.start.messages:
        return FORK_BOUNDED
    if conversation is None or not conversation.message_count:
        return None
    return RECONCILED if reading.ingested else UP_TO_DATE
