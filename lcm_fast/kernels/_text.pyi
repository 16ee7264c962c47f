"""Types of the `text` kernel."""

import numpy as np
import numpy.typing as npt

__test__: dict[str, str]

def analyse_terms(text: str) -> list[str]: ...
def count_terms(
    texts: list[str],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
