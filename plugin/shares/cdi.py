"""
CDI specifications: what a container runtime puts into a container that has been given a CDI device.

One specification per resource, with one device per GPU and size of a share, named `<UUID>-<n>of<N>`. Runtimes apply
them after everything that the pod itself says, so that a pod's own variables and mounts do not beat these. They apply
them in the order of their names in the answer: where two set one variable, the later one holds.

The device `void` tells NVIDIA's runtime to do nothing, where another device brings the GPU.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

import msgspec

from plugin.errors import HandoverError
from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.allocation import Allocation
from plugin.shares.limits import ContainerLimits, Mount, limits
from plugin.shares.strategy import Sharing
from policies.contract import MPS_PIPE_DIRECTORY, NO_DEVICES, VISIBLE_DEVICES

# The oldest that has all we use, so that every runtime can read it: a newer one than it knows makes it skip the file.
CDI_VERSION = "0.3.0"
_MOUNT_OPTIONS = ["rbind", "rprivate", "rw", "nosuid", "nodev", "noexec"]
_DEVICE_NAME_START = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]*", re.ASCII)
_LONGEST_CLASS = 63
_DIGEST_LENGTH = 12
HIDING_DEVICE = "void"
_MADE_UNIQUE = re.compile(rf"-[0-9a-f]{{{_DIGEST_LENGTH}}}\Z", re.ASCII)


def kind(resource: str) -> str:
    """
    Turn a resource's name into a CDI kind, `<vendor>/<class>`; never the same one for two resources.

    A class has no dots before CDI 0.6, and vendors and classes start with a letter. Where a name must be
    changed for that, a digest of the whole name keeps it apart from others.
    """
    domain, _, name = resource.partition("/")
    vendor = _with_letter_first(domain)
    class_ = _with_letter_first(re.sub(r"[^A-Za-z0-9_-]", "-", name))
    # The parser of the runtimes cannot take a class of one letter: it panics.
    if (vendor, class_) != (domain, name) or len(name) == 1 or _MADE_UNIQUE.search(name):
        digest = sha256(resource.encode()).hexdigest()[:_DIGEST_LENGTH]
        class_ = f"{class_[: _LONGEST_CLASS - _DIGEST_LENGTH - 1]}-{digest}"
    return f"{vendor}/{class_}"


class Grid(NamedTuple):
    """A GPU that is divided into so many vGPUs, of which a container can have any number."""

    gpu: Gpu
    sharing: Sharing
    of: int


class Device(msgspec.Struct, frozen=True):
    """A CDI device, as a specification has it."""

    name: str
    edits: dict[str, object] = msgspec.field(name="containerEdits")


class _Specification(msgspec.Struct, frozen=True):
    kind: str
    devices: tuple[Device, ...]


def device_name(gpu_uuid: str, *, vgpus: int, vgpus_per_gpu: int) -> str:
    """Name the CDI device that is that share of a GPU."""
    return f"{gpu_uuid}-{vgpus}of{vgpus_per_gpu}"


def device_names(gpu_uuid: str, of: int) -> tuple[str, ...]:
    """Name the CDI devices that are the shares of a GPU, the smallest first, where it is divided into *of* vGPUs."""
    return tuple(device_name(gpu_uuid, vgpus=vgpus, vgpus_per_gpu=of) for vgpus in range(1, of + 1))


def grids_of(pool: Pool, sharing: Sharing) -> tuple[Grid, ...]:
    """Say how the GPUs of a resource are divided."""
    return tuple(Grid(gpu, sharing, pool.vgpus_per_gpu) for gpu in pool.gpus)


def specification(
    resource: str, grids: Iterable[Grid], *, kept: Iterable[Device] = (), as_given: Iterable[Device] = ()
) -> bytes:
    """
    Write the specification of a resource: the same bytes for the same GPUs.

    *kept* are devices of an earlier one that are to stay as they are there, unless they are of *grids*, and *as_given*
    those that are to stay although they are.

    Raises:
        HandoverError: If a GPU's UUID cannot be part of the name of a CDI device.
    """
    devices = {device.name: device for grid in grids for device in _devices(grid)}
    hiding = Device(HIDING_DEVICE, {"env": [f"{VISIBLE_DEVICES}={NO_DEVICES}"]})
    devices |= {device.name: device for device in as_given}
    stay = {device.name: device for device in kept if device.name not in devices}
    return msgspec.json.encode(
        {
            "cdiVersion": CDI_VERSION,
            "kind": kind(resource),
            "devices": [*({**devices, **stay} | {HIDING_DEVICE: hiding}).values()],
        }
    )


def devices_in(content: bytes, resource: str) -> tuple[Device, ...]:
    """Read the devices in a specification of a resource; none where it is not one."""
    try:
        found = msgspec.json.decode(content, type=_Specification)
    except (ValueError, RecursionError):
        return ()
    return found.devices if found.kind == kind(resource) else ()


def limits_by_mps(device: Device) -> bool:
    """Whether a container with this device reaches its GPU through an MPS daemon, which holds it to its share."""
    variables = device.edits.get("env")
    return isinstance(variables, list) and any(str(one).startswith(f"{MPS_PIPE_DIRECTORY}=") for one in variables)


def _devices(grid: Grid) -> Iterable[Device]:
    if not _DEVICE_NAME_START.fullmatch(grid.gpu.uuid):
        raise HandoverError(
            f"a GPU's UUID must have only letters, digits and _.:- to be a CDI device, got {grid.gpu.uuid!a}: "
            "leave cdi out of handover in _cluster.yaml"
        )
    for number, name in enumerate(device_names(grid.gpu.uuid, grid.of), start=1):
        allocation = Allocation(gpus=(grid.gpu,), vgpus=number, vgpus_per_gpu=grid.of)
        yield Device(name, edits(limits(allocation, grid.sharing)))


def edits(held: ContainerLimits, device_nodes: Iterable[str] = ()) -> dict[str, object]:
    """Write what a container receives, and the device nodes for it, as CDI has it."""
    made: dict[str, object] = {"env": [f"{name}={value}" for name, value in held.environment.items()]}
    if held.mounts:
        made["mounts"] = [_mount(mount) for mount in held.mounts]
    if nodes := [{"path": path} for path in device_nodes]:
        made["deviceNodes"] = nodes
    return made


def _mount(mount: Mount) -> dict[str, object]:
    return {"hostPath": mount.host_path, "containerPath": mount.container_path, "options": _MOUNT_OPTIONS}


def _with_letter_first(name: str) -> str:
    return name if name[:1].isalpha() else f"x-{name}"
