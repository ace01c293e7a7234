"""
What is held on the node, and the devices of its resources that follow it: what is free is divided anew at each change.

One lock for all of it. Where the number of vGPUs changes while the kubelet allocates some, a container counts by the
number before or by the one after, and what is free is counted with it or without it, never half.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

from plugin.device_plugin import given_twice
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.given_twice import Question
from plugin.device_plugin.holder import Holder, located
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.occupied import Occupied
from plugin.device_plugin.outliving import tenants_left
from plugin.device_plugin.placement import distributed, is_askable, place
from plugin.device_plugin.quiet import Quiet
from plugin.device_plugin.takeover import left_by_init_containers
from plugin.errors import AllocationError, TenantsError
from plugin.gpus.gpu import Gpu
from plugin.pod_resources.tenants import Tenant
from plugin.shares.allocation import Allocation
from plugin.shares.preference import AllocationPolicy, preferred_ids
from plugin.shares.specifications import HeldGrid, HeldGrids


class HeldVgpus:
    """Holdings, and whoever advertises what they leave; for any thread."""

    def __init__(self, holdings: Holdings | None = None, *, resources: Container[str] = ()) -> None:
        """Without *holdings* this process alone knows what is held. *resources* are those that it is held as."""
        self.resources = resources
        self.quiet = Quiet()
        self._holdings = holdings or Holdings(lambda: (), kubelet=Path())
        self._followers: list[tuple[Devices, bool]] = []
        self._asked = Question()
        self._lock = Lock()

    def grids(self) -> HeldGrids:
        """Say what containers hold parts of, also of resources that this node had under another name."""
        holdings = self._holdings
        is_complete = holdings.known and not holdings.is_blind
        grids = frozenset(
            HeldGrid(resource=one.resource, gpu_uuid=gpu, of=one.of, by_cdi=one.by_cdi)
            for gpu, held in holdings.by_gpu().items()
            for one in held.values()
        )
        # What nobody has said of a vGPU can be anything.
        return HeldGrids(grids, is_complete and all(one.gpu and one.of for one in holdings.held().values()))

    def gpus(self, among: Iterable[str] = ()) -> frozenset[str]:
        """Name the GPUs of which containers hold something, by UUID; where nobody knows which, all *among* them too."""
        holdings = self._holdings
        is_known = not holdings.is_blind and all(one.gpu for one in holdings.held().values())
        return frozenset(holdings.by_gpu()).union(() if is_known else among)

    def located_on(self) -> frozenset[str]:
        """Name the GPUs, by UUID, of which it is known that containers hold something since the machine was started."""
        held = self._holdings.held().values()
        return frozenset(gpu for one in held if one.gpu and not one.before_boot for gpu in (one.gpu, *one.also))

    @property
    def unwritten(self) -> str:
        """Why nothing can be allocated: it cannot be written what is held. Empty if it can."""
        return self._holdings.unwritten

    @property
    def by_variable(self) -> bool:
        """Whether NVIDIA_VISIBLE_DEVICES brings some container its GPU."""
        return self._holdings.record.by_variable

    def follow(self, devices: Devices, *, are_divided: bool) -> None:
        """Have *devices* take up what is held, now and at each change; whole GPUs are not divided by any number."""
        with self._lock:
            self._followers.append((devices, are_divided))
            self._tell()

    def unfollow(self, devices: Devices) -> None:
        """Tell *devices* no more: nobody serves them."""
        with self._lock:
            self._followers = [one for one in self._followers if one[0] is not devices]

    def notice_kubelet(self) -> None:
        """Take up that another kubelet runs, if one does, from any thread."""
        self._holdings.notice_kubelet()

    def refresh(self) -> None:
        """
        Ask the kubelet.

        Raises:
            TenantsError: If it does not say; what was known stays.
        """
        try:
            self._holdings.refresh(self._is_listed)  # without the lock: the kubelet may be waiting for us meanwhile
        except TenantsError:
            self._holdings.recheck()
            with self._lock:
                self._tell()
            raise
        with self._lock:
            self._tell(again=self._holdings.is_record_due())

    def located(self, read: Callable[[], Sequence[Tenant]]) -> Callable[[], tuple[Tenant, ...]]:
        """
        Give what *read* gives, with the vGPUs on the GPUs that they are on, and by which answer they were given.

        Containers whose pod the kubelet has forgotten are among them for as long as processes of it are left.
        """

        def read_located() -> tuple[Tenant, ...]:
            tenants, held = read(), self._holdings.held()  # in this order
            return located((*tenants, *tenants_left(held, tenants)), held)

        return read_located

    def preferred(
        self,
        devices: Devices,
        policy: AllocationPolicy,
        *,
        available: Sequence[str],
        must_include: Sequence[str],
        size: int,
    ) -> list[str]:
        """Choose *size* of the *available* IDs for a new container: nobody holds them."""
        self.quiet.disturb()
        # Those included are the pod's own, of an init container.
        included = frozenset(must_include)
        offered = [text for text in available if text not in included]
        self._holdings.notice_kubelet()
        # Without the lock, as in `refresh`.
        had = given_twice.had(included.union(available), self._holdings, own=included)
        others = [text for text in available if text not in had]
        with self._lock:
            self._asked = Question(included.union(available), included, had)
            if not must_include:
                devices.offered(offered, size=size)
            is_freed = self._holdings.free([text for text in offered if text not in had], resource=devices.resource)
            if is_freed or any(one.outlives for one in had.values()):
                self._tell()
            chosen = preferred_ids(
                available=others if len(others) >= size else available,
                must_include=must_include,
                size=size,
                pool=devices.pool,
                policy=policy,
                room=devices.room(),
            )
            devices.alignment.answered(chosen)
            return chosen

    def set_gpus(self, devices: Devices, gpus: tuple[Gpu, ...]) -> None:
        """Advertise *gpus* as *devices* from now on."""
        with self._lock:
            devices.set_gpus(gpus)

    def withdraw(self, gpus: Collection[str]) -> frozenset[str]:
        """Advertise no more those of *gpus*, by UUID, of which containers hold nothing, and name them."""
        with self._lock:
            left = frozenset(gpus) - self.gpus(gpus)
            for devices, _ in self._followers:
                devices.set_gpus(tuple(gpu for gpu in devices.pool.gpus if gpu.uuid not in left))
        return left

    def divide_by(self, vgpus_per_gpu: int) -> str:
        """Divide what is free by another number from now on; why that cannot be, or nothing."""
        with self._lock:
            why = self._holdings.divide_by(vgpus_per_gpu)
            for devices, are_divided in self._followers:
                if are_divided and not why:
                    devices.set_vgpus_per_gpu(vgpus_per_gpu)
        return why

    def allocate(
        self,
        ids: Sequence[str],
        devices: Devices,
        policy: AllocationPolicy,
        *,
        by_cdi: bool = False,
        check: Callable[[Allocation], object] = lambda _allocation: None,
    ) -> Allocation:
        """
        Allocate *ids* of *devices* to a container, which may be given a CDI device for them.

        Raises:
            AllocationError: If `place` or *check* says so, or it cannot be kept.
            NoRoomError: If no GPU has room for so many.
        """
        self.quiet.disturb()
        self._holdings.notice_kubelet()
        with self._lock:
            held, asked, self._asked = self._holdings.held(), self._asked, Question()
            is_asked = asked.is_of(ids)
            left = self._left(ids, held, asked if is_asked else None) if devices.binds_late else {}
            # Where it has not asked there is mostly nothing new among them, which it would forget if it is asked now.
            given_twice.check(ids, asked.had_by if is_asked else given_twice.had(ids, self._holdings, own=ids))
            allocation = place(ids, devices, policy, held=held, left=left)
            check(allocation)
            on = distributed(ids, allocation)
            of, resource = allocation.vgpus_per_gpu, devices.resource
            if why := self._holdings.allocated(on, resource=resource, of=of, by_cdi=by_cdi, left=left):
                raise AllocationError(f"{why}: see `gpu-share plugin status` on this node")
            self._tell()
            return replace(allocation, number=self._holdings.allocations)

    def _left(self, ids: Sequence[str], held: Mapping[str, Holder], asked: Question | None) -> dict[str, Holder]:
        """
        Find what init containers of the pod that gets *ids* have left: they end before its container starts.

        Nothing else that is held is among the IDs, or it has ended. Which of the two, the kubelet has said where it has
        just asked about the container; where the pod's own are enough, it does not ask. Otherwise a vGPU has ended that
        was one of so few that no container of its pod could ask for as many as these.
        """
        unnamed = {text: one for text in ids if (one := held.get(text)) and self._may_be_left(text, one)}
        if asked:
            own = asked.own
        else:
            is_all = len(unnamed) == len(ids)
            own = frozenset(text for text, one in unnamed.items() if is_all or is_askable(len(ids), one.of))
        return left_by_init_containers({text: one for text, one in unnamed.items() if text in own}, held)

    def _may_be_left(self, text: str, holder: Holder) -> bool:
        """Whether it may be an init container's: one that the kubelet had named may have been allocated in vain."""
        return holder.container is None or (not holder.container and self._holdings.record.has(text))

    def _is_listed(self, device_id: str, resource: str) -> bool:
        return any(devices.lists(device_id, resource) for devices, _ in self._followers)

    def _tell(self, *, again: bool = False) -> None:
        holdings = self._holdings
        occupied = Occupied(by_gpu=holdings.by_gpu(), is_known=holdings.known, is_incomplete=holdings.is_blind)
        for devices, _ in self._followers:
            devices.set_held(occupied, again=again)
