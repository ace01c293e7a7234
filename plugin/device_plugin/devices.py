"""The devices of one resource as the kubelet should see them now, and who waits for a change of them."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain
from threading import Condition
from weakref import WeakSet

from plugin.device_plugin.alignment import Alignment
from plugin.device_plugin.fit_guard import FitGuard, Room
from plugin.device_plugin.holder import Holder
from plugin.device_plugin.labels import Indexes, Labels, free_labels
from plugin.device_plugin.occupied import Occupied
from plugin.device_plugin.subscription import Device, Subscription
from plugin.gpus.gpu import Gpu, Pool


class Devices:
    """
    Holds the GPUs and their vGPUs, and wakes whoever watches when one of them changes.

    An ID never disappears while the process lives: the kubelet may have handed it out, so a vGPU that
    is gone is an unhealthy one. One that is hidden is unhealthy in the kubelet's eyes alone: nothing is wrong with it.

    On which GPU a vGPU is, is decided when it is allocated. Its ID names one, which tells the kubelet its NUMA node.
    """

    def __init__(  # noqa: PLR0913 - all that there is to know of a resource
        self,
        pool: Pool,
        *,
        resource: str = "",
        faults: Mapping[str, str] | None = None,
        guard: FitGuard | None = None,
        binds_late: bool = True,
        only_one: str = "",
        alignment: Alignment | None = None,
    ) -> None:
        """
        Hold *pool* as *resource*; *faults* says why, by UUID, for each GPU that is unhealthy from the start.

        Without *binds_late* a vGPU is on the GPU that its ID names. *only_one* says why no container holds two GPUs.
        """
        self.resource = resource
        self._changed = Condition()
        self._pool = pool
        self._faults = dict(faults or {})
        self._occupied = Occupied()
        self._rooms: dict[str, tuple[int, int]] = {}  # by UUID of a healthy GPU: what is free, and shown
        self._labels = Labels()
        self._parts: list[tuple[Device, ...]] = []
        self._devices: tuple[Device, ...] = ()
        self.is_lost = False  # nobody knows on which GPU a vGPU is that is held
        self.seen: frozenset[str] = frozenset()  # IDs of the vGPUs that the kubelet takes for healthy
        self._guard, self.is_guarded = guard, guard is not None  # what would be allocated in vain is hidden
        self.binds_late, self.only_one = binds_late, only_one
        self.alignment = alignment or Alignment()
        self._watches: WeakSet[Subscription] = WeakSet()
        self._make()

    @property
    def pool(self) -> Pool:
        """The GPUs, healthy or not."""
        return self._pool

    @property
    def is_known(self) -> bool:
        """Whether the kubelet has said who holds what."""
        return self._occupied.is_known

    @property
    def is_blind(self) -> bool:
        """Whether more may be held of a GPU than is known: nothing is free then."""
        return self._occupied.is_incomplete or self.is_lost

    def lists(self, device_id: str, resource: str) -> bool:
        """Whether the kubelet is told of a vGPU that is held as *resource*, empty where nobody says."""
        return resource in ("", self.resource) and self._pool.has(device_id)

    def room(self) -> dict[str, int]:
        """Count the free vGPUs of each GPU, by UUID."""
        pool = self._pool
        return {gpu.uuid: self.free(gpu, vgpus_per_gpu=pool.vgpus_per_gpu) for gpu in pool.gpus}

    def fault(self, gpu_uuid: str) -> str | None:
        """Say why a GPU is unhealthy; None if it is healthy."""
        return self._faults.get(gpu_uuid)

    def left(self, gpu: Gpu) -> tuple[int, int]:
        """Count the free vGPUs of a GPU, and those of them that are hidden although it is healthy."""
        with self._changed:
            free, shown = self._rooms.get(gpu.uuid, (0, 0))
            return self.free(gpu, vgpus_per_gpu=self._pool.vgpus_per_gpu), free - shown

    def advertised(self, gpu: Gpu) -> int:
        """Count the healthy vGPUs that name a GPU; those that name one that has left these count for the first."""
        with self._changed:
            counts, gpus = Counter(one.gpu_uuid for one in self._devices if one.healthy), self._pool.gpus
            elsewhere = counts.total() - sum(counts[one.uuid] for one in gpus)
            return counts[gpu.uuid] + (elsewhere if gpus and gpu.uuid == gpus[0].uuid else 0)

    def held_on(self, gpu: Gpu) -> Mapping[str, Holder]:
        """Say which vGPUs are held on a GPU, by their IDs."""
        return self._occupied.by_gpu.get(gpu.uuid, {})

    def offered(self, ids: Collection[str], *, size: int) -> None:
        """Take up that the kubelet has *ids* for a new container that gets *size* of them."""
        with self._changed:
            self.alignment.offered(ids, held=self._occupied.ids, size=size, pool=self._pool)

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

    def set_held(self, occupied: Occupied, *, again: bool = False) -> None:
        """Take over what is held; *again* sends all devices, changed or not: the kubelet then writes its checkpoint."""
        with self._changed:
            self._occupied = occupied
            self._parts = [] if again else self._parts
            self._publish()

    def show_less(self) -> None:
        """Show no more than what fits, although the scheduler has yet to hear of it."""
        with self._changed:
            if self._guard:
                self._guard.show_less()
                self._publish()

    def show_again(self, ids: frozenset[str]) -> None:
        """Show the free ones of *ids* again, for a second."""
        with self._changed:
            if self._guard:
                self._guard.show_again(len(ids - self._occupied.ids))
                self._publish()

    def rooms(self) -> tuple[Room, ...]:
        """Say what is free of each healthy GPU, and hidden; nothing where it is not known who holds what."""
        with self._changed:
            known = self._rooms if self.is_known and not self.is_blind else {}
            return tuple(Room(gpu_uuid=uuid, free=free, hidden=free - shown) for uuid, (free, shown) in known.items())

    def wait_until_told(self, *, within_seconds: float) -> bool:
        """Wait until whoever follows the devices has been sent them as they are now; whether that was in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: all(watch.closed or watch.told is self._devices for watch in self._watches), within_seconds
            )

    def free(self, gpu: Gpu, *, vgpus_per_gpu: int, but: Collection[str] = ()) -> int:
        """Count what is free of a GPU, were it divided by that number, and as if the IDs in *but* were free too."""
        return 0 if self.is_blind else self._occupied.free(gpu.uuid, vgpus_per_gpu=vgpus_per_gpu, but=but)

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
        named = () if self.binds_late else ("", self.resource)  # whole GPUs are those that their IDs name
        self.is_lost = self._occupied.is_lost(self.resource, self._pool.uuids, but_as=named)
        self._count()
        healthy, listed = self._advertised()
        indexes = self._labels.known(self._pool, listed)
        if indexes != self._pool.indexes:
            self._pool = replace(self._pool, indexes=indexes)
        parts = self._labels.devices(self._pool, healthy)
        is_news = parts != self._parts
        if is_news:
            self._parts, self._devices = parts, tuple(chain.from_iterable(parts))
            self.seen = frozenset(device.id for device in self._devices if device.healthy)
            self.alignment.listed(self.seen)
        return is_news

    def _count(self) -> None:
        """Count what is free of each healthy GPU, and how much of it is shown."""
        per_gpu = self._pool.vgpus_per_gpu
        healthy = (gpu for gpu in self._pool.gpus if gpu.uuid not in self._faults)
        free = {gpu.uuid: self.free(gpu, vgpus_per_gpu=per_gpu) for gpu in healthy}
        shown = free
        if self._guard and self.is_known and not self.is_blind:
            shown = self._guard.shown(
                free,
                seen=len(self.seen - self._occupied.ids),
                vgpus_per_gpu=per_gpu,
                aligned=bool(self.alignment.is_seen),
                at_once=all(watch.closed for watch in self._watches),
            )
        self._rooms = {uuid: (number, shown[uuid]) for uuid, number in free.items()}

    def _advertised(self) -> tuple[Indexes, Indexes]:
        """
        Say which vGPUs are healthy, by UUID in the ID, and which must be listed.

        The kubelet has given away what is held, and the scheduler counts it, whichever GPU its ID names. So it is
        listed, and healthy if it is on no GPU with a fault. What processes hold whose pod is gone neither counts.
        """
        healthy = free_labels(
            {uuid: shown for uuid, (_, shown) in self._rooms.items()},
            self._occupied.named,
            gpus=self._pool.gpus,
            vgpus_per_gpu=self._pool.vgpus_per_gpu,
            seen=self.seen,
            by_id=not self.binds_late,
        )
        listed = {uuid: {*indexes} for uuid, indexes in healthy.items()}
        for vgpu, gpu_uuid in self._occupied.held_as(self.resource, self._pool.uuids):
            listed.setdefault(vgpu.gpu_uuid, set()).add(vgpu.index)
            if gpu_uuid not in self._faults and str(vgpu) not in self._occupied.outliving:
                healthy.setdefault(vgpu.gpu_uuid, set()).add(vgpu.index)
        return healthy, listed
