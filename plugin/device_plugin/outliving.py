"""
What the kubelet has taken back although processes of the pod are left that had it: a pod that was deleted by force.

It counts as held until they have ended. The kubelet would give it away, so it is told that it is unhealthy.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache

from plugin.device_plugin.holder import Holder, parsed
from plugin.pod_resources.tenants import Tenant
from plugin.usage.pod_cgroups import HasProcesses

HasEnded = Callable[[str, Holder], bool]  # whether the kubelet has taken back a vGPU, by its ID
HasOthers = Callable[[str, str], bool]  # whether a pod has others instead of a vGPU, by its ID and the UID of the pod

SOMEBODY = "a container"  # whose name nobody knows
_NAMES = 3  # namespace, pod and container


class Left:
    """What processes that are left use, at one moment."""

    def __init__(self, has_others: HasOthers, has_processes: HasProcesses) -> None:
        self._has_others = has_others
        self._has_processes = cache(has_processes)  # a container has many vGPUs

    def use(self, text: str, holder: Holder) -> bool:
        """Whether they use what a pod had, by its ID, which the kubelet has taken back."""
        uid = holder.pod_uid
        return bool(uid and self._has_processes(uid)) and not self._has_others(text, uid)


class Endings:
    """Whether what the kubelet has taken back is free; what is not, is in `outliving`."""

    def __init__(self, is_taken_back: HasEnded, left: Left) -> None:
        self._is_taken_back = is_taken_back
        self._left = left
        self.outliving: set[str] = set()

    def __call__(self, text: str, holder: Holder) -> bool:
        """Whether nobody holds a vGPU any more, by its ID."""
        if not holder.outlives and not self._is_taken_back(text, holder):
            return False
        if self._left.use(text, holder):
            self.outliving.add(text)
        return text not in self.outliving


def still_used(held: Mapping[str, Holder], taken_back: Collection[str], left: Left) -> dict[str, Holder]:
    """Find what is used of what is *taken back* of what was *held*; with a note of it."""
    of_these = ((text, held[text]) for text in taken_back if text in held)
    return {text: replace(one, outlives=True) for text, one in of_these if left.use(text, one)}


def without_ended(held: Mapping[str, Holder], left: Left) -> dict[str, Holder]:
    """Leave out what processes alone held that have ended; the kubelet has taken that back long ago."""
    return {text: one for text, one in held.items() if not one.outlives or left.use(text, one)}


def marked(held: Mapping[str, Holder], outliving: Collection[str]) -> dict[str, Holder]:
    """Note of what is held whether it is held by nothing else than processes that are left."""
    return {
        text: one if one.outlives == (text in outliving) else replace(one, outlives=text in outliving)
        for text, one in held.items()
    }


def tenants_left(held: Mapping[str, Holder], listed: Collection[Tenant]) -> Iterator[Tenant]:
    """
    List the containers that have such processes, but for pods of whose name another one is *listed*.

    Of a container that the kubelet never named nobody knows the names.
    """
    pods = {(one.namespace, one.pod) for one in listed}
    found: dict[str, dict[str, str]] = {}
    for text, one in held.items():
        if one.outlives and (name := one.known_name):
            found.setdefault(name, {})[text] = one.resource
    for name, of_it in found.items():
        names = name.split("/")
        if len(names) == _NAMES and (names[0], names[1]) not in pods:
            resources = {vgpu: resource for text, resource in of_it.items() if (vgpu := parsed(text))}
            vgpus = tuple(sorted(resources))
            yield Tenant(namespace=names[0], pod=names[1], container=names[2], vgpus=vgpus, resources=resources)
