"""The devices of one resource as the kubelet should see them now, and who waits for a change of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Condition

from plugin.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One vGPU in the kubelet's eyes."""

    id: str
    gpu_uuid: str
    numa_node: int | None
    healthy: bool = True


class Devices:
    """
    Holds the devices, and wakes whoever watches when one of them changes.

    An ID never disappears while the process lives: the kubelet may have handed it out, so a vGPU that
    is gone is an unhealthy one.
    """

    def __init__(self, pool: Pool) -> None:
        self._changed = Condition()
        self._devices = tuple(
            Device(id=str(vgpu), gpu_uuid=gpu.uuid, numa_node=gpu.numa_node) for vgpu, gpu in pool.vgpus()
        )

    def set_health(self, gpu_uuid: str, *, healthy: bool) -> None:
        """Mark all vGPUs of one GPU; watchers hear of it only if that changes something."""
        with self._changed:
            devices = tuple(
                replace(device, healthy=healthy) if device.gpu_uuid == gpu_uuid else device for device in self._devices
            )
            if devices != self._devices:
                self._devices = devices
                self._changed.notify_all()

    def watch(self) -> "Watch":
        """Start to follow the devices: at once the ones there are, later each change."""
        return Watch(self)

    def next_state(self, watch: "Watch") -> tuple[Device, ...] | None:
        """Wait until there is something that *watch* has not seen; None once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: watch.closed or watch.seen is not self._devices)
            return None if watch.closed else self._devices

    def close(self, watch: "Watch") -> None:
        """End *watch*, from any thread."""
        with self._changed:
            watch.closed = True
            self._changed.notify_all()


class Watch:
    """One follower of the devices; iterate over it, close it from any thread."""

    def __init__(self, devices: Devices) -> None:
        self._of = devices
        self.seen: tuple[Device, ...] | None = None
        self.closed = False

    def __iter__(self) -> Iterator[tuple[Device, ...]]:
        """Yield all devices now, and all of them again after each change, until closed."""
        while (state := self._of.next_state(self)) is not None:
            self.seen = state
            yield state

    def close(self) -> None:
        """End the iteration."""
        self._of.close(self)
