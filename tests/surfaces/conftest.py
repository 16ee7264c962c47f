"""Fixtures of the command-line tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from surfaces.command import Command, isolated_command, talk, write_session


@pytest.fixture
def lcm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, in a folder of its own."""
    return isolated_command(tmp_path, monkeypatch)


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A session of six messages."""
    return write_session(tmp_path / "short.jsonl", talk(6))


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A session of 200 messages, more than a budget of 5,000 tokens holds."""
    return write_session(tmp_path / "long.jsonl", talk(200))
