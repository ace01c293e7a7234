"""
How a container gets its GPU and is held to its share: the ways, and what Allocate answers by each of them.

    envvar   variables and mounts in the answer; the container runtime's NVIDIA hook reads NVIDIA_VISIBLE_DEVICES
    cdi      a CDI device in the answer, which brings the same variables and mounts: over the pod's own ones; and the
             device of NVIDIA's own specification for the GPU, where there is one, which brings nodes and libraries
    devices  device nodes in the answer, for runtimes without the NVIDIA hook; libraries come from the image

Two rules hold for every set of ways. Nothing is handed over that the answer does not also limit, even by a runtime that
ignores CDI devices: what such a runtime starts sees no GPU, or has the limits from elsewhere in the answer. And
NVIDIA_VISIBLE_DEVICES is always set: left out, an image's own `all` would give the container all GPUs of a node whose
runtime has the hook after all. So without `envvar` it is `void`, by which the hook does nothing; a CDI device of ours
sets it, to the GPU where the hook is to bring it, and to `void` where NVIDIA's device does.

GPU_SHARE_FRACTION and GPU_SHARE_MEMORY_MIB are always in the answer itself, since the kubelet expands variables in
a container's arguments from there alone.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plugin.gpus.gpu import Gpu
from plugin.shares import cdi
from plugin.shares.allocation import Allocation
from plugin.shares.limits import Mount, limits
from plugin.shares.nvidia_devices import NvidiaDevices
from plugin.shares.strategy import Mps, Sharing, led
from policies.contract import NO_DEVICES, SHARE_FRACTION, SHARE_MEMORY_MIB, VISIBLE_DEVICES, Handover

_DEV = Path("/dev")
_NEEDED = ("nvidiactl", "nvidia-uvm")  # CUDA does not start without them
_CAPABILITY = "nvidia-caps/nvidia-cap"  # what a MIG instance's GPU instance and compute instance are opened by
_OPTIONAL = ("nvidia-uvm-tools", "nvidia-modeset")  # profilers and graphics; not every driver makes them


_EXPANDABLE = (SHARE_FRACTION, SHARE_MEMORY_MIB)


@dataclass(slots=True, kw_only=True)
class HandoverSettings:
    """How the administrator wants GPUs handed over on this node; *ways* can be others from one moment to the next."""

    ways: frozenset[Handover]
    cdi_dir: Path  # directory of CDI specifications
    nvidia: NvidiaDevices = field(default_factory=lambda: NvidiaDevices(()))  # what NVIDIA's toolkit has made of them
    mps: Callable[[], Mps | None] = lambda: None  # where the MPS daemons serve; None for where _cluster.yaml says

    @property
    def needs_variable(self) -> bool:
        """Whether NVIDIA_VISIBLE_DEVICES brings the GPU to some containers, by NVIDIA's container runtime."""
        return "envvar" in self.ways or ("cdi" in self.ways and not self.nvidia.complete)


def handover_settings(
    ways: Iterable[Handover], *, cdi_dir: Path, static_dir: Path, mps: Callable[[], Mps | None] = lambda: None
) -> HandoverSettings:
    """Make the settings of a node; *static_dir* is the other directory in which container runtimes look."""
    nvidia = NvidiaDevices((static_dir, cdi_dir))
    return HandoverSettings(ways=frozenset(ways), cdi_dir=cdi_dir, nvidia=nvidia, mps=mps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How the containers of one resource get their GPU; `delivery` makes it."""

    ways: frozenset[Handover]
    cdi_kind: str = ""  # of the resource's specification; empty without `cdi`
    nvidia: NvidiaDevices | None = None  # looked up at each answer; None without `cdi`
    common_nodes: tuple[str, ...] = ()  # device nodes whichever the GPU; none without `devices`
    mps: Mps | None = None  # as above


BY_VARIABLE = Delivery(ways=frozenset({"envvar"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the kubelet is answered about one container."""

    environment: dict[str, str]
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[str, ...] = ()  # paths, on the host as in the container
    cdi_devices: tuple[str, ...] = ()  # fully qualified


def delivery(settings: HandoverSettings, resource: str, *, dev: Path = _DEV) -> Delivery:
    """
    Say how containers of *resource* get their GPU now.

    By `cdi` they need a specification too: see `specifications`. *dev* is where this process sees the host's /dev.
    """
    ways = settings.ways
    return Delivery(
        ways=ways,
        cdi_kind=cdi.kind(resource) if "cdi" in ways else "",
        nvidia=settings.nvidia if "cdi" in ways else None,
        common_nodes=common_nodes(dev) if "devices" in ways else (),
        mps=settings.mps(),
    )


def look_for_devices(
    settings: HandoverSettings, gpus: Sequence[Gpu], *, driver: str, missing: Collection[str] = ()
) -> str:
    """
    Take up which CDI devices NVIDIA's toolkit has made since the last time, and say how containers get their GPU.

    *driver* is the version that runs, empty if it is not known; NVML does not reach those *missing*, by UUID. Call it
    before GPUs are advertised, and now and then.
    """
    ways = " and ".join(sorted(settings.ways))
    if "cdi" not in settings.ways:
        return ways
    settings.nvidia.look(gpus, driver=driver, missing=missing)
    return f"{ways}, {settings.nvidia.told}" if settings.nvidia.told else ways


def answer(allocation: Allocation, sharing: Sharing, delivery: Delivery) -> Answer:
    """
    Say what a container receives; no I/O.

    Several whole GPUs are no CDI device of ours, since each combination would need a name of its own: they go by
    variables, unless NVIDIA has a device of each.
    """
    held = limits(allocation, led(sharing, delivery.mps))
    cdi_devices = _cdi_devices(allocation, delivery)
    hidden = {**held.environment, VISIBLE_DEVICES: NO_DEVICES}
    if cdi_devices and delivery.ways == {"cdi"}:
        alone = {name: hidden[name] for name in (*_EXPANDABLE, VISIBLE_DEVICES)}
        return Answer(environment=alone, cdi_devices=cdi_devices)
    by_variable = "envvar" in delivery.ways or ("cdi" in delivery.ways and not cdi_devices)
    return Answer(
        environment=held.environment if by_variable else hidden,
        mounts=held.mounts,
        device_nodes=_nodes(allocation, delivery),
        cdi_devices=cdi_devices,
    )


def _cdi_devices(allocation: Allocation, delivery: Delivery) -> tuple[str, ...]:
    """Name NVIDIA's devices first: ours are to hold, where both set a variable."""
    if not delivery.cdi_kind:
        return ()
    known = delivery.nvidia.names if delivery.nvidia else {}
    theirs = tuple(known[gpu.uuid] for gpu in allocation.gpus if gpu.uuid in known)
    if len(theirs) < len(allocation.gpus):
        theirs = ()
    ours = _own_devices(allocation) + ((cdi.HIDING_DEVICE,) if theirs else ())
    return (*theirs, *(f"{delivery.cdi_kind}={name}" for name in ours)) if theirs or len(allocation.gpus) == 1 else ()


def _own_devices(allocation: Allocation) -> tuple[str, ...]:
    if len(allocation.gpus) > 1:
        return ()
    return (cdi.device_name(allocation.gpus[0].uuid, vgpus=allocation.vgpus, vgpus_per_gpu=allocation.vgpus_per_gpu),)


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
    """
    List the nodes of a container with *gpus*: *common* and the GPUs' own; none where a GPU has none (simulated).

    A MIG instance has that of its GPU, and those of its capabilities: none where the kernel does not list them.
    """
    own: list[str] = []
    for gpu in gpus:
        if gpu.minor is None or (gpu.instance is not None and not gpu.instance.capabilities):
            return ()
        own.append(f"{_DEV}/nvidia{gpu.minor}")
        own.extend(f"{_DEV}/{_CAPABILITY}{number}" for number in (gpu.instance.capabilities if gpu.instance else ()))
    return (*common, *own)
