"""Checks of the nodes: whether each says how its GPUs are, and whether these can be shared now."""

from collections.abc import Iterator
from typing import Final

from console.doctor.installation import Installation
from console.doctor.verdict import Check, Verdict, cut, fail, not_applicable, not_listed, unknown, warn
from console.seen import ALL_NODES, OUR_PODS, STATES, Newer, SeenNode, Unasked
from policies.contract import DEVICE_PLUGIN
from policies.node_state import Gpu, left_out
from policies.quantity import whole

_PAGE: Final = "troubleshooting.md#a-gpu-is-unhealthy"
_PENDING: Final = "troubleshooting.md#a-pod-is-pending"


def ready(on: Installation) -> Verdict:
    """See that the kubelet of every node that is to share GPUs serves."""
    found = [
        f"{node.name} is not Ready: {_why(node).rstrip('.')}; no new pod comes to it"
        for node in on.seen.nodes
        if node.ready is False
    ]
    return fail(*cut(found), hint="kubectl describe node NODE, and the log of the kubelet there")


def _why(node: SeenNode) -> str:
    told = (": ".join(filter(None, (one.reason, one.message))) for one in node.conditions if one.type == "Ready")
    return next(filter(None, told), "nothing says why")


def speak(on: Installation) -> Verdict:
    """See that every node that is to share GPUs says how they are."""
    if missing := not_listed(on, OUR_PODS):
        return missing
    found, unasked = [], None
    for node in on.seen.nodes:
        if node.silent is not None and (node.silent.right or isinstance(node.silent, Unasked | Newer)):
            unasked = unasked or node.silent
        elif node.state is None:
            found.append(f"{node.name}: {node.silence}")
        elif node.state.waiting:
            found.append(f"{node.name} shares no GPU yet: {node.state.waiting}")
        elif not node.is_fresh:
            found.append(f"{node.name}: gpu-share plugin says nothing any more")
    if unasked is not None and not found:
        return unknown(unasked)
    return fail(*found, hint="kubectl -n gpu-share get pods -o wide, and the log of gpu-share-plugin on that node")


def healthy(on: Installation) -> Verdict:
    """See that all GPUs are healthy."""
    found = [
        f"{node.name} {gpu.called}: {fault.why}; recovers {fault.comes_back}"
        for node, gpu in _gpus(on)
        for fault in gpu.faults
        if fault.source != "mps"
    ]
    return fail(*found, hint="gpu-share plugin status on the node says what the plugin waits for")


def daemons(on: Installation) -> Verdict:
    """See that an MPS daemon serves each GPU that is shared by MPS."""
    found = [
        f"{node.name} {gpu.called}: {gpu.mps_daemon.why}"
        for node, gpu in _gpus(on)
        if gpu.mps_daemon is not None and gpu.mps_daemon.why
    ]
    found += [
        f"{node.name} {gpu.called}: {fault.why}"
        for node, gpu in _gpus(on)
        for fault in gpu.faults
        if fault.source == "mps" and not (gpu.mps_daemon and gpu.mps_daemon.why)
    ]
    if not found and not any(gpu.mps_daemon for _, gpu in _gpus(on)):
        return not_applicable("no node tells of an MPS daemon")
    return fail(*found, hint="kubectl -n gpu-share logs -l app.kubernetes.io/component=mps")


def registered(on: Installation) -> Verdict:
    """See that each node advertises to Kubernetes what its plugin has."""
    unknown_to_kubelets = [
        f"{node.name}: its kubelet does not know {one.resource}, of which no pod gets any: {one.why}"
        for node in on.seen.nodes
        if node.is_fresh and node.state
        for one in node.state.not_registered
    ]
    if unknown_to_kubelets:
        return fail(*unknown_to_kubelets, hint="see the log of that node's kubelet, and of gpu-share-plugin there")
    found = []
    for node in on.seen.nodes:
        if not node.capacity or not node.state or node.state.waiting:
            continue
        by_resource: dict[str, list[int | None]] = {}
        for gpu in node.gpus:
            if gpu.allocation == DEVICE_PLUGIN and gpu.resource:
                by_resource.setdefault(gpu.resource, []).append(_advertised(gpu))
        for resource, counts in sorted(by_resource.items()):
            known = [count for count in counts if count is not None]
            has = whole(node.allocatable.get(resource, "0"))
            if len(known) == len(counts) and has != sum(known):
                found.append(f"{node.name} advertises {has} {resource}, and its plugin has {sum(known)}")
    return warn(
        *found,
        hint="wait for half a minute; if it stays, look at the log of gpu-share-plugin and at the node's kubelet",
    )


def _advertised(gpu: Gpu) -> int | None:
    """Count the vGPUs that the plugin has of a GPU for the kubelet; None where it does not say so."""
    if gpu.advertised is not None or not gpu.healthy:
        return gpu.advertised or 0
    # Of an earlier version: where it counts in thousandths, nobody knows how many vGPUs are held.
    return gpu.parts - (gpu.hidden or 0) if gpu.vgpus_per_gpu in (None, gpu.parts) else None


def shared(on: Installation) -> Verdict:
    """See that no GPU is left out which should be shared."""
    found = [f"{node.name}: {one}" for node in on.seen.nodes if node.state for one in left_out(node.state.skipped)]
    return warn(*found, hint="list it in nodes of _cluster.yaml: offer: none, or mig: none; or take it off the node")


def tenants(on: Installation) -> Verdict:
    """See that kubelets say who has which share."""
    found = [
        f"{node.name}: {node.state.tenants_unknown}"
        for node in on.seen.nodes
        if node.state and node.state.tenants_unknown
    ]
    return warn(*found, hint="look at the kubelet's socket pod-resources/kubelet.sock on the node")


def no_nodes(on: Installation) -> str:
    """Say that no node is to share GPUs, where that is so."""
    return "" if on.seen.nodes else "no node is to share GPUs"


def _no_states(on: Installation) -> str:
    return "" if any(node.state for node in on.seen.nodes) else "no node says how its GPUs are"


def no_gpus(on: Installation) -> str:
    """Say that no GPU is known, where that is so."""
    return "" if any(True for _ in _gpus(on)) else "no node tells of a GPU"


def _no_resources(on: Installation) -> str:
    is_one = any(gpu.allocation == DEVICE_PLUGIN and gpu.resource for _, gpu in _gpus(on))
    return "" if is_one else "no node tells of a GPU that its kubelet allocates"


def _gpus(on: Installation) -> Iterator[tuple[SeenNode, Gpu]]:
    return ((node, gpu) for node in on.seen.nodes if node.is_fresh for gpu in node.gpus)


NODES: Final = (
    Check(
        name="nodes-ready",
        says="nodes are Ready",
        page="troubleshooting.md#a-node-takes-no-new-pods",
        judge=ready,
        absent=no_nodes,
        rests_on=(ALL_NODES,),
    ),
    Check(
        name="nodes-speak",
        says="every node says how its GPUs are",
        page=_PENDING,
        judge=speak,
        absent=no_nodes,
        rests_on=(ALL_NODES,),
    ),
    Check(
        name="gpus-healthy",
        says="all GPUs are healthy",
        page=_PAGE,
        judge=healthy,
        absent=no_gpus,
        rests_on=(STATES,),
    ),
    Check(
        name="mps-daemons",
        says="MPS daemons serve",
        page="operations.md#the-mps-daemons",
        judge=daemons,
        rests_on=(STATES,),
    ),
    Check(
        name="registered",
        says="kubelets know the plugins",
        page=_PENDING,
        judge=registered,
        absent=_no_resources,
        rests_on=(ALL_NODES, STATES),
    ),
    Check(
        name="gpus-shared",
        says="no GPU is left out",
        page="operations.md#a-nodes-gpus",
        judge=shared,
        absent=_no_states,
        rests_on=(STATES,),
    ),
    Check(
        name="tenants-known",
        says="kubelets say who has which share",
        page="operations.md#a-nodes-gpus",
        judge=tenants,
        absent=_no_states,
        rests_on=(STATES,),
    ),
)
