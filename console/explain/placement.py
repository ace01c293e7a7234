"""Why a pod that waits fits on no node: each node with its reason."""

from collections.abc import Iterator
from typing import Final

from console.explain.room import of_gpus
from console.explain.subject import Subject
from console.objects import Taint
from console.seen import SeenNode
from console.taints import CORDONED, KEEPS_OFF, NOT_READY, condition

_UNCOMPARED: Final = "its GPUs are not compared with a pod without a grant: see the scheduler's words above, or its log"
_NOTHING: Final = "nothing seen of its GPUs keeps the pod off: the scheduler's own words are above, or in its log"


def placement(subject: Subject) -> Iterator[str]:
    """Say of each node why it does not take the pod, or that it is none of what is looked at here."""
    if not subject.seen.nodes:
        yield "no node shares GPUs, or none can be seen"
    nothing = _UNCOMPARED if subject.pod.grant is None else _NOTHING
    for node in subject.seen.nodes:
        found = [*_of_node(node, subject), *of_gpus(node, subject)]
        yield f"{node.name}: {'; '.join(found) or nothing}"


def _of_node(node: SeenNode, subject: Subject) -> Iterator[str]:
    if node.ready is False:
        yield "it is not Ready"
    if node.unschedulable:
        yield "it is cordoned"
    for key, value in subject.selector.items():
        if node.labels and node.labels.get(key) != value:
            yield f"it lacks the label {key}={value}"
    for taint in node.taints:
        if taint.effect in KEEPS_OFF and not any(one.covers(taint) for one in subject.tolerations):
            yield from _of_taint(node, taint, subject)


def _of_taint(node: SeenNode, taint: Taint, subject: Subject) -> Iterator[str]:
    why = condition(taint.key)
    if not why:
        is_almost = any(one.key == taint.key for one in subject.tolerations)
        rest = f"{taint.value and '='}{taint.value}:{taint.effect}" if is_almost else ""
        yield f"the pod does not tolerate its taint {taint.key}{rest}"
    elif why != CORDONED and not (node.ready is False and why in NOT_READY):
        yield f"Kubernetes keeps pods off it: {why}"
