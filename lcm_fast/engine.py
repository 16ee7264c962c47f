"""The engine: what a host embeds.

Orchestrates the layers and holds their policy; has no SQL and no kernel of its own (design:
architecture, section 3).

Threading: an engine may be used from any thread; calls for different conversations do not wait for
one another other than to commit together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from . import compaction, ingest
from .assembly import Assembly, AssemblyRequest, MessagePieces, assemble, check_budget
from .assembly.pieces import summary_tokens
from .assembly.recently_used import RecentlyUsed
from .compaction import CompactionResult
from .config import Config, load_config, system_zone
from .errors import ConfigError, NotFoundError
from .ingest import BootstrapResult, IngestResult
from .kernels import estimate_tokens
from .store import (
    Address,
    Conversation,
    Durability,
    Frontier,
    Store,
    StoredMessage,
    StoredSummary,
    private_file,
)
from .summarize import ExtractiveSummarizer, as_summarizer
from .transcripts import open_transcript

__all__ = ["DEFAULT_SESSION_KEY", "DEFAULT_TOKEN_BUDGET", "Engine", "open_engine"]

DEFAULT_SESSION_KEY = "default"
DEFAULT_TOKEN_BUDGET = 128_000
_REMEMBERED_FRONTIERS = 64
_REMEMBERED_ASSEMBLIES = 100


def open_engine(
    path: str | os.PathLike[str] | None = None,
    *,
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    summarizer: Any = None,
    token_counter: Callable[[str], int] | None = None,
    durability: Durability = "full",
) -> Engine:
    """Open a memory, made when it is not there yet.

    Parameters
    ----------
    path
        The database; default ``databasePath`` of the configuration, else
        ``${OPENCLAW_STATE_DIR:-~/.openclaw}/lcm.db``.
    config
        A `Config`, a mapping of keys that overrides environment and defaults, or a configuration
        file.
    summarizer
        A `Summarizer`, or a callable that takes a `SummaryRequest` and returns text. Default:
        offline, extractive.
    token_counter
        Counts the tokens of a text. Default: the estimate of the documents.
    durability
        ``"full"``: a call returns when its messages are safe on disk. ``"normal"``: safe against a
        crash of the process, not of the machine.

    Raises
    ------
    ConfigError
        A configuration value, or the summariser, is unusable.
    ForeignDatabaseError
        The file is another program's; it is not touched.
    DatabaseError
        The database cannot be opened.

    Examples
    --------
    >>> import tempfile, lcm_fast
    >>> with tempfile.TemporaryDirectory() as folder, lcm_fast.open(f"{folder}/demo.db") as engine:
    ...     stored = engine.ingest([{"role": "user", "content": "hello"}])
    ...     stored.ingested, engine.assemble(token_budget=1000).messages
    (1, [{'role': 'user', 'content': 'hello'}])
    """
    settings = _settings(config)
    chosen = as_summarizer(summarizer) if summarizer is not None else ExtractiveSummarizer()
    store = Store.open(path if path is not None else settings.database_path, durability=durability)
    return Engine(store, settings, chosen, token_counter or estimate_tokens)


class Engine:
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
        self.store = store
        self.config = config
        self.timezone = config.timezone or system_zone()
        self._summarizer = summarizer
        self._count_tokens = count_tokens
        self._now = now or _utc_now
        self._monotonic = monotonic
        self._frontiers: RecentlyUsed[Frontier] = RecentlyUsed(_REMEMBERED_FRONTIERS)
        self._pieces = MessagePieces(store, count_tokens)
        self._assemblies: RecentlyUsed[list[int]] = RecentlyUsed(_REMEMBERED_ASSEMBLIES)

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

        A message is known again by its entry id, by its time and content, or as part of the whole
        history sent once more; anything else is stored as new.

        Parameters
        ----------
        messages
            Dicts in OpenClaw, pi, OpenAI or Anthropic shape, or session entries that carry one.
        session_key, session_id
            The conversation: by key first, then by id; made when there is none. Default: the key
            ``"default"``.
        is_heartbeat
            The turn answers a heartbeat poll. It is stored like any other (``pruneHeartbeatOk`` is
            off).

        Raises
        ------
        MessageError
            Naming index and field of a malformed message; nothing of the batch is stored.
        StoreBusyError, StoreFullError, DatabaseError
            As the store found it; nothing of the batch is stored.

        Complexity: linear in the batch, whatever the length of the conversation.
        """
        self._check_enabled()
        return ingest.ingest_batch(
            self.store,
            messages,
            _address(session_key, session_id),
            count_tokens=self._count_tokens,
            now=self._now,
        )

    def bootstrap(
        self,
        session_file: str | os.PathLike[str],
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> BootstrapResult:
        """Store what a session file holds and the record does not.

        Parameters
        ----------
        session_file
            OpenClaw or pi session, or a list of messages as a JSON array or JSON lines.
        session_key
            Default: the file's name without extension.
        progress
            Called after each batch with bytes read and bytes in all.

        Raises
        ------
        NotFoundError, SessionFileError
            No such file; nothing in it can be read as a session.
        """
        self._check_enabled()
        transcript = open_transcript(session_file)
        return ingest.ingest_transcript(
            self.store,
            transcript,
            ingest.address_of(self.store, transcript, session_key, session_id),
            count_tokens=self._count_tokens,
            now=self._now,
            progress=progress or (lambda done, total: None),
        )

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
        found = self.store.frontier(_address(session_key, session_id), self._frontiers)
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
            _address(session_key, session_id),
            target_tokens=threshold if target == "threshold" else budget,
            prefix_target_tokens=self.config.summary_prefix_target(budget),
            force=force,
            instructions=self.config.custom_instructions if instructions is None else instructions,
        )

    def export(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        to: str | os.PathLike[str],
    ) -> int:
        """Write a conversation to a file, each entry's bytes as received, one a line.

        The file appears whole or not at all, and is private to the user.

        Returns
        -------
        int
            How many entries were written.

        Raises
        ------
        NotFoundError
            No such conversation.
        OSError
            The file cannot be written.
        """
        entries = self.export_entries(session_key=session_key, session_id=session_id)
        count = 0
        with private_file(Path(to)) as stream:
            for raw in entries:
                stream.write(raw + b"\n")
                count += 1
        return count

    def export_entries(
        self, *, session_key: str | None = None, session_id: str | None = None
    ) -> Iterator[bytes]:
        """Return an iterator over the bytes of each entry of a conversation as received, in order.

        Raises
        ------
        NotFoundError
            No such conversation.
        """
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        return self.store.export(conversation.conversation_id)

    def conversation(
        self, *, session_key: str | None = None, session_id: str | None = None
    ) -> Conversation:
        """Return a conversation's names and counters.

        Raises
        ------
        NotFoundError
            No such conversation.
        """
        address = _address(session_key, session_id)
        found = self.store.find_conversation(address)
        if found is None:
            name = address.session_key or address.session_id
            raise NotFoundError(
                f"no conversation with session key or id {name!r} in {self.store.path}",
                hint="`lcm-fast conversations` lists them",
            )
        return found

    def conversations(self, *, limit: int = 50, cursor: int = 0) -> list[Conversation]:
        """Return a page of conversations, oldest first.

        The next page's cursor is the last one's id.
        """
        return self.store.conversations_page(after_id=cursor, limit=limit)

    def messages(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        limit: int = 50,
        cursor: int = 0,
    ) -> list[StoredMessage]:
        """Return a page of a conversation's messages in order.

        The next page's cursor is the last one's seq.
        """
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        return self.store.messages_page(conversation.conversation_id, after_seq=cursor, limit=limit)

    def summaries(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        limit: int = 50,
        cursor: str = "",
    ) -> list[StoredSummary]:
        """Return a page of a conversation's summaries, oldest first.

        The next page's cursor is the last one's id.

        Raises
        ------
        NotFoundError
            No such conversation, or no summary with the cursor's id.
        """
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        after = ("", "")
        if cursor:
            rows = self.store.summaries([cursor])
            if not rows:
                raise NotFoundError(f"no summary {cursor!r}", hint="the cursor is a summary's id")
            after = (rows[0].created_at, cursor)
        return self.store.summaries_page(conversation.conversation_id, after=after, limit=limit)

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


def _address(session_key: str | None, session_id: str | None) -> Address:
    if session_key is None and session_id is None:
        return Address(session_key=DEFAULT_SESSION_KEY)
    return Address(session_key, session_id)


def _settings(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None,
) -> Config:
    if isinstance(config, Config):
        return config
    if isinstance(config, Mapping):
        return load_config(overrides=config)
    return load_config(config)


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
