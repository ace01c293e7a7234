"""What is wrong with the GPU or the node of a pod, of which the pod itself says nothing."""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from console.objects import Pod
from console.seen import Seen, SeenNode, SeenPod
from policies.node_state import Gpu, Tenant

_OVER: Final = ("Succeeded", "Failed")
_SINGLE: Final = re.compile(r"\S*\d\S*")  # a count, or the name or address of a single thing


class Gravity(IntEnum):
    """How much a trouble matters, the gravest first."""

    STOPS = 0  # programs
    UNKNOWN = 1  # whether anything does
    PAST = 2


class Trouble(NamedTuple):
    """A kind of trouble: it is the same on other nodes and GPUs."""

    gravity: Gravity
    what: str


_ON_NO_GPU: Final = Trouble(Gravity.UNKNOWN, "its node names it as tenant of no GPU")


class Troubles:
    """Those of each pod, by the nodes as they were seen."""

    def __init__(self, seen: Seen) -> None:
        """Collect them of all nodes and tenants."""
        self._of_nodes = {one.name: frozenset(_of_node(one)) for one in seen.nodes}
        self._told = {one.name for one in seen.nodes if not one.trouble}  # of nodes all of whose tenants are known
        self._of_tenants: dict[tuple[str, str, str], set[Trouble]] = {}
        for node, gpu, tenant in seen.tenants():
            place = (tenant.namespace, tenant.pod, node.name)
            self._of_tenants.setdefault(place, set()).update(_of_tenant(gpu, tenant))

    def of(self, pod: Pod) -> tuple[Trouble, ...]:
        """List what is wrong with the GPU and the node of a pod, the gravest first; one that is over needs no node."""
        seen = SeenPod(pod=pod, grant=None)
        of_node = frozenset() if seen.phase in _OVER else self._of_nodes.get(seen.node, frozenset())
        of_gpus = self._of_tenants.get((seen.namespace, seen.name, seen.node))
        if of_gpus is None and seen.phase == "Running" and seen.node in self._told:
            of_gpus = {_ON_NO_GPU}
        return tuple(sorted(of_node | (of_gpus or set())))


def without_single(said: str, name: str = "") -> str:
    """Write what is *said* of the thing of a *name* without what differs from one such thing to the next."""
    return _SINGLE.sub("0", said.replace(name, "0") if name else said)


def _of_node(node: SeenNode) -> Iterator[Trouble]:
    if node.ready is False:
        yield Trouble(Gravity.STOPS, "node not Ready")
    if node.silent:
        _, _, why = node.silent.why.partition(": ")  # behind the name of the part that does not answer
        yield Trouble(Gravity.UNKNOWN, without_single(f"silent {node.silent.right} {why}", node.name))
    elif node.trouble:
        yield Trouble(Gravity.UNKNOWN, without_single(node.trouble, node.name))


def _of_tenant(gpu: Gpu, tenant: Tenant) -> Iterator[Trouble]:
    if not gpu.healthy:
        causes = sorted({f"{one.source} {one.xid} {without_single(one.why)}" for one in gpu.faults})
        yield Trouble(Gravity.STOPS, f"GPU unhealthy: {', '.join(causes)}")
    last = gpu.application_fault
    if last is not None and tenant.name in last.tenants:
        yield Trouble(Gravity.PAST, f"fault of a program, XID {last.xid}")
