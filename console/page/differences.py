"""What changed between two looks, as far as nobody else keeps it: what is gone, and who fell silent."""

from collections.abc import Iterator
from typing import Final

from console.page.change import Change
from console.seen import DENIED_PODS, SHARED_PODS, Seen, SeenNode, SeenPod

_SOURCE: Final = "seen by this console"
_BAD_PHASES: Final = ("Failed", "Unknown")


def differences(before: Seen, after: Seen) -> Iterator[Change]:
    """Compare two looks; of what one of them could not see nothing is said."""
    hidden = {one.what for one in (*before.unseen, *after.unseen)}
    if not any(what.startswith(SHARED_PODS) for what in hidden):
        yield from _of_pods(before, after)
    # Else nodes are missing of which nothing is wrong; that some denial cannot be judged says nothing of them.
    if all(what.startswith(DENIED_PODS) for what in hidden):
        yield from _of_nodes(before, after)


def _of_pods(before: Seen, after: Seen) -> Iterator[Change]:
    now = {one.pod.metadata.uid: one for one in after.pods}
    for was in before.pods:
        one = now.get(was.pod.metadata.uid)
        if one is None:
            yield _of_pod(after.at, was, "is gone")
        elif one.phase != was.phase:
            reason = f": {one.why}" if one.why else ""
            yield _of_pod(after.at, one, f"was {was.phase} and is {one.phase}{reason}", is_bad=one.phase in _BAD_PHASES)


def _of_pod(at: str, pod: SeenPod, what: str, *, is_bad: bool = False) -> Change:
    told = f"{pod.namespace}/{pod.name} {what}"
    return Change(at=at, what=told, source=_SOURCE, is_bad=is_bad, namespace=pod.namespace, pod=pod.name, node=pod.node)


def _of_nodes(before: Seen, after: Seen) -> Iterator[Change]:
    now = {one.name: one for one in after.nodes}
    earlier = {one.name: one for one in before.nodes}
    for name in sorted(now.keys() | earlier.keys()):
        for what, is_bad in _of_node(earlier.get(name), now.get(name)):
            yield Change(at=after.at, what=f"node {name} {what}", source=_SOURCE, is_bad=is_bad, node=name)


def _of_node(was: SeenNode | None, now: SeenNode | None) -> Iterator[tuple[str, bool]]:
    if was is None or now is None:
        yield ("is new here", False) if was is None else ("is gone", True)
        return
    if was.state is not None and now.state is None:
        yield f"says nothing any more: {now.silence}", True
    elif was.state is None and now.state is not None:
        yield "says how it is", False
    lost = {one.uuid for one in was.gpus} - {one.uuid for one in now.gpus}
    if now.state is not None and lost:
        yield f"has no GPU {', '.join(sorted(lost))} any more", True
