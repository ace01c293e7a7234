"""
How a request is rejected that fits on no GPU: after a pause, and with what is free instead.

During the pause the kubelet starts no other pod, so none can fail; what must not be allocated is hidden, so that the
node's status says so if it goes out meanwhile; and whoever makes the next pod does so that much later. Afterwards the
kubelet sees again what the scheduler believes, or it would reject the next pods by itself, ten in a second.
"""

from collections.abc import Callable, Sequence
from time import monotonic

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.fit_guard import Room
from plugin.device_plugin.placement import can_be_had

TOLD_SECONDS = 0.1  # it takes about a millisecond; a kubelet that hangs must not be waited for
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 2.0
_FORGOTTEN_SECONDS = 30.0
_MOST_GPUS_NAMED = 4  # in a message: it ends up in the pod's status
_BY_NOW = "there is room by now: try again"
_ELSEWHERE = "there is room on NUMA nodes that the kubelet has not chosen"


class Pause:
    """How long to wait before a request is rejected: longer each time, where they come one after the other."""

    def __init__(self) -> None:
        self._seconds = _FIRST_PAUSE_SECONDS
        self._last_seconds = float("-inf")

    def next(self, now_seconds: float) -> float:
        """Give the seconds for a request that is rejected now."""
        again = now_seconds - self._last_seconds < _FORGOTTEN_SECONDS
        self._seconds = min(2 * self._seconds, _LONGEST_PAUSE_SECONDS) if again else _FIRST_PAUSE_SECONDS
        self._last_seconds = now_seconds
        return self._seconds


class Rejections:
    """Rejects the requests for one resource; the kubelet sends one at a time."""

    def __init__(
        self, devices: Devices, *, wait: Callable[[float], object], clock: Callable[[], float] = monotonic
    ) -> None:
        """Reject requests for *devices*; *wait* lets so many seconds pass, or fewer where all ends."""
        self._devices = devices
        self._clock = clock
        self._wait = wait
        self._pause = Pause()

    def why(self, size: int) -> str:
        """Say what there is instead of *size* vGPUs on one GPU."""
        rooms = self._devices.rooms()
        if self._fits(size, rooms):
            return _ELSEWHERE if self._devices.alignment.is_seen else _BY_NOW
        return self._words(size, rooms)

    def reject(self, size: int) -> str:
        """Let some time pass where *size* vGPUs fit on no GPU, and say what there is instead."""
        seen = self._devices.seen
        self._devices.show_less()
        self._devices.wait_until_told(within_seconds=TOLD_SECONDS)
        rooms = self._devices.rooms()
        is_elsewhere = self._fits(size, rooms)
        if is_elsewhere and not self._devices.alignment.is_seen:
            return _BY_NOW
        self._wait(self._pause.next(self._clock()))
        self._devices.show_again(seen)
        self._devices.wait_until_told(within_seconds=TOLD_SECONDS)  # before it asks about the next pod
        if is_elsewhere:
            return _ELSEWHERE
        return self._words(size, rooms)

    def _fits(self, size: int, rooms: Sequence[Room]) -> bool:
        per_gpu = self._devices.pool.vgpus_per_gpu
        empty = sum(one.free == per_gpu for one in rooms)
        return any(one.free >= size for one in rooms) or (can_be_had(size, self._devices) and empty * per_gpu >= size)

    def _words(self, size: int, rooms: Sequence[Room]) -> str:
        if rooms and not can_be_had(size, self._devices):
            return (
                f"each has {self._devices.pool.vgpus_per_gpu}: ask for at most that, or for whole GPUs; if gpu-share "
                "granted it, the node goes by another vgpusPerGpu: `gpu-share plugin status` there says why"
            )
        return _free(size, rooms)


def _free(size: int, rooms: Sequence[Room]) -> str:
    """Say what is free on which GPU, and what to do."""
    if not rooms:
        return "who holds what is not known: see `gpu-share plugin status` on this node"
    free = sorted((one for one in rooms if one.free), key=lambda one: -one.free)
    if not free:
        return "nothing is free on a healthy GPU of this node"
    named = ", ".join(f"{one.free} on {one.gpu_uuid}" for one in free[:_MOST_GPUS_NAMED])
    more = f" and less on {len(free) - _MOST_GPUS_NAMED} more" if len(free) > _MOST_GPUS_NAMED else ""
    return f"free are {named}{more}: ask for at most {free[0].free}, or make room for {size} on one GPU"
