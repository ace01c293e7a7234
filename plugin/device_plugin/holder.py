"""
Who holds a vGPU and where, and what becomes of that when a container gets what an init container of its pod had.

The kubelet lets it have the vGPUs of init containers that end before it starts, any of them. It may be on other GPUs
than they: each GPU then stays held for both, since nobody says which of the two runs.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from plugin.gpus.gpu import VGpuId
from plugin.shares.parts_file import Held

ENDED_OR_NOT = ""  # the container of what was held when an earlier plugin or kubelet ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a vGPU, and which part of its GPU that is."""

    container: str | None  # namespace/pod/container; None as long as the kubelet does not name it
    known_as: str = ""  # the same, as an earlier kubelet named it; empty where nobody knows
    since_seconds: float  # by the clock of the holdings: when it was allocated, or first seen
    resource: str = ""  # that it was allocated as; empty where nobody says
    of: int = 0  # vGPUs that its GPU was divided into then; 0 where only the kubelet knows of it
    pod: int = 0  # the same number for what an init container left and what a later container of its pod took over
    call: int = 0  # number of the answer that it was last part of; 0 where nobody says
    gpu: str = ""  # UUID of the GPU that it is on; empty where only the kubelet knows of it
    also: tuple[str, ...] = ()  # UUIDs of others that are held by it for init containers of the pod
    by_cdi: bool = False  # whether its container was given a CDI device for it
    before_boot: bool = False  # whether its pod may have been rejected when the machine restarted
    is_told: bool = False  # whether a file of the kubelet's has come that is of after its allocation
    lacking_files: int = 0  # how many in a row have lacked it since

    @classmethod
    def of_earlier(cls, held: Held, vgpu: VGpuId, *, since_seconds: float) -> "Holder":
        """Say who holds a vGPU by the file of an earlier plugin."""
        return cls(
            container=ENDED_OR_NOT if held.named else None,
            known_as=held.container,
            since_seconds=since_seconds,
            resource=held.resource,
            of=held.of,
            pod=held.pod,
            call=held.call,
            gpu="" if held.gpu is None else held.gpu or vgpu.gpu_uuid,
            by_cdi=held.by_cdi,
            also=held.also,
            before_boot=held.before_boot,
        )

    def kept(self, vgpu: VGpuId, *, unknown_of: int) -> Held:
        """Say what the next plugin is to know of a vGPU, which is one of *unknown_of* where nobody says."""
        return Held(
            resource=self.resource,
            of=self.of or unknown_of,
            named=self.container is not None,
            container=self.container or self.known_as,
            gpu="" if self.gpu == vgpu.gpu_uuid else self.gpu or None,
            by_cdi=self.by_cdi,
            also=self.also,
            pod=self.pod,
            call=self.call,
            before_boot=self.before_boot,
        )


def of_earlier_kubelet(held: Mapping[str, Holder]) -> dict[str, Holder]:
    """Give what is held to a kubelet that has just started: it has yet to name any of it."""
    return {
        text: replace(one, container=ENDED_OR_NOT, known_as=one.container) if one.container else one
        for text, one in held.items()
    }


def left_by_init_containers(reused: Mapping[str, Holder], held: Mapping[str, Holder]) -> dict[str, Holder]:
    """
    Find all that is left of the init containers of which a container gets the vGPUs *reused*, these too.

    Whoever had one of them has ended by the time at which the container starts, or it would not get it. What of an init
    container a sidecar or another container has by now was part of a later allocation.
    """
    calls = {one.call for one in reused.values()} - {0}
    return {text: one for text, one in held.items() if text in reused or one.call in calls}


def taken_over(left: Mapping[str, Holder], on: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """
    Say on which GPUs vGPUs are when a container has those in *on*, by ID and UUID, and *left* is of init containers.

    Each GPU stays held by as many vGPUs as the init containers had there, or the container has, if that is more: by
    those that they had there, since the kubelet has these for as long as their pod may run, whatever becomes of the
    rest. The first GPU of each vGPU is the one that it is on.
    """
    rest = {text: one.gpu for text, one in left.items() if one.gpu and text not in on}
    owed = Counter(gpu for one in left.values() if one.gpu for gpu in (one.gpu, *one.also))
    owed -= Counter(on.values()) + Counter(rest.values())
    found: dict[str, tuple[str, ...]] = {text: (gpu,) for text, gpu in (*on.items(), *rest.items())}
    for text, gpus in found.items():  # those of the container first: of the rest it may turn out that nobody has it
        for gpu in (left[text].gpu, *left[text].also) if text in left else ():
            if owed[gpu] > 0 and gpu not in gpus:
                found[text] += (gpu,)
                owed[gpu] -= 1
    return found


def admitted(
    held: Mapping[str, Holder], *, is_listed: Callable[[str, str], bool], has: Callable[[str], bool]
) -> dict[str, Holder]:
    """
    Give what is held once the kubelet has named all pods that it has admitted since the machine restarted.

    It rejects a pod whose vGPUs no plugin lists, by ID and resource, and such a vGPU it has for no other pod either. As
    long as its checkpoint *has* one it may be yet to come to that pod, and a GPU that comes late be listed by then.
    """
    named = {one.pod for one in held.values() if one.container is not None} - {0}
    listed = {
        text
        for text, one in held.items()
        if not one.before_boot or one.container is not None or one.pod in named or is_listed(text, one.resource)
    }
    return {
        text: replace(one, before_boot=False) if one.before_boot and text in listed else one
        for text, one in held.items()
        if text in listed or has(text)
    }


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


@lru_cache(8192)  # the same IDs all day
def parsed(text: str) -> VGpuId | None:
    """Read the ID of a vGPU; None if it is none."""
    return VGpuId.parse(text)
