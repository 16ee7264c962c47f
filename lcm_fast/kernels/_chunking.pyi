"""Types of the `chunking` kernel."""

import numpy as np
import numpy.typing as npt

__test__: dict[str, str]

def plan_leaf_chunks(
    kinds: npt.NDArray[np.uint8],
    ordinals: npt.NDArray[np.int64],
    openers: npt.NDArray[np.int64],
    tokens: npt.NDArray[np.int64],
    begin: int,
    boundary: int,
    max_tokens: int,
    max_chunks: int = -1,
) -> npt.NDArray[np.int64]: ...
def plan_condensation(
    kinds: npt.NDArray[np.uint8],
    depths: npt.NDArray[np.int64],
    tokens: npt.NDArray[np.int64],
    meaningful: npt.NDArray[np.uint8],
    boundary: int,
    leaf_fanout: int,
    condensed_fanout: int,
    min_tokens: int,
    max_tokens: int,
    max_depth: int = -1,
) -> tuple[int, int, int] | None: ...
