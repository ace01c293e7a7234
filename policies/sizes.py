"""
The sizes of a share by DRA: each is an extended resource and a DeviceClass of its own, and one device of it is a share.

A size is in thousandths of a GPU and carries its sharing strategy, so that a time-sliced share never lands under MPS.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from policies.contract import (
    DEFAULT_VGPUS_PER_GPU,
    IMPLICIT_RESOURCE_PREFIX,
    MILLI_PER_GPU,
    MOST_GPUS_TOGETHER,
    MPS,
    SIZE_CLASS_PREFIX,
    SIZE_CLASS_SUFFIX,
    SIZE_RESOURCE_PREFIX,
    WHOLE,
    SharingStrategy,
)
from policies.device_names import DEVICE_PATTERN, GPU_DEVICE, is_instance, resource_of

# Of one GPU. A slice of Kubernetes holds 64 of them, and every API server and scheduler holds all slices: decision 20
# has the measurements.
MOST_DEVICES_PER_GPU: Final = 128

_NAME = re.compile(
    rf"(?P<milli>[1-9][0-9]{{0,4}})m(?:-(?P<strategy>timesliced|whole))?(?:-(?P<device>{DEVICE_PATTERN}))?",
    re.ASCII,
)
_SUFFIXES: Final[dict[SharingStrategy, str]] = {MPS: "", "time-slicing": "-timesliced", WHOLE: "-whole"}
_STRATEGIES: Final[dict[str | None, SharingStrategy]] = {None: MPS, "timesliced": "time-slicing", "whole": WHOLE}


class Size(msgspec.Struct, frozen=True, order=True, gc=False):
    """One size of a share, or several whole GPUs."""

    strategy: SharingStrategy
    milli: int  # thousandths of one GPU; above 1000 whole GPUs
    device: str = GPU_DEVICE  # that it is a part of

    @property
    def name(self) -> str:
        """How classes call it: `200m`, `200m-timesliced`, `2000m-whole`, `200m-mig-1g.10gb`, `250m-model-t4`."""
        return resource_of(self.label, self.device)

    @property
    def label(self) -> str:
        """The same without the device, which can stand in no label of DNS."""
        return f"{self.milli}m{_SUFFIXES[self.strategy]}"

    @property
    def resource(self) -> str:
        """The extended resource of which a container has one."""
        return f"{SIZE_RESOURCE_PREFIX}{self.name}"

    @property
    def device_class(self) -> str:
        """The DeviceClass that the scheduler allocates it from."""
        return f"{SIZE_CLASS_PREFIX}{self.name}{SIZE_CLASS_SUFFIX}"

    @property
    def gpus(self) -> int:
        """How many GPUs one device is on."""
        return max(1, self.milli // MILLI_PER_GPU)

    def units(self, per_gpu: int) -> int | None:
        """Count the vGPUs, of *per_gpu* to a GPU, that are this size; None if it is none of that grid's."""
        units = -(-self.milli * per_gpu // MILLI_PER_GPU)
        return units if size_of(units, per_gpu, self.strategy, self.device) == self else None


def size_of(units: int, per_gpu: int, strategy: SharingStrategy, device: str = GPU_DEVICE) -> Size:
    """Return the size of so many vGPUs; a third of a GPU is 333 thousandths, never more than there is."""
    return Size(strategy, MILLI_PER_GPU * units // per_gpu, device)


def read_size(resource: str) -> Size | None:
    """Read the resource of a size; None if it is none."""
    match = _NAME.fullmatch(resource.removeprefix(SIZE_RESOURCE_PREFIX))
    if match is None or not resource.startswith(SIZE_RESOURCE_PREFIX):
        return None
    return Size(_STRATEGIES[match["strategy"]], int(match["milli"]), match["device"] or GPU_DEVICE)


def is_sized(resource: str) -> bool:
    """Whether a resource is one of ours by DRA, by its own name or the one that Kubernetes makes of its class."""
    return resource.startswith(SIZE_RESOURCE_PREFIX) or (
        resource.startswith(IMPLICIT_RESOURCE_PREFIX) and resource.endswith(SIZE_CLASS_SUFFIX)
    )


def grid(per_gpu: int, strategy: SharingStrategy, device: str = GPU_DEVICE) -> tuple[Size, ...]:
    """
    List the sizes of one GPU and of several, the smallest first; of GPUs that are not shared whole ones alone.

    Under MPS there are none of several: a process reaches one GPU. Nor does it reach several MIG instances.
    """
    parts = 1 if strategy == WHOLE else per_gpu
    within = (size_of(units, parts, strategy, device) for units in range(1, parts + 1))
    most = 1 if strategy == MPS or is_instance(device) else MOST_GPUS_TOGETHER
    together = (Size(strategy, MILLI_PER_GPU * gpus, device) for gpus in range(2, most + 1))
    return (*within, *together)


def devices_per_gpu(per_gpu: int) -> int:
    """Count the devices that a grid needs for one GPU: of each size as many as fit."""
    return sum(per_gpu // units for units in range(1, per_gpu + 1))


def is_too_fine(per_gpu: int) -> bool:
    """Whether a grid has more devices than the scheduler can look through."""
    return devices_per_gpu(per_gpu) > MOST_DEVICES_PER_GPU


def too_fine(per_gpu: int, *, setting: str = "vgpusPerGpu") -> str:
    """Say that a grid, the number in *setting*, is too fine, and which are not."""
    near = [one for one in _fitting() if one >= DEFAULT_VGPUS_PER_GPU and MILLI_PER_GPU % one == 0]
    return (
        f"{setting} {per_gpu} needs {devices_per_gpu(per_gpu)} devices for each GPU by allocation: dra, where "
        f"{MOST_DEVICES_PER_GPU} are possible: at most {FINEST_GRID} fits, such as {', '.join(map(str, near))}"
    )


def _fitting() -> Iterator[int]:
    return (one for one in range(1, 101) if not is_too_fine(one))


FINEST_GRID: Final = max(_fitting())
