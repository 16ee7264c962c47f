"""One prompt over many stored items, side by side; also what compaction catches up with."""

from .batch import Batch, run_batch
from .ordered import in_order
from .results import MappedItem, MapResult

__all__ = ["Batch", "MapResult", "MappedItem", "in_order", "run_batch"]
