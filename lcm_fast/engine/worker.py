"""What drains compaction debt in the background: rounds of maintenance, and a thread for them.

It only calls `Engine.maintain`, which it is given; what is due, and when, the debt itself says.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ..errors import LcmError
from .results import MaintenanceResult

__all__ = ["MaintenanceWorker", "maintain_once"]

_LOG = logging.getLogger(__name__)

Maintain = Callable[[threading.Event], MaintenanceResult]

# A debt that another process left, or that has no waiting time, is looked at this often.
_LOOK_EVERY_S = 60.0
_SHORTEST_WAIT_S = 0.05


class MaintenanceWorker:
    """Maintains a memory from a thread of its own, until it is stopped.

    Parameters
    ----------
    maintain
        Does one round; begins nothing further once the event it is given is set.
    """

    def __init__(self, maintain: Maintain) -> None:
        self._maintain = maintain
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lcm-fast-maintenance", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Have it look at once."""
        self._woken.set()

    def stop(self) -> None:
        """End it; a summariser call under way is waited for, no other is made."""
        self._stopped.set()
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            wait_s = maintain_once(self._maintain, self._stopped)
            self._woken.wait(wait_s)


def maintain_once(maintain: Maintain, stopped: threading.Event) -> float:
    """Do one round of maintenance; return how many seconds to wait for the next, unless woken."""
    try:
        wait_s = maintain(stopped).wait_s
    except LcmError as error:
        _LOG.warning("maintenance: %s", error)
        return _LOOK_EVERY_S
    except Exception:  # a worker that dies would leave every debt to pile up unseen
        _LOG.exception("maintenance failed")
        return _LOOK_EVERY_S
    return _LOOK_EVERY_S if wait_s is None else min(max(wait_s, _SHORTEST_WAIT_S), _LOOK_EVERY_S)
