"""The form of a message in which its large tool results are stubs.

A stub says what a result was and where all of it is: in the message itself, in the record (spec
R11). Other than a payload's reference, it needs no file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...transcripts import shapes
from ...types import Role
from .payload import explored_result
from .references import stub_text
from .shown import MessageView, Owner

__all__ = ["stub_form"]


def stub_form(
    body: dict[str, Any], item_id: str, threshold_tokens: int, count_tokens: Callable[[str], int]
) -> dict[str, Any]:
    """Return a message with its large tool results as stubs; itself where it has none.

    Results of the recall tools, pictures and references stay.

    Parameters
    ----------
    item_id
        What reads the whole message.
    threshold_tokens
        From how many tokens on a text is large.
    """
    role = shapes.role_of(body)
    if role not in ("tool", "user"):
        return body
    return _StubView(role, threshold_tokens, count_tokens, item_id).message(body)


class _StubView(MessageView):
    def __init__(
        self, role: Role, threshold: int, count_tokens: Callable[[str], int], item_id: str
    ) -> None:
        super().__init__(role, threshold, count_tokens, False, {}, {})
        self._item_id = item_id

    def _said_text(self, text: str) -> str:
        return text

    def _whole(self, content: Any) -> Any:
        return content

    def _picture_block(self, block: dict[str, Any], role: Role) -> dict[str, Any]:
        return block

    def _result_text(self, text: str, owner: Owner) -> str:
        if not self._is_large(text):
            return text
        name, size, summary = explored_result(text, owner.tool_name)
        return stub_text(self._item_id, name, size, summary)
