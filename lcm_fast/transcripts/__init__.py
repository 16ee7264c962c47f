"""Session files of other programs: read them, know what their messages mean. No database here."""

from .envelope import body_of, message_of, text_at
from .reader import ReadReport, Transcript, open_transcript

__all__ = ["ReadReport", "Transcript", "body_of", "message_of", "open_transcript", "text_at"]
