"""The volumes of a pod by name, and who mounts them. It is read once for all mounts, and not before one asks."""

from collections.abc import Sequence
from functools import cached_property

from policies.pod import Pod, Slot, Volume


class Volumes:
    """What the mounts of one pod refer to."""

    def __init__(self, pod: Pod, containers: Sequence[Slot]) -> None:
        """Take *containers* in their order."""
        self._pod = pod
        self._containers = containers

    def named(self, name: str) -> Volume | None:
        """Return the volume *name*, the first of equal ones."""
        return self._by_name.get(name)

    def mounted_beside(self, name: str, container: str) -> str | None:
        """Return the name of the first container other than *container* that mounts the volume *name*."""
        return next((one for one in self._mounted_by.get(name, ()) if one != container), None)

    @cached_property
    def _by_name(self) -> dict[str, Volume]:
        return {volume.name: volume for volume in reversed(self._pod.spec.volumes or ())}

    @cached_property
    def _mounted_by(self) -> dict[str, list[str]]:
        """By volume, the first two containers with different names: one of them is another than any that asks."""
        mounted: dict[str, list[str]] = {}
        for slot in self._containers:
            for mount in slot.container.volume_mounts or ():
                first = mounted.setdefault(mount.name, [slot.name])
                if len(first) == 1 and first[0] != slot.name:
                    first.append(slot.name)
        return mounted
