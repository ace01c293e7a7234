"""
What is held on the node, and the devices of its resources that follow it: what is free is divided anew at each change.

One lock for all of it. Where the number of vGPUs changes while the kubelet allocates some, a container counts by the
number before or by the one after, and what is free is counted with it or without it, never half.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.holdings import Holdings
from plugin.errors import AllocationError
from plugin.gpus.gpu import Gpu, VGpuId
from plugin.pod_resources.tenants import Matching, read_tenants
from plugin.shares.allocation import Allocation, allocate
from plugin.sockets import KUBELET_SOCKET
from policies.cluster import Cluster


def held_vgpus(kubelet_dir: Path, pod_resources: Path, cluster: Cluster, *, state_dir: Path) -> "HeldVgpus":
    """
    Say what is held on this node, as its kubelet names it on the socket *pod_resources*.

    What an earlier plugin has kept of it is in *kubelet_dir*; what other parts of the node must know, in *state_dir*.
    """
    checkpoint = Checkpoint(vgpus_per_gpu=cluster.vgpus_per_gpu, kubelet_dir=kubelet_dir, state_dir=state_dir)
    # Of a vGPU that is in no file nobody knows which part it is: the largest that it can be, so that no more is free.
    checkpoint.unknown_of = min((checkpoint.unknown_of, *cluster.own_numbers))
    earlier = frozenset(one.resource for one in checkpoint.held.values())
    read = partial(read_tenants, pod_resources, Matching(lambda name: cluster.is_ours(name) or name in earlier))
    return HeldVgpus(Holdings(read, kubelet=kubelet_dir / KUBELET_SOCKET, checkpoint=checkpoint))


class HeldVgpus:
    """Holdings, and whoever advertises what they leave; for any thread."""

    def __init__(self, holdings: Holdings | None = None) -> None:
        """Without *holdings* this process alone knows what is held."""
        self._holdings = holdings or Holdings(lambda: (), kubelet=Path())
        self._followers: list[tuple[Devices, bool]] = []
        self._lock = Lock()

    def follow(self, devices: Devices, *, are_divided: bool) -> None:
        """Have *devices* take up what is held, now and at each change; whole GPUs are not divided by any number."""
        with self._lock:
            self._followers.append((devices, are_divided))
            self._tell()

    def refresh(self) -> None:
        """
        Ask the kubelet.

        Raises:
            TenantsError: If it does not say; what was known stays.
        """
        self._holdings.refresh()  # without the lock: the kubelet may be waiting for us meanwhile
        with self._lock:
            self._tell()

    def offered(self, ids: Iterable[str], devices: Devices) -> None:
        """Take up that the kubelet has *ids* for a new container: nobody holds them."""
        with self._lock:
            if self._holdings.free(ids, resource=devices.resource):
                self._tell()

    def divide_by(self, vgpus_per_gpu: int) -> str:
        """Divide what is free by another number from now on; why that cannot be, or nothing."""
        with self._lock:
            why = self._holdings.divide_by(vgpus_per_gpu)
            for devices, are_divided in self._followers:
                if are_divided and not why:
                    devices.set_vgpus_per_gpu(vgpus_per_gpu)
        return why

    def allocate(self, ids: Sequence[str], devices: Devices) -> Allocation:
        """
        Allocate *ids* of *devices* to a container.

        Raises:
            AllocationError: If they cannot be held to a share, or their GPU is unhealthy, or has no room for so many.
        """
        with self._lock:
            allocation = allocate(ids, devices.pool)
            # The kubelet may have chosen them before it heard of it: a container without limits is worse than none.
            for gpu in allocation.gpus:
                if fault := devices.fault(gpu.uuid):
                    raise AllocationError(
                        f"{gpu.uuid} is unhealthy: {fault}: see `gpu-share plugin status` on this node"
                    )
            vgpus = [devices.vgpu(text) for text in ids]
            allocation = replace(allocation, vgpus_per_gpu=self._number(ids, devices))
            for gpu in allocation.gpus:
                _check_room(gpu, allocation, vgpus, devices)
            self._holdings.allocated(ids, resource=devices.resource, of=allocation.vgpus_per_gpu)
            self._tell()
        return allocation

    def _number(self, ids: Sequence[str], devices: Devices) -> int:
        """
        Say by which number a container's vGPUs count: that of its pod's init container, if it gets the same ones.

        Those alone are held when they are allocated: what the kubelet has for others it has offered before.
        """
        held = self._holdings.held()
        reused = {holder.of for text in ids if (holder := held.get(text)) and holder.container is None}
        return reused.pop() if len(reused) == 1 else devices.pool.vgpus_per_gpu

    def _tell(self) -> None:
        held = self._holdings.by_gpu()
        for devices, _ in self._followers:
            devices.set_held(held, is_blind=self._holdings.is_blind, is_known=self._holdings.known)


def _check_room(gpu: Gpu, allocation: Allocation, vgpus: Sequence[VGpuId], devices: Devices) -> None:
    own = {vgpu.index for vgpu in vgpus if vgpu.gpu_uuid == gpu.uuid}
    free = devices.free(gpu, vgpus_per_gpu=allocation.vgpus_per_gpu, but=own)
    if allocation.vgpus > free:
        raise AllocationError(
            f"{gpu.uuid} has room for {free} of {allocation.vgpus_per_gpu} vGPUs, and {allocation.vgpus} are needed: "
            "containers hold the rest by an earlier vgpusPerGpu: wait until one of them has ended"
        )
