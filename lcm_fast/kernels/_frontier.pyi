"""Types of the `frontier` kernel."""

import numpy as np
import numpy.typing as npt

__test__: dict[str, str]

def select_fresh_tail(
    kinds: npt.NDArray[np.uint8],
    ordinals: npt.NDArray[np.int64],
    openers: npt.NDArray[np.int64],
    tokens: npt.NDArray[np.int64],
    count: int,
    max_tokens: int = -1,
) -> int: ...
def select_context(
    ordinals: npt.NDArray[np.int64],
    openers: npt.NDArray[np.int64],
    tokens: npt.NDArray[np.int64],
    pinned: npt.NDArray[np.uint8],
    tail_start: int,
    budget: int,
    order: npt.NDArray[np.int64] | None = None,
    reserve: int = 0,
) -> tuple[npt.NDArray[np.uint8], int]: ...
