"""Pod templates in objects that make pods, and whether one of them asks for a share."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from policies.cluster import Cluster
from policies.pod import Pod, Slot, slots
from policies.quantity import whole
from policies.request import asks_for_share
from program.structs import decoder

decoder(Pod)  # several threads read templates at once


def asks(document: object, paths: Iterable[str], resources: Collection[str]) -> bool:
    """
    Whether a pod template at one of *paths*, `*` for each item, asks for a share.

    *resources* are those of shares, beside the usual ones. A template that cannot be read asks for none.
    """
    return any(_asks(pod, resources) for path in paths for pod in _pods(document, path))


def _asks(pod: Pod, resources: Collection[str]) -> bool:
    containers = slots(pod)
    return asks_for_share(pod, containers, Cluster()) or any(_limits(one, resources) for one in containers)


def _limits(slot: Slot, resources: Collection[str]) -> bool:
    limits = (slot.container.resources and slot.container.resources.limits) or {}
    return any(name in resources and whole(amount) != 0 for name, amount in limits.items())


def _pods(document: object, path: str) -> Iterator[Pod]:
    at = [document]
    for name in path.split("."):
        at = [inner for one in at for inner in _inner(one, name)]
    for one in at:
        try:
            yield msgspec.convert(one, Pod)
        except (msgspec.ValidationError, RecursionError):
            continue


def _inner(value: Any, name: str) -> Iterable[Any]:
    match value:
        case dict() if name == "*":
            return value.values()
        case dict() if name in value:
            return (value[name],)
        case list() if name == "*":
            return value
    return ()
