"""The folder of large payloads: content-addressed files, each written once and never changed.

A file appears whole or not at all, private to its user, before the row that names it; what no row
came to name is collected later. Nothing here leaves the folder whatever name or id is asked for.
Holds no SQL: which files are known is the caller's to say (design: architecture, section 4).
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import DatabaseError, NotFoundError, StoreFullError, StoreReadOnlyError
from .files import private_file

__all__ = ["GRACE_SECONDS", "PayloadFolder"]

# Far longer than any turn's transaction waits between a file and its row.
GRACE_SECONDS = 3600.0

_ID = re.compile(r"file_[0-9a-f]{16}")
_EXTENSION = re.compile(r"[a-z0-9]{1,10}")
_STORED = re.compile(r"([0-9a-f]{2})/(file_([0-9a-f]{16}))\.[a-z0-9]{1,10}")
_BUCKET = re.compile(r"[0-9a-f]{2}")
_UNFINISHED = re.compile(r"\.file_[0-9a-f]{16}\.[a-z0-9]{1,10}\.[a-z0-9_]{8}")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


class PayloadFolder:
    """The files of large payloads under one folder.

    Parameters
    ----------
    path
        The folder; made with the first payload where it is missing, for this user only.
    clock
        The time, in seconds since 1970.

    Threading: safe from any thread and process; writers of the same payload write the same bytes.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def write(self, content: bytes, file_id: str, extension: str) -> str:
        """Have a payload safe on disk, and return its storage path, relative to the folder.

        One that is there already is not written again, whatever its extension; one that was damaged
        is.

        Raises
        ------
        NotFoundError
            The id or the extension is not one of ours.
        StoreFullError
            There is no room; nothing of the payload remains.
        StoreReadOnlyError
            The folder may not be written.
        DatabaseError
            The disk fails in another way.
        """
        if not _ID.fullmatch(file_id) or not _EXTENSION.fullmatch(extension):
            raise _refused(f"{file_id}.{extension}")
        with self._as_store_errors(f"writing {file_id}"):
            bucket = self._bucket_of(file_id)
            there = _same_file(bucket, file_id, content)
            if there is None:
                there = bucket / f"{file_id}.{extension}"
                with private_file(there) as stream:
                    stream.write(content)
                _sync_folder(bucket)
        return f"{bucket.name}/{there.name}"

    def read(self, storage_uri: str) -> bytes:
        """Return the bytes of a payload.

        Raises
        ------
        NotFoundError
            The path is not one of ours, leads out of the folder, leads to nothing, or to bytes that
            are not what the id says; its `code` tells which.
        StoreReadOnlyError
            The file may not be read.
        DatabaseError
            The disk fails in another way.
        """
        found = _STORED.fullmatch(storage_uri)
        if found is None or not found[3].startswith(found[1]):
            raise _refused(storage_uri)
        with self._as_store_errors(f"reading {storage_uri}"):
            try:
                content = self._read_inside(storage_uri)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise self._lost(storage_uri, "is missing", "payload_missing") from error
        if hashlib.sha256(content).hexdigest()[:16] != found[3]:
            raise self._lost(storage_uri, "holds other bytes than its id says", "payload_damaged")
        return content

    def collect(
        self, is_known: Callable[[str], bool], *, grace_seconds: float = GRACE_SECONDS
    ) -> list[str]:
        """Remove what a crash left between a file and its row, and return its paths.

        Those are unfinished files and payloads that are not known. Files of other names are not
        ours and stay.

        Parameters
        ----------
        is_known
            Whether a row names a storage path.
        grace_seconds
            How old a file must be: a younger one may be about to get its row.

        Raises
        ------
        StoreReadOnlyError
            A file may not be removed.
        DatabaseError
            The disk fails in another way.
        """
        oldest = self._clock() - grace_seconds
        removed = []
        with self._as_store_errors("collecting files that no row names"):
            for storage_uri, file in self._files():
                is_payload = _STORED.fullmatch(storage_uri) is not None
                if is_payload and is_known(storage_uri):
                    continue
                # Gone meanwhile: another process collects as well, or has finished writing.
                with suppress(FileNotFoundError):
                    if file.lstat().st_mtime < oldest:
                        file.unlink()
                        removed.append(storage_uri)
        return removed

    def _bucket_of(self, file_id: str) -> Path:
        """Return the subfolder of an id, made if need be; it is inside the folder for certain."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        bucket = self._path / file_id.removeprefix("file_")[:2]
        if not bucket.is_dir():
            bucket.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(self._path)
        self._inside(bucket)
        return bucket

    def _inside(self, place: Path) -> Path:
        """Return a place without links, after a check that it is in the folder."""
        real = Path(os.path.realpath(place))
        if not real.is_relative_to(os.path.realpath(self._path)):
            raise _refused(str(place))
        return real

    def _read_inside(self, storage_uri: str) -> bytes:
        """Return a regular file's bytes; a link may not lead out of the folder."""
        file = self._inside(self._path / storage_uri)
        # A link put there since is not followed, nor is a pipe waited on.
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as stream:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise _refused(storage_uri)
            return stream.read()

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Yield storage path and place of each file that is ours, in order; links are not."""
        if not self._path.is_dir():
            return
        for bucket in sorted(self._path.iterdir()):
            if not _BUCKET.fullmatch(bucket.name) or bucket.is_symlink() or not bucket.is_dir():
                continue
            for file in sorted(bucket.iterdir()):
                storage_uri = f"{bucket.name}/{file.name}"
                if _STORED.fullmatch(storage_uri) or _UNFINISHED.fullmatch(file.name):
                    yield storage_uri, file

    def _lost(self, storage_uri: str, how: str, code: str) -> NotFoundError:
        return NotFoundError(
            f"{self._path / storage_uri} {how}",
            code=code,
            hint="the record still has the message it came with; it can be written again from that",
        )

    @contextmanager
    def _as_store_errors(self, doing: str) -> Iterator[None]:
        """Turn the system's errors inside the block into ours, naming the folder."""
        try:
            yield
        except OSError as error:
            detail = f"{self._path}: {error.strerror or error} while {doing}"
            if error.errno in _FULL:
                hint = "free space on the disk; nothing was stored"
                raise StoreFullError(detail, hint=hint) from error
            if error.errno in _REFUSED:
                hint = "make the folder readable and writable for this user, or set largeFilesDir"
                raise StoreReadOnlyError(detail, hint=hint) from error
            raise DatabaseError(
                detail, code="io_error", hint="check the disk and largeFilesDir"
            ) from error


def _same_file(bucket: Path, file_id: str, content: bytes) -> Path | None:
    """Return the file that holds a payload already, made young again.

    It may be waiting for its first row, and must not be collected meanwhile.
    """
    for file in sorted(bucket.glob(f"{file_id}.*")):
        if not _EXTENSION.fullmatch(file.suffix[1:]) or file.is_symlink() or not file.is_file():
            continue
        with suppress(FileNotFoundError):
            if file.stat().st_size == len(content) and file.read_bytes() == content:
                os.utime(file)
                return file
    return None


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder safe on disk."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _refused(name: str) -> NotFoundError:
    return NotFoundError(
        f"{name!r} is no payload of this folder",
        code="payload_refused",
        hint="give an id such as file_0123456789abcdef",
    )
