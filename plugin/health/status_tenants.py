"""What `gpu-share plugin status` says of one GPU's shares: what is left, and who has the rest."""

from collections.abc import Iterator
from datetime import datetime

from plugin.health.words import safe, since
from plugin.pod_resources.occupancy import GpuOccupancy
from policies.contract import MILLI_PER_GPU
from policies.share import milli_text


def of_tenants(occupancy: GpuOccupancy, now: datetime, *, healthy: bool) -> Iterator[str]:
    """Say what is left of a GPU, and who has the rest."""
    unit = "vGPUs" if occupancy.parts == occupancy.vgpus_per_gpu else "thousandths"
    hidden = f", {occupancy.hidden} hidden" if occupancy.hidden else ""
    free, largest = (occupancy.free or 0, occupancy.largest_free or 0) if healthy else (0, 0)
    yield (
        f"{unit}: {occupancy.granted} of {occupancy.parts} granted, {free} free{hidden}; largest share that fits: "
        f"{_share(largest, occupancy)}"
    )
    unnamed = (occupancy.granted or 0) - sum(one.parts for one in occupancy.occupants)
    if unnamed > (0 if unit == "vGPUs" else _rounded(occupancy)):
        yield (
            f"of no tenant: {unnamed}, of init containers or pods from before a restart: free two minutes after their "
            "end; or of a pod that was deleted by force: free with its last process"
        )
    for one in occupancy.occupants:
        name = safe(f"{one.namespace}/{one.pod}/{one.container}")
        known = f" ({since(one.since, now)})" if one.since else ""
        yield f"tenant: {_share(one.parts, occupancy)} {name}{known}"


def _rounded(occupancy: GpuOccupancy) -> int:
    """Say how many thousandths may be nobody's: each tenant's are rounded, and what is free is whole vGPUs."""
    return len(occupancy.occupants) + 1 + occupancy.parts // (occupancy.vgpus_per_gpu or occupancy.parts)


def _share(parts: int, occupancy: GpuOccupancy) -> str:
    return milli_text(MILLI_PER_GPU * parts // max(1, occupancy.parts))
