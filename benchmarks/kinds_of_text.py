"""Real texts of 200 characters or more by kind: prose, code, JSON, CJK.

From the conversations of LCM_FAST_DATA or ../shared/data; sorted into kinds by their look.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

__all__ = ["KINDS", "texts_by_kind"]

KINDS = ("prose", "code", "JSON", "CJK")
SHORTEST, LONGEST = 200, 20_000
SEED = 20_260_319


def texts_by_kind(most: int = 4_000) -> dict[str, list[str]]:
    """Return up to `most` different texts of each kind, in an order that is always the same."""
    root = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LCM_FAST_DATA", root))
    found = list(dict.fromkeys(text[:LONGEST] for text in _texts(folder) if len(text) >= SHORTEST))
    random.Random(SEED).shuffle(found)
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for text in found:
        listed = kinds[_kind(text)]
        if len(listed) < most:
            listed.append(text)
    return kinds


def _kind(text: str) -> str:
    if sum(character > "\u2e80" for character in text) > 0.3 * len(text):
        return "CJK"
    if text[0] in "[{" and text.count('"') > len(text) / 40:
        return "JSON"
    signs = sum(text.count(sign) for sign in "(){};=_/")
    return "code" if text.count("\n") > 3 and signs > len(text) / 30 else "prose"


def _texts(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.json*")):
        source = path.read_text(encoding="utf-8", errors="replace")
        for part in [source] if path.suffix == ".json" else source.split("\n"):
            try:
                yield from _strings(json.loads(part))
            except ValueError:
                continue


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            if "signature" not in key.lower() and key not in ("data", "encrypted_content"):
                yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
