"""What is wrong with the GPU or the node of a pod, of which the pod itself says nothing."""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from console.explain.memory import over_their_limits
from console.objects import Pod
from console.off_gpu import OffGpus
from console.seen import Seen, SeenNode, SeenPod
from console.words import moment
from policies.node_state import ApplicationFault, Gpu, Tenant

_OVER: Final = ("Succeeded", "Failed")
LONGEST_SAID: Final = 400  # characters of what is told apart
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


class Troubles:
    """Those of each pod, by the nodes as they were seen."""

    def __init__(self, seen: Seen) -> None:
        """Collect them of all nodes and tenants."""
        self._of_nodes = {one.name: frozenset(_of_node(one)) for one in seen.nodes}
        self._off_gpus = OffGpus(seen)
        self._tenants: dict[tuple[str, str, str], list[tuple[Gpu, Tenant]]] = {}
        for node, gpu, tenant in seen.tenants():
            self._tenants.setdefault((tenant.namespace, tenant.pod, node.name), []).append((gpu, tenant))

    def of(self, pod: SeenPod) -> tuple[Trouble, ...]:
        """List what is wrong with the GPU and the node of a pod, the gravest first; one that is over needs no node."""
        of_node = frozenset() if pod.phase in _OVER else self._of_nodes.get(pod.node, frozenset())
        tenants = self._tenants.get((pod.namespace, pod.name, pod.node), ())
        of_gpus = {one for gpu, tenant in tenants for one in _of_tenant(gpu, tenant, pod.pod)}
        if off := self._off_gpus.of(pod):
            of_gpus.add(Trouble(Gravity.UNKNOWN, without_single(off.why, pod.node)))
        return tuple(sorted(of_node | of_gpus))


def without_single(said: str, name: str = "") -> str:
    """Write what is *said* of the thing of a *name* without what differs from one such thing to the next."""
    said = said[:LONGEST_SAID]
    return _SINGLE.sub("0", said.replace(name, "0") if name else said)


def may_have_hit(fault: ApplicationFault, tenant: Tenant, pod: Pod) -> bool:
    """Whether a fault of a program may have hit a container: not one of an earlier pod of the same name."""
    at, created = moment(fault.at), moment(pod.metadata.creation_timestamp)
    return tenant.name in fault.tenants and not (at and created and at < created)


def _of_node(node: SeenNode) -> Iterator[Trouble]:
    if node.ready is False:
        yield Trouble(Gravity.STOPS, "node not Ready")
    if node.silent:
        _, _, why = node.silent.why.partition(": ")  # behind the name of the part that does not answer
        yield Trouble(Gravity.UNKNOWN, without_single(f"silent {node.silent.right} {why}", node.name))
    elif node.trouble:
        yield Trouble(Gravity.UNKNOWN, without_single(node.trouble, node.name))


def _of_tenant(gpu: Gpu, tenant: Tenant, pod: Pod) -> Iterator[Trouble]:
    if not gpu.healthy:
        causes = sorted({f"{one.source} {one.xid} {without_single(one.why)}" for one in gpu.faults})
        yield Trouble(Gravity.STOPS, f"GPU unhealthy: {', '.join(causes)}")
    if over_their_limits(gpu, tenant):
        yield Trouble(Gravity.UNKNOWN, "others take more than their share")
    last = gpu.application_fault
    if last is not None and may_have_hit(last, tenant, pod):
        yield Trouble(Gravity.PAST, f"fault of a program, XID {last.xid}")
