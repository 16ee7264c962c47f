"""The examples in the kernels' docstrings give what they show."""

from __future__ import annotations

import doctest

import pytest


@pytest.mark.parametrize("kernel", ["tokens", "frontier", "chunking", "text", "replay", "bpe"])
def test_examples_of_a_kernel_hold(kernel: str) -> None:
    module = pytest.importorskip(
        f"lcm_fast.kernels._{kernel}", reason=f"no binary of the {kernel} kernel"
    )
    results = doctest.testmod(module)
    assert (results.failed, results.attempted > 0) == (0, True)
