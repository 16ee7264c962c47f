"""Large payloads of stored messages: files of their own, references in the view, all read back."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import chain, make_engine, said, texts, violations, write_session

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import NotFoundError

LOG = "2026-03-01T10:00:00Z ERROR disk full\n" * 4000
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
CALL = {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": "x.log"}}


def result(text: str) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": "call_1",
        "toolName": "read",
        "content": [{"type": "text", "text": text}],
    }


def picture(role: str = "user") -> dict[str, Any]:
    data = base64.b64encode(PICTURE).decode()
    return {"role": role, "content": [{"type": "image", "data": data, "mimeType": "image/png"}]}


def stored_files(engine: Engine) -> list[Path]:
    folder = Path(engine.store.path).parent / "lcm-files"
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_large_result_is_shown_as_a_reference_that_reads_it_back(engine: Engine) -> None:
    engine.ingest([said("look"), {"role": "assistant", "content": [CALL]}, result(LOG)])
    shown = engine.assemble(token_budget=20_000).messages[-1]["content"][0]["text"]
    assert shown.startswith("[LCM Tool Output: file_")
    assert engine.describe(shown.splitlines()[0], expand_file=True).content == LOG.encode()


def test_the_record_keeps_the_bytes_of_a_large_message(engine: Engine, tmp_path: Path) -> None:
    entries = chain(said("look"), {"role": "assistant", "content": [CALL]}, result(LOG))
    file = write_session(tmp_path / "session.jsonl", entries)
    engine.bootstrap(file)
    raw = list(engine.export_entries(session_key="session"))
    assert raw == file.read_bytes().splitlines()


def test_a_lost_file_is_written_again_from_the_record(engine: Engine) -> None:
    engine.ingest([said(LOG)])
    (file,) = stored_files(engine)
    file.unlink()
    assert not lcm_fast.doctor(engine).ok
    assert engine.describe(file.stem, expand_file=True).content == LOG.encode()
    assert lcm_fast.doctor(engine).ok


def test_one_payload_in_several_conversations_is_one_file(engine: Engine) -> None:
    for key in ("a", "b", "c"):
        engine.ingest([picture(role) for role in ("user", "assistant")], session_key=key)
    (file,) = stored_files(engine)
    assert hashlib.sha256(file.read_bytes()).digest() == hashlib.sha256(PICTURE).digest()
    assert len(engine.describe(file.stem).used_in) == 6


def test_a_picture_is_sent_as_it_is(engine: Engine) -> None:
    engine.ingest([picture()])
    assert engine.assemble(token_budget=10_000).messages == [picture()]


def test_a_small_message_has_no_file(engine: Engine) -> None:
    engine.ingest([said("the image is fine")])
    assert stored_files(engine) == []


def test_a_large_message_that_comes_again_is_known(engine: Engine, tmp_path: Path) -> None:
    engine.ingest([said(LOG, 1)], session_key="session")
    file = write_session(tmp_path / "session.jsonl", chain(said(LOG, 1)))
    assert engine.bootstrap(file).ingested == 0
    assert (len(texts(engine, session_key="session")), len(stored_files(engine))) == (1, 1)


def test_the_threshold_is_a_setting(database: Path) -> None:
    with make_engine(database, large_file_threshold_tokens=1000) as engine:
        engine.ingest([said("word " * 1000)])
        assert len(stored_files(engine)) == 1


def test_files_go_where_the_configuration_says(database: Path, tmp_path: Path) -> None:
    with make_engine(database, large_files_dir=tmp_path / "elsewhere") as engine:
        engine.ingest([said(LOG)])
        assert stored_files(engine) == []
    assert any(path.is_file() for path in (tmp_path / "elsewhere").rglob("*"))


def test_a_file_that_no_row_names_is_removed_with_the_next_payload(engine: Engine) -> None:
    engine.ingest([said(LOG)])
    (file,) = stored_files(engine)
    stray = file.parent.parent / "00" / f"file_{'0' * 16}.txt"
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("left by a crash")
    os.utime(stray, (1, 1))
    with make_engine(Path(engine.store.path)) as another:
        another.ingest([said("another " * 30_000)])
        assert stray not in stored_files(another)
        assert len(stored_files(another)) == 2


def test_the_files_of_summarised_messages_are_named_by_the_summary(database: Path) -> None:
    with make_engine(database, fresh_tail_count=1, leaf_chunk_tokens=400) as engine:
        engine.ingest([said(LOG), *(said(f"step {n} " * 80) for n in range(8))])
        engine.compact(token_budget=1000, force=True)
        (file,) = stored_files(engine)
        named = [one for row in engine.summaries() for one in row.file_ids]
        assert (set(named), violations(engine.store)) == ({file.stem}, [])


@pytest.mark.parametrize("name", ["../../etc/passwd", "file_zz", "", "file_0123456789abcdef"])
def test_a_name_that_is_no_file_of_ours_is_not_found(engine: Engine, name: str) -> None:
    with pytest.raises(NotFoundError):
        engine.describe(name, expand_file=True)


def test_what_describe_tells_can_be_written_as_json(engine: Engine) -> None:
    engine.ingest([picture()])
    (file,) = stored_files(engine)
    fields = engine.describe(file.stem, expand_file=True).to_dict()
    assert json.loads(json.dumps(fields))["byte_size"] == len(PICTURE)
