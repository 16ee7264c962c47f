"""Which implementation of the kernels a process gets; each case is a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

import pytest

import lcm_fast.kernels

PACKAGE = Path(lcm_fast.kernels.__file__).parents[1]
KERNELS = ("tokens", "frontier", "chunking", "text", "relevance", "replay", "bpe")
REPORT = (
    "import lcm_fast.kernels as k; import lcm_fast.kernels; "
    "print(k.IMPLEMENTATION, ','.join(k.MISSING), k.estimate_tokens('Hello world'))"
)

needs_binaries = pytest.mark.skipif(
    any(find_spec(f"lcm_fast.kernels._{name}") is None for name in KERNELS),
    reason="the kernels are not built",
)


def start(root: Path, implementation: str | None) -> subprocess.CompletedProcess[str]:
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("LCM_FAST")}
    environment["PYTHONPATH"] = str(root)
    if implementation is not None:
        environment["LCM_FAST_IMPLEMENTATION"] = implementation
    return subprocess.run(
        [sys.executable, "-W", "default", "-c", REPORT],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def copy_kernels(root: Path, *ignored: str) -> Path:
    """Copy what the kernels need to a package of their own, without the files that match."""
    package = root / "lcm_fast"
    ignore = shutil.ignore_patterns("__pycache__", *ignored)
    shutil.copytree(PACKAGE / "kernels", package / "kernels", ignore=ignore)
    shutil.copy(PACKAGE / "errors.py", package)
    (package / "__init__.py").touch()
    return root


@pytest.fixture
def unbuilt(tmp_path: Path) -> Path:
    """The kernels without any binary."""
    return copy_kernels(tmp_path, *(f"*{suffix}" for suffix in EXTENSION_SUFFIXES))


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The kernels as they were built."""
    return copy_kernels(tmp_path)


def add_broken_binary(root: Path, kernel: str) -> None:
    path = root / "lcm_fast" / "kernels" / f"_{kernel}{EXTENSION_SUFFIXES[0]}"
    path.write_bytes(b"not a shared library")


@needs_binaries
def test_compiled_kernels_are_the_default(built: Path) -> None:
    assert start(built, None).stdout == "compiled  3\n"


@needs_binaries
def test_compiled_kernels_can_be_asked_for(built: Path) -> None:
    assert start(built, "compiled").stdout == "compiled  3\n"


def test_the_reference_can_be_asked_for_and_gives_no_warning(unbuilt: Path) -> None:
    result = start(unbuilt, "reference")
    said = f"reference {','.join(KERNELS)} 3\n"
    assert (result.stdout, result.stderr) == (said, "")


def test_another_value_is_an_error_that_names_variable_value_and_choices(unbuilt: Path) -> None:
    error = start(unbuilt, "fast").stderr.splitlines()[-1]
    assert error == (
        "lcm_fast.errors.ConfigError: LCM_FAST_IMPLEMENTATION is 'fast', from the environment; "
        "allowed: 'compiled', 'reference'"
    )


def test_missing_binaries_select_the_reference(unbuilt: Path) -> None:
    assert start(unbuilt, None).stdout == f"reference {','.join(KERNELS)} 3\n"


def test_missing_binaries_are_warned_of_once_with_the_build_command(unbuilt: Path) -> None:
    warnings = [line for line in start(unbuilt, None).stderr.splitlines() if "Warning" in line]
    assert [line.partition("RuntimeWarning: ")[2] for line in warnings] == [
        "lcm_fast uses its slow reference kernels, for want of a binary of "
        f"{', '.join(KERNELS)}; "
        "build with: python setup.py build_ext --inplace"
    ]


def test_one_missing_binary_selects_the_reference_for_all(unbuilt: Path) -> None:
    for kernel in KERNELS[1:]:
        add_broken_binary(unbuilt, kernel)
    assert start(unbuilt, None).stdout == "reference tokens 3\n"


def test_a_binary_that_does_not_load_is_an_error_that_names_it(unbuilt: Path) -> None:
    for kernel in KERNELS:
        add_broken_binary(unbuilt, kernel)
    error = start(unbuilt, None).stderr.splitlines()[-1]
    assert error.startswith(
        "lcm_fast.errors.KernelError: the compiled kernel 'tokens' does not load: "
    )


def test_the_reference_runs_beside_binaries_that_do_not_load(unbuilt: Path) -> None:
    for kernel in KERNELS:
        add_broken_binary(unbuilt, kernel)
    assert start(unbuilt, "reference").stdout == "reference  3\n"
