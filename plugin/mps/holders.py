"""Who holds shares, as measurements of what is taken need it, and who else has a right to be on a GPU."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from plugin.mps.processes import program_of_mps
from plugin.pod_resources.occupancy import FRESH_SECONDS, GpuOccupancy, NodeOccupancy, Occupant
from plugin.usage.containers import Container
from plugin.usage.outsiders import Holders
from plugin.usage.record import ContainerUse, GpuUse
from policies.outsiders import OfNode, Outsider

_OF_THE_DRIVER: Final = b"nvidia-persiste"  # nvidia-persistenced: the kernel keeps 15 characters


def holders(occupancy: NodeOccupancy | None, *, now_seconds: float) -> Holders | None:
    """Say who holds shares; None where that is not known, or was asked too long ago."""
    if occupancy is None or occupancy.unknown or occupancy.asked_seconds is None:
        return None
    if now_seconds - occupancy.asked_seconds > FRESH_SECONDS:
        return None
    return Holders(
        asked_seconds=occupancy.asked_seconds,
        by_gpu={uuid: _named(gpu.occupants) for uuid, gpu in occupancy.gpus.items() if _is_known(gpu)},
        anywhere=_named(one for gpu in occupancy.gpus.values() for one in gpu.occupants),
    )


def outsiders_of(uuid: str, use: GpuUse | None, known: Holders | None) -> tuple[Outsider, ...] | None:
    """Say who uses a GPU without a share, as measured last and by who holds shares now; None where nobody knows."""
    held = known.by_gpu.get(uuid) if known else None
    if use is None or use.outsiders is None or held is None:
        return None
    told = (one for one in use.outsiders if Container(one.namespace, one.pod, one.container) not in held)
    return tuple(outsider for one in told if (outsider := _published(one)) is not None)


def of_node(use: GpuUse | None) -> OfNode | None:
    """Say what programs of the node have of a GPU; None where nobody knows, or there are none."""
    if use is None or use.of_node is None:
        return None
    return OfNode(processes=use.of_node.processes, memory_bytes=use.of_node.memory_bytes)


def _published(one: ContainerUse) -> Outsider | None:
    """Give what others can read of it: its names are those of a link that anybody with rights to the node can make."""
    try:
        return msgspec.convert(one, Outsider, from_attributes=True)
    except msgspec.ValidationError:
        return None


def has_a_right(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process that is in no container is one of MPS, or of the driver."""
    if program_of_mps(pid, proc) is not None:
        return True
    try:
        return (proc / str(pid) / "comm").read_bytes().rstrip(b"\n") == _OF_THE_DRIVER
    except OSError:
        return False


def _is_known(gpu: GpuOccupancy) -> bool:
    return gpu.granted is not None and gpu.all_named


def _named(occupants: Iterable[Occupant]) -> frozenset[Container]:
    return frozenset(Container(one.namespace, one.pod, one.container) for one in occupants)
