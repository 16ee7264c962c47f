"""From messages as received to the record: normalise, identify, append (design: architecture,
section 3)."""

from .batch import ingest_batch
from .normalise import message_from_entry, message_from_object
from .results import BootstrapResult, IngestResult
from .session_file import address_of, ingest_transcript

__all__ = [
    "BootstrapResult",
    "IngestResult",
    "address_of",
    "ingest_batch",
    "ingest_transcript",
    "message_from_entry",
    "message_from_object",
]
