"""The engine: what a host embeds.

Orchestrates the layers and holds their policy; has no SQL and no kernel of its own (design:
architecture, section 3).

Threading: an engine may be used from any thread; calls for different conversations do not wait for
one another other than to commit together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from .. import compaction, ingest
from ..assembly import Assembly, AssemblyRequest, MessagePieces, assemble, check_budget
from ..assembly.pieces import summary_tokens
from ..assembly.recently_used import RecentlyUsed
from ..compaction import CompactionResult
from ..config import Config, system_zone
from ..errors import ConfigError, MessageError, NotFoundError, SessionFileError
from ..ingest import (
    BootstrapResult,
    CommitResult,
    FileDescription,
    IngestResult,
    SessionPolicy,
    TurnResult,
    address,
)
from ..store import Address, Frontier, PayloadFolder, QuarantinedBatch, Store
from ..transcripts import AnyTranscript
from .record_access import RecordAccess

__all__ = ["DEFAULT_TOKEN_BUDGET", "Engine"]

DEFAULT_TOKEN_BUDGET = 128_000
_REMEMBERED_FRONTIERS = 64
_REMEMBERED_ASSEMBLIES = 100


class Engine(RecordAccess):
    """A memory of conversations. Made by `open_engine`; a context manager that closes itself.

    Attributes
    ----------
    store, config
        What it works on, and with which settings.
    timezone
        IANA name of the zone in which times are shown.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        summarizer: Any,
        count_tokens: Callable[[str], int],
        *,
        now: Callable[[], str] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(store)
        self.config = config
        self.timezone = config.timezone or system_zone()
        self._summarizer = summarizer
        self._count_tokens = count_tokens
        self._now = now or _utc_now
        self._monotonic = monotonic
        self._frontiers: RecentlyUsed[Frontier] = RecentlyUsed(_REMEMBERED_FRONTIERS)
        self._pieces = MessagePieces(store, count_tokens)
        self._assemblies: RecentlyUsed[list[int]] = RecentlyUsed(_REMEMBERED_ASSEMBLIES)
        self._folder = PayloadFolder(config.large_files_folder(store.path))
        self._ingest = ingest.services_of(store, config, self._folder, count_tokens, self._now)
        self._sessions = SessionPolicy(
            config.ignore_session_patterns,
            config.stateless_session_patterns,
            skip_stateless=config.skip_stateless_sessions,
        )

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        self.store.close()

    def ingest(
        self,
        messages: Iterable[Any],
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        is_heartbeat: bool = False,
    ) -> IngestResult:
        """Store a batch of messages, all of it or nothing.

        A message is known again by its entry id, by a provider's own id, by its time and content,
        or as part of the whole history sent once more; anything else is stored as new. Users who
        repeat themselves too often within a second are taken for a replay and set aside.

        Parameters
        ----------
        messages
            Dicts in OpenClaw, pi, OpenAI or Anthropic shape, or session entries that carry one.
        session_key, session_id
            The conversation: by key first, then by id; made when there is none. Default: the key
            ``"default"``.
        is_heartbeat
            The turn answers a heartbeat poll; with ``pruneHeartbeatOk`` it is kept out of the view.

        Raises
        ------
        MessageError
            Naming index and field of a malformed message; nothing of the batch is stored.
        StoreBusyError, StoreFullError, DatabaseError
            As the store found it; nothing of the batch is stored.

        Complexity: linear in the batch, whatever the length of the conversation.
        """
        self._check_enabled()
        place = address(session_key, session_id)
        reason = self._sessions.why_not_stored(place.session_key, place.session_id)
        if reason is not None:
            return IngestResult(session_key=session_key, reason=reason)
        return ingest.ingest_batch(self._ingest, messages, place, is_heartbeat=is_heartbeat)

    def commit_turn(
        self,
        advancement_key: str,
        messages: Iterable[Any],
        *,
        session_key: str | None = None,
        session_id: str | None = None,
    ) -> CommitResult:
        """Store a turn exactly once under a key of the host's.

        Parameters
        ----------
        advancement_key
            Any text that names the turn within its conversation.
        messages, session_key, session_id
            As for `ingest`. The flood guard does not apply: the key is proof enough.

        Returns
        -------
        CommitResult
            Its status is ``"committed"``, or ``"duplicate"`` when this turn was committed before.

        Raises
        ------
        CommitConflictError
            The key was used for other messages; nothing is stored.
        MessageError
            A message is malformed, or the key is blank; nothing is stored.
        StoreBusyError, StoreFullError, DatabaseError
            As the store found it; nothing is stored, and the call may be made again.
        """
        self._check_enabled()
        if not advancement_key.strip():
            raise MessageError("advancement_key is blank", hint="name the turn, such as its run id")
        place = address(session_key, session_id)
        reason = self._sessions.why_not_stored(place.session_key, place.session_id)
        if reason is not None:
            return CommitResult("skipped", advancement_key, reason=reason)
        return ingest.commit_turn(self._ingest, advancement_key, messages, place)

    def bootstrap(
        self,
        session_file: str | os.PathLike[str],
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        admit: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> BootstrapResult:
        """Store what a session file holds and the record does not.

        A file that has only grown is read from where it was read to. One that was written anew is
        read whole: messages missing in the middle are filled in where they stand.

        Parameters
        ----------
        session_file
            OpenClaw or pi session, a list of messages as a JSON array or JSON lines, or an OpenClaw
            agent's database; of one with several sessions `session_id` says which.
        session_key
            Default: the file's name without extension.
        admit
            Store a file that is held back because it repeats what is stored.

        Returns
        -------
        BootstrapResult
            A file that is held back has ``is_frozen``, and is named in `status`.

        Raises
        ------
        NotFoundError, SessionFileError
            No such file; nothing in it can be read as a session.

        Complexity: linear in what was added to the file since the last read.
        """
        self._check_enabled()
        with ingest.open_source(session_file, session_id) as transcript:
            place = ingest.address_of(self.store, transcript, session_key, session_id)
            return self._read(transcript, place, session_key, admit=admit, progress=progress)

    def after_turn(
        self,
        messages: Iterable[Any],
        *,
        session_file: str | os.PathLike[str] | None = None,
        session_key: str | None = None,
        session_id: str | None = None,
        is_heartbeat: bool = False,
    ) -> TurnResult:
        """Store a turn from both of its sources: the session file, and the messages themselves.

        What the file shows is stored from there; what it lacks yet is stored from `messages` and
        recognised when the file catches up. A file that is not there yet is not an error.

        Parameters
        ----------
        messages, session_key, session_id, is_heartbeat
            As for `ingest`.
        session_file
            As for `bootstrap`.

        Raises
        ------
        MessageError, SessionFileError, StoreBusyError, StoreFullError, DatabaseError
            As for `ingest` and `bootstrap`.
        """
        self._check_enabled()
        place = address(session_key, session_id)
        transcript = None
        if session_file is not None:
            transcript = self._read_if_there(session_file, session_id, place, session_key)
        reason = self._sessions.why_not_stored(place.session_key, place.session_id)
        if reason is not None:
            return TurnResult(transcript, IngestResult(session_key=session_key, reason=reason))
        batch = ingest.ingest_batch(
            self._ingest,
            messages,
            place,
            is_heartbeat=is_heartbeat,
            is_covered=transcript is not None and not transcript.is_frozen,
        )
        return TurnResult(transcript, batch)

    def describe(self, file_id: str, *, expand_file: bool = False) -> FileDescription:
        """Return what the file of a large payload holds, and its bytes where they are asked for.

        Parameters
        ----------
        file_id
            An id such as ``file_0123456789abcdef``, or the whole reference that names it.
        expand_file
            Read the content back; a file that was lost is written again from the record.

        Raises
        ------
        NotFoundError
            No such file, or the text names none or more than one.
        """
        return ingest.describe_file(
            self.store,
            self._folder,
            file_id,
            expand_file=expand_file,
            threshold_tokens=self.config.large_file_threshold_tokens,
            count_tokens=self._count_tokens,
        )

    def quarantined(
        self, *, session_key: str | None = None, limit: int = 50
    ) -> list[QuarantinedBatch]:
        """Return the batches that the flood guard set aside and that wait, oldest first.

        Raises
        ------
        NotFoundError
            There is no conversation of this key.
        """
        number = None
        if session_key is not None:
            number = self.conversation(session_key=session_key).conversation_id
        return self.store.quarantined(number, limit=limit)

    def admit(self, batch_id: str) -> IngestResult:
        """Store a batch that was set aside after all, at the end of its conversation.

        Raises
        ------
        NotFoundError
            No batch of this id waits.
        """
        self._check_enabled()
        return ingest.admit_batch(self._ingest, batch_id)

    def drop(self, batch_id: str) -> int:
        """Leave a batch that was set aside where it is for good; return its number of messages.

        Raises
        ------
        NotFoundError
            No batch of this id waits.
        """
        return self.store.drop(batch_id, self._now())

    def assemble(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        token_budget: int,
        prompt: str | None = None,
    ) -> Assembly:
        """Return the context for the next model call, within `token_budget`.

        Parameters
        ----------
        token_budget
            Tokens of the whole output, at least 256; ``maxAssemblyTokenBudget`` caps it.
        prompt
            The user's next message, when it is sent after this context: room for it is kept free.

        Raises
        ------
        BudgetTooSmallError
            Below 256, or not even what must stay fits with its texts cut away.

        Complexity: linear in the frontier, in kernels; rows are read for what is chosen.
        """
        self._check_enabled()
        budget = self._capped(token_budget)
        prompt_tokens = self._count_tokens(prompt) if prompt else 0
        check_budget(budget, prompt_tokens)
        found = self.store.frontier(address(session_key, session_id), self._frontiers)
        if found is None:
            return Assembly.nothing(budget)
        conversation, frontier = found
        number = conversation.conversation_id
        self._frontiers.put(number, frontier)
        request = AssemblyRequest(
            budget_tokens=budget,
            prompt_tokens=prompt_tokens,
            fresh_tail_count=self.config.fresh_tail_count,
            fresh_tail_max_tokens=self.config.fresh_tail_max_tokens,
            timezone=self.timezone,
            count_tokens=self._count_tokens,
            previous=self._assemblies.get(number) or (),
        )
        assembly, digests = assemble(self.store, self._pieces, conversation, frontier, request)
        self._assemblies.put(number, digests)
        return assembly

    def compact(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        token_budget: int = DEFAULT_TOKEN_BUDGET,
        force: bool = False,
        target: str = "threshold",
        instructions: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> CompactionResult:
        """Summarise old messages until the conversation is under its target.

        Parameters
        ----------
        token_budget
            The context window to fit, in tokens; ``maxAssemblyTokenBudget`` caps it.
        force
            Do one sweep over all that is outside the fresh tail even when under the target.
        target
            ``"threshold"``: ``contextThreshold`` of the budget. ``"budget"``: the budget itself.
        instructions
            For the summariser, instead of ``customInstructions``.
        progress
            Called with a line for people after each sweep.

        Returns
        -------
        CompactionResult
            A summariser's failure is a status of it, not an exception; what was published before
            stays.

        Raises
        ------
        BudgetTooSmallError
            The budget is below 256.
        ConfigError
            `target` is neither of the two.

        Threading: the summariser is called without any lock or transaction; turns go on meanwhile.
        """
        self._check_enabled()
        if target not in ("threshold", "budget"):
            raise ConfigError(f"target is {target!r}", hint="one of: threshold, budget")
        budget = self._capped(token_budget)
        check_budget(budget)
        threshold = int(self.config.context_threshold * budget)
        goal = threshold if target == "threshold" else budget
        place = address(session_key, session_id)
        reason = self._sessions.why_not_stored(place.session_key, place.session_id)
        if reason is not None:
            return CompactionResult("nothing", reason, 0, 0, goal)
        services = compaction.Services(
            store=self.store,
            config=self.config,
            timezone=self.timezone,
            summarizer=self._summarizer,
            count_tokens=self._count_tokens,
            wire_tokens=lambda row: summary_tokens(row, self.timezone, self._count_tokens),
            now=self._now,
            monotonic=self._monotonic,
            progress=progress or (lambda line: None),
        )
        return compaction.compact(
            services,
            place,
            target_tokens=goal,
            prefix_target_tokens=self.config.summary_prefix_target(budget),
            force=force,
            instructions=self.config.custom_instructions if instructions is None else instructions,
        )

    def _read_if_there(
        self,
        session_file: str | os.PathLike[str],
        session_id: str | None,
        place: Address,
        session_key: str | None,
    ) -> BootstrapResult | None:
        try:
            with ingest.open_source(session_file, session_id) as source:
                return self._read(source, place, session_key)
        except NotFoundError:
            return None
        except SessionFileError as error:
            if error.code == "empty_file":
                return None
            raise

    def _read(
        self,
        transcript: AnyTranscript,
        place: Address,
        session_key: str | None,
        *,
        admit: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> BootstrapResult:
        # Without a key given, the place has one made of the file's name: either name may match.
        reason = self._sessions.why_not_stored(
            place.session_key, place.session_id
        ) or self._sessions.why_not_stored(session_key, place.session_id)
        if reason is not None:
            return BootstrapResult(
                session_key=place.session_key,
                session_id=place.session_id,
                conversation_id=None,
                format=transcript.format,
                reason=reason,
            )
        return ingest.ingest_transcript(
            self._ingest,
            transcript,
            place,
            admit=admit,
            progress=progress or (lambda done, total: None),
        )

    def _capped(self, token_budget: int) -> int:
        cap = self.config.max_assembly_token_budget
        return min(token_budget, cap) if cap else token_budget

    def _check_enabled(self) -> None:
        if not self.config.enabled:
            source = self.config.sources.get("enabled", "configuration")
            raise ConfigError(
                f"enabled is false, from {source}: nothing is stored or assembled",
                code="disabled",
                hint="set enabled to true",
            )


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
