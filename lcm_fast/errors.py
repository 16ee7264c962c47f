"""Every error the package raises on purpose. A leaf: imports nothing of ours.

Each error carries `code` (stable, for programs), `detail` (what, where, which value) and `hint`
(what to do next), and names the exit code the command line ends with.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "BudgetTooSmallError",
    "CommitConflictError",
    "ConfigError",
    "DatabaseError",
    "ForeignDatabaseError",
    "JobConflictError",
    "KernelError",
    "LcmError",
    "MessageError",
    "NotFoundError",
    "PlanStaleError",
    "SessionFileError",
    "SourceTooLongError",
    "StoreBusyError",
    "StoreFullError",
    "StoreReadOnlyError",
    "SummarizerAuthError",
    "SummarizerContentError",
    "SummarizerError",
    "SummarizerOutageError",
    "SummarizerPausedError",
    "SummarizerRateLimitError",
    "VocabularyError",
]


class LcmError(Exception):
    """Root of the package's errors.

    Parameters
    ----------
    detail
        What went wrong, where, and with which value; one line.
    hint
        What the reader can do about it; one line, may be empty.
    code
        Stable identifier for programs; each class has a default.
    """

    code: str = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, detail: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.detail} ({self.hint})" if self.hint else self.detail

    def to_dict(self) -> dict[str, str]:
        """Return ``{"code", "detail", "hint"}``, the form `status` and `--json` print."""
        return {"code": self.code, "detail": self.detail, "hint": self.hint}


class MessageError(LcmError, ValueError):
    """A message given to the engine is malformed; names its index and field."""

    code = "bad_message"


class CommitConflictError(LcmError, ValueError):
    """A turn's advancement key was used for other messages; nothing was stored."""

    code = "commit_conflict"


class JobConflictError(LcmError, ValueError):
    """A batch job's id was used for other work; nothing was changed."""

    code = "job_conflict"


class BudgetTooSmallError(LcmError, ValueError):
    """The token budget is below what any assembly needs."""

    code = "budget_too_small"
    exit_code = 2


class ConfigError(LcmError, ValueError):
    """A configuration value is unusable; names key, source, value and range."""

    code = "bad_config"
    exit_code = 4


class VocabularyError(ConfigError):
    """The vocabulary that tokens are to be counted with is not the published one."""

    code = "bad_vocabulary"


class NotFoundError(LcmError, LookupError):
    """A file, conversation, message or summary does not exist."""

    code = "not_found"
    exit_code = 3


class SessionFileError(LcmError, ValueError):
    """A session file holds nothing that can be read as a session."""

    code = "unreadable_session"


class DatabaseError(LcmError):
    """The database cannot be used; the record is as it was before the call."""

    code = "database_error"
    exit_code = 5


class ForeignDatabaseError(DatabaseError):
    """The file is a database of another program, or not a database at all; it was not touched."""

    code = "foreign_database"


class StoreBusyError(DatabaseError, TimeoutError):
    """The write could not begin in its bounded wait: another process held the lock, or the queue
    was full."""

    code = "store_busy"


class StoreFullError(DatabaseError, OSError):
    """The disk, or a size limit, left no room for the write; nothing of it was stored."""

    code = "store_full"


class StoreReadOnlyError(DatabaseError, PermissionError):
    """The database, or its folder, may not be written."""

    code = "store_read_only"


class PlanStaleError(LcmError, RuntimeError):
    """What a compaction pass planned to replace has changed meanwhile; nothing was published."""

    code = "plan_stale"


class SummarizerError(LcmError, RuntimeError):
    """A summariser raised, or returned something that is not a summary.

    Its subclasses are states that are handled differently: an outage is waited out, refused
    credentials open the circuit breaker, a rate limit is obeyed, unusable content escalates.
    """

    code = "summarizer_failed"


class SummarizerOutageError(SummarizerError, ConnectionError):
    """A summariser could not be reached, did not answer in time, or is out of order."""

    code = "summarizer_outage"


class SummarizerAuthError(SummarizerError, PermissionError):
    """A provider refused our credentials, or the right to use the model."""

    code = "summarizer_auth"


class SummarizerRateLimitError(SummarizerError):
    """A provider wants fewer calls.

    Attributes
    ----------
    retry_after_s
        Seconds the provider asks to wait, or None when it did not say.
    """

    code = "summarizer_rate_limited"

    def __init__(self, detail: str, *, hint: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(detail, hint=hint)
        self.retry_after_s = retry_after_s


class SummarizerContentError(SummarizerError, ValueError):
    """A model answered and said nothing usable: empty, reasoning alone, a refusal, cut short."""

    code = "summarizer_content"


class SourceTooLongError(SummarizerError, ValueError):
    """A model's context window is smaller than what it was given to summarise."""

    code = "source_too_long"


class SummarizerPausedError(SummarizerError):
    """No call was made: a circuit breaker or the spend guard is open.

    Attributes
    ----------
    open_until
        UTC time, ISO 8601, at which calls may be made again.
    """

    code = "summarizer_paused"

    def __init__(self, detail: str, *, code: str, open_until: str, hint: str = "") -> None:
        super().__init__(detail, hint=hint, code=code)
        self.open_until = open_until


class KernelError(LcmError, ImportError):
    """A compiled kernel is present and cannot be loaded."""

    code = "broken_kernel"
    exit_code = 70
