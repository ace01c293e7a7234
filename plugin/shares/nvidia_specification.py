"""
NVIDIA's own CDI devices, as `nvidia-ctk cdi generate` writes them: what of one specification is needed to name them.

Such a device brings the nodes of a GPU, and with them the driver's libraries and programs, on a container runtime that
needs no NVIDIA runtime for that. A specification can be older than the driver, and of another numbering of the GPUs: a
device that would bring another GPU's node is none of ours.
"""

import re
from typing import Any

import msgspec

from plugin.gpus.gpu import Gpu
from policies.reading.document import DocumentError, read

NVIDIA_KIND = "nvidia.com/gpu"
LARGEST_BYTES = 1 << 20  # of a file; one of eight GPUs has 60 KB

_GPU_NODE = re.compile(r"nvidia([0-9]{1,5})", re.ASCII)
_DRIVER_LIBRARY = re.compile(r".*/libcuda\.so\.([0-9]+(?:\.[0-9]+)+)", re.ASCII)
# `0` and `gpu0` are whole GPUs by their index, in NVIDIA's two ways to write it; `0:1` is a MIG device.
_BY_INDEX = re.compile(r"(?:gpu)?[0-9]{1,5}", re.ASCII)


class SpecificationError(Exception):
    """A file that is no CDI specification, so that container runtimes skip it; the message says why."""


class _Node(msgspec.Struct, rename="camel"):
    path: str
    host_path: str = ""


class _Mount(msgspec.Struct, rename="camel"):
    host_path: str


class _Edits(msgspec.Struct, rename="camel"):
    device_nodes: list[_Node] = []
    mounts: list[_Mount] = []


class _Device(msgspec.Struct, rename="camel"):
    name: str
    container_edits: _Edits


class _Specification(msgspec.Struct, rename="camel"):
    cdi_version: str
    kind: str
    devices: list[_Device]
    container_edits: _Edits = msgspec.field(default_factory=_Edits)


class NvidiaSpecification(msgspec.Struct, frozen=True):
    """What one of NVIDIA's specifications has."""

    devices: dict[str, frozenset[int]]  # by name: the minor numbers of the GPUs whose nodes it brings
    driver: str  # version of the libraries that come along; empty if it names none

    def device_of(self, gpu: Gpu) -> str | None:
        """Name the device that is *gpu* and no other; by its UUID, or by an index whose node is the GPU's."""
        if gpu.minor is None:  # simulated: it has no node, so only the UUID can say
            return gpu.uuid if gpu.uuid in self.devices else None
        own = [name for name, minors in self.devices.items() if minors == {gpu.minor}]
        return next((name for name in sorted(own, key=gpu.uuid.__ne__) if _names_whole(name, gpu)), None)


def parse(content: bytes) -> NvidiaSpecification | None:
    """
    Read one CDI specification, in JSON or in YAML; None if it is of another kind than NVIDIA's GPUs.

    Raises:
        SpecificationError: If it is none, or half of one.
    """
    if len(content) > LARGEST_BYTES:
        raise SpecificationError(f"larger than {LARGEST_BYTES >> 20} MiB")
    try:
        found = msgspec.convert(_plain(content), _Specification)
    except (msgspec.ValidationError, DocumentError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise SpecificationError(f"no CDI specification: {error}") from None
    if found.kind != NVIDIA_KIND:
        return None
    if _minors(found.container_edits):
        raise SpecificationError("it gives GPUs to every container, whichever of its devices that has")
    return NvidiaSpecification(
        devices={device.name: _minors(device.container_edits) for device in found.devices},
        driver=_driver([found.container_edits, *(device.container_edits for device in found.devices)]),
    )


def _plain(content: bytes) -> Any:
    text = content.decode()
    return msgspec.json.decode(content) if text.lstrip()[:1] == "{" else read(text).value


def _names_whole(name: str, gpu: Gpu) -> bool:
    return name == gpu.uuid or _BY_INDEX.fullmatch(name) is not None


def _minors(edits: _Edits) -> frozenset[int]:
    paths = (node.host_path or node.path for node in edits.device_nodes)
    found = (_GPU_NODE.fullmatch(path.rpartition("/")[2]) for path in paths)
    return frozenset(int(one[1]) for one in found if one)


def _driver(edits: list[_Edits]) -> str:
    libraries = (_DRIVER_LIBRARY.fullmatch(mount.host_path) for one in edits for mount in one.mounts)
    return next((one[1] for one in libraries if one), "")
