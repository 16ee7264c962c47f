"""What the Anthropic form asks of an output beyond its messages one by one.

The system prompt stands beside the messages, and all results of one turn in one message. Must not
choose or cut.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from ..transcripts import kinds
from .pieces import Piece

__all__ = ["lift_system", "merge_results"]

CountTokens = Callable[[str], int]

_LABEL = "[system message]\n"


def lift_system(pieces: list[Piece], count_tokens: CountTokens) -> tuple[list[Piece], list[Piece]]:
    """Return the leading system messages and the rest, in which later ones are the user's.

    Source: the Messages API has no role for them.
    """
    leading = list(takewhile(_is_system, pieces))
    rest = pieces[len(leading) :]
    for piece in filter(_is_system, rest):
        content = f"{_LABEL}{piece.message['content']}"
        piece.replace({"role": "user", "content": content}, count_tokens)
    return leading, rest


def merge_results(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with each run of results in one message; text at the end loses its blanks.

    The API refuses a call whose result is not in the very next message, and an answer begun for the
    model that ends in blanks.
    """
    merged: list[Piece] = []
    for piece in pieces:
        if merged and _holds_results(piece, only=False) and _holds_results(merged[-1], only=True):
            merged[-1] = _joined(merged[-1], piece)
        else:
            merged.append(piece)
    if merged and merged[-1].message["role"] == "assistant":
        _strip_end(merged[-1])
    return merged


def _is_system(piece: Piece) -> bool:
    return piece.message.get("role") == "system"


def _holds_results(piece: Piece, *, only: bool) -> bool:
    content = piece.message.get("content")
    if piece.message.get("role") != "user" or not isinstance(content, list) or not content:
        return False
    return all(map(kinds.is_result, content)) if only else kinds.is_result(content[0])


def _joined(first: Piece, second: Piece) -> Piece:
    content = [*first.message["content"], *second.message["content"]]
    return Piece(
        ordinal=first.ordinal,
        opener=first.opener,
        item_id=first.item_id,
        message={"role": "user", "content": content},
        tokens=first.tokens + second.tokens,
        digest=hash((first.digest, second.digest)),
    )


def _strip_end(piece: Piece) -> None:
    content = piece.message["content"]
    if isinstance(content, str):
        piece.message = {**piece.message, "content": content.rstrip()}
    elif content and content[-1].get("type") == "text":
        last = {**content[-1], "text": content[-1]["text"].rstrip()}
        piece.message = {**piece.message, "content": [*content[:-1], last]}
