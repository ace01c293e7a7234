"""What is wrong with the GPU or the node of a pod, of which the pod itself says nothing."""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from console.objects import Pod
from console.seen import Seen, SeenNode, SeenPod
from policies.node_state import Gpu, Tenant

_OVER: Final = ("Succeeded", "Failed")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")


class Gravity(IntEnum):
    """How much a trouble matters, the gravest first."""

    STOPS = 0  # programs
    UNKNOWN = 1  # whether anything does
    PAST = 2


class Trouble(NamedTuple):
    """A kind of trouble: it is the same on other nodes and GPUs."""

    gravity: Gravity
    what: str


class Troubles:
    """Those of each pod, by the nodes as they were seen."""

    def __init__(self, seen: Seen) -> None:
        """Collect them of all nodes and tenants."""
        self._of_nodes = {one.name: frozenset(_of_node(one)) for one in seen.nodes}
        self._of_tenants: dict[tuple[str, str, str], set[Trouble]] = {}
        for node, gpu, tenant in seen.tenants():
            place = (tenant.namespace, tenant.pod, node.name)
            self._of_tenants.setdefault(place, set()).update(_of_tenant(gpu, tenant))

    def of(self, pod: Pod) -> tuple[Trouble, ...]:
        """List what is wrong with the GPU and the node of a pod, the gravest first; one that is over needs no node."""
        seen = SeenPod(pod=pod, grant=None)
        of_node = frozenset() if seen.phase in _OVER else self._of_nodes.get(seen.node, frozenset())
        return tuple(sorted(of_node | self._of_tenants.get((seen.namespace, seen.name, seen.node), set())))


def _of_node(node: SeenNode) -> Iterator[Trouble]:
    if node.ready is False:
        yield Trouble(Gravity.STOPS, "node not Ready")
    if node.silent:  # in words that name the part which does not answer
        yield Trouble(Gravity.UNKNOWN, f"silent {node.silent.right}")
    elif node.trouble:
        yield Trouble(Gravity.UNKNOWN, _NUMBER.sub("0", node.trouble))


def _of_tenant(gpu: Gpu, tenant: Tenant) -> Iterator[Trouble]:
    if not gpu.healthy:
        causes = sorted({f"{one.source} {one.xid}" for one in gpu.faults})
        yield Trouble(Gravity.STOPS, f"GPU unhealthy: {', '.join(causes)}")
    last = gpu.application_fault
    if last is not None and tenant.name in last.tenants:
        yield Trouble(Gravity.PAST, f"fault of a program, XID {last.xid}")
