"""The grant that a pod carries since it was created: what its containers got, and which of them asked by annotation."""

from collections.abc import Sequence

import msgspec

from policies.contract import (
    CONTAINER_ANNOTATION_PREFIX,
    DRA,
    GRANT_ANNOTATION,
    MILLI_PER_GPU,
    PARTITION,
    SHARE_ANNOTATION,
    SHARE_ANNOTATION_ALIAS,
    GrantStrategy,
)
from policies.default_container import default_container
from policies.errors import ShareError
from policies.frameworks.budget import Budget
from policies.pod import Pod, Slot
from policies.quantity import whole
from policies.share import Share
from policies.sizes import read_size


class Granted(msgspec.Struct, frozen=True, gc=False):
    """What one container got."""

    share: str
    vgpus: int | None = None
    of: int | None = None
    resource: str = ""  # by DRA, and of partitions
    count: int = 1
    memory: str = ""  # what its framework was told, where that is not the share


class CarriedGrant(msgspec.Struct, frozen=True, gc=False):
    """What a pod got."""

    strategy: GrantStrategy
    containers: dict[str, Granted]
    attach: str = ""
    allocation: str = ""
    resource: str = ""  # the device plugin's

    def limit(self, one: Granted) -> tuple[str, int | None]:
        """Return the resource of a container, and how many of it are in its limits."""
        return (self.resource, one.vgpus) if self.resource else (one.resource, one.count)

    def budgets(self, one: Granted) -> tuple[Budget, ...]:
        """List how much of one GPU the framework in a container may have had: as much as it asked for, or as it got."""
        if self.strategy == PARTITION:  # a GPU of its own
            return (self._budget(MILLI_PER_GPU, MILLI_PER_GPU),)
        if self.allocation == DRA:
            size = read_size(one.resource)
            granted = size.milli if size else 0
        else:
            granted = one.vgpus * MILLI_PER_GPU // one.of if one.vgpus and one.of else 0
        asked = _milli(one.share) or granted
        target = _milli(one.memory) or asked
        return tuple(self._budget(share, target) for share in sorted({asked, granted}) if share >= target > 0)

    def _budget(self, share: int, target: int) -> Budget:
        share = min(share, MILLI_PER_GPU)
        return Budget(share=share, target=min(target, MILLI_PER_GPU), strategy=self.strategy, granted=share)


def _milli(text: str) -> int:
    """Read a share; 0 if it is none."""
    try:
        return Share.parse(text).milli
    except ShareError:
        return 0


_decode = msgspec.json.Decoder(CarriedGrant).decode


def carried_grant(pod: Pod, containers: Sequence[Slot]) -> CarriedGrant | None:
    """Read the grant of a pod; None if it has none, or one that its limits do not agree with."""
    try:
        grant = _decode((pod.metadata.annotations or {}).get(GRANT_ANNOTATION, ""))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    by_name = {slot.name: slot for slot in containers}
    agree = (_holds(by_name.get(name), *grant.limit(one)) for name, one in grant.containers.items())
    return grant if all(agree) else None


def _holds(slot: Slot | None, resource: str, count: int | None) -> bool:
    resources = slot.container.resources if slot else None
    limits = (resources.limits if resources else None) or {}
    return count is not None and whole(limits.get(resource, "")) == count


def asking(pod: Pod, containers: list[Slot], grant: CarriedGrant) -> tuple[frozenset[str], str]:
    """
    Name the containers that ask by annotation: their limits are the grant's, and those of all others are their own.

    Returns:
        All of them, and the one among them that a bare annotation is for; empty if there is none.
    """
    annotations = pod.metadata.annotations or {}
    prefix = CONTAINER_ANNOTATION_PREFIX
    names = {key.removeprefix(prefix) for key in annotations if key.startswith(prefix)}
    resources = {grant.limit(one)[0] for one in grant.containers.values()}
    bare = ""
    for key in (SHARE_ANNOTATION, SHARE_ANNOTATION_ALIAS):
        try:
            share = Share.parse(annotations[key]) if key in annotations else None
        except ShareError:
            continue
        if share is not None:
            bare = default_container(annotations, containers, share, is_ours=resources.__contains__, warnings=[])
    return frozenset({*names, bare} & grant.containers.keys()), bare if bare in grant.containers else ""
