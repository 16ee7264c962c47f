"""Types of the `relevance` kernel."""

import numpy as np
import numpy.typing as npt

__test__: dict[str, str]

def score_items(
    prompt_terms: npt.NDArray[np.uint32],
    prompt_counts: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.int64],
    terms: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.uint32],
    lengths: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    saturation: float,
    length_share: float,
) -> npt.NDArray[np.float64]: ...
