"""Types of the `replay` kernel."""

import numpy as np
import numpy.typing as npt

__test__: dict[str, str]

def align(stored: npt.NDArray[np.int64], batch: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...
def find_floods(
    roles: npt.NDArray[np.uint8],
    seconds: npt.NDArray[np.int64],
    contents: npt.NDArray[np.int64],
    replayed: npt.NDArray[np.uint8],
    persisted: npt.NDArray[np.int64],
    external_threshold: int,
    internal_threshold: int,
) -> list[tuple[int, int]]: ...
