"""The check whether GPUs have room for the shares that wait, each by itself: on one GPU, as a container needs it."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from console.doctor.installation import Installation
from console.doctor.measured import Room, Wish, on_nodes, room
from console.doctor.verdict import Check, Verdict, cut, not_applicable, warn
from console.grant import Grant
from console.outlived import outlived_text
from console.seen import ALL_NODES, SHARED_PODS, STATES, SeenNode, SeenPod, Unseen
from console.taints import LEAVING
from policies.contract import DRA, MILLI_PER_GPU, PARTITION
from policies.device_names import device_name
from policies.errors import ShareError
from policies.node_state import Gpu
from policies.share import Share, milli_text
from policies.sizes import read_size


class _Kind(NamedTuple):
    """Which GPUs a share can be of."""

    strategy: str
    resource: str  # of the device plugin; by DRA GPUs have none
    device: str = ""  # by DRA, as policies name it

    @property
    def called(self) -> str:
        """How pods ask for it."""
        return self.resource or f"{self.device or self.strategy} by {DRA}"


def fits(on: Installation) -> Verdict:
    """See that each share that waits fits on one GPU that takes new ones."""
    waiting = _waiting(on)
    if not waiting:
        return not_applicable("no pod waits for a share of a GPU")
    hidden, told = on.seen.hidden(STATES), []
    is_sum = is_gone = is_placed = False
    unclear: list[Unseen] = []
    for kind, wishes in sorted(waiting.items()):
        gpus = [(node, gpu) for node in on.seen.nodes for gpu in _of_kind(node, kind)]
        measured = on_nodes(gpus)
        rooms = sorted((room(measured, one) for one in wishes), key=lambda one: one.share)
        # What is certain comes first.
        unfit = min((one for one in rooms if not one.fits), key=lambda one: bool(_doubt(one, kind, on)), default=None)
        if unfit is None:
            continue
        if doubt := _doubt(unfit, kind, on) or (None if gpus else hidden):
            unclear.append(doubt)
            continue
        which = "the smallest that waits" if unfit.share == rooms[0].share else "one that waits"
        said = _without_room(unfit, which) if gpus else _without_gpus(kind, unfit.share, which)
        used = [f"{node.name}: GPU {gpu.index}: {what}" for node, gpu in gpus if (what := outlived_text(gpu))]
        said = "; ".join((said, *cut(used)))
        told.append(f"{kind.called}: {said}" if gpus and len(waiting) > 1 else said)
        is_sum |= bool(kind.resource) and unfit.share <= unfit.together
        is_gone |= not gpus
        is_placed |= not unfit.are_closed
    unseen = [*unclear, *([hidden] if hidden else [])]
    doubts = tuple(dict.fromkeys(one.why for one in unseen))
    if unclear and not told:
        return Verdict(status="unknown", found=doubts, right=next((one.right for one in unseen if one.right), ""))
    return warn(*told, *(doubts if told else ()), hint=_hint(on, is_sum=is_sum, is_gone=is_gone, is_placed=is_placed))


def _doubt(left: Room, kind: _Kind, on: Installation) -> Unseen | None:
    """Say why a share for which no node has room for certain may have some; None if it has none."""
    if left.unread:
        nodes, has = on.seen.hidden(ALL_NODES), "has" if len(left.unread) == 1 else "have"
        told = (
            f"{', '.join(cut(left.unread))} {has} room for {milli_text(left.share)}, and nobody knows whether its pod"
        )
        why = f"{told} comes there: {nodes.why if nodes else 'not among the nodes that are listed'}"
        return Unseen(what=ALL_NODES, why=why, right=nodes.right if nodes else "")
    if left.unknown_on:
        names = ", ".join(cut(left.unknown_on))
        return Unseen(what=STATES, why=f"nobody knows what is free of {kind.called} on {names}")
    return None


def _hint(on: Installation, *, is_sum: bool, is_gone: bool, is_placed: bool) -> str:
    if is_gone:
        return "delete the pod, so that the next one is granted what nodes share now, or share GPUs of that kind"
    is_some_closed = any({*node.closed} - {LEAVING} for node in on.seen.nodes)
    back = "bring back nodes that take no pods (kubectl uncordon NODE), or " if is_some_closed else ""
    back += "see placement in the policy of the pod, or " if is_placed else ""
    room = "delete a pod to make room, or let DRA choose the GPU" if is_sum else "or delete a pod to make room"
    return f"{back}ask for a share that fits, {room}"


def _waiting(on: Installation) -> dict[_Kind, set[Wish]]:
    """List the shares that wait of each kind; partitions are counted by the plugin of their maker."""
    found: dict[_Kind, set[Wish]] = {}
    for one in on.seen.pods:
        if one.waits and one.grant is not None and one.grant.strategy != PARTITION:
            for kind, wish in _wishes(one, one.grant).items():
                found.setdefault(kind, set()).add(wish)
    return found


def _wishes(pod: SeenPod, grant: Grant) -> dict[_Kind, Wish]:
    """Give the largest share of each kind that one GPU must have room for; none that cannot be read."""
    found: dict[_Kind, Wish] = {}
    by_dra, spec = grant.allocation == DRA, pod.pod.spec
    for one in grant.containers.values():
        size = read_size(one.resource) if by_dra else None
        kind = _Kind(grant.strategy, "" if by_dra else grant.resource, device_name(size.device) if size else "")
        with suppress(ShareError):
            milli = min(int(Share.parse(one.share)), MILLI_PER_GPU)
            wish = Wish(milli, one.vgpus, tuple(sorted(spec.node_selector.items())), spec.tolerations)
            found[kind] = max(found.get(kind, wish), wish, key=lambda wanted: (wanted.milli, wanted.granted or 0))
    return found


def _of_kind(node: SeenNode, kind: _Kind) -> Iterator[Gpu]:
    """Yield the GPUs of a node of which somebody knows how they are now."""
    for gpu in node.gpus if node.is_fresh else ():
        if (gpu.strategy, gpu.resource) == kind[:2] and (not kind.device or gpu.device in ("", kind.device)):
            yield gpu


def _without_room(left: Room, which: str) -> str:
    """Say why no GPU of a kind has room for a share; *which* it is."""
    names = ", ".join(cut([name for name, most in left.on_closed.items() if most >= left.share]))
    kept = f"{names}, to which {'no new pod comes' if left.are_closed else 'its pod does not come'}" if names else ""
    if left.share <= left.together:
        return (
            f"{milli_text(left.together)} of GPUs is free, the largest share that fits is {milli_text(left.largest)}, "
            f"and {which} is {milli_text(left.share)}: no one GPU has room for it{f' but on {kept}' * bool(kept)}"
        )
    if kept:
        return f"{which} is {milli_text(left.share)}, and has room only on {kept}"
    free, share = milli_text(left.together), milli_text(left.share)
    where = "in all" if left.are_closed else "on the nodes to which its pod comes"
    return f"{free} of GPUs is free {where}, and {which} is {share}: none has room for it"


def _without_gpus(kind: _Kind, share: int, which: str) -> str:
    return f"no GPU is shared as {kind.called}, and {which} is {milli_text(share)}"


ROOM: Final = Check(
    name="shares-fit",
    says="what waits would fit on one GPU",
    page="troubleshooting.md#fragmentation",
    judge=fits,
    rests_on=(SHARED_PODS,),  # what fits on a node that is seen fits, whatever others are not
)
