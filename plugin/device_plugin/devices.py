"""The devices of one resource as the kubelet should see them now, and who waits for a change of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Condition

from plugin.gpus.gpu import Gpu, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One vGPU in the kubelet's eyes."""

    id: str
    gpu_uuid: str
    numa_node: int | None
    healthy: bool = True


class Devices:
    """
    Holds the GPUs and their vGPUs, and wakes whoever watches when one of them changes.

    An ID never disappears while the process lives: the kubelet may have handed it out, so a vGPU that
    is gone is an unhealthy one.
    """

    def __init__(self, pool: Pool, *, faults: Mapping[str, str] | None = None) -> None:
        """Hold *pool*; *faults* says why, by UUID, for each GPU that is unhealthy from the start."""
        self._changed = Condition()
        self._pool = pool
        self._faults = dict(faults or {})
        self._devices = self._made()

    @property
    def pool(self) -> Pool:
        """The GPUs, healthy or not."""
        return self._pool

    def fault(self, gpu_uuid: str) -> str | None:
        """Say why a GPU is unhealthy; None if it is healthy."""
        return self._faults.get(gpu_uuid)

    def withheld(self) -> Mapping[str, frozenset[str]]:
        """Name the vGPUs that the kubelet may not allocate although their GPU is healthy, by the GPU's UUID."""
        with self._changed:
            kept = [one for one in self._devices if not one.healthy and one.gpu_uuid not in self._faults]
        return {
            uuid: frozenset(one.id for one in kept if one.gpu_uuid == uuid) for uuid in {one.gpu_uuid for one in kept}
        }

    def set_faults(self, faults: Mapping[str, str]) -> None:
        """
        Mark all vGPUs of the GPUs in *faults* (UUID to reason) unhealthy, and all others healthy.

        Watchers hear of it only if that changes something for them.
        """
        with self._changed:
            self._faults = dict(faults)
            self._publish()

    def set_gpus(self, gpus: tuple[Gpu, ...]) -> None:
        """Advertise more GPUs, or the same ones as they are now: *gpus* holds the known ones, and new ones."""
        with self._changed:
            self._pool = replace(self._pool, gpus=gpus)
            self._publish()

    def watch(self) -> "Subscription":
        """Start to follow the devices: at once the ones there are, later each change."""
        return Subscription(self)

    def next_state(self, watch: "Subscription") -> tuple[Device, ...] | None:
        """Wait until there is something that *watch* has not seen; None once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: watch.closed or watch.seen is not self._devices)
            return None if watch.closed else self._devices

    def close(self, watch: "Subscription") -> None:
        """End *watch*, from any thread."""
        with self._changed:
            watch.closed = True
            self._changed.notify_all()

    def _publish(self) -> None:
        devices = self._made()
        if devices != self._devices:
            self._devices = devices
            self._changed.notify_all()

    def _made(self) -> tuple[Device, ...]:
        return tuple(
            Device(id=str(vgpu), gpu_uuid=gpu.uuid, numa_node=gpu.numa_node, healthy=gpu.uuid not in self._faults)
            for vgpu, gpu in self._pool.vgpus()
        )


class Subscription:
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
