"""Session files of other programs: read them, and know what their messages mean (no database here)."""

from .envelope import body_of, message_of
from .reader import ReadReport, Transcript, open_transcript

__all__ = ["ReadReport", "Transcript", "body_of", "message_of", "open_transcript"]
