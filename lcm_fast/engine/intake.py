"""What goes into the record: turns, session files, and what the flood guard set aside.

Says for every turn whether its conversation is over its threshold now, and has it compacted where
that is due before the call returns (design: architecture, section 3).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from .. import ingest
from ..assembly.recently_used import RecentlyUsed
from ..compaction import CompactionResult
from ..compaction.usage import observed_prompt_tokens
from ..config import Config
from ..errors import ConfigError, MessageError, NotFoundError, SessionFileError
from ..ingest import (
    BootstrapResult,
    CommitResult,
    FileDescription,
    IngestResult,
    Services,
    SessionPolicy,
    address,
)
from ..store import NO_FACTS, Address, CallFacts, PayloadFolder, QuarantinedBatch, SentPrompt, Store
from ..transcripts import AnyTranscript
from .record_access import RecordAccess
from .results import TurnResult
from .upkeep import Upkeep

__all__ = ["DEFAULT_TOKEN_BUDGET", "Intake"]

_LOG = logging.getLogger(__name__)

DEFAULT_TOKEN_BUDGET = 128_000
_REMEMBERED_BUDGETS = 1024
_REMEMBERED_PROMPTS = 1024


class Intake(RecordAccess):
    """The writing half of an engine."""

    def __init__(
        self,
        store: Store,
        config: Config,
        upkeep: Upkeep,
        count_tokens: Callable[[str], int],
        now: Callable[[], str],
    ) -> None:
        super().__init__(store)
        self.config = config
        self.upkeep = upkeep
        self._count_tokens = count_tokens
        self._now = now
        self._folder = PayloadFolder(config.large_files_folder(store.path))
        self._ingest = ingest.services_of(store, config, self._folder, count_tokens, now)
        self._sessions = SessionPolicy(
            config.ignore_session_patterns,
            config.stateless_session_patterns,
            skip_stateless=config.skip_stateless_sessions,
        )
        self._budgets: RecentlyUsed[int] = RecentlyUsed(_REMEMBERED_BUDGETS)
        self._services_by_budget: RecentlyUsed[Services] = RecentlyUsed(_REMEMBERED_BUDGETS)
        self._sent: RecentlyUsed[SentPrompt] = RecentlyUsed(_REMEMBERED_PROMPTS)
        self._has_warned_of_budget = False

    def ingest(
        self,
        messages: Iterable[Any],
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        is_heartbeat: bool = False,
        token_budget: int | None = None,
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
        token_budget
            The context window the conversation is to fit, in tokens: above ``contextThreshold`` of
            it the conversation is in compaction debt. Default: that of the last call for this
            conversation, else 128,000.

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
        services = self._in_debt_above(place, token_budget)
        result = ingest.ingest_batch(services, messages, place, is_heartbeat=is_heartbeat)
        self._see_to(result)
        return result

    def commit_turn(
        self,
        advancement_key: str,
        messages: Iterable[Any],
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        token_budget: int | None = None,
        usage: Mapping[str, Any] | int | None = None,
        model: str | None = None,
        provider: str | None = None,
        context_window: int | None = None,
    ) -> CommitResult:
        """Store a turn exactly once under a key of the host's.

        Parameters
        ----------
        advancement_key
            Any text that names the turn within its conversation.
        messages, session_key, session_id
            As for `ingest`. The flood guard does not apply: the key is proof enough.
        token_budget, usage, model, provider, context_window
            As for `after_turn`.

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
            return CommitResult(status="skipped", advancement_key=advancement_key, reason=reason)
        facts = self._facts(place, usage, model, provider, context_window)
        services = self._in_debt_above(place, token_budget, facts)
        result = ingest.commit_turn(services, advancement_key, messages, place)
        self._see_to_turn(result)
        return result

    def bootstrap(
        self,
        session_file: str | os.PathLike[str],
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        admit: bool = False,
        token_budget: int | None = None,
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
        token_budget
            As for `ingest`.

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
            services = self._in_debt_above(place, token_budget)
            result = self._read(
                services, transcript, place, session_key, admit=admit, progress=progress
            )
        self._see_to(result)
        return result

    def after_turn(
        self,
        messages: Iterable[Any],
        *,
        session_file: str | os.PathLike[str] | None = None,
        session_key: str | None = None,
        session_id: str | None = None,
        is_heartbeat: bool = False,
        token_budget: int | None = None,
        usage: Mapping[str, Any] | int | None = None,
        model: str | None = None,
        provider: str | None = None,
        context_window: int | None = None,
    ) -> TurnResult:
        """Store a turn from both of its sources: the session file, and the messages themselves.

        What the file shows is stored from there; what it lacks yet is stored from `messages` and
        recognised when the file catches up. A file that is not there yet is not an error.

        A conversation that is over its threshold afterwards is in compaction debt, written with the
        turn. With ``proactiveThresholdCompactionMode`` ``inline`` it is compacted at once;
        otherwise `maintain`, or the worker, does it.

        Parameters
        ----------
        messages, session_key, session_id, is_heartbeat, token_budget
            As for `ingest`.
        session_file
            As for `bootstrap`.
        usage
            What the provider counted for the last call of the turn, or its prompt tokens: they
            count where they are more than what is stored. With ``usageCalibration``, and where
            this engine assembled the prompt, they also teach how the model counts.
        model, provider, context_window
            Of the call; ``contextThresholdOverrides`` are chosen by them.

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
        if token_budget is None and not self._has_warned_of_budget:
            self._has_warned_of_budget = True
            _LOG.warning("turn without token_budget: %d is assumed", DEFAULT_TOKEN_BUDGET)
        facts = self._facts(place, usage, model, provider, context_window)
        batch = ingest.ingest_batch(
            self._in_debt_above(place, token_budget, facts),
            messages,
            place,
            is_heartbeat=is_heartbeat,
            is_covered=transcript is not None and not transcript.is_frozen,
        )
        return TurnResult(transcript, batch, self._see_to_turn(batch))

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

    def _read_if_there(
        self,
        session_file: str | os.PathLike[str],
        session_id: str | None,
        place: Address,
        session_key: str | None,
    ) -> BootstrapResult | None:
        try:
            with ingest.open_source(session_file, session_id) as source:
                return self._read(self._ingest, source, place, session_key)
        except NotFoundError:
            return None
        except SessionFileError as error:
            if error.code == "empty_file":
                return None
            raise

    def _read(
        self,
        services: Services,
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
            services,
            transcript,
            place,
            admit=admit,
            progress=progress or (lambda done, total: None),
        )

    def _check_enabled(self) -> None:
        if not self.config.enabled:
            source = self.config.sources.get("enabled", "configuration")
            raise ConfigError(
                f"enabled is false, from {source}: nothing is stored or assembled",
                code="disabled",
                hint="set enabled to true",
            )

    def _facts(
        self,
        place: Address,
        usage: Mapping[str, Any] | int | None,
        model: str | None,
        provider: str | None,
        context_window: int | None,
    ) -> CallFacts:
        """Return what the host tells of a call, with the prompt that was assembled for it."""
        sent = self._sent.take(place.identity)
        observed = observed_prompt_tokens(usage)
        if observed is None:
            sent = None
        return CallFacts(observed, model, provider, context_window, sent)

    def _in_debt_above(
        self, place: Address, token_budget: int | None, facts: CallFacts = NO_FACTS
    ) -> Services:
        """Return what ingest works with for one call, and when that leaves a debt."""
        budget = self._budget_for(place, token_budget)
        is_plain = facts.is_empty and not self.config.context_threshold_overrides
        known = self._services_by_budget.get(budget) if is_plain else None
        if known is not None:
            return known
        terms = self.upkeep.terms(place.session_key, budget, facts)
        services = replace(self._ingest, debt=terms)
        if is_plain:
            self._services_by_budget.put(budget, services)
        return services

    def _budget_for(self, place: Address, token_budget: int | None) -> int:
        """Return the token budget of a call, and remember it for those that have none."""
        if token_budget is not None:
            self._budgets.put(place.identity, token_budget)
        return self._capped(
            token_budget or self._budgets.get(place.identity) or DEFAULT_TOKEN_BUDGET
        )

    def _see_to_turn(self, result: IngestResult) -> CompactionResult | None:
        """Compact what a turn left over its threshold, or see that it will be."""
        if self.config.proactive_threshold_compaction_mode != "inline":
            self._see_to(result)
            return None
        if not result.is_over_threshold or result.conversation_id is None:
            return None
        return self.upkeep.drain(result.conversation_id)

    def _see_to(self, result: IngestResult | BootstrapResult) -> None:
        if result.is_over_threshold:
            self.upkeep.wake()

    def _capped(self, token_budget: int) -> int:
        cap = self.config.max_assembly_token_budget
        return min(token_budget, cap) if cap else token_budget
