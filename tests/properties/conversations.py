"""Random conversations in every shape, well-formed and broken, and what must hold of an output.

The checks look at messages with eyes of their own: they share no code with the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Message = dict[str, Any]
SHAPES = ("openclaw", "openai", "anthropic", "responses")
TEXTS = (
    "ok",
    "a short remark about the build",
    "para graph " * 30,
    "決めました。サーバーは二台にします。" * 12,
    "🙂👩‍👩‍👧 emoji and \ud800 a lone surrogate",
    '{"status": "ok", "text": "json as text"}',
    "long output line\n" * 900,
    "x" * 9000,
)
STEPS = (
    "user",
    "assistant",
    "calls",
    "result",
    "result",
    "result and text",
    "orphan",
    "aborted",
    "unnamed call",
    "unnamed result",
    "empty",
    "picture",
)
WELL_FORMED_STEPS = ("user", "assistant", "exchange", "exchange", "picture")

Step = tuple[str, str, int, int, str]


def steps(kinds: tuple[str, ...]) -> st.SearchStrategy[list[Step]]:
    """Steps of a conversation: kind, shape, two free numbers, text."""
    step = st.tuples(
        st.sampled_from(kinds),
        st.sampled_from(SHAPES),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from(TEXTS),
    )
    return st.lists(step, min_size=1, max_size=24)


HISTORIES = st.tuples(st.booleans(), steps(STEPS)).map(lambda drawn: build(*drawn))
WELL_FORMED = st.tuples(st.booleans(), steps(WELL_FORMED_STEPS)).map(lambda drawn: build(*drawn))


@dataclass
class History:
    """Messages, and which of them a model need not be sent.

    `mark(index)` is a text that message `index` begins with.
    """

    messages: list[Message] = field(default_factory=list)
    optional: set[int] = field(default_factory=set)
    newest_user: int | None = None

    @property
    def next_mark(self) -> str:
        return self.mark(len(self.messages))

    @staticmethod
    def mark(index: int) -> str:
        return f"m{index}: "


def build(with_system_head: bool, drawn: list[Step]) -> History:
    """Build the messages that the steps stand for."""
    builder = _Builder()
    if with_system_head:
        builder.add({"role": "system", "content": f"{builder.history.next_mark}be brief"})
    for kind, shape, first, second, text in drawn:
        marked = builder.history.next_mark + text
        getattr(builder, kind.replace(" ", "_"))(shape, first, second, marked)
    return builder.history


class _Builder:
    """One method for each kind of step; `made` holds the calls so far, with their shapes."""

    def __init__(self) -> None:
        self.history = History()
        self.made: list[tuple[str, str]] = []

    def add(self, message: Message, *, optional: bool = False, is_users: bool = False) -> None:
        index = len(self.history.messages)
        if optional:
            self.history.optional.add(index)
        if is_users:
            self.history.newest_user = index
        self.history.messages.append(message)

    def user(self, shape: str, first: int, second: int, text: str) -> None:
        self.add({"role": "user", "content": text}, is_users=True)

    def assistant(self, shape: str, first: int, second: int, text: str) -> None:
        content = [{"type": "text", "text": text}]
        self.add({"role": "assistant", "content": content, "details": {}})

    def picture(self, shape: str, first: int, second: int, text: str) -> None:
        content = [{"type": "text", "text": text}, _picture(shape)]
        self.add({"role": "user", "content": content}, is_users=True)

    def empty(self, shape: str, first: int, second: int, text: str) -> None:
        self.add({"role": "assistant", "content": []}, optional=True)

    def calls(self, shape: str, first: int, second: int, text: str) -> None:
        self.add(self._calls(shape, first, second, text), optional=self._has_repeats())

    def aborted(self, shape: str, first: int, second: int, text: str) -> None:
        message = self._calls("openclaw", first, second, text)
        self.add({**message, "stopReason": "aborted"}, optional=True)

    def _calls(self, shape: str, first: int, second: int, text: str) -> Message:
        ids = [f"call{(first + n) % 4}" for n in range(1 if shape == "responses" else second + 1)]
        self.made.extend((call_id, shape) for call_id in ids)
        return calls(shape, ids, text)

    def _has_repeats(self) -> bool:
        return len(self.made) > len({call_id for call_id, _ in self.made})

    def exchange(self, shape: str, first: int, second: int, text: str) -> None:
        count = 1 if shape == "responses" else first + 1
        ids = [f"c{len(self.history.messages)}_{n}" for n in range(count)]
        self.add(calls(shape, ids, text))
        for message in results(shape, ids, self.history.next_mark + text):
            self.add(message)

    def result(self, shape: str, first: int, second: int, text: str) -> None:
        if self.made:
            call_id, call_shape = self.made[-1 - first % len(self.made)]
            self.add(results(call_shape, [call_id], text)[0], optional=True)

    def result_and_text(self, shape: str, first: int, second: int, text: str) -> None:
        if self.made:
            call_id, _ = self.made[-1 - first % len(self.made)]
            (message,) = results("anthropic", [call_id], "found it")
            message["content"].append({"type": "text", "text": text})
            self.add(message, is_users=True)

    def orphan(self, shape: str, first: int, second: int, text: str) -> None:
        self.add(results(shape, [f"lost{first}"], text)[0], optional=True)

    def unnamed_call(self, shape: str, first: int, second: int, text: str) -> None:
        made_in = "openai" if shape == "responses" else shape  # whose items always have an id
        self.add(_without_ids(calls(made_in, ["x"], text)))

    def unnamed_result(self, shape: str, first: int, second: int, text: str) -> None:
        self.add(_without_ids(results(shape, ["x"], text)[0]))


def calls(shape: str, ids: list[str], text: str) -> Message:
    """An assistant message that makes calls."""
    if shape == "responses":
        item = {"type": "function_call", "call_id": ids[0], "name": "look"}
        return {**item, "arguments": f'{{"note": "{text[:5]}"}}'}
    if shape == "openai":
        made = [
            {"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}}
            for i in ids
        ]
        return {"role": "assistant", "content": text, "tool_calls": made}
    kind, key = ("tool_use", "input") if shape == "anthropic" else ("toolCall", "arguments")
    blocks: list[Message] = [{"type": "text", "text": text}]
    blocks += [{"type": kind, "id": i, "name": "look", key: {"path": "a/b.py"}} for i in ids]
    return {"role": "assistant", "content": blocks}


def results(shape: str, ids: list[str], text: str) -> list[Message]:
    """The messages that answer calls; one for all of them in Anthropic shape."""
    if shape == "responses":
        return [{"type": "function_call_output", "call_id": i, "output": text} for i in ids]
    if shape == "openai":
        return [{"role": "tool", "tool_call_id": i, "content": text} for i in ids]
    if shape == "anthropic":
        blocks = [{"type": "tool_result", "tool_use_id": i, "content": text} for i in ids]
        return [{"role": "user", "content": blocks}]
    content = [{"type": "text", "text": text}]
    return [
        {"role": "toolResult", "toolCallId": i, "toolName": "look", "content": content} for i in ids
    ]


def _picture(shape: str) -> Message:
    data = "iVBORw0KGgo" * 600
    if shape == "anthropic":
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return {"type": "image", "source": source}
    if shape in ("openai", "responses"):
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return {"type": "image", "data": data, "mimeType": "image/png"}


def _without_ids(value: Any) -> Any:
    names = ("id", "call_id", "tool_call_id", "toolCallId", "tool_use_id")
    if isinstance(value, dict):
        return {key: _without_ids(inner) for key, inner in value.items() if key not in names}
    return [_without_ids(inner) for inner in value] if isinstance(value, list) else value


def calls_of(message: Message) -> list[str | None]:
    """Ids of the calls a message makes."""
    found = [
        block.get("id") or block.get("call_id")
        for block in _blocks(message)
        if block.get("type") in ("toolCall", "tool_use", "function_call")
    ]
    found += [call.get("id") for call in message.get("tool_calls") or ()]
    if message.get("type") == "function_call":
        found.append(message.get("call_id"))
    return found


def answers_of(message: Message) -> list[str | None]:
    """Ids of the calls a message answers."""
    if message.get("role") == "toolResult":
        return [message.get("toolCallId")]
    if message.get("role") == "tool":
        return [message.get("tool_call_id")]
    if message.get("type") == "function_call_output":
        return [message.get("call_id")]
    return [
        block.get("tool_use_id") for block in _blocks(message) if block.get("type") == "tool_result"
    ]


def broken_exchanges(messages: list[Message]) -> list[str]:
    """What a provider would refuse: calls and results that do not pair, one line each."""
    found: list[str] = []
    seen: set[str | None] = set()
    pending: set[str | None] = set()
    for index, message in enumerate(messages):
        answered = answers_of(message)
        for call_id in answered:
            if call_id is None or call_id not in pending:
                found.append(f"{index}: result of {call_id}, which waits for none")
            pending.discard(call_id)
        if pending and not answered:
            found.append(f"{index}: {sorted(map(str, pending))} not answered yet")
            pending.clear()
        if pending and _has_other_text(message):
            found.append(f"{index}: text between results")
        for call_id in calls_of(message):
            if call_id is None or call_id in seen:
                found.append(f"{index}: call id {call_id} is missing or used twice")
            seen.add(call_id)
            pending.add(call_id)
    if pending:
        found.append(f"at the end: {sorted(map(str, pending))} not answered")
    return found


def _has_other_text(message: Message) -> bool:
    return (
        bool(answers_of(message))
        and any(block.get("type") == "text" for block in _blocks(message))
        and message.get("role") == "user"
    )


def _blocks(message: Message) -> Iterator[Message]:
    content = message.get("content")
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))
