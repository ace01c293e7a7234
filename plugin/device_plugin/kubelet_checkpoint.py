"""
What the kubelet keeps of our answers, in a checkpoint of its own: it starts containers again by them, without a call.

So after a restart of the machine that is what its containers have, and not what our own file says, which may be older.
Each answer says in an annotation which GPUs it gives, and what its vGPUs are; it gets as far as the container runtime.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from google.protobuf.message import DecodeError
from msgspec import Meta

from plugin.device_plugin.v1beta1 import api_pb2
from plugin.gpus.gpu import VGpuId
from plugin.shares.allocation import Allocation
from plugin.shares.cdi import HIDING_DEVICE, kind
from plugin.shares.parts_file import Held
from plugin.state_files import read_small_file
from policies.contract import HELD_ANNOTATION, NO_DEVICES, VISIBLE_DEVICES

FILE = "kubelet_internal_checkpoint"
_NOT_SAID = 0  # of how many a vGPU is: an earlier plugin has answered without the annotation


class _Given(msgspec.Struct, frozen=True):
    """What the annotation says of the vGPUs of one answer."""

    of: Annotated[int, Meta(ge=1, le=100)]
    gpus: tuple[str, ...]  # UUIDs, each with as many of the vGPUs
    number: Annotated[int, Meta(ge=0, le=1 << 53)] = 0  # a later answer has a greater one


class _Entry(msgspec.Struct, frozen=True):
    """What one container has of one resource; the names are the kubelet's."""

    resource: str = msgspec.field(name="ResourceName")
    ids: dict[str, tuple[str, ...]] | None = msgspec.field(name="DeviceIDs")  # by NUMA node
    answer: bytes | None = msgspec.field(name="AllocResp")
    pod: str = msgspec.field(name="PodUID", default="")


class _Data(msgspec.Struct, frozen=True):
    entries: tuple[_Entry, ...] | None = msgspec.field(name="PodDeviceEntries")


class _File(msgspec.Struct, frozen=True):
    data: _Data = msgspec.field(name="Data")


def annotations(allocation: Allocation) -> dict[str, str]:
    """Write what an answer is read by."""
    given = _Given(allocation.vgpus_per_gpu, tuple(gpu.uuid for gpu in allocation.gpus), allocation.number)
    return {HELD_ANNOTATION: msgspec.json.encode(given).decode()}


def read_answers(kubelet_dir: Path, is_ours: Callable[[str], bool]) -> Mapping[VGpuId, Held] | None:
    """
    Read what containers have of us, or had: the kubelet keeps it for a while.

    That is what our answers say, whatever the resource was called then, and all of which *is_ours* says so.

    Returns:
        Of a vGPU whose answer does not say it, `of` is 0 and nobody knows the GPU, and neither where the answers to two
        pods contradict each other. What an init container got, and a later container of its pod on another GPU, is on
        both: after a restart of the machine both run again. What one pod alone has, has its number.
        None where the file is not as a kubelet writes it; nothing where there is none.
    """
    try:
        entries = _entries(kubelet_dir)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    answered = sorted(((_given(one), one) for one in entries), key=lambda pair: -pair[0].number if pair[0] else 0)
    pods = {uid: number for number, uid in enumerate(sorted({one.pod for one in entries} - {""}), 1)}
    found: dict[VGpuId, tuple[str, Held]] = {}  # with the pod
    for given, entry in answered:
        if given or is_ours(entry.resource):
            for vgpu, held in _held(entry, given, pods.get(entry.pod, 0)):
                pod, known = found.setdefault(vgpu, (entry.pod, held))
                found[vgpu] = pod, _both(vgpu, known, held, are_of_one_pod=pod == entry.pod)
    return {vgpu: held for vgpu, (_, held) in found.items()}


class Kept(NamedTuple):
    """What the kubelet has for containers."""

    pods: Mapping[str, str]  # UID of the pod, empty where it says none, by ID of a device, of all plugins
    latest: int  # number of the last of our answers
    by_variable: bool  # whether NVIDIA_VISIBLE_DEVICES brings one of them its GPU of ours, also when it starts again


def read_kept(kubelet_dir: Path) -> Kept | None:
    """
    Read all that the kubelet has for containers; None where there is no file, or not one as a kubelet writes it.

    Raises:
        OSError: If it cannot be read now.
    """
    try:
        entries = _entries(kubelet_dir)
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    ours = [(given, one) for one in entries if (given := _given(one))]
    return Kept(
        pods={text: one.pod for one in entries for text in _ids(one)},
        latest=max((given.number for given, _ in ours), default=0),
        by_variable=any(_is_by_variable(_answer(one)) for _, one in ours),
    )


def _entries(kubelet_dir: Path) -> tuple[_Entry, ...]:
    """Read the file; OSError, ValueError or RecursionError if it is not as a kubelet writes it."""
    content = read_small_file(kubelet_dir / FILE)
    return msgspec.json.decode(content or b"", type=_File).data.entries or ()


def _both(vgpu: VGpuId, later: Held, earlier: Held, *, are_of_one_pod: bool) -> Held:
    """Say where a vGPU is by two answers, of which the *later* one is newer where they are of one pod."""
    by_cdi, call = later.by_cdi or earlier.by_cdi, max(later.call, earlier.call)
    pod, uid = (later.pod, later.pod_uid) if are_of_one_pod else (0, "")
    changed = {"by_cdi": by_cdi, "pod": pod, "pod_uid": uid, "call": call}
    later, earlier = (msgspec.structs.replace(one, **changed) for one in (later, earlier))
    if later == earlier:
        return later
    if not are_of_one_pod or later.of != earlier.of or later.gpu is None or earlier.gpu is None:
        return Held(resource=earlier.resource, of=1, gpu=None, by_cdi=by_cdi, pod=pod, call=call)
    gpu, *also = dict.fromkeys((later.gpu or vgpu.gpu_uuid, *later.also, earlier.gpu or vgpu.gpu_uuid))
    return msgspec.structs.replace(later, gpu="" if gpu == vgpu.gpu_uuid else gpu, also=tuple(also))


def _held(entry: _Entry, given: _Given | None, pod: int) -> Iterator[tuple[VGpuId, Held]]:
    ids = _ids(entry)
    by_cdi = any(one.name.startswith(f"{kind(entry.resource)}=") for one in _answer(entry).cdi_devices)
    for number, text in enumerate(ids):
        if vgpu := VGpuId.parse(text):
            gpu = given.gpus[number * len(given.gpus) // len(ids)] if given else None
            of, call = (given.of, given.number) if given else (_NOT_SAID, 0)
            on = "" if gpu == vgpu.gpu_uuid else gpu
            yield (
                vgpu,
                Held(resource=entry.resource, of=of, gpu=on, by_cdi=by_cdi, pod_uid=entry.pod, pod=pod, call=call),
            )


def _ids(entry: _Entry) -> list[str]:
    return sorted(text for texts in (entry.ids or {}).values() for text in texts)


def _answer(entry: _Entry) -> api_pb2.ContainerAllocateResponse:
    """Read an answer; one that says nothing where it cannot be read."""
    try:
        return api_pb2.ContainerAllocateResponse.FromString(entry.answer or b"")
    except DecodeError:
        return api_pb2.ContainerAllocateResponse()


def _is_by_variable(answered: api_pb2.ContainerAllocateResponse) -> bool:
    """Whether an answer of ours brings the GPU by NVIDIA_VISIBLE_DEVICES."""
    if answered.envs.get(VISIBLE_DEVICES, NO_DEVICES) != NO_DEVICES:
        return True
    named = answered.cdi_devices  # ours set the variable, unless the one that hides is the last of them
    return bool(named) and not named[-1].name.endswith(f"={HIDING_DEVICE}")


def _given(entry: _Entry) -> _Given | None:
    try:
        given = msgspec.json.decode(_answer(entry).annotations.get(HELD_ANNOTATION, "").encode(), type=_Given)
    except (ValueError, RecursionError):
        return None
    return given if given.gpus and len(_ids(entry)) % len(given.gpus) == 0 else None
