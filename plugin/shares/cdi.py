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

import msgspec

from plugin.errors import HandoverError
from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.allocation import Allocation
from plugin.shares.limits import ContainerLimits, Mount, limits
from plugin.shares.strategy import Sharing
from policies.contract import NO_DEVICES, VISIBLE_DEVICES

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


def device_name(gpu: Gpu, *, vgpus: int, vgpus_per_gpu: int) -> str:
    """Name the CDI device that is that share of *gpu*."""
    return f"{gpu.uuid}-{vgpus}of{vgpus_per_gpu}"


def specification(resource: str, pool: Pool, sharing: Sharing) -> bytes:
    """
    Write the specification of a resource: the same bytes for the same GPUs.

    Raises:
        HandoverError: If a GPU's UUID cannot be part of the name of a CDI device.
    """
    for gpu in pool.gpus:
        if not _DEVICE_NAME_START.fullmatch(gpu.uuid):
            raise HandoverError(
                f"a GPU's UUID must have only letters, digits and _.:- to be a CDI device, got {gpu.uuid!a}: "
                "leave cdi out of handover in _cluster.yaml"
            )
    return msgspec.json.encode(
        {
            "cdiVersion": CDI_VERSION,
            "kind": kind(resource),
            "devices": [
                _device(gpu, vgpus=vgpus, vgpus_per_gpu=per_gpu, sharing=sharing)
                for gpu in pool.gpus
                # A container that starts again asks for the device that it was given.
                for per_gpu in sorted({pool.vgpus_per_gpu, *pool.earlier.get(gpu.uuid, ())})
                for vgpus in range(1, per_gpu + 1)
            ]
            + [{"name": HIDING_DEVICE, "containerEdits": {"env": [f"{VISIBLE_DEVICES}={NO_DEVICES}"]}}],
        }
    )


def _device(gpu: Gpu, *, vgpus: int, vgpus_per_gpu: int, sharing: Sharing) -> dict[str, object]:
    allocation = Allocation(gpus=(gpu,), vgpus=vgpus, vgpus_per_gpu=vgpus_per_gpu)
    return {
        "name": device_name(gpu, vgpus=vgpus, vgpus_per_gpu=vgpus_per_gpu),
        "containerEdits": edits(limits(allocation, sharing)),
    }


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
