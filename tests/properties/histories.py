"""A conversation as it truly was, and the ways in which a host shows it: the model of a history.

Knows nothing of the package. `Truth` is what was said; `Session` the file a host keeps of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIRST_MS = 1_767_225_600_123
CLEARED = "[output cleared by the host]"


@dataclass(eq=False)
class Said:
    """One message of the truth; `form` is the text that was shown first."""

    role: str
    text: str
    at_ms: int | None
    call_id: str | None = None
    form: str | None = None

    def body(self, text: str) -> dict[str, Any]:
        """Return the message with a text, as an OpenClaw host writes it."""
        body: dict[str, Any] = {"role": self.role, "content": [{"type": "text", "text": text}]}
        if self.role == "toolResult":
            body |= {"toolCallId": self.call_id, "toolName": "exec", "isError": False}
        elif self.call_id is not None:
            call = {"type": "toolCall", "id": self.call_id, "name": "exec", "arguments": {}}
            body["content"].append(call)
        if self.at_ms is not None:
            body["timestamp"] = self.at_ms
        return body


@dataclass
class Truth:
    """What was said, in order."""

    timed: bool
    messages: list[Said] = field(default_factory=list)
    calls: int = 0
    next_ms: int = FIRST_MS

    def say(self, role: str, text: str, *, at: int | None = None, gap_ms: int = 1) -> Said:
        """Add a message, at the end or in the middle."""
        at_ms = None
        if self.timed:
            self.next_ms += gap_ms
            at_ms = self.next_ms
            if at is not None and at < len(self.messages):
                at_ms = self.messages[at].at_ms
        message = Said(role, text, at_ms)
        self.messages.insert(len(self.messages) if at is None else at, message)
        return message

    def exchange(self, call_id: str | None, text: str) -> None:
        """Add a tool call and its result."""
        self.calls += 1
        call_id = call_id or f"call_{self.calls:012d}x"
        self.say("assistant", "let me look").call_id = call_id
        self.say("toolResult", text).call_id = call_id


@dataclass(eq=False)
class Entry:
    """An entry of the session file: which message, under which id, with which text."""

    said: Said
    entry_id: str
    text: str


@dataclass
class Session:
    """The session file a host keeps: a header, then entries, each the child of the one before."""

    path: Path
    entries: list[Entry] = field(default_factory=list)
    written: int = 0
    with_ids: bool = True

    def append(self, said: Said) -> None:
        """Add an entry under an id of its own."""
        self.insert(len(self.entries), said)

    def insert(self, at: int, said: Said) -> None:
        """Add an entry in the middle."""
        self.written += 1
        self.entries.insert(at, Entry(said, f"{self.written:08x}", said.text))

    def reissue(self) -> None:
        """Give every entry another id."""
        for entry in self.entries:
            self.written += 1
            entry.entry_id = f"{self.written:08x}"

    def write(self, end: int | None = None) -> list[Entry]:
        """Write the file, all or its first bytes; return the entries that stand in it whole."""
        header = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-01-01T00:00:00Z"}
        data = json.dumps(header).encode() + b"\n"
        ends = []
        parent: str | None = None
        for entry in self.entries:
            body = entry.said.body(entry.text)
            line: dict[str, Any] = {"type": "message", "message": body}
            if self.with_ids:
                line |= {"id": entry.entry_id, "parentId": parent}
            data += json.dumps(line, ensure_ascii=False).encode() + b"\n"
            ends.append(len(data))
            parent = entry.entry_id
        stop = len(data) if end is None else max(end, data.index(b"\n") + 1)
        self.path.write_bytes(data[:stop])
        # An object that is complete counts even when its line feed is missing.
        return [entry for entry, last in zip(self.entries, ends, strict=True) if last - 1 <= stop]

    def size(self) -> int:
        """Return how many bytes the whole file has."""
        return self.path.stat().st_size
