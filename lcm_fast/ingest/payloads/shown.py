"""The form of a message in which its large payloads are references.

Knows where the message shapes keep their payloads; decides which are large; changes nothing else of
a message, and never the record's bytes (spec: storage 2.9.3 to 2.9.8; decision 4).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from ...transcripts import shapes, text_at
from ...transcripts.kinds import CALL_TYPES, PICTURE_TYPES, REASONING_TYPES, RESULT_TYPES
from ...types import Role
from .file_blocks import file_blocks
from .payload import Payload, file_payload, image_payload, raw_payload, tool_payload
from .pictures import (
    Picture,
    attached_name,
    inline_picture,
    may_be_inline_picture,
    picture_of_block,
)
from .references import reference_id

__all__ = ["ShownForm", "shown_form"]

_TEXT_TYPES = ("text", "input_text", "output_text")
# What a provider or host tied to the very text of a block.
_TIED_TO_TEXT = frozenset({"textSignature", "annotations", "citations", "logprobs"})
_BASH = "bash"
_MAX_DEPTH = 6

_MOST_TOKENS_PER_CHARACTER = 2
# More than the JSON of any number takes, with quotes and commas.
_CHARACTERS_PER_VALUE = 32

_INLINE_LABELS: Mapping[Role, str] = {
    "user": "Image",
    "system": "Image",
    "assistant": "Assistant image",
    "tool": "Tool image",
}


class ShownForm(NamedTuple):
    """A message as a prompt shows it.

    Attributes
    ----------
    body
        The message with references in place of payloads; the very object given when there are none.
    payloads
        What is to be written, in order, each id once.
    """

    body: dict[str, Any]
    payloads: tuple[Payload, ...]


def shown_form(
    body: dict[str, Any],
    threshold_tokens: int,
    count_tokens: Callable[[str], int],
    *,
    replace_images: bool = False,
    tool_names: Mapping[str, str] | None = None,
    summaries: Mapping[str, str] | None = None,
) -> ShownForm:
    """Return a message with its large payloads replaced by references, and those payloads.

    Payloads are: ``<file>`` blocks of a user, results of tools, the content of any other message of
    users and assistants, each from the threshold on; pictures in base64 of any size. A picture in
    a block of its own stays where it is unless `replace_images`: a model can see it. Instructions
    of the system stay readable, and so does what the recall tools return.

    Parameters
    ----------
    body
        A message in any of the known shapes; it is not changed.
    threshold_tokens
        From how many tokens on a text is large; at least 1.
    count_tokens
        Asked about texts only that can be large: none has more than 2 tokens a character.
    replace_images
        Let references stand for pictures in blocks, too.
    tool_names
        Names of tools by call id, for shapes whose results bear no name (OpenAI, Anthropic).
    summaries
        Exploration summaries that are there already, by file id; only the others are made, which is
        what takes time.

    Returns
    -------
    ShownForm
        The same for the same arguments, whenever it is made.

    Complexity: linear in the text; a small message costs one look at its blocks.

    >>> shown_form({"role": "user", "content": "hello"}, 25_000, len)
    ShownForm(body={'role': 'user', 'content': 'hello'}, payloads=())
    """
    threshold = max(1, threshold_tokens)
    role = shapes.role_of(body)
    if role is None or not _may_hold_payload(body, threshold):
        return ShownForm(body, ())
    view = MessageView(
        role, threshold, count_tokens, replace_images, tool_names or {}, summaries or {}
    )
    shown = view.message(body)
    return ShownForm(shown, tuple(view.payloads.values()))


def _may_hold_payload(body: Mapping[str, Any], threshold: int) -> bool:
    """Tell from lengths alone whether a message may hold a payload."""
    room = threshold / _MOST_TOKENS_PER_CHARACTER
    waiting = [body.get("content"), body.get("output")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            room -= len(value)
            if may_be_inline_picture(value):
                return True
        elif isinstance(value, dict):
            if value.get("type") in PICTURE_TYPES:
                return True
            waiting += value.values()
            room -= sum(map(len, map(str, value)))
        elif isinstance(value, list):
            waiting += value
        room -= _CHARACTERS_PER_VALUE
        if room <= 0:
            return True
    return False


class Owner(NamedTuple):
    """The tool call that a result answers, as far as it says."""

    tool_name: str | None
    call_id: str | None


class MessageView:
    """Makes the shown form of one message, and collects its payloads on the way."""

    def __init__(
        self,
        role: Role,
        threshold: int,
        count_tokens: Callable[[str], int],
        replace_images: bool,
        tool_names: Mapping[str, str],
        summaries: Mapping[str, str],
    ) -> None:
        self._role: Role = role
        self._threshold = threshold
        self._count_tokens = count_tokens
        self._replace_images = replace_images
        self._tool_names = tool_names
        self._summaries = summaries
        self._attached_name: str | None = None
        self._holds_files = False
        self.payloads: dict[str, Payload] = {}

    def message(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a message's shown form."""
        if body.get("type") in CALL_TYPES + REASONING_TYPES:
            return body
        if "command" in body and "content" not in body:
            return self._with_results(body, Owner(_BASH, None))
        if self._role == "tool":
            return self._with_results(body, self._owner_of(body))
        content = body.get("content")
        shown = self._said(content)
        return body if shown is content else {**body, "content": shown}

    def _said(self, content: Any) -> Any:
        """Return the shown form of what a user, an assistant or the system says."""
        if isinstance(content, str):
            shown: Any = self._said_text(content)
        elif isinstance(content, list):
            blocks = [self._said_block(block) for block in content]
            shown = blocks if _differ(blocks, content) else content
        else:
            shown = content
        # Instructions must stay readable; words around files are what the user asks about them.
        if self._role == "system" or self._holds_files:
            return shown
        return self._whole(shown)

    def _said_block(self, block: Any) -> Any:
        if not isinstance(block, dict):
            return block
        kind = block.get("type")
        if kind in PICTURE_TYPES:
            return self._picture_block(block, self._role)
        if kind in RESULT_TYPES:
            return self._result_block(block, Owner(None, None), 0)
        text = _text_of(block)
        if text is not None:
            self._attached_name = attached_name(text) or self._attached_name
            return _with_text(block, self._said_text(text))
        return block

    def _said_text(self, text: str) -> str:
        picture = self._inline_picture(text, self._role)
        if picture is not None:
            return picture
        return self._without_files(text) if self._role == "user" else text

    def _without_files(self, text: str) -> str:
        """Return a text with each large ``<file>`` block replaced."""
        pieces: list[str] = []
        position = 0
        for block in file_blocks(text):
            if self._is_large(block.text):
                payload = file_payload(block.text, block.name, block.mime_type, self._summaries)
                pieces += (text[position : block.begin], self._add(payload).reference)
                position = block.end
        if not pieces:
            return text
        self._holds_files = True
        return "".join((*pieces, text[position:]))

    def _whole(self, content: Any) -> Any:
        """Return a reference for all of a content that is large; pictures in it stay."""
        if isinstance(content, str):
            return self._raw(content, is_json=False) or content
        if isinstance(content, dict):
            text = _json_text(content)
            return (text and self._raw(text, is_json=True)) or content
        if isinstance(content, list):
            return self._whole_blocks(content)
        return content

    def _whole_blocks(self, blocks: list[Any]) -> list[Any]:
        others = [block for block in blocks if not _is_picture_or_reference(block)]
        if not others or _holds_tools_or_reasoning(others):
            return blocks
        texts = list(map(_text_of, others))
        is_json = None in texts
        text = _json_text(others) if is_json else _joined(texts)
        reference = text and self._raw(text, is_json=is_json)
        if not reference:
            return blocks
        kind = "text" if is_json else others[0]["type"]
        return _put_in_place(blocks, others, {"type": kind, "text": reference})

    def _raw(self, text: str, *, is_json: bool) -> str | None:
        if not self._is_large(text):
            return None
        payload = raw_payload(text, self._role, self._summaries, is_json=is_json)
        return self._add(payload).reference

    def _with_results(self, body: dict[str, Any], owner: Owner) -> dict[str, Any]:
        """Return a tool's message with its large results replaced."""
        if _is_recall(owner):
            return body
        shown: dict[str, Any] = {
            key: self._result(body[key], owner, 0) for key in ("content", "output") if key in body
        }
        return {**body, **shown} if any(shown[key] is not body[key] for key in shown) else body

    def _result(self, value: Any, owner: Owner, depth: int) -> Any:
        """Return the shown form of a result: a text, blocks, or any JSON."""
        if isinstance(value, str):
            return self._result_text(value, owner)
        if isinstance(value, list):
            return self._result_blocks(value, owner, depth)
        if isinstance(value, dict):
            text = _json_text(value)
            shown = text and self._result_text(text, owner)
            return value if shown is text else shown
        return value

    def _result_text(self, text: str, owner: Owner) -> str:
        picture = self._inline_picture(text, "tool")
        if picture is not None:
            return picture
        if not self._is_large(text):
            return text
        payload = tool_payload(text, owner.tool_name, owner.call_id, self._summaries)
        return self._add(payload).reference

    def _result_blocks(self, blocks: list[Any], owner: Owner, depth: int) -> list[Any]:
        """Return blocks with each large text replaced, and the small ones when together large."""
        shown = [self._result_block(block, owner, depth) for block in blocks]
        small = [
            block
            for block, was in zip(shown, blocks, strict=True)
            if block is was and _text_of(block) and not _is_picture_or_reference(block)
        ]
        together = _joined(list(map(_text_of, small)))
        if len(small) > 1 and self._is_large(together):
            reference = self._result_text(together, owner)
            return _put_in_place(shown, small, _with_text(small[0], reference))
        return shown if _differ(shown, blocks) else blocks

    def _result_block(self, block: Any, owner: Owner, depth: int) -> Any:
        if isinstance(block, str):
            return self._result_text(block, owner)
        if not isinstance(block, dict) or depth > _MAX_DEPTH:
            return block
        kind = block.get("type")
        if kind in PICTURE_TYPES:
            return self._picture_block(block, "tool")
        text = _text_of(block)
        if text is not None:
            self._attached_name = attached_name(text) or self._attached_name
            return _with_text(block, self._result_text(text, owner))
        if kind in RESULT_TYPES:
            return self._nested_result(block, owner, depth)
        return block

    def _nested_result(self, block: dict[str, Any], owner: Owner, depth: int) -> dict[str, Any]:
        own = self._owner_of(block)
        owner = Owner(own.tool_name or owner.tool_name, own.call_id or owner.call_id)
        if _is_recall(owner):
            return block
        for key in ("text", "output", "content"):
            value = block.get(key)
            if value is not None:
                shown = self._result(value, owner, depth + 1)
                return block if shown is value else {**block, key: shown}
        return block

    def _owner_of(self, carrier: Mapping[str, Any]) -> Owner:
        call_id = text_at(carrier, *shapes.CALL_ID_KEYS, "id")
        name = shapes.tool_name_of(carrier)
        return Owner(name or (self._tool_names.get(call_id) if call_id else None), call_id)

    def _picture_block(self, block: dict[str, Any], role: Role) -> dict[str, Any]:
        picture = picture_of_block(block)
        if picture is None:
            return block
        payload = self._add_picture(picture, role, f"{role.capitalize()} image")
        if not self._replace_images:
            return block
        kind = "input_text" if block["type"] == "input_image" else "text"
        return {"type": kind, "text": payload.reference}

    def _inline_picture(self, text: str, role: Role) -> str | None:
        """Return what is shown for a text that is a picture in base64, None when it is none."""
        found = inline_picture(text)
        if found is None:
            return None
        self._attached_name = attached_name(found.before)
        label = "User image" if found.before else _INLINE_LABELS[role]
        reference = self._add_picture(found.picture, role, label).reference
        return "\n\n".join(filter(None, (found.before, reference, found.after)))

    def _add_picture(self, picture: Picture, role: Role, label: str) -> Payload:
        name = self._attached_name or f"{role}-image.{picture.extension}"
        return self._add(image_payload(picture, label, name))

    def _add(self, payload: Payload) -> Payload:
        self.payloads.setdefault(payload.file_id, payload)
        return payload

    def _is_large(self, text: str) -> bool:
        return (
            _MOST_TOKENS_PER_CHARACTER * len(text) >= self._threshold
            and self._count_tokens(text) >= self._threshold
            and reference_id(text) is None
        )


def _is_recall(owner: Owner) -> bool:
    """Tell whether a result is what a recall tool read back: that must stay readable.

    Hosts put the name of a server before the tool's, as in ``mcp__memory__lcm_describe``.
    """
    name = owner.tool_name or ""
    return name.startswith("lcm_") or name.rpartition("__")[2].startswith("lcm_")


def _text_of(block: Any) -> str | None:
    """Return the text of a text block, None of any other."""
    if not _has_type(block, _TEXT_TYPES):
        return None
    text = block.get("text")
    return text if isinstance(text, str) else None


def _has_type(block: Any, types: tuple[str, ...]) -> bool:
    return isinstance(block, dict) and block.get("type") in types


def _is_picture_or_reference(block: Any) -> bool:
    """Tell whether a block stands for a payload of its own, whatever happens to the others."""
    text = _text_of(block)
    return _has_type(block, PICTURE_TYPES) or (text is not None and reference_id(text) is not None)


def _joined(texts: list[str | None]) -> str:
    return "\n".join(text for text in texts if text and not text.isspace())


def _with_text(block: dict[str, Any], text: str) -> dict[str, Any]:
    if text is block["text"]:
        return block
    kept = {key: value for key, value in block.items() if key not in _TIED_TO_TEXT}
    return {**kept, "text": text}


def _put_in_place(blocks: list[Any], replaced: list[Any], block: dict[str, Any]) -> list[Any]:
    """Return blocks with one in place of the first of those replaced, and without the others."""
    ids = set(map(id, replaced))
    shown = []
    is_placed = False
    for one in blocks:
        if id(one) not in ids:
            shown.append(one)
        elif not is_placed:
            shown.append(block)
            is_placed = True
    return shown


def _differ(blocks: list[Any], others: list[Any]) -> bool:
    return any(block is not other for block, other in zip(blocks, others, strict=True))


def _holds_tools_or_reasoning(blocks: list[Any]) -> bool:
    """Tell whether a call, a result or reasoning stands anywhere in blocks."""
    waiting = list(blocks)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if value.get("type") in CALL_TYPES + RESULT_TYPES + REASONING_TYPES:
                return True
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False


def _json_text(value: Any) -> str | None:
    """Return compact JSON, keys in their order; None when a value has no such form."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None
