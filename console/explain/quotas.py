"""What the ResourceQuotas of a namespace leave of shares: where one is used up, no pod is ever created."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from console.objects import Metadata
from console.pod_templates import Resources
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


def of_shares(quotas: Iterable[Quota], by: Resources) -> Iterator[str]:
    """Say of each quota of shares, which are called as *by* says, how much of it is taken."""
    for quota in quotas:
        for resource, hard in sorted(quota.status.hard.items()):
            if names_shares(resource, by):
                used = quota.status.used.get(resource, "0")
                most, taken = whole(hard), whole(used)
                full = ": it is used up" if most is not None and taken is not None and taken >= most else ""
                yield Shown(f"quota {quota.metadata.name}: {used} of {hard} {resource}{full}")


def names_shares(resource: str, by: Resources) -> bool:
    """Whether a resource, also as a quota writes it, is called as shares are, or looks as if it were one of them."""
    name = resource.removeprefix("requests.").removeprefix("limits.")
    of_partitions = (one.resource for table in by.cluster.partitions.values() for one in table)
    return by.cluster.is_ours(name) or name in (*by.of_nodes, *of_partitions) or any(mark in name for mark in _MARKS)
