"""
The held vGPUs of a node, and which part of its GPU each is, in a file that outlives the plugin and the machine.

The kubelet keeps which vGPUs a container has, and starts it again with them, also after a restart of the machine. What
they were when it got them is kept by nobody else.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from plugin.gpus.gpu import VGpuId
from plugin.state_files import read_small_file, write_atomically

FILE = "vgpus.json"

_Index = Annotated[int, Meta(ge=0, le=999_999)]
_Number = Annotated[int, Meta(ge=1, le=100)]


class Held(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A vGPU that a container holds, or may hold."""

    resource: str  # that it was allocated as
    of: int  # vGPUs that its GPU was divided into then
    named: bool = False  # whether the kubelet has named its container; it never names init containers


class Checkpoint(msgspec.Struct, frozen=True):
    """What the file says."""

    vgpus_per_gpu: int  # when it was written
    held: dict[VGpuId, Held]

    def number_of(self, vgpu: VGpuId) -> int:
        """Say which part of its GPU a held vGPU is: one of so many."""
        held = self.held.get(vgpu)
        return held.of if held is not None else self.vgpus_per_gpu


class CheckpointError(Exception):
    """A file that is there and says nothing that can be believed; the message says why."""


class _Group(msgspec.Struct, frozen=True, kw_only=True):
    """Held vGPUs that are alike."""

    resource: str
    gpu: str  # UUID
    of: _Number
    named: bool
    indexes: tuple[_Index, ...]


class _File(msgspec.Struct, frozen=True, kw_only=True):
    vgpus_per_gpu: _Number
    held: tuple[_Group, ...]


def read_parts(directory: Path) -> Checkpoint | None:
    """
    Read what was held; None where there is no file.

    Raises:
        CheckpointError: If there is one that cannot be read, or says what no plugin can have written.
    """
    try:
        content = read_small_file(directory / FILE)
        if content is None:
            raise CheckpointError("it is not a file of at most 1 MiB")
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
            held[vgpu] = Held(resource=group.resource, of=group.of, named=group.named)
    return Checkpoint(found.vgpus_per_gpu, held)


def write_parts(
    directory: Path, held: Iterable[tuple[VGpuId, Held]], *, vgpus_per_gpu: int, to_disk: bool = False
) -> None:
    """
    Replace the file; *to_disk*: it outlives a crash of the machine too, and not only this process.

    Raises:
        OSError: If it cannot be written; the old one stays.
    """
    content = _File(vgpus_per_gpu=vgpus_per_gpu, held=tuple(_groups(held)))
    write_atomically(directory / FILE, msgspec.json.encode(content), to_disk=to_disk)


def _groups(held: Iterable[tuple[VGpuId, Held]]) -> Iterator[_Group]:
    rows = sorted((one.resource, vgpu.gpu_uuid, one.of, one.named, vgpu.index) for vgpu, one in held)
    for (resource, gpu, of, named), group in groupby(rows, key=lambda row: row[:4]):
        yield _Group(resource=resource, gpu=gpu, of=of, named=named, indexes=tuple(row[4] for row in group))
