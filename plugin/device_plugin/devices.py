"""The devices of one resource as the kubelet should see them now, and who waits for a change of them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain
from threading import Condition
from weakref import WeakSet

from plugin.device_plugin.counts import Counts, Free, device_id
from plugin.device_plugin.fit_guard import FitGuard, Room
from plugin.device_plugin.holdings import Holder
from plugin.device_plugin.subscription import Device, Subscription
from plugin.gpus.gpu import Gpu, Pool, VGpuId
from plugin.shares.parts import free_vgpus


class Devices:
    """
    Holds the GPUs and their vGPUs, and wakes whoever watches when one of them changes.

    An ID never disappears while the process lives: the kubelet may have handed it out, so a vGPU that
    is gone is an unhealthy one. One that is hidden is unhealthy in the kubelet's eyes alone: nothing is wrong with it.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        resource: str = "",
        faults: Mapping[str, str] | None = None,
        guard: FitGuard | None = None,
    ) -> None:
        """Hold *pool* as *resource*; *faults* says why, by UUID, for each GPU that is unhealthy from the start."""
        self.resource = resource
        self._changed = Condition()
        self._pool = pool
        self._faults = dict(faults or {})
        self._held: Mapping[str, Mapping[int, Holder]] = {}
        self._is_blind = False
        self._advertised: dict[str, frozenset[int]] = {}  # by UUID: the indexes
        self._known: dict[str, frozenset[int]] = {}  # those that ever were
        # By UUID: what was made, and of what.
        self._of_gpu: dict[str, tuple[object, tuple[Device, ...]]] = {}
        self._counts = Counts(resource)
        self._parts: list[tuple[Device, ...]] = []
        self._devices: tuple[Device, ...] = ()
        self.seen: frozenset[str] = frozenset()  # IDs of the vGPUs that the kubelet takes for healthy
        self._vacant = Free()
        self._guard = guard
        self.is_guarded = guard is not None  # free vGPUs are hidden where they would be allocated in vain
        self.is_known = False  # who holds what
        self._watches: WeakSet[Subscription] = WeakSet()
        self._make()

    @property
    def pool(self) -> Pool:
        """The GPUs, healthy or not."""
        return self._pool

    def vgpu(self, device_id: str) -> VGpuId:
        """Read the ID of a vGPU of the pool."""
        position, index = self._pool.place(device_id) or (0, 0)
        return VGpuId(self._pool.gpus[position].uuid, index)

    def room(self) -> dict[str, int]:
        """Count the free vGPUs of each GPU, by UUID."""
        pool = self._pool
        return {gpu.uuid: self.free(gpu, vgpus_per_gpu=pool.vgpus_per_gpu) for gpu in pool.gpus}

    def fault(self, gpu_uuid: str) -> str | None:
        """Say why a GPU is unhealthy; None if it is healthy."""
        return self._faults.get(gpu_uuid)

    def left(self, gpu: Gpu) -> tuple[int, int]:
        """Count the free vGPUs of a GPU, and those of them that the kubelet may not allocate although it is healthy."""
        with self._changed:
            free = self.free(gpu, vgpus_per_gpu=self._pool.vgpus_per_gpu)
            held = {str(VGpuId(gpu.uuid, index)) for index in self._held.get(gpu.uuid, {})}
            shown = sum(one.healthy and one.id not in held for one in self._devices if one.gpu_uuid == gpu.uuid)
            return free, 0 if gpu.uuid in self._faults else max(0, free - shown)

    def numbers(self, gpu: Gpu) -> dict[str, int]:
        """Say of each held vGPU of a GPU, by its ID, into how many the GPU was divided when it was allocated."""
        with self._changed:
            usual, held = self._pool.vgpus_per_gpu, self._held.get(gpu.uuid, {})
            return {str(VGpuId(gpu.uuid, index)): one.of or usual for index, one in held.items()}

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

    def set_vgpus_per_gpu(self, vgpus_per_gpu: int) -> None:
        """Divide what is free of each GPU by another number from now on."""
        with self._changed:
            self._pool = replace(self._pool, vgpus_per_gpu=vgpus_per_gpu)
            self._publish()

    def set_held(
        self, held: Mapping[str, Mapping[int, Holder]], *, is_blind: bool = False, is_known: bool = False
    ) -> None:
        """Take over what is held, by UUID and index: all of it if *is_known*, and perhaps not all if *is_blind*."""
        with self._changed:
            self._held, self._is_blind, self.is_known = held, is_blind, is_known
            self._publish()

    def show_less(self) -> None:
        """Show no more than what fits, although the scheduler has yet to hear of it."""
        with self._changed:
            if self._guard:
                self._guard.show_less()
                self._publish()

    def show_again(self, ids: Collection[str]) -> None:
        """Show the free ones of *ids* again, for a second."""
        with self._changed:
            if self._guard:
                self._guard.show_again(ids)
                self._publish()

    def rooms(self) -> tuple[Room, ...]:
        """Say what is free of each healthy GPU, and hidden; nothing where it is not known who holds what."""
        with self._changed:
            seen = self.seen
            return tuple(
                Room(gpu_uuid=uuid, free=len(ids), hidden=len(set(ids.values()) - seen))
                for uuid, ids in self._free().items()
            )

    def wait_until_told(self, *, within_seconds: float) -> bool:
        """Wait until whoever follows the devices has been sent them as they are now; whether that was in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: all(watch.closed or watch.told is self._devices for watch in self._watches), within_seconds
            )

    def free(self, gpu: Gpu, *, vgpus_per_gpu: int, but: Collection[int] = ()) -> int:
        """Count what is free of a GPU, were it divided by that number, and as if those in *but* were free too."""
        if self._is_blind:
            return 0
        held = self._held.get(gpu.uuid, {})
        numbers = (one.of for index, one in held.items() if index not in but)
        return free_vgpus(numbers, vgpus_per_gpu=vgpus_per_gpu)

    def watch(self) -> Subscription:
        """Start to follow the devices: at once the ones there are, later each change."""
        watch = Subscription(self)
        with self._changed:
            self._watches.add(watch)
        return watch

    def next_state(self, watch: Subscription) -> tuple[Device, ...] | None:
        """Wait until there is something that *watch* has not seen, having sent what it has; None once it is closed."""
        with self._changed:
            watch.told = watch.seen
            self._changed.notify_all()
            self._changed.wait_for(lambda: watch.closed or watch.seen is not self._devices)
            return None if watch.closed else self._devices

    def close(self, watch: Subscription) -> None:
        """End *watch*, from any thread."""
        with self._changed:
            watch.closed = True
            self._changed.notify_all()

    def _publish(self) -> None:
        if self._make():
            self._changed.notify_all()

    def _make(self) -> bool:
        """Make the devices, and say whether they are others than before."""
        self._count()
        hidden = self._hidden()
        parts = [self._made_of(gpu, hidden) for gpu in self._pool.gpus]
        is_news = parts != self._parts
        if is_news:
            self._parts, self._devices = parts, tuple(chain.from_iterable(parts))
            self.seen = frozenset(device.id for device in self._devices if device.healthy)
        return is_news

    def _made_of(self, gpu: Gpu, hidden: Collection[str]) -> tuple[Device, ...]:
        """Make the devices of one GPU, unless they would be the same: an allocation changes one GPU of several."""
        healthy = frozenset() if gpu.uuid in self._faults else self._advertised[gpu.uuid]
        if hidden:
            healthy = frozenset(index for index in healthy if device_id(gpu.uuid, index) not in hidden)
        state = (gpu.numa_node, self._pool.indexes_of(gpu), healthy)
        made = self._of_gpu.get(gpu.uuid)
        if made is None or made[0] != state:
            devices = (
                Device(
                    id=device_id(gpu.uuid, index),
                    gpu_uuid=gpu.uuid,
                    numa_node=gpu.numa_node,
                    healthy=index in healthy,
                )
                for index in self._pool.indexes_of(gpu)
            )
            made = self._of_gpu[gpu.uuid] = (state, tuple(devices))
        return made[1]

    def _hidden(self) -> frozenset[str]:
        if self._guard is None:
            return frozenset()
        is_watched = any(not watch.closed for watch in self._watches)
        free = {uuid: tuple(ids.values()) for uuid, ids in self._free().items()}
        per_gpu = self._pool.vgpus_per_gpu
        return self._guard.hidden(free, seen=self.seen, vgpus_per_gpu=per_gpu, at_once=not is_watched)

    def _free(self) -> dict[str, Mapping[int, str]]:
        """Give what nobody holds of each healthy GPU, by UUID and index, where that is known."""
        if not self.is_known or self._is_blind:
            return {}
        return {
            gpu.uuid: self._vacant.of(gpu.uuid, self._advertised[gpu.uuid], self._held.get(gpu.uuid, {}))
            for gpu in self._pool.gpus
            if gpu.uuid not in self._faults
        }

    def _count(self) -> None:
        """Count anew which vGPUs are advertised, and keep those that ever were."""
        indexes, earlier = {}, {}
        usual = frozenset(range(self._pool.vgpus_per_gpu))
        for gpu in self._pool.gpus:
            held = self._held.get(gpu.uuid, {})
            now, numbers = self._counts.of(
                gpu.uuid, held, is_blind=self._is_blind, vgpus_per_gpu=self._pool.vgpus_per_gpu
            )
            known = self._known.get(gpu.uuid, now) | now
            self._advertised[gpu.uuid], self._known[gpu.uuid] = now, known
            if known != usual:
                indexes[gpu.uuid] = tuple(sorted(known))
            if numbers:
                earlier[gpu.uuid] = numbers
        if (indexes, earlier) != (self._pool.indexes, self._pool.earlier):
            self._pool = replace(self._pool, indexes=indexes, earlier=earlier)
