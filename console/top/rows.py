"""What `gpu-share top` shows of the cluster as seen, as values; `-o json` is these."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from console.off_gpu import OffGpus
from console.outlived import outlived_text
from console.seen import ALL_NODES, OUR_PODS, SHARED_PODS, Denial, Seen, SeenNode, SeenPod, Unseen
from console.unnamed import unnamed_parts
from policies.node_state import Ages, Gpu, NodeState, Tenant
from policies.outsiders import told
from policies.share import milli_text

T = TypeVar("T", int, float)
Held = tuple[SeenNode, Gpu, Tenant]  # what a container has of a GPU


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node."""

    name: str
    labelled: bool | None
    ready: bool | None
    closed: tuple[str, ...]  # why no new pod comes to it, such as cordoned; empty if pods do, or nobody knows
    driver: str | None  # None if the node does not say
    program: str | None  # version of gpu-share
    ages: Ages | None
    health_known: bool  # whether its GPUs are now as they are shown
    trouble: str  # why something of its GPUs is not known; empty if all is
    notes: tuple[str, ...]
    gpus: tuple[Gpu, ...]
    not_advertised: dict[str, str]  # why Kubernetes gives nothing of a resource of its GPUs; that of DRA is ""
    gpus_known: bool  # whether these are all that it shares: False where it could not be asked


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """A container with a share; a pod as a whole if its grant cannot be read."""

    namespace: str
    pod: str
    container: str
    node: str
    phase: str | None  # None if the pod cannot be seen, and its node alone tells of it
    share: str  # as granted; of the GPU it is on where nothing else is known
    strategy: str
    gpus: tuple[str, ...]  # UUIDs
    memory_limit_bytes: int | None
    thread_limit_ratio: float | None
    memory_used_bytes: int | None
    sm_ratio: float | None
    processes: int | None
    created: str | None
    why: str  # what Kubernetes says of it

    @property
    def runs(self) -> bool:
        """Whether it runs or has succeeded, as far as anybody knows."""
        return self.phase in ("Running", "Succeeded", None)


class Top(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    context: str
    at: str
    namespace: str
    nodes: tuple[NodeRow, ...]
    pods: tuple[PodRow, ...]
    denied: tuple[Denial, ...]
    unseen: tuple[Unseen, ...]

    @property
    def has_no_nodes(self) -> bool:
        """Whether there are none: where they cannot be seen nobody knows."""
        return not self.nodes and not self._hides(ALL_NODES, OUR_PODS)

    @property
    def has_no_pods(self) -> bool:
        """Whether there are none with a share; likewise, and where a node does not say who holds what."""
        return not (self.pods or self._hides(SHARED_PODS) or self.silent_nodes)

    @property
    def silent_nodes(self) -> tuple[str, ...]:
        """Those that do not say now who holds what of their GPUs, by name."""
        return tuple(
            node.name for node in self.nodes if node.trouble or any(unnamed_parts(gpu) != 0 for gpu in node.gpus)
        )

    def _hides(self, *what: str) -> bool:
        return any(one.what.startswith(what) for one in self.unseen)


def top(seen: Seen, *, node: str = "") -> Top:
    """Say what is to be shown; of one *node* if it is named, with the pods that have none yet."""
    silent = [one.silent for one in seen.nodes if one.silent is not None and _is_shown(one.name, node)]
    return Top(
        context=seen.context,
        at=seen.at,
        namespace=seen.namespace,
        nodes=tuple(_node_row(one) for one in seen.nodes if _is_shown(one.name, node)),
        pods=tuple(row for row in _pod_rows(seen) if not node or row.node in (node, "")),
        denied=seen.denials,
        unseen=tuple(dict.fromkeys((*seen.unseen, *silent))),
    )


def _is_shown(name: str, node: str) -> bool:
    return not node or name == node


def _node_row(node: SeenNode) -> NodeRow:
    state = node.state
    return NodeRow(
        name=node.name,
        labelled=node.labelled,
        ready=node.ready,
        closed=node.closed,
        driver=state.driver or None if state else None,
        program=state.program if state else None,
        ages=state.ages if state else None,
        health_known=node.is_fresh,
        trouble=node.trouble,
        notes=_notes(node, state) if state else (),
        gpus=node.gpus,
        not_advertised=node.not_advertised,
        gpus_known=node.state is not None or node.silent is None,
    )


def _notes(node: SeenNode, state: NodeState) -> tuple[str, ...]:
    restart = (f"restart needed: {one}" for one in state.restart_needed)
    others = (("not taken", state.not_taken), ("slices not published", state.slices_not_published))
    registered = {one.resource for one in state.not_registered}
    unknown = (
        f"{'not registered' if resource in registered else 'not advertised'}: {resource}: {why}"
        for resource, why in node.not_advertised.items()
        if resource
    )
    unnamed = (
        f"{gpu.called}: {milli_text(gpu.milli(parts))} is held, and by no container that is named"
        for gpu in state.gpus
        if (parts := unnamed_parts(gpu))
    )
    outlived = (f"{gpu.called}: {told_of}" for gpu in state.gpus if (told_of := outlived_text(gpu)))
    outsiders = (
        f"{gpu.called} is used without a share: {one}"
        for gpu in state.gpus
        for one in told(gpu.outsiders or (), gpu.of_node)
    )
    return (
        *state.skipped,
        *restart,
        *unknown,
        *unnamed,
        *outlived,
        *outsiders,
        *(f"{what}: {why}" for what, why in others if why),
    )


def _pod_rows(seen: Seen) -> Iterator[PodRow]:
    held: dict[tuple[str, str, str], list[Held]] = {}
    for one in seen.tenants():
        held.setdefault((one[2].namespace, one[2].pod, one[0].name), []).append(one)
    rows: list[PodRow] = []
    off_gpus = OffGpus(seen)
    for pod in seen.pods:
        made = _of_pod(pod, held.pop((pod.namespace, pod.name, pod.node), []))
        off = off_gpus.of(pod)
        rows += (msgspec.structs.replace(row, why=row.why or off.why) for row in made) if off else made
    elsewhere = {(pod.namespace, pod.name) for pod in seen.pods}
    for (namespace, name, _), on in held.items():
        if not seen.namespace or namespace == seen.namespace:
            why = "of an earlier pod of this name, which its node has still" if (namespace, name) in elsewhere else ""
            made = (_row(namespace, name, one, _of(one, on)) for one in _containers(on))
            rows += (msgspec.structs.replace(row, why=why) for row in made)
    yield from sorted(rows, key=lambda row: (row.namespace, row.pod, row.container, row.node))


def _of_pod(pod: SeenPod, on: list[Held]) -> Iterator[PodRow]:
    granted = [*pod.grant.containers] if pod.grant else []
    for container in dict.fromkeys([*granted, *_containers(on)]) or {"": None}:
        yield _row(pod.namespace, pod.name, container, _of(container, on), pod)


def _row(
    namespace: str,
    name: str,
    container: str,
    on: list[Held],
    pod: SeenPod | None = None,
) -> PodRow:
    grant = pod.grant if pod else None
    granted = grant.containers.get(container) if grant else None
    tenants = [tenant for _, _, tenant in on]
    return PodRow(
        namespace=namespace,
        pod=name,
        container=container,
        node=pod.node if pod and pod.node else next((node.name for node, _, _ in on), ""),
        phase=pod.phase if pod else None,
        share=granted.share if granted else share_text(on),
        strategy=grant.strategy if grant else next((gpu.strategy for _, gpu, _ in on), ""),
        gpus=tuple(gpu.uuid for _, gpu, _ in on),
        memory_limit_bytes=_sum(one.memory_limit_bytes for one in tenants),
        thread_limit_ratio=next((one.thread_limit_ratio for one in tenants), None),
        memory_used_bytes=_sum(one.use.memory_bytes if one.use else None for one in tenants),
        sm_ratio=_sum(one.use.sm_ratio if one.use else None for one in tenants),
        processes=_sum(one.use.processes if one.use else None for one in tenants),
        created=pod.pod.metadata.creation_timestamp if pod else next((one.since for one in tenants), None),
        why=pod.why if pod else "",
    )


def share_text(on: Iterable[Held]) -> str:
    """Write what is held of some GPUs as a share; empty if nothing is."""
    held = sum(gpu.ratio(tenant.parts) for _, gpu, tenant in on)
    return f"{held:.3f}".rstrip("0").rstrip(".") if held else ""


def _containers(on: Iterable[Held]) -> list[str]:
    return [*dict.fromkeys(tenant.container for _, _, tenant in on)]


def _of(container: str, on: list[Held]) -> list[Held]:
    return [one for one in on if one[2].container == container]


def _sum(amounts: Iterable[T | None]) -> T | None:
    """Add up what is known; None unless all of it is, and there is some."""
    total: T | None = None
    for amount in amounts:
        if amount is None:
            return None
        total = amount if total is None else total + amount
    return total
