"""Tables on stdout and a progress bar on stderr; the only importer of rich, when one is drawn."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from .output import columns, printable

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["Progress", "draw_table", "progress"]

_GAP = 2
_LEAST_LAST_COLUMN = 16


def draw_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the last column gives way when the terminal is narrow, the others stay whole.

    Parameters
    ----------
    headings
        One a column; those that start with ``#`` are of numbers, and align right.
    """
    from rich.console import Console  # noqa: PLC0415  (rich takes longer to import than a verb to run)
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    # Text and not str: what stands in brackets is content, not markup.
    titles = [Text(heading.removeprefix("#")) for heading in headings]
    cells = [[Text(printable(cell)) for cell in row] for row in rows]
    widths = [max(cell.cell_len for cell in column) for column in zip(titles, *cells, strict=True)]
    taken = sum(widths[:-1]) + _GAP * len(widths[:-1])
    widths[-1] = min(widths[-1], max(columns() - taken, _LEAST_LAST_COLUMN))
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for heading, title, width in zip(headings, titles, widths, strict=True):
        justify: Literal["left", "right"] = "right" if heading.startswith("#") else "left"
        table.add_column(title, justify=justify, no_wrap=True, width=width)
    for row_cells in cells:
        table.add_row(*row_cells)
    Console(file=sys.stdout, width=taken + widths[-1] + _GAP, highlight=False).print(table)


class Progress:
    """Where long work tells how far it is; without a bar it listens and draws nothing."""

    def __init__(self, bar: RichProgress | None = None) -> None:
        self._bar = bar
        self._task: TaskID | None = None

    def begin(self, description: str) -> None:
        """Start a phase whose length is not known yet."""
        if self._bar is None:
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(printable(description), total=None)

    def advance(self, done: int, total: int) -> None:
        """Show how much of the phase is done."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def note(self, line: str) -> None:
        """Show a line about the phase."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=printable(line))


@contextmanager
def progress(*, is_long: bool) -> Iterator[Progress]:
    """Show progress on stderr during the block, when the work is long and stderr is a terminal."""
    if not (is_long and sys.stderr.isatty()):
        yield Progress()
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress as RichProgress  # noqa: PLC0415

    with RichProgress(console=Console(file=sys.stderr), transient=True) as bar:
        yield Progress(bar)
