"""
MIG instances of a GPU, read through NVML: each becomes a `Gpu` of its own.

NVML's MIG device is a compute instance. It can be destroyed at any moment, and each call with its handle then fails in
some way; so one that cannot be read costs no other.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plugin.gpus.gpu import Gpu, MigInstance
from plugin.gpus.nvml import ALL_FAIL, AWAY, NvmlGpus, if_answered, number_of, raise_if_nvml_failed, text_of
from plugin.gpus.reading import Check, NotShareableError, errors_of_one, memory_of
from policies.mig import NO_PROFILE, profile_of
from policies.node_state import LEFT_TO_OTHERS

MIG_MINORS = Path("/proc/driver/nvidia-caps/mig-minors")
_MOST_INSTANCES = 64  # of one GPU: NVIDIA's have 7
_NOT_FOUND = 6  # NVML's number: no instance has that index now
_UUID = re.compile(r"MIG-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_PROFILE_IN_NAME = re.compile(r"MIG ([0-9][0-9a-z.+-]*)\Z", re.ASCII)
_PART = re.compile(r"[0-9]+c[.](.+)", re.ASCII)  # of the slices of a GPU instance, and all of its memory
_COMPUTE_SLICES = re.compile(r"([0-9]+)g[.]", re.ASCII)
_EIGHTHS = 8  # in which the memory of a GPU is cut
_GIB = 1 << 30
_MIB = 1 << 20
# The kernel's table of capabilities: docs.nvidia.com/datacenter/tesla/mig-user-guide/device-nodes-and-capabilities.html
_CAPABILITY = re.compile(r"gpu([0-9]{1,5})/gi([0-9]{1,5})(?:/ci([0-9]{1,5}))?/access ([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedInstance:
    """A MIG instance that NVML lists."""

    uuid: str
    handle: Any
    profile: str
    gpu_instance: int
    compute_instance: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """The MIG instances of one GPU that can be read, and a sentence for each other."""

    listed: tuple[ListedInstance, ...] = ()
    problems: tuple[str, ...] = ()


def list_instances(nvml: NvmlGpus, handle: Any) -> Instances:
    """List the MIG instances of the GPU with this *handle*; errors of NVML that are the GPU's own pass through."""
    listed, problems = [], []
    try:
        most = int(nvml.nvmlDeviceGetMaxMigDeviceCount(handle))
    except nvml.NVMLError as error:
        if number_of(error) in AWAY | ALL_FAIL:
            raise
        return Instances(problems=(f"how many MIG instances it can have is not told: {error}",))
    for index in range(min(most, _MOST_INSTANCES)):
        try:
            listed.append(_listed(nvml, handle, nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)))
        except (nvml.NVMLError, NotShareableError, UnicodeDecodeError) as error:
            if number_of(error) in AWAY:
                raise
            if number_of(raise_if_nvml_failed(error)) != _NOT_FOUND:
                problems.append(f"its MIG instance {index} cannot be shared: {error}")
    return Instances(listed=tuple(listed), problems=tuple(problems))


def read_instance(nvml: NvmlGpus, gpu: Gpu, of: Any, listed: ListedInstance, *, minors: Path = MIG_MINORS) -> Gpu:
    """
    Read a MIG instance of *gpu*, whose handle is *of*; errors of NVML pass through.

    Raises:
        NotShareableError: If it cannot be shared.
    """
    memory_bytes, reserved_bytes = memory_of(nvml, listed.handle, uuid=listed.uuid)
    placed = MigInstance(
        profile=listed.profile,
        parent_uuid=gpu.uuid,
        gpu_instance=listed.gpu_instance,
        compute_instance=listed.compute_instance,
    )
    return replace(
        gpu,
        uuid=listed.uuid,
        memory_bytes=memory_bytes,
        reserved_bytes=reserved_bytes,
        mps_clients=_mps_clients(nvml, gpu, of, listed),
        instance=replace(placed, capabilities=capabilities(gpu.minor, placed, minors=minors)),
        links=(),
    )


def shareable_instances(  # noqa: PLR0913 - what is read, by what, and what it must be
    nvml: NvmlGpus,
    gpu: Gpu,
    of: Any,
    instances: Instances,
    *,
    check: Check,
    but: Collection[str] = (),
    minors: Path = MIG_MINORS,
) -> tuple[list[Gpu], str]:
    """
    Read the *instances* of *gpu*, whose handle is *of*, but for those with a UUID in *but*.

    Returns:
        Those that can be shared, and why others cannot; empty if all can.
    """
    if not instances.listed and not instances.problems:
        return [], _without_instances(gpu, check)
    found, problems = [], list(instances.problems)
    for one in instances.listed:
        if one.uuid in but:
            continue
        try:
            made = read_instance(nvml, gpu, of, one, minors=minors)
            check(made)
        except errors_of_one(nvml) as error:
            if number_of(error) in AWAY:
                raise
            problems.append(str(raise_if_nvml_failed(error)))
        else:
            found.append(made)
    return found, "; ".join(dict.fromkeys(problems))


def _without_instances(gpu: Gpu, check: Check) -> str:
    """Say what to do about a GPU in MIG mode that has no instance; by *check*, whether any is to be shared."""
    why = f"{gpu.uuid} is in MIG mode and has no instance"
    anyone = MigInstance(profile=NO_PROFILE, parent_uuid=gpu.uuid, gpu_instance=0, compute_instance=0)
    try:
        check(replace(gpu, instance=anyone))
    except NotShareableError as error:
        if LEFT_TO_OTHERS in str(error):
            return f"{why}, and {LEFT_TO_OTHERS}: turn it off, or `nodes` in _cluster.yaml can say mig: shared or whole"
    return (
        f"{why}: create some (nvidia-smi mig -cgi), or turn it off; one made since the plugin began is seen with the "
        "component mig, or after a restart of the plugin"
    )


def capabilities(minor: int | None, placed: MigInstance, *, minors: Path = MIG_MINORS) -> tuple[int, ...]:
    """
    Say which nodes /dev/nvidia-caps/nvidia-cap<n> an instance needs, besides that of its GPU with this *minor*.

    They are those of its GPU instance and its compute instance; none where the kernel does not list both.
    """
    if minor is None:
        return ()
    try:
        lines = minors.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return ()
    found = {
        (int(match[1]), int(match[2]), None if match[3] is None else int(match[3])): int(match[4])
        for line in lines
        if (match := _CAPABILITY.fullmatch(line.strip()))
    }
    wanted = [(minor, placed.gpu_instance, None), (minor, placed.gpu_instance, placed.compute_instance)]
    return tuple(found[key] for key in wanted) if all(key in found for key in wanted) else ()


def _listed(nvml: NvmlGpus, of: Any, handle: Any) -> ListedInstance:
    uuid = text_of(nvml.nvmlDeviceGetUUID(handle))
    if not _UUID.fullmatch(uuid):
        raise NotShareableError(f"its UUID {uuid!a} is none of a MIG instance, as drivers from 470 on write it")
    return ListedInstance(
        uuid=uuid,
        handle=handle,
        profile=_profile(nvml, of, handle, uuid=uuid),
        gpu_instance=int(nvml.nvmlDeviceGetGpuInstanceId(handle)),
        compute_instance=int(nvml.nvmlDeviceGetComputeInstanceId(handle)),
    )


def _profile(nvml: NvmlGpus, of: Any, handle: Any, *, uuid: str) -> str:
    for written in _written(nvml, of, handle):
        if part := _PART.fullmatch(written):
            raise NotShareableError(
                f"{uuid} is the compute instance {written}, which has no memory of its own within its GPU instance: "
                f"create one that has all of it (nvidia-smi mig -cgi {part[1]} -C)"
            )
        if profile := profile_of(written):
            return profile
    raise NotShareableError(f"the driver does not say the profile of {uuid}")


def _written(nvml: NvmlGpus, of: Any, handle: Any) -> Iterator[str]:
    """Yield the profile as the instance's name has it, NVIDIA H100 80GB HBM3 MIG 1g.10gb, and as its slices make it."""
    named = _PROFILE_IN_NAME.search(text_of(if_answered(nvml, lambda: nvml.nvmlDeviceGetName(handle)) or ""))
    if named:
        yield named[1]
    attributes = if_answered(nvml, lambda: nvml.nvmlDeviceGetAttributes_v2(handle))
    memory = if_answered(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(of))
    if attributes is None or memory is None or int(memory.total) <= 0:
        return
    slices, of_compute = int(attributes.gpuInstanceSliceCount), int(attributes.computeInstanceSliceCount)
    eighths = -(-_EIGHTHS * int(attributes.memorySizeMB) * _MIB // int(memory.total))
    gigabytes = (2 * eighths * -(-int(memory.total) // _GIB) + _EIGHTHS) // (2 * _EIGHTHS)
    part = f"{of_compute}c." if of_compute < slices else ""
    yield f"{part}{slices}g.{gigabytes}gb"


def _mps_clients(nvml: NvmlGpus, gpu: Gpu, of: Any, listed: ListedInstance) -> int | None:
    """
    Count the clients of MPS on an instance: those of a GPU, in proportion to its compute slices.

    NVIDIA's guide to MIG says so (docs.nvidia.com/datacenter/tesla/mig-user-guide, Deployment Considerations). A GPU
    has as many slices as it can have instances.
    """
    slices: int | None = if_answered(nvml, lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(of))
    own = _COMPUTE_SLICES.match(listed.profile)
    if gpu.mps_clients is None or not slices or own is None:
        return gpu.mps_clients
    return min(gpu.mps_clients, gpu.mps_clients * int(own[1]) // slices)


def placed(gpu: Gpu, one: ListedInstance, *, before: Gpu) -> Gpu:
    """Say where an instance is now: made anew with the same profile, or with its GPU, it can have another number."""
    if gpu.instance is None:
        return gpu
    after = replace(gpu.instance, gpu_instance=one.gpu_instance, compute_instance=one.compute_instance)
    is_where_it_was = after == before.instance and gpu.minor == before.minor
    if is_where_it_was and (after.capabilities or gpu.minor is None):
        return gpu
    return replace(gpu, instance=replace(after, capabilities=capabilities(gpu.minor, after)))
