"""What holds for every session file, however it was written, joined or cut."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lcm_fast.transcripts.leaf_path import Link, is_linear, leaf_offsets
from lcm_fast.transcripts.reader import Transcript, open_transcript
from lcm_fast.types import SessionEntry

BLANKS = b" \t\r\n"

keys = st.sampled_from(["type", "role", "content", "message", "id", "parentId", "ключ", "x"])
texts = st.text(st.sampled_from('aé漢😀 "\\\n\r\t\u2028\ufeff\ud800{}[],:'), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(keys, values, max_size=4)
encodings = st.builds(dict, ensure_ascii=st.booleans(), indent=st.none())
encoded = st.builds(
    lambda value, options: json.dumps(value, **options).encode("utf-8", "surrogatepass"),
    objects,
    encodings,
)
junk = st.sampled_from(
    [b"plain text", b'{"type":"message"', b"]", b"}", b"\xff\xfe", b"12", b"\x00"]
)
endings = st.sampled_from([b"\n", b"\r\n", b" \n", b"\n\n", b"\n \r\n"])


@st.composite
def session_lines(draw: st.DrawFn) -> list[tuple[list[bytes], bytes, bytes]]:
    """Lines as (whole objects, junk after them, line end)."""
    line = st.tuples(st.lists(encoded, max_size=2), st.just(b"") | junk, endings)
    return draw(st.lists(line, min_size=1, max_size=8))


def read(data: bytes) -> tuple[Transcript, list[SessionEntry]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        path.write_bytes(b'{"type":"session","version":3}\n' + data)
        transcript = open_transcript(path)
        return transcript, list(transcript)[1:]


def written(lines: list[tuple[list[bytes], bytes, bytes]]) -> bytes:
    return b"".join(b"".join(found) + rest + end for found, rest, end in lines)


def spans(transcript: Transcript) -> list[tuple[int, int]]:
    return [(span.offset, span.length) for span in transcript.report.unreadable]


@given(session_lines())
def test_the_whole_objects_of_every_line_are_read_with_their_exact_bytes(
    lines: list[tuple[list[bytes], bytes, bytes]],
) -> None:
    _, entries = read(written(lines))
    assert [entry.raw for entry in entries] == [raw for found, _, _ in lines for raw in found]


@given(session_lines(), st.data())
def test_a_file_cut_anywhere_gives_a_prefix_and_loses_no_complete_line(
    lines: list[tuple[list[bytes], bytes, bytes]], data: st.DataObject
) -> None:
    whole = written(lines)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    expected = [entry.raw for entry in read(whole)[1]]
    got = [entry.raw for entry in read(cut)[1]]
    complete = [entry.raw for entry in read(cut[: cut.rfind(b"\n") + 1])[1]]
    assert got == expected[: len(got)]
    assert len(complete) <= len(got)


@given(session_lines(), st.data())
def test_entries_spans_and_pending_account_for_every_byte_that_is_not_blank(
    lines: list[tuple[list[bytes], bytes, bytes]], data: st.DataObject
) -> None:
    whole = written(lines)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    transcript, entries = read(cut)
    size = transcript.report.bytes_read
    header = len(b'{"type":"session","version":3}\n')
    left = bytearray(b"\n" * header + cut)
    places = [(entry.offset, len(entry.raw)) for entry in entries] + spans(transcript)
    for offset, length in [*places, (size - transcript.report.pending_bytes, size)]:
        left[offset : offset + length] = b" " * len(left[offset : offset + length])
    assert (size, bytes(left).strip(BLANKS)) == (header + len(cut), b"")


@given(session_lines())
def test_offsets_point_at_the_bytes_of_each_entry(
    lines: list[tuple[list[bytes], bytes, bytes]],
) -> None:
    data = written(lines)
    header = len(b'{"type":"session","version":3}\n')
    _, entries = read(data)
    assert all(data[one.offset - header :].startswith(one.raw) for one in entries)


@settings(max_examples=60)
@given(st.lists(objects, min_size=1, max_size=6), st.sampled_from([None, 1, 2]))
def test_an_array_gives_the_same_messages_as_its_lines(
    listed: list[dict[str, Any]], indent: int | None
) -> None:
    listed = [{**one, "role": "user"} for one in listed]
    with tempfile.TemporaryDirectory() as folder:
        array, lines = Path(folder) / "a.json", Path(folder) / "l.jsonl"
        array.write_text(json.dumps(listed, indent=indent))
        lines.write_text("".join(json.dumps(one) + "\n" for one in listed))
        found = [repr(entry.message) for entry in open_transcript(array)]
        assert found == [repr(entry.message) for entry in open_transcript(lines)]


names = st.sampled_from("abcde")
links = st.lists(
    st.tuples(names, st.none() | names | st.just("gone"), st.booleans()), max_size=8
).map(
    lambda rows: [
        Link(n, name, parent, parent is not None or named)
        for n, (name, parent, named) in enumerate(rows)
    ]
)


@given(links)
def test_a_session_called_linear_leaves_nothing_out(chain: list[Link]) -> None:
    path = leaf_offsets(chain)
    assert not is_linear(chain) or path is None or len(path) == len(chain)


@given(links)
def test_the_last_record_is_always_shown(chain: list[Link]) -> None:
    path = leaf_offsets(chain)
    assert path is None or chain[-1].offset in path


@given(links)
def test_every_record_on_the_path_has_its_parent_on_the_path(chain: list[Link]) -> None:
    path = leaf_offsets(chain) or frozenset()
    shown = {link.entry_id for link in chain if link.offset in path}
    assert all(
        link.parent_id is None or link.parent_id in shown for link in chain if link.offset in path
    )
