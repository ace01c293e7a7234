"""Why a pod that waits fits on no node: each node with its reason."""

from collections.abc import Iterator, Sequence
from typing import Final

from console.explain.of_nodes import Told, in_lines
from console.explain.partitions import advertised, advertising, of_partitions, resources
from console.explain.room import of_gpus
from console.explain.subject import Subject
from console.seen import ALL_NODES, SeenNode
from console.taints import CORDONED, LEAVING, NOT_READY, condition
from console.tolerations import Taint, untolerated
from console.unscheduled import unscheduled
from console.words import Shown

_UNCOMPARED: Final = "its GPUs are not compared with a pod without a grant"
_NOTHING: Final = "nothing seen of its GPUs keeps the pod off"
_WORDS: Final = ": the scheduler's own words are above, or in its log"


def judged(subject: Subject) -> Sequence[SeenNode]:
    """List the nodes on which the pod could be as far as its share goes: those of partitions need nothing of ours."""
    asked = resources(subject.pod.grant)
    return advertising(subject.seen, asked) if asked else subject.seen.nodes


def placement(subject: Subject) -> Iterator[str]:
    """Say of the nodes why they do not take the pod, or that it is none of what is looked at here."""
    if asked := resources(subject.pod.grant):
        yield from _of_partitions(asked, subject)
        return
    if not judged(subject):
        yield "no node shares GPUs, or none can be seen"
    nothing = (_UNCOMPARED if subject.pod.grant is None else _NOTHING) + _words(subject)
    yield from in_lines(
        Told(node.name, tuple(_of_node(node, subject)), tuple(of_gpus(node, subject)), nothing)
        for node in judged(subject)
    )


def _of_partitions(asked: tuple[str, ...], subject: Subject) -> Iterator[str]:
    """Say it of the nodes that their makers' plugins know: they need no part of gpu-share."""
    nodes = judged(subject)
    if not nodes:
        hidden = ", or none can be seen" if subject.seen.hidden(ALL_NODES) else ""
        maker = "the plugin of the partitions' maker, or by DRA at its ResourceSlices"
        yield f"no node advertises {' or '.join(asked)}{hidden}: look at {maker}"
    words = _words(subject)
    yield from in_lines(
        Told(
            node.name,
            tuple(_of_node(node, subject)),
            tuple(of_partitions(node, subject)),
            advertised(node, asked) + words,
        )
        for node in nodes
    )


def _words(subject: Subject) -> str:
    """Say where else to look, where a scheduler has said something."""
    return "" if unscheduled(subject.pod) else _WORDS


def _of_node(node: SeenNode, subject: Subject) -> Iterator[str]:
    if node.ready is False:
        yield "it is not Ready"
    if node.unschedulable:
        yield "it is cordoned"
    for key, value in subject.selector.items():
        if node.labels and node.labels.get(key) != value:
            yield Shown(f"it lacks the label {key}={value}")
    for taint in untolerated(node.taints, subject.tolerations):
        yield from _of_taint(node, taint, subject)


def _of_taint(node: SeenNode, taint: Taint, subject: Subject) -> Iterator[str]:
    why = condition(taint.key)
    if not why:
        is_almost = any(one.key == taint.key for one in subject.tolerations)
        rest = f"{taint.value and '='}{taint.value}:{taint.effect}" if is_almost else ""
        yield f"the pod does not tolerate its taint {taint.key}{rest}"
    elif why == LEAVING:
        yield "it is being removed by an autoscaler"
    elif why != CORDONED and not (node.ready is False and why in NOT_READY):
        yield f"Kubernetes keeps pods off it: {why}"
