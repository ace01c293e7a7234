"""Checks of the pods of gpu-share on the nodes, and of the image of all its pods."""

from typing import Final

from console.doctor.installation import Installation
from console.doctor.parts import COMPONENTS, component_of, is_ready, parts, trouble
from console.doctor.verdict import Check, Verdict, cut, fail, warn
from console.objects import Pod
from console.seen import ON_NODES, OUR_PODS

_STARTING: Final = ("", "ContainerCreating", "PodInitializing")


def on_nodes(on: Installation) -> Verdict:
    """See that plugin and `gpu-share mps` run on every node that has one of them."""
    pods = parts(on.seen, *ON_NODES)
    late = [one for one in pods if not is_ready(one)]
    told = [f"{one.metadata.name} on {one.spec.node_name or 'no node'} is not ready: {trouble(one)}" for one in late]
    having = {name: {one.spec.node_name for one in pods if component_of(one) == name} for name in ON_NODES}
    nodes = set().union(*having.values()) - {""}
    # Where there is none anywhere, it is not a part of what is installed: simulated GPUs need no MPS.
    told += [
        f"{node} has no pod of gpu-share-{name}" for name, has in having.items() if has for node in sorted(nodes - has)
    ]
    judge = fail if any(map(_is_failing, late)) else warn
    return judge(*cut(told), hint="kubectl -n gpu-share describe daemonsets,pods, and the logs of what does not run")


def _is_failing(pod: Pod) -> bool:
    """Whether it does not just take its time."""
    waiting = (one.state.waiting for one in pod.status.container_statuses)
    return any(one is not None and one.reason not in _STARTING for one in waiting)


def same_image(on: Installation) -> Verdict:
    """See that all run the same image: the pods of `gpu-share mps` are replaced by hand."""
    by_image: dict[str, list[str]] = {}
    for pod in parts(on.seen, *COMPONENTS):
        for container in pod.spec.containers:
            if container.name == component_of(pod):
                by_image.setdefault(container.image, []).append(str(pod.metadata.name))
    told = [f"{', '.join(cut(sorted(names)))} run {image}" for image, names in sorted(by_image.items())]
    hint = "wait for the rollout to end; what stays is replaced by hand, for gpu-share mps one node after the other"
    return warn(*(told if len(by_image) > 1 else ()), hint=hint)


PARTS: Final = (
    Check(
        name="parts-run",
        says="plugin and MPS run on the nodes",
        page="operations.md#the-mps-daemons",
        judge=on_nodes,
        rests_on=(OUR_PODS,),
    ),
    Check(
        name="parts-same",
        says="all parts run the same image",
        page="troubleshooting.md#after-an-upgrade",
        judge=same_image,
        rests_on=(OUR_PODS,),
    ),
)
