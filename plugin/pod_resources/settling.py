"""
Whether the kubelet has had time to name all that it has.

One that starts lists the pods that it knows so far; the last comes within seconds, if the API server is there.
"""

from collections.abc import Callable
from math import inf
from pathlib import Path

from plugin.sockets import SocketIdentity, identify

_SETTLE_SECONDS = 30.0
_LONGEST_SECONDS = 1800.0  # where new pods come all the time


class Settling:
    """The kubelet that answers on *socket*; where nothing *is_continued*, there is nothing that it could not know."""

    def __init__(self, socket: Path, *, is_continued: bool = False) -> None:
        self._socket = socket
        self.kubelet: SocketIdentity | None = None
        self._is_new = is_continued  # no list of it has come yet
        self._settled_seconds = inf if is_continued else 0.0
        self._longest_seconds = inf
        self._names: frozenset[int] = frozenset()  # hashes, of what it has named: what comes again is not new

    def another(self) -> SocketIdentity | None:
        """Say which kubelet runs now, if it is another one than was known."""
        kubelet = identify(self._socket)
        return None if kubelet == self.kubelet else kubelet

    def begin(self, kubelet: SocketIdentity, *, is_new: bool) -> None:
        """Know *kubelet* from now on; one that *is_new* has yet to name what it has."""
        self.kubelet = kubelet
        if is_new:
            self._is_new, self._settled_seconds, self._names = True, inf, frozenset()

    def listed(
        self, names: frozenset[int], asked_seconds: float, *, is_growing: Callable[[frozenset[int]], bool]
    ) -> None:
        """
        Take up a list of containers by hashes of their *names*, of the time at which the kubelet was asked.

        *is_growing* says by all that it has named before whether this says more of what was before the kubelet.
        """
        if self.is_settled(asked_seconds):
            return
        if self._is_new:
            self._longest_seconds = asked_seconds + _LONGEST_SECONDS
        if self._is_new or is_growing(self._names):
            self._settled_seconds = min(asked_seconds + _SETTLE_SECONDS, self._longest_seconds)
        self._is_new, self._names = False, self._names | names

    def is_settled(self, at_seconds: float) -> bool:
        """Whether its list of that time is whole."""
        return at_seconds >= self._settled_seconds
