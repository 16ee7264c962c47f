"""The command ``lcm-fast``, also ``python -m lcm_fast``; all of it is in `surfaces.cli`."""

from __future__ import annotations

import sys

from .errors import LcmError

__all__ = ["main"]


def main() -> None:
    """Run the command; one that cannot even be loaded says why in a line."""
    try:
        from .surfaces.cli import main as run  # noqa: PLC0415 - loading it is what may fail
    except LcmError as error:
        hint = f"hint: {error.hint}\n" if error.hint else ""
        sys.stderr.write(f"lcm-fast: error: {error.detail}\n{hint}")
        sys.exit(error.exit_code)
    run()


if __name__ == "__main__":
    main()
