"""Types of the `bpe` kernel."""

from typing import final

import numpy as np
import numpy.typing as npt

__test__: dict[str, str]

@final
class TokenCounter:
    @property
    def encoding_name(self) -> str: ...
    def __new__(cls, encoding_name: str, vocabulary: bytes) -> TokenCounter: ...
    def count(self, text: str) -> int: ...
    def count_many(self, texts: list[str]) -> npt.NDArray[np.int64]: ...
    def count_steps(self, text: str) -> int: ...
