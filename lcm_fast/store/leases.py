"""Who works on something, so that two do not, and what a dead process left is taken up again.

An owner is named by host, process and a number of its own. On the same host a process that is gone
is known at once; of another host only the end of the lease tells (design: architecture, section 5).
"""

from __future__ import annotations

import itertools
import os
import socket

__all__ = ["is_gone", "owner_name"]

_NUMBERS = itertools.count(1)


def owner_name() -> str:
    """Return a new name of an owner in this process: ``host:process:number``."""
    return f"{socket.gethostname()}:{os.getpid()}:{next(_NUMBERS)}"


def is_gone(owner: str) -> bool:
    """Tell whether an owner's process ran on this host and has ended.

    >>> is_gone(owner_name()), is_gone("elsewhere:1:1"), is_gone("")
    (False, False, True)
    """
    if not owner:
        return True
    host, process, _ = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
