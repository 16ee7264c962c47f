"""One item of an assembly, rendered: the message a model is sent, and its tokens.

A summary, or a focus brief, becomes a user message that holds it as XML (spec R8, W6). Must not
choose items.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import msgspec

from ..store import FocusBrief, StoredSummary
from ..summarize.timestamps import local_time
from ..transcripts import shapes
from ..types import ToolCall

__all__ = [
    "Piece",
    "brief_piece",
    "brief_tokens",
    "brief_xml",
    "count_message",
    "placeholder",
    "summary_piece",
    "summary_tokens",
    "summary_xml",
]

CountTokens = Callable[[str], int]


class Piece(msgspec.Struct, eq=False):
    """A message of the output.

    Attributes
    ----------
    ordinal, opener
        Place of the context item, and of the call it belongs to; a placeholder has its partner's.
    item_id
        ``msg_<n>`` or the summary's id: what reads the whole of it.
    digest
        Of what a model reads of it, good for this process.
    calls, answers
        Tool calls made, and ids of calls answered, that the output must pair.
    unnamed
        Some call or result in it has no id yet.
    terminal
        Its turn was cut off: what it calls and nothing answers will stay unanswered.
    essential
        It must stay, cut if need be: the newest message's exchange and the pinned items.
    is_stub
        Large tool results in it are stubs.
    """

    ordinal: int
    opener: int
    item_id: str
    message: dict[str, Any]
    tokens: int
    digest: int
    calls: tuple[ToolCall, ...] = ()
    answers: tuple[str, ...] = ()
    unnamed: bool = False
    terminal: bool = False
    essential: bool = False
    is_placeholder: bool = False
    is_stub: bool = False
    cut: bool = False

    @property
    def is_message(self) -> bool:
        """Whether it is a message of the conversation, or one that only the host has yet."""
        return not self.is_placeholder and not self.item_id.startswith(("sum_", "focus_"))

    def replace(self, message: dict[str, Any], count_tokens: CountTokens) -> None:
        """Put another message in, and count it."""
        self.message = message
        self.digest, self.tokens = count_message(message, count_tokens)


def count_message(message: dict[str, Any], count_tokens: CountTokens) -> tuple[int, int]:
    """Return a digest of what a model reads of a message, good for this process, and its tokens."""
    face, payload_tokens = shapes.model_face(message)
    encoded = shapes.encode_face(face)
    tokens = count_tokens(encoded.decode("utf-8", "surrogatepass"))
    return hash(encoded), tokens + payload_tokens


def summary_piece(
    stored: StoredSummary, ordinal: int, timezone: str, count_tokens: CountTokens
) -> Piece:
    """Render a summary."""
    message = _user_message(summary_xml(stored, timezone))
    return _note_piece(stored.summary_id, ordinal, message, count_tokens)


def brief_piece(brief: FocusBrief, ordinal: int, count_tokens: CountTokens) -> Piece:
    """Render a focus brief."""
    return _note_piece(brief.brief_id, ordinal, _user_message(brief_xml(brief)), count_tokens)


def brief_tokens(brief: FocusBrief, count_tokens: CountTokens) -> int:
    """Return the tokens of a focus brief as a model is sent it."""
    return count_message(_user_message(brief_xml(brief)), count_tokens)[1]


def summary_tokens(stored: StoredSummary, timezone: str, count_tokens: CountTokens) -> int:
    """Return the tokens of a summary as a model is sent it."""
    return count_message(_user_message(summary_xml(stored, timezone)), count_tokens)[1]


def placeholder(partner: Piece, message: dict[str, Any], count_tokens: CountTokens) -> Piece:
    """Make the piece that stands in for a partner the record lacks."""
    digest, tokens = count_message(message, count_tokens)
    return Piece(
        ordinal=partner.ordinal,
        opener=partner.opener,
        item_id=partner.item_id,
        message=message,
        tokens=tokens,
        digest=digest,
        essential=partner.essential,
        is_placeholder=True,
    )


def summary_xml(summary: StoredSummary, timezone: str) -> str:
    """Return a summary as the XML a model reads.

    Its content is escaped, so that it cannot end its own frame, and labelled as untrusted.
    """
    attributes = {
        "id": summary.summary_id,
        "kind": summary.kind,
        "depth": str(summary.depth),
        "descendant_count": str(summary.descendant_count),
        "trust": "untrusted",
    }
    for name, moment in (("earliest_at", summary.earliest_at), ("latest_at", summary.latest_at)):
        if local := local_time(moment, timezone):
            attributes[name] = local.isoformat(timespec="seconds")
    written = "".join(f' {name}="{_escape(value)}"' for name, value in attributes.items())
    lines = [f"<summary{written}>"]
    if summary.source_ids:
        lines.append("  <parents>")
        lines += [f'    <summary_ref id="{_escape(source)}" />' for source in summary.source_ids]
        lines.append("  </parents>")
    lines += [
        "  <content>",
        html.escape(summary.content, quote=False),
        "  </content>",
        "</summary>",
    ]
    return "\n".join(lines)


def brief_xml(brief: FocusBrief) -> str:
    """Return a focus brief as the XML a model reads, escaped and labelled as a summary is."""
    attributes = {
        "id": brief.brief_id,
        "prompt": brief.prompt,
        "token_count": str(brief.token_count),
        "target_tokens": str(brief.target_tokens),
        "created_at": brief.created_at,
        "trust": "untrusted",
    }
    if brief.covered_latest_at is not None:
        attributes["covered_latest_at"] = brief.covered_latest_at
    if brief.covered_message_seq is not None:
        attributes["covered_message_seq"] = str(brief.covered_message_seq)
    written = "".join(f' {name}="{_escape(value)}"' for name, value in attributes.items())
    content = html.escape(brief.content, quote=False)
    return "\n".join(
        [f"<focus_brief{written}>", "  <content>", content, "  </content>", "</focus_brief>"]
    )


def _note_piece(
    item_id: str, ordinal: int, message: dict[str, Any], count_tokens: CountTokens
) -> Piece:
    digest, tokens = count_message(message, count_tokens)
    return Piece(
        ordinal=ordinal,
        opener=ordinal,
        item_id=item_id,
        message=message,
        tokens=tokens,
        digest=digest,
    )


def _escape(value: str) -> str:
    """Escape an attribute's value, which stands between double quotes."""
    return html.escape(value, quote=False).replace('"', "&quot;")


def _user_message(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}
