"""What a pod that is allocated by DRA waits for: its claims, and the classes of its sizes."""

from collections.abc import Iterable, Iterator

import msgspec

from console.dra_objects import DeviceClass
from console.grant import Grant
from console.objects import Metadata
from console.words import Shown


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """That a claim has devices; which, the node says."""


class ClaimStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a claim is."""

    allocation: Allocation | None = None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A ResourceClaim."""

    metadata: Metadata = Metadata()
    status: ClaimStatus = ClaimStatus()


class _Named(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A claim of a pod, made by whoever: the scheduler for its limits, or a controller for its template."""

    resource_claim_name: Shown | None = None


class _Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    extended_resource_claim_status: _Named | None = None
    resource_claim_statuses: tuple[_Named, ...] = ()


class PodClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a pod."""

    status: _Status = _Status()

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        of_limits = self.status.extended_resource_claim_status
        every = (*([of_limits] if of_limits else ()), *self.status.resource_claim_statuses)
        return tuple(one.resource_claim_name for one in every if one.resource_claim_name)


def waiting(claims: Iterable[Claim]) -> Iterator[str]:
    """Say which claims have no device yet."""
    for claim in claims:
        if claim.status.allocation is None:
            yield f"resource claim {claim.metadata.name} has no device yet"


def without_class(grant: Grant | None, classes: Iterable[DeviceClass]) -> Iterator[str]:
    """Say which sizes of a grant no DeviceClass is for: the scheduler then knows no such resource."""
    there = {one.spec.extended_resource_name for one in classes}
    for resource in sorted({one.resource for one in grant.containers.values()} if grant else ()):
        if resource and resource not in there:
            yield (
                f"no DeviceClass is for {resource}: apply what gpu-share policy classes prints "
                "(docs/install.md#by-dra-on-kubernetes-136)"
            )
