"""Types of the `tokens` kernel."""

import numpy as np
import numpy.typing as npt

__test__: dict[str, str]

def estimate_tokens(text: str) -> int: ...
def estimate_tokens_many(texts: list[str]) -> npt.NDArray[np.int64]: ...
def truncate_tokens(text: str, max_tokens: int) -> str: ...
