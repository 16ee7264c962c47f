"""The folder of large payloads: whole files under their digest, and no way out of it."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from lcm_fast.errors import DatabaseError, NotFoundError, StoreFullError, StoreReadOnlyError
from lcm_fast.store.payload_files import GRACE_SECONDS, PayloadFolder

CONTENT = b"a large payload\n" * 100
LONG_AGO = 1_000_000_000.0


def id_of(content: bytes) -> str:
    return f"file_{hashlib.sha256(content).hexdigest()[:16]}"


FILE_ID = id_of(CONTENT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "payloads"


@pytest.fixture
def folder(path: Path) -> PayloadFolder:
    """A folder whose clock shows the system's time."""
    return PayloadFolder(path)


def files_in(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def nobody_knows(storage_uri: str) -> bool:
    return False


def make_old(file: Path) -> None:
    os.utime(file, (LONG_AGO, LONG_AGO))


def failing_with(number: int) -> object:
    def fail(*args: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_payload_is_read_back_byte_for_byte(folder: PayloadFolder) -> None:
    assert folder.read(folder.write(CONTENT, FILE_ID, "txt")) == CONTENT


def test_a_payload_is_stored_under_the_first_digits_of_its_digest(folder: PayloadFolder) -> None:
    assert folder.write(CONTENT, FILE_ID, "csv") == f"{FILE_ID[5:7]}/{FILE_ID}.csv"


def test_files_and_folders_are_private_to_their_user(folder: PayloadFolder, path: Path) -> None:
    file = path / folder.write(CONTENT, FILE_ID, "txt")
    modes = [oct(place.stat().st_mode & 0o777) for place in (path, file.parent, file)]
    assert modes == ["0o700", "0o700", "0o600"]


def test_the_same_payload_is_one_file(folder: PayloadFolder, path: Path) -> None:
    first = folder.write(CONTENT, FILE_ID, "txt")
    before = (path / first).stat().st_ino
    assert folder.write(CONTENT, FILE_ID, "txt") == first
    assert (path / first).stat().st_ino == before


def test_the_same_payload_under_another_extension_is_the_same_file(
    folder: PayloadFolder, path: Path
) -> None:
    first = folder.write(CONTENT, FILE_ID, "json")
    assert folder.write(CONTENT, FILE_ID, "txt") == first
    assert files_in(path) == [first]


@pytest.mark.parametrize("damaged", [b"", CONTENT[:-1], CONTENT.swapcase()])
def test_a_damaged_file_is_written_again(folder: PayloadFolder, path: Path, damaged: bytes) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    (path / storage_uri).write_bytes(damaged)
    folder.write(CONTENT, FILE_ID, "txt")
    assert folder.read(storage_uri) == CONTENT


def test_a_lost_file_is_written_again_at_the_same_place(folder: PayloadFolder, path: Path) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    (path / storage_uri).unlink()
    assert folder.write(CONTENT, FILE_ID, "txt") == storage_uri
    assert folder.read(storage_uri) == CONTENT


def test_reading_a_lost_file_says_that_the_record_has_it(folder: PayloadFolder, path: Path) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    (path / storage_uri).unlink()
    with pytest.raises(NotFoundError, match=r"missing .*record still has") as raised:
        folder.read(storage_uri)
    assert raised.value.code == "payload_missing"


def test_reading_a_damaged_file_never_returns_its_bytes(folder: PayloadFolder, path: Path) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    (path / storage_uri).write_bytes(CONTENT.swapcase())
    with pytest.raises(NotFoundError) as raised:
        folder.read(storage_uri)
    assert raised.value.code == "payload_damaged"


@pytest.mark.parametrize(
    "file_id",
    [
        "",
        "file_",
        "../../etc/passwd",
        "file_0123456789abcde",
        "file_0123456789abcdef0",
        "file_0123456789ABCDEF",
        "file_0123456789abcdef\n",
        "file_../456789abcdef",
        "FILE_0123456789abcdef",
    ],
)
def test_an_id_that_is_not_one_of_ours_is_refused(
    folder: PayloadFolder, path: Path, file_id: str
) -> None:
    with pytest.raises(NotFoundError) as raised:
        folder.write(CONTENT, file_id, "txt")
    assert raised.value.code == "payload_refused"
    assert not path.exists()


@pytest.mark.parametrize("extension", ["", "../x", "TXT", "a.b", "txt\n", "overlong_ext"])
def test_an_extension_that_is_not_plain_is_refused(folder: PayloadFolder, extension: str) -> None:
    with pytest.raises(NotFoundError, match="no payload of this folder"):
        folder.write(CONTENT, FILE_ID, extension)


@pytest.mark.parametrize(
    "storage_uri",
    [
        "",
        "/etc/passwd",
        "../secret.txt",
        "01/../../secret.txt",
        "01/file_0123456789abcdef.txt/../../../secret.txt",
        "01//file_0123456789abcdef.txt",
        "01/file_0123456789abcdef",
        "02/file_0123456789abcdef.txt",
        "01/file_0123456789abcdef.txt\x00",
        "01/file_0123456789abcdef.txt\n",
        "./01/file_0123456789abcdef.txt",
        "file:///etc/passwd",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(
    folder: PayloadFolder, path: Path, storage_uri: str
) -> None:
    folder.write(CONTENT, FILE_ID, "txt")
    (path.parent / "secret.txt").write_text("secret")
    with pytest.raises(NotFoundError) as raised:
        folder.read(storage_uri)
    assert raised.value.code == "payload_refused"


def test_a_link_out_of_the_folder_is_not_followed(folder: PayloadFolder, path: Path) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    outside = path.parent / "outside.txt"
    (path / storage_uri).rename(outside)
    (path / storage_uri).symlink_to(outside)
    with pytest.raises(NotFoundError) as raised:
        folder.read(storage_uri)
    assert raised.value.code == "payload_refused"


def test_a_subfolder_that_is_a_link_is_not_written_through(
    folder: PayloadFolder, path: Path
) -> None:
    outside = path.parent / "outside"
    outside.mkdir()
    path.mkdir()
    (path / FILE_ID[5:7]).symlink_to(outside)
    with pytest.raises(NotFoundError, match="no payload of this folder"):
        folder.write(CONTENT, FILE_ID, "txt")
    assert files_in(outside) == []


def test_a_pipe_in_a_files_place_is_refused_without_waiting(
    folder: PayloadFolder, path: Path
) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    (path / storage_uri).unlink()
    os.mkfifo(path / storage_uri)
    with pytest.raises(NotFoundError) as raised:
        folder.read(storage_uri)
    assert raised.value.code == "payload_refused"


def test_the_folder_itself_may_be_reached_by_a_link(path: Path) -> None:
    real = path.parent / "elsewhere"
    real.mkdir()
    path.symlink_to(real)
    folder = PayloadFolder(path)
    assert folder.read(folder.write(CONTENT, FILE_ID, "txt")) == CONTENT


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, StoreFullError),
        (errno.EDQUOT, StoreFullError),
        (errno.EROFS, StoreReadOnlyError),
        (errno.EACCES, StoreReadOnlyError),
        (errno.EIO, DatabaseError),
    ],
)
def test_a_failing_disk_leaves_no_partial_file_and_names_the_folder(
    folder: PayloadFolder,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    error: type[DatabaseError],
) -> None:
    (path / FILE_ID[5:7]).mkdir(parents=True)
    monkeypatch.setattr("os.fsync", failing_with(number))
    with pytest.raises(error, match=f"{path}: {os.strerror(number)} while writing {FILE_ID}"):
        folder.write(CONTENT, FILE_ID, "txt")
    assert files_in(path) == []


def test_a_folder_that_is_a_file_is_a_store_error(path: Path) -> None:
    path.write_text("not a folder")
    with pytest.raises(DatabaseError, match="largeFilesDir"):
        PayloadFolder(path).write(CONTENT, FILE_ID, "txt")


def test_a_file_whose_row_was_never_written_is_collected(folder: PayloadFolder, path: Path) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    make_old(path / storage_uri)
    assert folder.collect(nobody_knows) == [storage_uri]
    assert files_in(path) == []


def test_a_file_that_a_row_names_is_kept(folder: PayloadFolder, path: Path) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    make_old(path / storage_uri)
    assert folder.collect({storage_uri}.__contains__) == []
    assert folder.read(storage_uri) == CONTENT


def test_an_unfinished_file_of_a_crash_is_collected(folder: PayloadFolder, path: Path) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    unfinished = path / FILE_ID[5:7] / f".{FILE_ID}.txt.a1b2c3_4"
    unfinished.write_bytes(CONTENT[:10])
    make_old(unfinished)
    assert folder.collect({storage_uri}.__contains__) == [f"{FILE_ID[5:7]}/{unfinished.name}"]
    assert files_in(path) == [storage_uri]


def test_an_interrupted_write_leaves_what_collect_recognises(
    folder: PayloadFolder, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def look(number: int) -> None:
        seen.extend(file.name for file in (path / FILE_ID[5:7]).iterdir())
        raise OSError(errno.EIO, "stop")

    (path / FILE_ID[5:7]).mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", look)
        with pytest.raises(DatabaseError):
            folder.write(CONTENT, FILE_ID, "txt")
    left = path / FILE_ID[5:7] / seen[0]
    left.write_bytes(CONTENT)
    make_old(left)
    assert folder.collect(nobody_knows) == [f"{FILE_ID[5:7]}/{left.name}"]


def test_a_young_file_may_be_about_to_get_its_row(path: Path) -> None:
    now = LONG_AGO + GRACE_SECONDS
    folder = PayloadFolder(path, clock=lambda: now)
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    make_old(path / storage_uri)
    assert folder.collect(nobody_knows) == []
    now += 1
    assert folder.collect(nobody_knows) == [storage_uri]


def test_a_file_that_is_met_again_is_young_again(folder: PayloadFolder, path: Path) -> None:
    storage_uri = folder.write(CONTENT, FILE_ID, "txt")
    make_old(path / storage_uri)
    folder.write(CONTENT, FILE_ID, "txt")
    assert folder.collect(nobody_knows) == []


def test_files_that_are_not_ours_are_left_alone(folder: PayloadFolder, path: Path) -> None:
    names = ["notes.txt", "ab/readme.txt", "zz/file_0123456789abcdef.txt", "ab/.hidden"]
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("mine")
        make_old(path / name)
    assert folder.collect(nobody_knows) == []
    assert files_in(path) == sorted(names)


def test_collecting_does_not_follow_links(folder: PayloadFolder, path: Path) -> None:
    outside = path.parent / "01"
    outside.mkdir()
    (outside / "file_0123456789abcdef.txt").write_text("not in the folder")
    make_old(outside / "file_0123456789abcdef.txt")
    path.mkdir()
    (path / "01").symlink_to(outside)
    assert folder.collect(nobody_knows) == []


def test_a_folder_that_was_never_made_holds_nothing(folder: PayloadFolder, path: Path) -> None:
    assert folder.collect(nobody_knows) == []
    assert not path.exists()
