"""The extended resources of this node, each from its first GPU on."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.fit_guard import FitGuard
from plugin.device_plugin.guarded import fit_guard_state
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.offers import offers
from plugin.device_plugin.service import Resource
from plugin.errors import HoldingsError, PluginError
from plugin.gpus.gpu import Gpu, Pool
from plugin.health.state import FitGuardState
from plugin.shares.cdi import Grid, grids_of
from plugin.shares.division import Division
from plugin.shares.handover import HandoverSettings, delivery, look_for_devices
from plugin.shares.offer import Offer
from plugin.shares.preference import AllocationPolicy
from plugin.shares.specifications import Specifications
from plugin.shares.strategy import SharedGpu, misfit, sharing_of
from policies.cluster import Cluster
from policies.contract import MPS, TIME_SLICING, WHOLE, Handover, SharingStrategy

_BY_MPS = "a process reaches one GPU through MPS"


class Resources:
    """Gives each resource that appears to *serve*. One thread at a time calls."""

    def __init__(  # noqa: PLR0913 - all that a resource is made of
        self,
        cluster: Cluster,
        division: Division,
        *,
        allocation_policy: AllocationPolicy,
        handover: HandoverSettings,
        serve: Callable[[Resource], None],
        held: HeldVgpus | None = None,
        fit_guard: bool = True,
    ) -> None:
        self._cluster = cluster
        self._division = division
        self._held = held or HeldVgpus()
        self._is_guarded = fit_guard
        self._allocation_policy = allocation_policy
        self._handover = handover
        self._serve = serve
        self._resources: dict[tuple[SharingStrategy, str], Resource] = {}  # by strategy and device
        self._told: dict[tuple[SharingStrategy, str], tuple[Gpu, ...]] = {}  # likewise, until some are withdrawn
        self._failed: dict[tuple[SharingStrategy, str], str] = {}  # likewise, at the last `publish`: why
        self._specifications = Specifications(handover, self._held.grids)
        self._seen: tuple[Sequence[Gpu], str, Collection[str]] = ((), "", ())  # all GPUs, the driver, those missing
        self._is_unsafe = False
        self._faults: Mapping[str, str] = {}

    def offers(self) -> tuple[Offer, ...]:
        """Say what is offered of each GPU now; from any thread."""
        resources = tuple(self._resources.items())
        return tuple(
            offer
            for (strategy, device), resource in resources
            for offer in offers(resource.devices, strategy=strategy, device=device)
        )

    def fit_guard(self) -> FitGuardState | None:
        """Say what is free of each GPU, and what of it is hidden; None without a guard. From any thread."""
        return fit_guard_state(tuple(self._resources.values())) if self._is_guarded else None

    def misfit(self, one: SharedGpu) -> str:
        """Say why a GPU cannot have as many vGPUs as its resource says; empty if it can."""
        return misfit(one.gpu, one.strategy, vgpus_per_gpu=self._division.parts_of_resource_of(one))

    def unadvertised(self, one: SharedGpu) -> str:
        """Say why the kubelet was not told of a GPU by the last `publish`; empty if it was."""
        key = one.strategy, self._division.device(one.gpu)
        why, resource = self._failed.get(key), self._resources.get(key)
        known = resource.devices.pool.gpus if resource is not None else ()
        is_new = one.gpu.uuid not in {gpu.uuid for gpu in known}
        return f"it cannot be advertised: {why}" if why is not None and is_new else ""

    def look_for_devices(self, gpus: Sequence[SharedGpu], driver: str) -> str:
        """Take up what container runtimes could bring for the GPUs, and say how containers get theirs."""
        self._specifications.see({one.gpu.uuid: (one.gpu, sharing_of(one.strategy, self._cluster)) for one in gpus})
        missing = {one.gpu.uuid for one in gpus if not one.is_reached}
        self._seen = [one.gpu for one in gpus], driver, missing
        return look_for_devices(self._handover, self._seen[0], driver=driver, missing=missing)

    def restore(self) -> None:
        """
        Have ready what containers need, again where somebody has removed it, and no longer what nobody does.

        Raises:
            HandoverError: If that cannot be.
        """
        self._specifications.restore()

    def withdraw(self, gpus: Collection[str]) -> frozenset[str]:
        """Allocate nothing more of those of *gpus*, by UUID, of which containers hold nothing, and name them."""
        self._told.clear()
        return self._held.withdraw(gpus)

    def publish(self, gpus: Sequence[SharedGpu], of_held: Mapping[str, str] = MappingProxyType({})) -> None:
        """
        Tell the kubelet the health of the GPUs; those that are new are advertised from now on.

        *of_held* says why, by UUID, other GPUs are unhealthy of which containers hold something.

        Raises:
            PluginError: If one that is new cannot be; it is tried again the next time. All others are.
        """
        faults = {**of_held, **{one.gpu.uuid: one.why for one in gpus if one.why}}
        if faults != self._faults:
            self._faults = faults
            for resource in self._resources.values():
                resource.devices.set_faults(faults)
        kinds: dict[tuple[SharingStrategy, str], list[Gpu]] = {}
        for one in gpus:
            kinds.setdefault((one.strategy, self._division.device(one.gpu)), []).append(one.gpu)
        self._failed.clear()
        first: PluginError | None = None
        for strategy, device in {**self._resources, **kinds}:  # a resource whose GPUs went to DRA has none
            try:
                self._advertise(strategy, device, tuple(kinds.get((strategy, device), ())))
            except PluginError as error:
                self._failed[strategy, device] = str(error)
                first = first or error
        if first is not None:
            raise first

    def _advertise(self, strategy: SharingStrategy, device: str, gpus: tuple[Gpu, ...]) -> None:
        resource = self._resources.get((strategy, device))
        if resource is None:
            resource = self._made(strategy, device, gpus)
            try:
                self._serve(resource)
            except PluginError:  # the next try makes it anew
                self._held.unfollow(resource.devices)
                raise
            self._resources[strategy, device] = resource
        elif gpus != self._told.get((strategy, device)):
            # Before the kubelet hears of those that are new: it may allocate one at once.
            self._prepare(resource.name, strategy, replace(resource.devices.pool, gpus=gpus))
            self._held.set_gpus(resource.devices, gpus)
        self._told[strategy, device] = gpus

    def divide_by(self, vgpus_per_gpu: int) -> None:
        """
        Divide what is free of each GPU by another number from now on; what is held stays what it is.

        Raises:
            PluginError: If that cannot be; the number stays as it was.
        """
        for (strategy, device), resource in self._resources.items():
            pool = resource.devices.pool
            if self._division.follows(strategy, device):
                # By both, since the kubelet may be allocating vGPUs of the number before.
                self._prepare(resource.name, strategy, pool, replace(pool, vgpus_per_gpu=vgpus_per_gpu))
        if why := self._held.divide_by(vgpus_per_gpu):
            raise HoldingsError(why)
        self._division.set_vgpus_per_gpu(vgpus_per_gpu)
        for (strategy, _), resource in self._resources.items():
            self._specifications.narrow(resource.name, self._grids(strategy, resource.devices.pool))

    def hand_over_by(self, ways: Collection[Handover]) -> None:
        """
        Hand GPUs over by other ways from now on.

        Raises:
            HandoverError: If that cannot be; they stay what they were.
        """
        wanted, before = frozenset(ways), self._handover.ways
        if "cdi" in wanted - before:
            gpus, driver, missing = self._seen
            self._handover.nvidia.look(gpus, driver=driver, missing=missing)
            self._specifications.begin(
                {one.name: self._grids(key[0], one.devices.pool) for key, one in self._resources.items()}
            )
        self._handover.ways = wanted
        if "cdi" in before - wanted:
            self._specifications.end()

    def go_on_beside(self, newest: Cluster) -> None:
        """
        Take up by what webhooks grant, where that is something else than what is allocated by here.

        What is one GPU to them may be two here, so no container gets two then. And where they count on it that limits
        override what pods set, and those of here do not, nobody gets anything.
        """
        self._is_unsafe = newest.overrides_pods and self._handover.ways != {*newest.handover}
        for (strategy, _), resource in self._resources.items():
            granted_by, per_gpu = newest.parts_named_by(resource.name), resource.devices.pool.vgpus_per_gpu
            if strategy != MPS:
                differs = granted_by not in (None, per_gpu)
                resource.devices.only_one = f"pods are granted some of {granted_by} by now" if differs else ""

    @property
    def unsafe(self) -> str:
        """Say that pods could lift their limits; empty if they cannot."""
        ways = ",".join(sorted(self._handover.ways))
        return f"webhooks admit pods by handover: [cdi], and this node still hands over by {ways}" * self._is_unsafe

    def _made(self, strategy: SharingStrategy, device: str, gpus: tuple[Gpu, ...]) -> Resource:
        name = self._cluster.resource(strategy, device)
        pool = Pool(gpus=gpus, vgpus_per_gpu=self._division.parts_of_resource(strategy, device))
        devices = Devices(
            pool,
            resource=name,
            faults=self._faults,
            guard=self._guard(strategy),
            binds_late=strategy != WHOLE,
            only_one=_BY_MPS if strategy == MPS else "",
        )
        self._prepare(name, strategy, pool)
        self._held.follow(devices, are_divided=self._division.follows(strategy, device))
        return Resource(
            name=name,
            devices=devices,
            sharing=sharing_of(strategy, self._cluster),
            allocation_policy=self._allocation_policy,
            delivery=partial(delivery, self._handover, name),
            held=self._held,
        )

    def _guard(self, strategy: SharingStrategy) -> FitGuard | None:
        """Hide what fits nowhere; of whole GPUs every one fits, and under MPS no container can hold several."""
        if strategy == WHOLE or not self._is_guarded:
            return None
        return FitGuard(self._allocation_policy, several=strategy == TIME_SLICING)

    def _prepare(self, name: str, strategy: SharingStrategy, *pools: Pool) -> None:
        self._specifications.advertise(name, self._grids(strategy, *pools))

    def _grids(self, strategy: SharingStrategy, *pools: Pool) -> list[Grid]:
        sharing = sharing_of(strategy, self._cluster)
        return [grid for pool in pools for grid in grids_of(pool, sharing)]
