"""Every message comes back from the record byte for byte, whatever it holds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import make_engine
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.engine import Engine
from lcm_fast.errors import MessageError

texts = st.text(st.sampled_from('ab é漢😀"\\/\n\t\0\u2028\ufeff\ud800\udbff{}[]'), max_size=40)
names = st.sampled_from(
    ["type", "text", "content", "data", "output", "name", "id", "summary", "source", "ключ", ""]
)
kinds = st.sampled_from(
    ["text", "thinking", "toolCall", "tool_use", "tool_result", "image", "input_text", "vendor"]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | texts, inner, max_size=4),
    max_leaves=8,
)
blocks = st.dictionaries(names, values, max_size=3).flatmap(
    lambda rest: kinds.map(lambda kind: {**rest, "type": kind})
)
contents = texts | st.lists(blocks | texts, max_size=3) | values
fields = st.fixed_dictionaries(
    {},
    optional={
        "timestamp": scalars,
        "tool_calls": st.lists(blocks, max_size=2) | scalars,
        "toolCallId": texts,
        "tool_call_id": texts,
        "reasoning_content": scalars,
        "command": texts,
        "output": values,
        "details": values,
    },
)
openclaw = st.builds(
    lambda role, content, rest: {"role": role, "content": content, **rest},
    st.sampled_from(["user", "assistant", "system", "tool", "toolResult", "developer"]),
    contents,
    fields,
)
responses = st.builds(
    lambda kind, rest: {**rest, "type": kind},
    st.sampled_from(["function_call", "function_call_output", "reasoning"]),
    st.dictionaries(names, values, max_size=4),
).filter(lambda item: "message" not in item)
messages = openclaw | responses

session_keys = (f"session {n}" for n in itertools.count())


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One engine for all examples; each takes a session of its own."""
    with make_engine(tmp_path_factory.mktemp("record") / "memory.db") as opened:
        yield opened


def is_accepted(message: dict[str, Any]) -> bool:
    return isinstance(message.get("content"), str | list | dict | None)


@settings(max_examples=120, deadline=None)
@given(st.lists(messages.filter(is_accepted), min_size=1, max_size=4))
def test_a_live_message_comes_back_as_the_same_object(
    memory: Engine, batch: list[dict[str, Any]]
) -> None:
    key = next(session_keys)
    memory.ingest(batch, session_key=key)
    assert [json.loads(raw) for raw in memory.export_entries(session_key=key)] == batch


@settings(max_examples=120, deadline=None)
@given(
    st.lists(
        st.builds(
            lambda value, ascii_only, indent: json.dumps(
                value, ensure_ascii=ascii_only, separators=indent
            ).encode("utf-8", "surrogatepass"),
            messages,
            st.booleans(),
            st.sampled_from([(",", ":"), (", ", ": ")]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_line_of_a_session_file_comes_back_byte_for_byte(
    memory: Engine, tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    key = next(session_keys)
    path = tmp_path_factory.getbasetemp() / "session.jsonl"
    path.write_bytes(b"\n".join((b'{"type":"session","version":3}', *lines, b"")))
    memory.bootstrap(path, session_key=key)
    assert list(memory.export_entries(session_key=key))[1:] == lines


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(texts, texts, messages, scalars), min_size=1, max_size=4))
def test_entries_come_back_whatever_their_ids_are(
    memory: Engine,
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[str, str, dict[str, Any], object]],
) -> None:
    key = next(session_keys)
    path: Path = tmp_path_factory.getbasetemp() / "entries.jsonl"
    wrapped = [
        {"type": "message", "id": f"{n}{name}", "parentId": parent, "message": body, "timestamp": t}
        for n, (name, parent, body, t) in enumerate(drawn)
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in wrapped))
    memory.bootstrap(path, session_key=key)
    assert [json.loads(raw) for raw in memory.export_entries(session_key=key)] == wrapped


@pytest.mark.parametrize("depth", [5, 50, 400, 900, 5000])
def test_a_deeply_nested_line_is_kept_or_reported(
    engine: Engine, tmp_path: Path, depth: int
) -> None:
    path = tmp_path / "deep.jsonl"
    inner = '{"content":' * depth + '"x"' + "}" * depth
    deep = f'{{"role":"user","content":[{inner}]}}'
    path.write_text(f'{{"role":"user","content":"before"}}\n{deep}\n')
    result = engine.bootstrap(path)
    kept = len(list(engine.export_entries(session_key="deep")))
    assert kept + result.unreadable == 2


@pytest.mark.parametrize("depth", [5, 50, 400])
def test_a_deeply_nested_message_comes_back(engine: Engine, depth: int) -> None:
    message = {"role": "user", "content": [nested(depth)]}
    engine.ingest([message])
    assert [json.loads(raw) for raw in engine.export_entries()] == [message]


def test_a_message_nested_too_deep_for_json_is_refused_by_name(engine: Engine) -> None:
    with pytest.raises(MessageError, match=r"messages\[1\] cannot be written as JSON"):
        engine.ingest(
            [{"role": "user", "content": "hi"}, {"role": "user", "content": nested(9999)}]
        )


def nested(depth: int) -> dict[str, Any]:
    value: Any = "x"
    for _ in range(depth):
        value = {"content": value}
    return {"content": value}
