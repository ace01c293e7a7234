"""
The kubelet's calls to prepare claims, while they run.

gRPC lets a call run on when its client has given it up. The kubelet gives one up when the pod is deleted, and then
unprepares the claim: what the call took after that, nobody would ever take back.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from plugin.errors import ClaimError

MOST_WAITING = 128  # more than a node has pods, unless its kubelet is told otherwise


class Call:
    """One call, of one claim or several; `Calls` makes it."""

    def __init__(self, *, is_awaited: Callable[[], bool], may_wait: Callable[["Call"], bool]) -> None:
        self._is_awaited = is_awaited
        self._may_wait = may_wait
        self._void: set[str] = set()

    def check(self, uid: str) -> None:
        """
        See that the kubelet still wants a claim prepared.

        Raises:
            ClaimError: If it has given the call up, or unprepared the claim meanwhile.
        """
        if uid in self._void or not self._is_awaited():
            raise ClaimError("the kubelet has given this call up or unprepared the claim: was its pod deleted?")

    def may_wait(self) -> bool:
        """Whether the call may wait; it then counts as one that does until it ends."""
        return self._may_wait(self)

    def void(self, uid: str) -> None:
        """Have nothing prepared for a claim any more."""
        self._void.add(uid)


class Calls:
    """Which calls run, for any thread; at most *most_waiting* of them wait, so that others find a thread."""

    def __init__(self, *, most_waiting: int = MOST_WAITING) -> None:
        self._most_waiting = most_waiting
        self._lock = Lock()
        self._running: set[Call] = set()
        self._waiting: set[Call] = set()

    @contextmanager
    def begin(self, is_awaited: Callable[[], bool]) -> Iterator[Call]:
        """Have a call known until it ends; *is_awaited* says whether the kubelet still waits for the answer."""
        call = Call(is_awaited=is_awaited, may_wait=self._may_wait)
        with self._lock:
            self._running.add(call)
        try:
            yield call
        finally:
            with self._lock:
                self._running.discard(call)
                self._waiting.discard(call)

    def void(self, uid: str) -> None:
        """Have no call that runs prepare a claim; one that begins later may."""
        with self._lock:
            for call in self._running:
                call.void(uid)

    def _may_wait(self, call: Call) -> bool:
        with self._lock:
            if call not in self._waiting and len(self._waiting) >= self._most_waiting:
                return False
            self._waiting.add(call)
            return True
