"""What the ResourceQuotas of a namespace leave of shares: where one is used up, no pod is ever created."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from console.objects import Metadata
from console.words import Shown
from policies.quantity import whole

_MARKS: Final = ("gpu-share", "vgpu")  # of shares, in names of resources


class QuotaStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How much there may be, and how much there is, by resource."""

    hard: dict[str, str] = {}
    used: dict[str, str] = {}


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """A ResourceQuota."""

    metadata: Metadata = Metadata()
    status: QuotaStatus = QuotaStatus()


def of_shares(quotas: Iterable[Quota]) -> Iterator[str]:
    """Say of each quota of shares how much of it is taken."""
    for quota in quotas:
        for resource, hard in sorted(quota.status.hard.items()):
            if names_shares(resource):
                used = quota.status.used.get(resource, "0")
                most, taken = whole(hard), whole(used)
                full = ": it is used up" if most is not None and taken is not None and taken >= most else ""
                yield Shown(f"quota {quota.metadata.name}: {used} of {hard} {resource}{full}")


def names_shares(resource: str) -> bool:
    """Whether a resource looks as if it were one of shares, whatever `_cluster.yaml` calls them."""
    return any(mark in resource for mark in _MARKS)
