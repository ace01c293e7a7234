"""What GPUs of one kind have left for a share that waits, on the nodes to which its pod comes, and on others."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from console.fit import largest, needed
from console.seen import SeenNode
from console.taints import condition
from console.tolerations import Taint, Toleration, untolerated
from console.words import Shown
from policies.contract import MILLI_PER_GPU
from policies.node_state import Gpu


class Wish(NamedTuple):
    """The largest share of a kind that one GPU must have room for, and which nodes its pod comes to."""

    milli: int
    granted: int | None  # vGPUs
    selector: tuple[tuple[str, str], ...]
    tolerations: tuple[Toleration, ...]

    def share(self, gpu: Gpu) -> int:
        """Count it in thousandths of a GPU, as its node divides it now."""
        return min(needed(self.milli, self.granted, gpu), MILLI_PER_GPU)


class Room(NamedTuple):
    """What the GPUs of a kind have left for a share, in thousandths of one."""

    share: int
    fits: bool  # on a node that could be read
    largest: int  # share that fits
    together: int
    on_closed: dict[str, int]  # the largest one that would fit, by the nodes to which its pod does not come
    are_closed: bool  # to all pods
    unknown_on: list[str]  # nodes that it comes to, and of a GPU of which nobody knows what is free
    unread: list[str]  # nodes with room for it of which nobody knows whether it comes to them


class OnNode(NamedTuple):
    """What one node has left, whoever asks."""

    name: str
    is_read: bool  # else nobody knows whether anything keeps pods off it
    closed: tuple[str, ...]
    taints: tuple[Taint, ...]  # that are not Kubernetes' own
    labels: dict[str, str]
    free: tuple[Gpu, ...]  # of each way to divide a GPU that with the largest share left; none that Kubernetes ignores
    divided: tuple[Gpu, ...]  # one of each way to divide a GPU
    together: int
    is_unknown: bool


def on_nodes(gpus: Iterable[tuple[SeenNode, Gpu]]) -> list[OnNode]:
    """Put together what each node has left of a kind."""
    by_node: dict[str, tuple[SeenNode, list[Gpu]]] = {}
    for node, gpu in gpus:
        by_node.setdefault(node.name, (node, []))[1].append(gpu)
    return [_on_node(*one) for one in by_node.values()]


def room(nodes: Sequence[OnNode], wish: Wish) -> Room:
    """Measure what they have left for a share."""
    kept_off = {one.name: _kept_off(one, wish) for one in nodes}
    taking = [one for one in nodes if not kept_off[one.name]]
    closed = [one for one in nodes if kept_off[one.name] and one.free]
    having = [one for one in taking if any(wish.share(gpu) <= largest(gpu) for gpu in one.free)]
    return Room(
        share=min((wish.share(gpu) for one in nodes for gpu in one.divided), default=wish.milli),
        fits=any(one.is_read for one in having),
        largest=max((largest(gpu) for one in taking for gpu in one.free), default=0),
        together=sum(one.together for one in taking),
        on_closed={
            f"{one.name} ({', '.join(kept_off[one.name])})": max(map(largest, one.free), default=0) for one in closed
        },
        are_closed=all(one.closed for one in closed),
        unknown_on=[one.name for one in taking if one.is_unknown],
        unread=[one.name for one in having if not one.is_read],
    )


def _on_node(node: SeenNode, gpus: Sequence[Gpu]) -> OnNode:
    not_advertised = node.not_advertised
    told = [gpu for gpu in gpus if gpu.resource not in not_advertised]
    known = [gpu for gpu in told if gpu.free is not None and gpu.largest_free is not None]
    return OnNode(
        name=node.name,
        is_read=node.labelled is not None,
        closed=node.closed,
        taints=tuple(one for one in node.taints if not condition(one.key)),
        labels=node.labels,
        free=tuple({gpu.vgpus_per_gpu or gpu.parts: gpu for gpu in sorted(known, key=largest)}.values()),
        divided=tuple({gpu.vgpus_per_gpu or gpu.parts: gpu for gpu in gpus}.values()),
        # What is hidden is free as well: it is hidden because no one GPU has room.
        together=sum(gpu.milli((gpu.free or 0) + (gpu.hidden or 0)) for gpu in known),
        is_unknown=any(gpu.healthy for gpu in told if gpu.free is None or gpu.largest_free is None),
    )


def _kept_off(node: OnNode, wish: Wish) -> tuple[str, ...]:
    """Say why a pod does not come to a node, whatever is free there; empty if it may, or nobody knows."""
    return (*node.closed, *_reasons(node, wish))


def _reasons(node: OnNode, wish: Wish) -> Iterator[str]:
    for taint in untolerated(node.taints, wish.tolerations) if node.taints else ():
        yield f"taint {taint.key}"
    for key, value in wish.selector:
        if node.labels and node.labels.get(key) != value:
            yield Shown(f"no label {key}={value}")
