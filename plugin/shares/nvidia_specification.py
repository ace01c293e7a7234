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
_INSTANCE_BY_INDEX = re.compile(r"(?:mig)?[0-9]{1,5}:[0-9]{1,5}", re.ASCII)
_CAPABILITY_NODE = re.compile(r"nvidia-cap([0-9]{1,5})", re.ASCII)


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
    capabilities: dict[str, frozenset[int]] = {}  # by name: the nodes nvidia-cap<n> that it brings

    def device_of(self, gpu: Gpu) -> str | None:
        """
        Name the device that is *gpu* and no other; by its UUID, or by an index whose node is the GPU's.

        That of a MIG instance brings its GPU's node and those of its capabilities, and no others.
        """
        if gpu.minor is None:  # simulated: it has no node, so only the UUID can say
            return gpu.uuid if gpu.uuid in self.devices else None
        wanted = frozenset(gpu.instance.capabilities) if gpu.instance else frozenset()
        if gpu.instance and not wanted:  # then nothing says which instance it is but the UUID
            return gpu.uuid if self.devices.get(gpu.uuid, frozenset()) == {gpu.minor} else None
        own = [
            name
            for name, minors in self.devices.items()
            if minors == {gpu.minor} and self.capabilities.get(name, frozenset()) == wanted
        ]
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
    if _minors(found.container_edits) or _capabilities(found.container_edits):
        raise SpecificationError("it gives GPUs to every container, whichever of its devices that has")
    return NvidiaSpecification(
        devices={device.name: _minors(device.container_edits) for device in found.devices},
        capabilities={device.name: _capabilities(device.container_edits) for device in found.devices},
        driver=_driver([found.container_edits, *(device.container_edits for device in found.devices)]),
    )


def _plain(content: bytes) -> Any:
    text = content.decode()
    return msgspec.json.decode(content) if text.lstrip()[:1] == "{" else read(text).value


def _names_whole(name: str, gpu: Gpu) -> bool:
    by_index = _INSTANCE_BY_INDEX if gpu.instance else _BY_INDEX
    return name == gpu.uuid or by_index.fullmatch(name) is not None


def _minors(edits: _Edits) -> frozenset[int]:
    return _numbers(edits, _GPU_NODE)


def _capabilities(edits: _Edits) -> frozenset[int]:
    return _numbers(edits, _CAPABILITY_NODE)


def _numbers(edits: _Edits, of: re.Pattern[str]) -> frozenset[int]:
    paths = (node.host_path or node.path for node in edits.device_nodes)
    found = (of.fullmatch(path.rpartition("/")[2]) for path in paths)
    return frozenset(int(one[1]) for one in found if one)


def _driver(edits: list[_Edits]) -> str:
    libraries = (_DRIVER_LIBRARY.fullmatch(mount.host_path) for one in edits for mount in one.mounts)
    return next((one[1] for one in libraries if one), "")
