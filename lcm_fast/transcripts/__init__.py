"""Sessions of other programs: read them, know what their messages mean. No database here."""

from .envelope import body_of, message_of, text_at
from .events import EventSource, EventTranscript
from .reader import ReadReport, Transcript, open_transcript

AnyTranscript = Transcript | EventTranscript

__all__ = [
    "AnyTranscript",
    "EventSource",
    "EventTranscript",
    "ReadReport",
    "Transcript",
    "body_of",
    "message_of",
    "open_transcript",
    "text_at",
]
