"""Run the command line in-process, in a folder of its own, and write sessions for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lcm_fast.surfaces.cli import cli

Command = Callable[..., Result]


def isolated_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return the command; its working folder, database and configuration are those of `folder`."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(folder))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("OPENCLAW_CONFIG_PATH", raising=False)

    def run(*words: object) -> Result:
        return CliRunner().invoke(cli, [str(word) for word in words])

    return run


def write_session(path: Path, messages: Iterable[dict[str, Any]]) -> Path:
    """Write messages as an OpenClaw session."""
    lines: list[dict[str, Any]] = [{"type": "session", "version": 3, "id": f"id-of-{path.stem}"}]
    for number, message in enumerate(messages, 1):
        parent = f"e{number - 1}" if number > 1 else None
        entry = {"type": "message", "id": f"e{number}", "parentId": parent}
        when = f"2026-03-01T10:{number // 60:02d}:{number % 60:02d}.000Z"
        lines.append({**entry, "timestamp": when, "message": message})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def talk(count: int) -> list[dict[str, Any]]:
    """Return that many messages, user and assistant in turn, of about 40 tokens each."""
    return [
        {
            "role": "user" if number % 2 else "assistant",
            "content": f"Point {number}: the retry limit of queue {number} is {number * 7} s, "
            f"set in /etc/relay/{number}.toml after the outage of region {number % 5}. "
            "Nobody has objected so far.",
        }
        for number in range(1, count + 1)
    ]
