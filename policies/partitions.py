"""
Partitions: parts of a GPU that its maker cuts in hardware, and that the maker's own plugin or DRA driver allocates.

What comes with a share of one is the maker's: the policy chooses the partition and counts it, and nothing else.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from policies.contract import (
    AMD_VISIBLE_DEVICES,
    HABANA_VISIBLE_DEVICES,
    MILLI_PER_GPU,
    VISIBLE_DEVICES,
)
from policies.form import Section, form
from policies.share import Share

MOST_PARTITIONS = 64  # of one name; a maker's GPU has about ten

# The variable by which each maker's container runtime chooses devices, by the domain of its resources.
_HIDING = {"amd.com": AMD_VISIBLE_DEVICES, "habana.ai": HABANA_VISIBLE_DEVICES}


PartitionName = Annotated[
    str,
    form(
        "a name of at most 32 lower-case letters, digits and dashes",
        "h100",
        pattern=r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?",
        max_length=32,
    ),
]


class Partition(Section, frozen=True, kw_only=True):
    """A partition, or a whole device, by the resource of its maker's plugin."""

    share: Annotated[Share, Meta(description="The part of one GPU that it is; 1 is a whole device.")]
    resource: Annotated[
        str,
        form(
            "the extended resource of a maker's plugin",
            "nvidia.com/mig-1g.10gb",
            pattern=r"(?!requests\.)(?!.*kubernetes\.io/)([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]*[a-z0-9])?/"
            r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
            max_length=120,
        ),
        Meta(description="Its extended resource, as the maker's plugin advertises it."),
    ]


class Allotment(msgspec.Struct, frozen=True, gc=False):
    """What a container gets."""

    resource: str
    count: int  # above 1 of whole devices alone
    milli: int  # thousandths of one GPU in all


def allot(table: Sequence[Partition], milli: int) -> Allotment | None:
    """Choose the smallest partition that holds so many thousandths, whole devices above one GPU; None if none does."""
    if milli > MILLI_PER_GPU:
        whole = next((one for one in table if one.share == MILLI_PER_GPU), None)
        return Allotment(whole.resource, milli // MILLI_PER_GPU, milli) if whole else None
    fitting = [one for one in table if one.share >= milli]
    if not fitting:
        return None
    smallest = min(fitting, key=lambda one: one.share)
    return Allotment(smallest.resource, 1, smallest.share.milli)


def counted(table: Sequence[Partition], resource: str, count: int) -> int | None:
    """Say how many thousandths so many of *resource* are; None if a share is not made of several of them."""
    size = next(one.share.milli for one in table if one.resource == resource)
    return size * count if count <= 1 or size == MILLI_PER_GPU else None


def choices(table: Sequence[Partition], *, least: int = 0, most: int = MILLI_PER_GPU) -> str:
    """List the shares that partitions are, for a message, between two bounds in thousandths."""
    shares = sorted(one.share for one in table if least <= one.share <= most)
    return " or ".join(f'"{share}"' for share in shares)


def fault_of(name: str, table: Sequence[Partition]) -> str:
    """Say what is wrong with a table; empty if nothing is."""
    for what, values in (("share", [str(one.share) for one in table]), ("resource", [one.resource for one in table])):
        twice = next((one for one in values if values.count(one) > 1), None)
        if twice is not None:
            return f"{name} has the {what} {twice} twice: remove one"
    above = next((one.share for one in table if one.share > MILLI_PER_GPU), None)
    return f"{name} has a share of {above}, above one GPU: write 1 for a whole device" if above is not None else ""


def hiding_variables(resources: Iterable[str]) -> tuple[str, ...]:
    """Name the variables that hide from a container the devices of those makers, and NVIDIA's in any case."""
    domains = dict.fromkeys(resource.partition("/")[0] for resource in resources)
    return (VISIBLE_DEVICES, *(_HIDING[domain] for domain in domains if domain in _HIDING))
