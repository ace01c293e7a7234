"""The check whether GPUs have room for the shares that wait, each by itself: on one GPU, as a container needs it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from console.doctor.installation import Installation
from console.doctor.verdict import Check, Verdict, cut, not_applicable, warn
from console.grant import Grant
from console.seen import SHARED_PODS, STATES, SeenNode
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


class _Room(NamedTuple):
    """What the GPUs of a kind have left, in thousandths of one."""

    largest: int  # share that fits
    together: int
    on_closed: dict[str, int]  # the largest one that would fit, by the nodes to which no new pod comes
    unknown_on: list[str]  # nodes that take pods, and of a GPU of which nobody knows what is free


def fits(on: Installation) -> Verdict:
    """See that each share that waits fits on one GPU that takes new ones."""
    waiting = _waiting(on)
    if not waiting:
        return not_applicable("no pod waits for a share of a GPU")
    hidden, told, is_sum, is_gone = on.seen.hidden(STATES), [], False, False
    not_seen = [hidden.why] if hidden else []
    unclear: list[str] = []
    for kind, shares in sorted(waiting.items()):
        gpus = [(node, gpu) for node in on.seen.nodes for gpu in _of_kind(node, kind)]
        room = _room(gpus)
        unfit = [one for one in sorted(shares) if one > room.largest]
        if not unfit:
            continue
        if room.unknown_on or (not gpus and hidden):
            names = ", ".join(cut(room.unknown_on))
            unclear += [f"nobody knows what is free of {kind.called} on {names}"] if names else not_seen
            continue
        which = "the smallest that waits" if unfit[0] == min(shares) else "one that waits"
        said = _without_room(room, unfit[0], which) if gpus else _without_gpus(kind, unfit[0], which)
        told.append(f"{kind.called}: {said}" if gpus and len(waiting) > 1 else said)
        is_sum |= bool(kind.resource) and unfit[0] <= room.together
        is_gone |= not gpus
    doubts = tuple(dict.fromkeys((*unclear, *not_seen)))
    if unclear and not told:
        return Verdict(status="unknown", found=doubts, right=hidden.right if hidden else "")
    return warn(*told, *(doubts if told else ()), hint=_hint(on, is_sum=is_sum, is_gone=is_gone))


def _hint(on: Installation, *, is_sum: bool, is_gone: bool) -> str:
    if is_gone:
        return "delete the pod, so that the next one is granted what nodes share now, or share GPUs of that kind"
    is_some_closed = any(node.closed for node in on.seen.nodes)
    back = "bring back nodes that take no pods (kubectl uncordon NODE), or " if is_some_closed else ""
    room = "delete a pod to make room, or let DRA choose the GPU" if is_sum else "or delete a pod to make room"
    return f"{back}ask for a share that fits, {room}"


def _waiting(on: Installation) -> dict[_Kind, set[int]]:
    """List the shares that wait of each kind; partitions are counted by the plugin of their maker."""
    found: dict[_Kind, set[int]] = {}
    for one in on.seen.pods:
        if one.waits and one.grant is not None and one.grant.strategy != PARTITION:
            for kind, share in _needed(one.grant).items():
                found.setdefault(kind, set()).add(share)
    return found


def _needed(grant: Grant) -> dict[_Kind, int]:
    """Give the largest share of each kind that one GPU must have room for, in thousandths; none that cannot be read."""
    found: dict[_Kind, int] = {}
    by_dra = grant.allocation == DRA
    for one in grant.containers.values():
        size = read_size(one.resource) if by_dra else None
        kind = _Kind(grant.strategy, "" if by_dra else grant.resource, device_name(size.device) if size else "")
        with suppress(ShareError):
            found[kind] = max(found.get(kind, 0), min(int(Share.parse(one.share)), MILLI_PER_GPU))
    return found


def _of_kind(node: SeenNode, kind: _Kind) -> Iterator[Gpu]:
    """Yield the GPUs of a node of which somebody knows how they are now."""
    for gpu in node.gpus if node.is_fresh else ():
        if (gpu.strategy, gpu.resource) == kind[:2] and (not kind.device or gpu.device in ("", kind.device)):
            yield gpu


def _room(gpus: Sequence[tuple[SeenNode, Gpu]]) -> _Room:
    """Measure what GPUs of one kind have left."""
    known = [
        (node, gpu, gpu.free)
        for node, gpu in gpus
        if gpu.free is not None and gpu.largest_free is not None and gpu.resource not in node.not_advertised
    ]
    unknown_on = [
        node.name
        for node, gpu in gpus
        if (gpu.free is None or gpu.largest_free is None) and gpu.healthy is not False
        if not node.closed and gpu.resource not in node.not_advertised
    ]
    taking = [(gpu, free) for node, gpu, free in known if not node.closed]
    on_closed: dict[str, int] = {}
    for node, gpu, _ in known:
        if node.closed:
            called = f"{node.name} ({', '.join(node.closed)})"
            on_closed[called] = max(on_closed.get(called, 0), gpu.milli(gpu.largest_free or 0))
    return _Room(
        largest=max((gpu.milli(gpu.largest_free or 0) for gpu, _ in taking), default=0),
        # What is hidden is free as well: it is hidden because no one GPU has room.
        together=sum(gpu.milli(free + (gpu.hidden or 0)) for gpu, free in taking),
        on_closed=on_closed,
        unknown_on=[*dict.fromkeys(unknown_on)],
    )


def _without_room(room: _Room, share: int, which: str) -> str:
    """Say why no GPU of a kind has room for a *share*; *which* it is."""
    names = ", ".join(cut([name for name, largest in room.on_closed.items() if largest >= share]))
    kept = f"{names}, to which no new pod comes" if names else ""
    if share <= room.together:
        return (
            f"{milli_text(room.together)} of GPUs is free, the largest share that fits is {milli_text(room.largest)}, "
            f"and {which} is {milli_text(share)}: no one GPU has room for it{f' but on {kept}' * bool(kept)}"
        )
    if kept:
        return f"{which} is {milli_text(share)}, and has room only on {kept}"
    return (
        f"{milli_text(room.together)} of GPUs is free in all, and {which} is {milli_text(share)}: none has room for it"
    )


def _without_gpus(kind: _Kind, share: int, which: str) -> str:
    return f"no GPU is shared as {kind.called}, and {which} is {milli_text(share)}"


ROOM: Final = Check(
    name="shares-fit",
    says="what waits would fit on one GPU",
    page="troubleshooting.md#fragmentation",
    judge=fits,
    rests_on=(SHARED_PODS,),  # what fits on GPUs that are seen fits, whatever nodes are not
)
