"""
When the kubelet may be asked who holds what: not while it takes up what it is given.

It makes its list of what is allocated anew if it is asked and a pod has ended, and what it is allocating at that moment
is not among that (kubernetes#137534): it would give it to another container as well.
"""

from collections.abc import Callable
from threading import Lock
from time import monotonic, sleep
from typing import TypeVar

T = TypeVar("T")

# From one call of the kubelet's to the next, or until it has taken up the last answer, which may wait for 0.1 s here.
CALL_SECONDS = 0.25
_LONGEST_SECONDS = 1.0  # that anybody waits where one pod comes after the other


class Quiet:
    """Knows of the kubelet's last call; for any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._over_seconds = 0.0

    def disturb(self) -> None:
        """Take note that the kubelet is calling."""
        with self._lock:
            self._over_seconds = monotonic() + CALL_SECONDS

    def wait(self) -> None:
        """Wait until the last call is over, or for a second."""
        deadline = monotonic() + _LONGEST_SECONDS
        while (rest := min(self._over_seconds, deadline) - monotonic()) > 0:
            sleep(rest)

    def before(self, ask: Callable[[], T]) -> Callable[[], T]:
        """Give what *ask* gives, after `wait`."""

        def asked() -> T:
            self.wait()
            return ask()

        return asked
