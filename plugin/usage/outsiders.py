"""
Who uses a GPU that is shared and has no share of it, as far as that is certain.

What processes there are and who holds a share is never seen at one moment: a container that has just started, or has
just ended, would look like one without a share. So one is named only if it was on a GPU before the kubelet was asked,
and the same container is on one after the answer in which it holds nothing: in between it was there all the time.

The kubelet names no init containers. Those of a pod that holds a share have ended once another of its containers, which
the kubelet names, uses a GPU; and where something is held by nobody whom it names, nobody is named who has no share.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from math import inf

from plugin.usage.cgroups import ContainerId
from plugin.usage.containers import Container
from plugin.usage.nvml_processes import ProcessUse
from plugin.usage.record import ContainerUse, ProcessesUse
from plugin.usage.sums import memory, of_container
from policies.contract import NAMESPACE
from policies.outsiders import MOST_OUTSIDERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Who holds shares of the GPUs of a node, at some moment after *asked_seconds* and before these are read."""

    asked_seconds: float  # `state_files.boot_seconds`
    by_gpu: Mapping[str, frozenset[Container]]  # by UUID, of the GPUs of which all who hold something are known
    anywhere: frozenset[Container]  # who holds something of some GPU


@dataclass(frozen=True, slots=True)
class OnOneGpu:
    """Whose the processes on one GPU are."""

    by_container: Mapping[tuple[Container, ContainerId], list[ProcessUse]] = field(default_factory=dict)
    # In no container, or in one that Kubernetes has not started.
    of_node: list[ProcessUse] = field(default_factory=list)
    complete: bool = False  # that is known of every process


class Outsiders:
    """Tells them from one measurement to the next."""

    def __init__(self) -> None:
        self._since: dict[ContainerId, float] = {}  # when it was seen first; `state_files.boot_seconds`
        self._of_node: frozenset[tuple[str, int]] = frozenset()  # UUIDs and PIDs of the last measurement

    def seen(self, gpus: Mapping[str, OnOneGpu], *, at_seconds: float) -> None:
        """Take up what was measured, once `containers` and `of_node` have told of it."""
        ids = {one for on_gpu in gpus.values() for _, one in on_gpu.by_container}
        self._since = {one: self._since.get(one, at_seconds) for one in ids}
        self._of_node = frozenset((uuid, one.pid) for uuid, on_gpu in gpus.items() for one in on_gpu.of_node)

    def containers(
        self, uuid: str, gpus: Mapping[str, OnOneGpu], holders: Holders | None
    ) -> tuple[ContainerUse, ...] | None:
        """Name those that are certain; None where nobody is, and it is not known who holds shares or whose all are."""
        held = holders.by_gpu.get(uuid) if holders else None
        if held is None or holders is None:
            return None
        running = frozenset(container for one in gpus.values() for container, _ in one.by_container)
        starting = {(one.namespace, one.pod) for one in holders.anywhere} - {
            (one.namespace, one.pod) for one in holders.anywhere & running
        }
        found: dict[Container, list[ProcessUse]] = {}
        for (container, one), processes in gpus[uuid].by_container.items():
            is_there = self._since.get(one, inf) <= holders.asked_seconds
            if is_there and not _may_have(container, held, starting):
                found.setdefault(container, []).extend(processes)
        if not (found or gpus[uuid].complete):  # there may be some among those of which nobody knows whose they are
            return None
        uses = [of_container(container, processes) for container, processes in found.items()]
        return tuple(nlargest(MOST_OUTSIDERS, uses, key=lambda one: one.memory_bytes or 0))

    def of_node(self, uuid: str, on_gpu: OnOneGpu) -> ProcessesUse | None:
        """Count the processes of the node that were there at the last measurement as well; None if there are none."""
        stayed = [one for one in on_gpu.of_node if (uuid, one.pid) in self._of_node]
        return ProcessesUse(processes=len(stayed), memory_bytes=memory(stayed)) if stayed else None


def _may_have(container: Container, held: Collection[Container], starting: Collection[tuple[str, str]]) -> bool:
    """Whether it holds a share, or is an init container that may, or is our own: MPS servers are in such a one."""
    return container in held or (container.namespace, container.pod) in starting or container.namespace == NAMESPACE
