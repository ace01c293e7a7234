"""Who holds a vGPU, and where."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from plugin.gpus.gpu import VGpuId
from plugin.pod_resources.tenants import Tenant
from plugin.shares.parts_file import Held

ENDED_OR_NOT = ""  # the container of what was held when an earlier plugin or kubelet ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a vGPU, and which part of its GPU that is."""

    container: str | None  # namespace/pod/container; None as long as the kubelet does not name it
    known_as: str = ""  # the same, as an earlier kubelet named it; empty where nobody knows
    is_kept: bool = False  # whether a checkpoint of the kubelet's has had it since it was allocated
    is_forgotten: bool = False  # whether that was lost since, and the kubelet does not know that its container has it
    since_seconds: float  # by the clock of the holdings: when it was allocated, or first seen
    resource: str = ""  # that it was allocated as; empty where nobody says
    of: int = 0  # vGPUs that its GPU was divided into then; 0 where only the kubelet knows of it
    pod_uid: str = ""  # of its pod, as a checkpoint of the kubelet's says; empty where none does
    outlives: bool = False  # whether the kubelet has taken it back, and processes of its pod are left
    pod: int = 0  # the same number for what an init container left and what a later container of its pod took over
    call: int = 0  # number of the answer that it was last part of; 0 where nobody says
    gpu: str = ""  # UUID of the GPU that it is on; empty where only the kubelet knows of it
    also: tuple[str, ...] = ()  # UUIDs of others that are held by it for init containers of the pod
    by_cdi: bool = False  # whether its container was given a CDI device for it
    before_boot: bool = False  # whether its pod may have been rejected when the machine restarted
    is_told: bool = False  # whether a file of the kubelet's has come that is of after its allocation
    lacking_files: int = 0  # how many in a row have lacked it since

    @property
    def known_name(self) -> str:
        """Name its container, namespace/pod/container; empty where nobody knows."""
        return self.container or self.known_as

    @classmethod
    def of_earlier(cls, held: Held, vgpu: VGpuId, *, since_seconds: float) -> "Holder":
        """Say who holds a vGPU by the file of an earlier plugin."""
        return cls(
            container=ENDED_OR_NOT if held.named else None,
            known_as=held.container,
            is_kept=held.kept,
            is_forgotten=held.forgotten,
            since_seconds=since_seconds,
            resource=held.resource,
            of=held.of,
            pod_uid=held.pod_uid,
            pod=held.pod,
            call=held.call,
            gpu="" if held.gpu is None else held.gpu or vgpu.gpu_uuid,
            by_cdi=held.by_cdi,
            also=held.also,
            before_boot=held.before_boot,
            outlives=held.outlives,
        )

    def kept(self, vgpu: VGpuId, *, unknown_of: int) -> Held:
        """Say what the next plugin is to know of a vGPU, which is one of *unknown_of* where nobody says."""
        return Held(
            resource=self.resource,
            of=self.of or unknown_of,
            named=self.container is not None,
            container=(self.container or self.known_as) if self.is_kept else "",
            kept=self.is_kept,
            forgotten=self.is_forgotten,
            gpu="" if self.gpu == vgpu.gpu_uuid else self.gpu or None,
            by_cdi=self.by_cdi,
            also=self.also,
            pod_uid=self.pod_uid,
            pod=self.pod,
            call=self.call,
            before_boot=self.before_boot,
            outlives=self.outlives,
        )


def by_gpu(held: Mapping[str, Holder], *, unknown_of: int) -> dict[str, dict[str, Holder]]:
    """
    Say who holds what by UUID of the GPU, each with its number, which is *unknown_of* where nobody says.

    What nobody knows the GPU of counts to that in its ID.
    """
    found: dict[str, dict[str, Holder]] = {}
    for text, holder in held.items():
        if vgpu := parsed(text):
            for gpu in (holder.gpu or vgpu.gpu_uuid, *holder.also):
                found.setdefault(gpu, {})[text] = holder if holder.of else replace(holder, of=unknown_of)
    return found


def kept_of(held: Mapping[str, Holder], *, unknown_of: int) -> Iterator[tuple[VGpuId, Held]]:
    """Say what the next plugin is to know of what is held."""
    for text, holder in held.items():
        if vgpu := parsed(text):
            yield vgpu, holder.kept(vgpu, unknown_of=unknown_of)


def located(tenants: Iterable[Tenant], held: Mapping[str, Holder]) -> tuple[Tenant, ...]:
    """Give *tenants* with their vGPUs on the GPUs that these are on, and with the numbers of the answers to them."""

    def gpu_of(vgpu: VGpuId) -> str:
        holder = held.get(str(vgpu))
        return (holder.gpu if holder else "") or vgpu.gpu_uuid

    def given_by(tenant: Tenant) -> frozenset[str]:
        holders = (held.get(str(vgpu)) for vgpu in tenant.vgpus)
        return tenant.given_by.union(str(one.call) for one in holders if one and one.call)

    return tuple(replace(tenant.located(gpu_of), given_by=given_by(tenant)) for tenant in tenants)


@lru_cache(8192)  # the same IDs all day
def parsed(text: str) -> VGpuId | None:
    """Read the ID of a vGPU; None if it is none."""
    return VGpuId.parse(text)
