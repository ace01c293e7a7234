"""
The GPUs of this node and the vGPUs that they are cut into.

The ID of a vGPU, `<GPU UUID>::<n>`, is read and written here and nowhere else.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256

from policies.contract import DEVICE_ID_SEPARATOR
from policies.mig import NO_PROFILE

# No leading zeros: two texts must never name the same vGPU.
_GRAMMAR = re.compile(
    rf"(?P<uuid>(?:(?!{DEVICE_ID_SEPARATOR}).)+){DEVICE_ID_SEPARATOR}(?P<index>0|[1-9][0-9]{{0,5}})", re.ASCII
)

_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class VGpuId:
    """One of the equal parts of a GPU; `str()` is what the kubelet sees."""

    gpu_uuid: str
    index: int  # 0 is the first

    @classmethod
    def parse(cls, text: str) -> "VGpuId | None":
        """Read a device ID; None if *text* is none. Otherwise `str()` gives *text* back."""
        match = _GRAMMAR.fullmatch(text)
        return cls(match["uuid"], int(match["index"])) if match else None

    def __str__(self) -> str:
        return f"{self.gpu_uuid}{DEVICE_ID_SEPARATOR}{self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How a GPU is connected with another one."""

    gpu_uuid: str  # of the other one
    nvlinks: int = 0  # that are up between them
    common_ancestor: int | None = None  # NVML's level of what both are on; None where the driver does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstance:
    """What a MIG instance has that a GPU has not."""

    profile: str  # as policies name it, 1g.10gb.me
    parent_uuid: str  # of the GPU that it is a part of
    gpu_instance: int  # NVML's numbers
    compute_instance: int
    capabilities: tuple[int, ...] = ()  # <n> of its nodes /dev/nvidia-caps/nvidia-cap<n>; none where they are not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """
    One physical GPU, or a MIG instance, which is a GPU to whoever is on it; as it was last reached.

    It is written for the next plugin, which may be another version: what is added here has a default.
    """

    uuid: str  # NVML UUID, stable across reboots
    index: int  # NVML's number; like `minor` it can be another GPU's after one has vanished
    minor: int | None  # of its device node, /dev/nvidia<minor>; None where there is none
    model: str
    memory_bytes: int  # that programs can take: the total without what the driver reserves
    numa_node: int | None  # of the CPUs next to it; None where the machine does not say
    reserved_bytes: int | None = None  # that the driver reserves; None where it does not say, and all memory is counted
    mps_clients: int | None = None  # that MPS serves on it at most; None where the driver does not say
    links: tuple[Link, ...] = ()  # with those there were when it was found
    architecture: str = ""  # such as Hopper; empty where NVML does not say
    pcie_root: str = ""  # as the kernel names it, such as pci0000:3a; empty where the machine does not say
    instance: MigInstance | None = None  # `index` and `minor` are those of its GPU then

    @property
    def profile(self) -> str:
        """The profile of a MIG instance; empty for a GPU."""
        return self.instance.profile if self.instance else NO_PROFILE

    @property
    def parent_uuid(self) -> str:
        """The UUID of the GPU that a MIG instance is a part of; empty for a GPU."""
        return self.instance.parent_uuid if self.instance else ""

    @property
    def physical_uuid(self) -> str:
        """The UUID of the GPU itself."""
        return self.parent_uuid or self.uuid

    @property
    def label(self) -> str:
        """What it is called where only lower-case letters, digits and dashes may stand: its UUID, or a digest of it."""
        return label_of(self.uuid)

    def facts(self) -> dict[str, object]:
        """List what a log says of it: all but the links, of which each GPU has one with each."""
        left_out = {"links"} if self.instance else {"links", "instance"}
        return {name: value for name, value in asdict(self).items() if name not in left_out}


# NVML's level of what two GPUs have in common, and what that weighs: the nearer, the more. The weights are those of
# NVIDIA's own allocator (github.com/NVIDIA/go-gpuallocator), where an NVLink is worth more than any way over PCIe.
_SAME_BOARD, _ONE_SWITCH, _SWITCHES, _HOST_BRIDGE, _NUMA_NODE, _MACHINE = 0, 10, 20, 30, 40, 50
_WEIGHTS = {_SAME_BOARD: 60, _ONE_SWITCH: 50, _SWITCHES: 40, _HOST_BRIDGE: 30, _NUMA_NODE: 20, _MACHINE: 10}
_NVLINK_WEIGHT = 100


def weight(one: Gpu, other: Gpu) -> int:
    """Weigh the connection of two GPUs, over which a program on both exchanges data: the more, the better."""
    links = [link for link in one.links if link.gpu_uuid == other.uuid]
    links += [link for link in other.links if link.gpu_uuid == one.uuid]
    nvlinks = max((link.nvlinks for link in links), default=0)
    is_near = one.numa_node is not None and one.numa_node == other.numa_node
    told = [level for link in links if (level := link.common_ancestor) is not None and level in _WEIGHTS]
    return _NVLINK_WEIGHT * nvlinks + _WEIGHTS[min(told, default=_NUMA_NODE if is_near else _MACHINE)]


def label_of(uuid: str) -> str:
    """Turn a UUID into a DNS label of at most 40 characters; never the same one for two GPUs."""
    label = uuid.lower()
    return label if _LABEL.fullmatch(label) else f"gpu-{sha256(uuid.encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """GPUs in inventory order, each divided into the same number of vGPUs."""

    gpus: tuple[Gpu, ...]
    vgpus_per_gpu: int
    # By UUID, where they are not 0 and following; of a GPU that is not of the pool any more, those that are held.
    indexes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    uuids: frozenset[str] = field(init=False, repr=False, compare=False)
    # Of the connection of each GPU with each other one, by position; 0 with itself.
    weights: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    # By device ID, so that a call of the kubelet with hundreds of IDs parses none of them.
    _places: dict[str, tuple[int, int]] = field(init=False, repr=False, compare=False)
    _others: frozenset[str] = field(init=False, repr=False, compare=False)  # IDs that name GPUs of before

    def __post_init__(self) -> None:
        places = {
            str(VGpuId(gpu.uuid, index)): (position, index)
            for position, gpu in enumerate(self.gpus)
            for index in self.indexes_of(gpu)
        }
        object.__setattr__(self, "_places", places)
        object.__setattr__(self, "uuids", frozenset(gpu.uuid for gpu in self.gpus))
        others = (str(VGpuId(uuid, index)) for uuid in self.others for index in self.indexes[uuid])
        object.__setattr__(self, "_others", frozenset(others))
        weights = tuple(tuple(0 if one is other else weight(one, other) for other in self.gpus) for one in self.gpus)
        object.__setattr__(self, "weights", weights)

    @property
    def others(self) -> tuple[str, ...]:
        """UUIDs of GPUs that are not of this pool any more: containers hold vGPUs by their IDs."""
        return tuple(uuid for uuid in self.indexes if uuid not in self.uuids)

    def has(self, device_id: str) -> bool:
        """Whether there is such a vGPU, those by the IDs of GPUs of before among them."""
        return device_id in self._places or device_id in self._others

    def gpu(self, device_id: str) -> Gpu | None:
        """Find the GPU that a vGPU is a part of; None if this pool has no such vGPU."""
        place = self._places.get(device_id)
        return self.gpus[place[0]] if place else None

    def place(self, device_id: str) -> tuple[int, int] | None:
        """Say where a vGPU is, by the position of its GPU and its own index; None if it is not of this pool."""
        return self._places.get(device_id)

    def indexes_of(self, gpu: Gpu) -> Sequence[int]:
        """List the indexes of a GPU's vGPUs, those of an earlier number too."""
        return self.indexes.get(gpu.uuid) or range(self.vgpus_per_gpu)

    def vgpus(self) -> Iterator[tuple[VGpuId, Gpu]]:
        """List every vGPU with its GPU, in inventory order."""
        for gpu in self.gpus:
            for index in self.indexes_of(gpu):
                yield VGpuId(gpu.uuid, index), gpu
