"""From messages as received to the record: normalise, identify, append (design: architecture,
section 3)."""

from .addresses import DEFAULT_SESSION_KEY, address, address_of
from .batch import admit_batch, commit_turn, ingest_batch
from .file_reading import FileDescription, describe_file
from .live import recognise_live
from .normalise import message_from_entry, message_from_object
from .payloads import stub_form
from .results import BootstrapResult, CommitResult, IngestResult
from .services import Services, services_of
from .session_file import ingest_transcript
from .session_patterns import SessionPolicy
from .sources import open_source, sessions_in

__all__ = [
    "DEFAULT_SESSION_KEY",
    "BootstrapResult",
    "CommitResult",
    "FileDescription",
    "IngestResult",
    "Services",
    "SessionPolicy",
    "address",
    "address_of",
    "admit_batch",
    "commit_turn",
    "describe_file",
    "ingest_batch",
    "ingest_transcript",
    "message_from_entry",
    "message_from_object",
    "open_source",
    "recognise_live",
    "services_of",
    "sessions_in",
    "stub_form",
]
