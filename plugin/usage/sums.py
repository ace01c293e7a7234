"""What several processes take together."""

from collections.abc import Collection

from plugin.usage.containers import Container
from plugin.usage.nvml_processes import ProcessUse
from plugin.usage.record import ContainerUse


def of_container(container: Container, processes: Collection[ProcessUse]) -> ContainerUse:
    """Add up what the processes of a container take."""
    busy = [one.sm_ratio for one in processes if one.sm_ratio is not None]
    return ContainerUse(
        namespace=container.namespace,
        pod=container.pod,
        container=container.container,
        processes=len(processes),
        memory_bytes=memory(processes),
        sm_ratio=min(1.0, round(sum(busy), 4)) if busy else None,
    )


def memory(processes: Collection[ProcessUse]) -> int | None:
    """Add up their memory; a sum of which one part is not known is not known."""
    known = [one.memory_bytes for one in processes if one.memory_bytes is not None]
    return sum(known) if len(known) == len(processes) else None
