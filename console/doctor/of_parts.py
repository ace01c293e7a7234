"""Checks of the pods of gpu-share on the nodes, and of the image of all its pods."""

from typing import Final

from console.doctor.builds import other_builds
from console.doctor.installation import Installation
from console.doctor.of_nodes import no_nodes
from console.doctor.parts import COMPONENTS, component_of, is_ready, no_parts, parts, statuses, trouble
from console.doctor.restarts import hints, restarted
from console.doctor.verdict import Check, Verdict, cut, fail, not_listed, warn
from console.objects import Pod
from console.seen import ALL_NODES, ON_NODES, OUR_PODS, STATES
from policies.contract import MPS

_LOOK: Final = "kubectl -n gpu-share describe daemonsets,pods, and the logs of what does not run"
_STARTING: Final = ("", "ContainerCreating", "PodInitializing")


# One name for two builds: an image that was loaded by hand, or built again, and imagePullPolicy IfNotPresent.
_REPLACE: Final = (
    "wait for the rollout to end; what stays is replaced by hand, for gpu-share mps one node after the other"
)
_BUILDS: Final = (
    ". Where one name has two IDs, load the image of now on the nodes of the older one first, "
    "or give each build a tag of its own"
)
_COMPARE: Final = "load the image in the same way on all nodes, or give each build a tag of its own"


def on_nodes(on: Installation) -> Verdict:
    """See that plugin and `gpu-share mps` run on every node that has one of them."""
    if missing := not_listed(on, OUR_PODS):
        return missing
    pods = parts(on.seen, *ON_NODES)
    late = [one for one in pods if not is_ready(one)]
    told = [f"{one.metadata.name} on {one.spec.node_name or 'no node'} is not ready: {trouble(one)}" for one in late]
    having = {name: {one.spec.node_name for one in pods if component_of(one) == name} for name in ON_NODES}
    needing = _needing(on, {str(one.spec.node_name) for one in pods} - {""}, has_mps=bool(having["mps"]))
    told += [
        f"{node} has no pod of gpu-share-{name}" for name, has in having.items() for node in sorted(needing[name] - has)
    ]
    if not (told or having["mps"]) and (missing := not_listed(on, STATES)):
        return missing
    again = restarted(pods, on.now)
    judge = fail if any(map(_is_failing, late)) else warn
    hint = hints(*([_LOOK] if told else []), of=again)
    return judge(*cut(told), *cut([one.sentence for one in again]), hint=hint)


def _needing(on: Installation, having: set[str], *, has_mps: bool) -> dict[str, set[str]]:
    """Name the nodes of each part; where MPS is nowhere, it is not installed, as for simulated GPUs, or forgotten."""
    labelled = {one.name for one in on.seen.nodes if one.labelled}
    by_mps = {one.name for one in on.seen.nodes if one.has_driver and any(gpu.strategy == MPS for gpu in one.gpus)}
    return {"plugin": labelled | having, "mps": labelled | having if has_mps else by_mps}


def _is_failing(pod: Pod) -> bool:
    """Whether it does not just take its time."""
    waiting = (one.state.waiting for one in statuses(pod))
    return any(one is not None and one.reason not in _STARTING for one in waiting)


def same_image(on: Installation) -> Verdict:
    """See that all run the same image: the pods of `gpu-share mps` are replaced by hand."""
    by_image: dict[str, list[str]] = {}
    for pod in parts(on.seen, *COMPONENTS):
        for container in pod.spec.containers:
            if container.name == component_of(pod):
                by_image.setdefault(container.image, []).append(str(pod.metadata.name))
    told = [f"{', '.join(cut(sorted(names)))} run {image}" for image, names in sorted(by_image.items())]
    different, doubtful = other_builds(parts(on.seen, *COMPONENTS), on.seen)
    found = [*(told if len(by_image) > 1 else ()), *different]
    if found or not doubtful:
        return warn(*found, *doubtful, hint=f"{_REPLACE}{_BUILDS if different else ''}")
    hidden = on.seen.hidden(ALL_NODES)
    right = hidden.right if hidden else ""
    return Verdict(status="unknown", found=(*doubtful,), hint=_COMPARE, right=right)


PARTS: Final = (
    Check(
        name="parts-run",
        says="plugin and MPS run on the nodes",
        page="operations.md#the-mps-daemons",
        judge=on_nodes,
        absent=lambda on: "" if parts(on.seen, *ON_NODES) else no_nodes(on),
        rests_on=(OUR_PODS, ALL_NODES),
    ),
    Check(
        name="parts-same",
        says="all parts run the same image",
        page="troubleshooting.md#after-an-upgrade",
        judge=same_image,
        absent=no_parts,
        rests_on=(OUR_PODS,),
    ),
)
