"""Files that appear whole or not at all, readable by their owner only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["private_file"]


@contextmanager
def private_file(path: Path) -> Iterator[BinaryIO]:
    """Lend a stream whose bytes are at `path`, safe on disk, once the block has ended well.

    Raises
    ------
    OSError
        It cannot be written. Then, as when the block raises, a file that was there is as it was.
    """
    # mkstemp makes it 0600 from the start, under a name nobody can have prepared.
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)
    partial = Path(name)
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink()
        raise
