"""
The held vGPUs of a node, and which part of which GPU each is, in a file that outlives the plugin.

The kubelet keeps which vGPUs a container has, and starts it again with them. What they were when it got them is here.
The GPU in the ID of a vGPU is not always the one that it is on.
"""

from collections.abc import Collection, Container, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from plugin.gpus.gpu import VGpuId
from plugin.state_files import LARGEST_BYTES, read_small_file, write_atomically

FILE = "vgpus.json"

_Index = Annotated[int, Meta(ge=0, le=999_999)]
_Number = Annotated[int, Meta(ge=1, le=100)]
_Count = Annotated[int, Meta(ge=0, le=1 << 53)]


class Held(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A vGPU that a container holds, or may hold."""

    resource: str  # that it was allocated as
    of: int  # vGPUs that its GPU was divided into then
    named: bool = False  # whether the kubelet has named its container; it never names init containers
    container: str = ""  # how, namespace/pod/container, where it is kept
    kept: bool = False  # whether a checkpoint of the kubelet's has had it since it was allocated
    forgotten: bool = False  # whether the kubelet has lost its checkpoint since, and nobody has said that it has ended
    gpu: str | None = ""  # UUID of the GPU that it is on; empty where it is the one in its ID, None if nobody knows
    by_cdi: bool = False  # whether its container was given a CDI device for it; an earlier plugin did not write it
    also: tuple[str, ...] = ()  # UUIDs of others on which init containers of the pod had it, and may have it again
    pod_uid: str = ""  # of its pod, as the kubelet's checkpoint says; empty where it does not
    pod: int = 0  # the same number for what containers of one pod have, as far as that is known; otherwise 0
    call: int = 0  # number of the answer that it was last part of; 0 where an earlier plugin did not say it
    before_boot: bool = False  # whether its pod may have been rejected when the machine restarted
    outlives: bool = False  # whether the kubelet has taken it back, and processes of its pod are left

    @property
    def may_run_on(self) -> bool:
        """Whether its container may run although the kubelet does not name it any more."""
        return self.forgotten or self.outlives


class Checkpoint(msgspec.Struct, frozen=True):
    """What the file says."""

    vgpus_per_gpu: int  # when it was written
    held: dict[VGpuId, Held]
    boot_id: str = ""  # of the run of the machine in which it was written; empty where nobody knows
    allocations: int = 0  # number of the last answer
    kubelet: str = ""  # that has named them, by its socket; empty where an earlier plugin did not write it

    def number_of(self, vgpu: VGpuId) -> int:
        """Say which part of its GPU a held vGPU is: one of so many."""
        held = self.held.get(vgpu)
        return held.of if held is not None else self.vgpus_per_gpu

    def gpu_of(self, vgpu: VGpuId) -> str:
        """Name the GPU that a held vGPU is on, by its UUID; where nobody knows, the one in its ID."""
        held = self.held.get(vgpu)
        return held.gpu if held is not None and held.gpu else vgpu.gpu_uuid

    def knows(self, vgpu: VGpuId) -> bool:
        """Whether the GPU that a vGPU is on is known."""
        held = self.held.get(vgpu)
        return held is not None and held.gpu is not None

    def on(self, resources: Container[str]) -> frozenset[str]:
        """Name the GPUs of which something is held as one of *resources*, as far as that is known."""
        ours = [(vgpu, one) for vgpu, one in self.held.items() if one.resource in resources]
        return frozenset(gpu for vgpu, one in ours for gpu in (self.gpu_of(vgpu), *one.also))

    def unnamed_on(self, named: Iterable[VGpuId]) -> frozenset[str] | None:
        """
        Name the GPUs of which init containers may hold vGPUs, and the kubelet names *named* as those of containers.

        A pod has ended of which it named one when the file was written, and names none any more. None where it is not
        known on which GPU one of all these is.
        """
        left = self._left(listed := frozenset(named))
        unnamed = [vgpu for vgpu, one in left.items() if one.may_run_on or not one.named]
        if not all(map(self.knows, (*unnamed, *listed))):
            return None
        return frozenset(map(self.gpu_of, unnamed)) | {gpu for one in left.values() for gpu in one.also}

    def unnamed_parts(self, named: Iterable[VGpuId]) -> dict[str, Fraction] | None:
        """
        Say how much of each GPU a container may hold at most that is not named, by UUID; None as above.

        That is an init container, or one that a kubelet which has just started is yet to name: the file has it until it
        has ended. Later containers of a pod take over what its init containers had, so that is all that the pod has
        there. What nobody knows the pod of is taken for one's.
        """
        listed = frozenset(named)
        unnamed = {vgpu for vgpu, one in self.held.items() if not one.named or vgpu not in listed}
        if not all(map(self.knows, unnamed | listed)):
            return None
        also = {vgpu for vgpu, one in self.held.items() if one.also}
        gpus = {*map(self.gpu_of, unnamed), *(gpu for vgpu in also for gpu in self.held[vgpu].also)}
        counted = unnamed | also
        pods = {(one.pod, one.resource) for vgpu, one in self.held.items() if vgpu in counted and one.pod}
        parts: dict[tuple[str, int, str], Fraction] = {}
        for vgpu, one in self.held.items():
            if vgpu in counted or (one.pod, one.resource) in pods:
                for gpu in gpus.intersection((self.gpu_of(vgpu), *one.also)):
                    key = (gpu, one.pod, one.resource)
                    parts[key] = parts.get(key, Fraction(0)) + Fraction(1, one.of)
        return {gpu: max(part for (on, *_), part in parts.items() if on == gpu) for gpu in gpus}

    def _left(self, listed: Collection[VGpuId]) -> dict[VGpuId, Held]:
        """Leave out what pods had that have ended: the file has containers of theirs that the kubelet names no more."""
        ended = {(one.pod, one.resource) for one in self.held.values() if one.named and one.pod and not one.may_run_on}
        ended -= {(one.pod, one.resource) for vgpu, one in self.held.items() if vgpu in listed}
        return {vgpu: one for vgpu, one in self.held.items() if (one.pod, one.resource) not in ended}


class CheckpointError(Exception):
    """A file that is there and says nothing that can be believed; the message says why."""


class _Group(msgspec.Struct, frozen=True, kw_only=True):
    """Held vGPUs that are alike."""

    resource: str
    gpu: str  # UUID in their IDs
    of: _Number
    named: bool
    container: str = ""
    kept: bool = False
    forgotten: bool = False
    indexes: tuple[_Index, ...]
    on: str | None = ""  # UUID of the GPU that they are on, where that is another one; None if nobody knows
    by_cdi: bool = False
    also: tuple[str, ...] = ()
    pod_uid: str = ""
    pod: _Count = 0
    call: _Count = 0
    before_boot: bool = False
    outlives: bool = False


class _File(msgspec.Struct, frozen=True, kw_only=True):
    vgpus_per_gpu: _Number
    held: tuple[_Group, ...]
    boot_id: str = ""
    allocations: _Count = 0
    kubelet: str = ""


def read_parts(directory: Path) -> Checkpoint | None:
    """
    Read what was held; None where there is no file.

    Raises:
        CheckpointError: If there is one that cannot be read, or says what no plugin can have written.
    """
    try:
        content = read_small_file(directory / FILE)
        if content is None:
            raise CheckpointError(f"it is not a file of at most {LARGEST_BYTES >> 20} MiB")
        found = msgspec.json.decode(content, type=_File)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(str(error)) from error
    held: dict[VGpuId, Held] = {}
    for group in found.held:
        for index in group.indexes:
            vgpu = VGpuId(group.gpu, index)
            if vgpu in held:
                raise CheckpointError(f"it has {vgpu} twice")
            held[vgpu] = Held(
                resource=group.resource,
                of=group.of,
                named=group.named,
                container=group.container,
                kept=group.kept,
                forgotten=group.forgotten,
                gpu=group.on,
                by_cdi=group.by_cdi,
                also=group.also,
                pod_uid=group.pod_uid,
                pod=group.pod,
                call=group.call,
                before_boot=group.before_boot,
                outlives=group.outlives,
            )
    return Checkpoint(found.vgpus_per_gpu, held, found.boot_id, found.allocations, found.kubelet)


def parts(
    held: Iterable[tuple[VGpuId, Held]],
    *,
    vgpus_per_gpu: int,
    boot_id: str = "",
    allocations: int = 0,
    kubelet: str = "",
) -> bytes:
    """Write what the file is to say."""
    indexes: dict[tuple[str, Held], list[int]] = {}
    for vgpu, one in held:
        indexes.setdefault((vgpu.gpu_uuid, one), []).append(vgpu.index)
    groups = (
        _Group(
            resource=one.resource,
            gpu=gpu,
            of=one.of,
            named=one.named,
            container=one.container,
            kept=one.kept,
            forgotten=one.forgotten,
            on=one.gpu,
            by_cdi=one.by_cdi,
            also=one.also,
            pod_uid=one.pod_uid,
            pod=one.pod,
            call=one.call,
            before_boot=one.before_boot,
            outlives=one.outlives,
            indexes=tuple(sorted(found)),
        )
        for (gpu, one), found in indexes.items()
    )
    return msgspec.json.encode(
        _File(
            vgpus_per_gpu=vgpus_per_gpu, held=tuple(groups), boot_id=boot_id, allocations=allocations, kubelet=kubelet
        )
    )


def write_parts(directory: Path, content: bytes) -> None:
    """
    Replace the file by *content*.

    Raises:
        OSError: If it cannot be written; the old one stays.
    """
    write_atomically(directory / FILE, content)
