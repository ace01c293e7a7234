"""
How a container gets its GPU and is held to its share: the ways, and what Allocate answers by each of them.

    envvar   variables and mounts in the answer; the container runtime's NVIDIA hook reads NVIDIA_VISIBLE_DEVICES
    cdi      a CDI device in the answer, which brings the same variables and mounts: over the pod's own ones
    devices  device nodes in the answer, for runtimes without the NVIDIA hook; libraries come from the image

Two rules hold for every set of ways. Nothing is handed over that the answer does not also limit, even by a runtime that
ignores CDI devices: what such a runtime starts sees no GPU, or has the limits from elsewhere in the answer. And
NVIDIA_VISIBLE_DEVICES is always set: left out, an image's own `all` would give the container all GPUs of a node whose
runtime has the hook after all. So without `envvar` it is `void`, by which the hook does nothing; a CDI device sets it.

GPU_SHARE_FRACTION and GPU_SHARE_MEMORY_MIB are always in the answer itself, since the kubelet expands variables in
a container's arguments from there alone.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plugin.gpus.gpu import Gpu, Pool
from plugin.shares import cdi, cdi_directory
from plugin.shares.allocation import Allocation
from plugin.shares.limits import Mount, limits
from plugin.shares.strategy import Sharing
from policies.contract import NO_DEVICES, SHARE_FRACTION, SHARE_MEMORY_MIB, VISIBLE_DEVICES

Handover = Literal["envvar", "cdi", "devices"]

_DEV = Path("/dev")
_NEEDED = ("nvidiactl", "nvidia-uvm")  # CUDA does not start without them
_OPTIONAL = ("nvidia-uvm-tools", "nvidia-modeset")  # profilers and graphics; not every driver makes them


_EXPANDABLE = (SHARE_FRACTION, SHARE_MEMORY_MIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverSettings:
    """How the administrator wants GPUs handed over on this node."""

    ways: frozenset[Handover]
    cdi_dir: Path  # directory of CDI specifications


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How the containers of one resource get their GPU; `prepare` makes it."""

    ways: frozenset[Handover]
    cdi_kind: str = ""  # of the resource's specification; empty without `cdi`
    common_nodes: tuple[str, ...] = ()  # device nodes whichever the GPU; none without `devices`


BY_VARIABLE = Delivery(ways=frozenset({"envvar"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the kubelet is answered about one container."""

    environment: dict[str, str]
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[str, ...] = ()  # paths, on the host as in the container
    cdi_devices: tuple[str, ...] = ()  # fully qualified


def prepare(settings: HandoverSettings, resource: str, pool: Pool, sharing: Sharing, *, dev: Path = _DEV) -> Delivery:
    """
    Have everything ready that containers of *resource* are going to need: the CDI specification, for one.

    Call it before the GPUs of *pool* are advertised, and again before one more is: the kubelet may allocate a vGPU as
    soon as it hears of it. The answer stays the same. *dev* is where this process sees the host's /dev.

    Raises:
        HandoverError: If the CDI specification cannot be written.
    """
    ways = settings.ways
    if "cdi" in ways and pool.gpus:  # a specification without devices is no valid one
        cdi_directory.write_specification(settings.cdi_dir, resource, cdi.specification(resource, pool, sharing))
    return Delivery(
        ways=ways,
        cdi_kind=cdi.kind(resource) if "cdi" in ways else "",
        common_nodes=common_nodes(dev) if "devices" in ways else (),
    )


def forget_others(settings: HandoverSettings, resources: Collection[str]) -> None:
    """
    Clear up after earlier runs: nothing stays ready for resources that this node no longer has.

    Call it once, at the start. Without `cdi` among the ways nothing is touched: containers that were given a CDI device
    by an earlier run ask for it again at every restart.

    Raises:
        HandoverError: If something of ours cannot be removed.
    """
    if "cdi" in settings.ways:
        cdi_directory.remove_stale(settings.cdi_dir, resources)


def answer(allocation: Allocation, sharing: Sharing, delivery: Delivery) -> Answer:
    """
    Say what a container receives; no I/O.

    Several whole GPUs are no CDI device, since each combination would need a name of its own: they go by variables.

    Raises:
        AllocationError: If the GPUs are shared by MPS, and several.
    """
    held = limits(allocation, sharing)
    cdi_devices = _cdi_devices(allocation, delivery)
    if cdi_devices and delivery.ways == {"cdi"}:
        variables = {name: held.environment[name] for name in _EXPANDABLE}
        return Answer(environment={**variables, VISIBLE_DEVICES: NO_DEVICES}, cdi_devices=cdi_devices)
    by_variable = "envvar" in delivery.ways or ("cdi" in delivery.ways and not cdi_devices)
    return Answer(
        environment=held.environment if by_variable else {**held.environment, VISIBLE_DEVICES: NO_DEVICES},
        mounts=held.mounts,
        device_nodes=_nodes(allocation, delivery),
        cdi_devices=cdi_devices,
    )


def _cdi_devices(allocation: Allocation, delivery: Delivery) -> tuple[str, ...]:
    if not delivery.cdi_kind or len(allocation.gpus) > 1:
        return ()
    (gpu,) = allocation.gpus
    name = cdi.device_name(gpu, vgpus=allocation.vgpus, vgpus_per_gpu=allocation.vgpus_per_gpu)
    return (f"{delivery.cdi_kind}={name}",)


def _nodes(allocation: Allocation, delivery: Delivery) -> tuple[str, ...]:
    return nodes(allocation.gpus, delivery.common_nodes) if "devices" in delivery.ways else ()


def common_nodes(dev: Path = _DEV) -> tuple[str, ...]:
    """
    List the nodes that a container needs whichever GPU it has, as paths on the host.

    Optional ones are listed only where they are there now: a runtime does not start a container for
    which a node is missing. *dev* is where this process sees the host's /dev.
    """
    there = (name for name in _OPTIONAL if (dev / name).exists())
    return tuple(f"{_DEV}/{name}" for name in (*_NEEDED, *there))


def nodes(gpus: Iterable[Gpu], common: tuple[str, ...]) -> tuple[str, ...]:
    """List the nodes of a container with *gpus*: *common* and the GPUs' own; none where a GPU has none (simulated)."""
    minors = [gpu.minor for gpu in gpus]
    if None in minors:
        return ()
    return (*common, *(f"{_DEV}/nvidia{minor}" for minor in minors))
