"""Pod templates in objects that make pods, and whether one of them asks for a share."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from policies.cluster import Cluster
from policies.contract import WHOLE_GPU_RESOURCE_PREFIXES
from policies.pod import Pod, Slot, slots
from policies.quantity import whole
from policies.request import asks_for_share
from program.structs import decoder

decoder(Pod)  # several threads read templates at once


class Resources(NamedTuple):
    """The resources by which a share is asked for."""

    cluster: Cluster
    of_nodes: frozenset[str]  # as nodes call them
    unread: str = ""  # why there may be more; empty if these are all


def asks(document: object, paths: Iterable[str], by: Resources) -> bool | None:
    """
    Whether a pod template at one of *paths*, `*` for each item, asks for a share; one that cannot be read does not.

    None is returned where that cannot be said: one asks for a resource that may be that of shares.
    """
    pods = [(pod, slots(pod)) for path in paths for pod in _pods(document, path)]
    limits = {name for _, containers in pods for one in containers for name in _limits(one)}
    if any(asks_for_share(pod, containers, by.cluster) for pod, containers in pods) or limits & by.of_nodes:
        return True
    return None if by.unread and any(map(_may_be_of_shares, limits)) else False


def _may_be_of_shares(resource: str) -> bool:
    domain, slash, _ = resource.rpartition("/")
    return bool(slash) and not domain.endswith("kubernetes.io") and not resource.startswith(WHOLE_GPU_RESOURCE_PREFIXES)


def _limits(slot: Slot) -> Iterator[str]:
    limits = (slot.container.resources and slot.container.resources.limits) or {}
    return (name for name, amount in limits.items() if whole(amount) != 0)


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
