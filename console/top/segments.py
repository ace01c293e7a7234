"""A GPU cut into tenants, what is hidden and what is free; and how pods are told apart in it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from console.top.rows import NodeRow
from policies.node_state import Gpu, Tenant

COLOURS: Final = 7
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Kind = Literal["tenant", "unknown", "hidden", "free", "unusable"]
Owners = Mapping[tuple[str, str], int]  # the number of each pod on some GPU, by namespace and name


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Some parts of a GPU, beside each other."""

    kind: Kind
    parts: int  # of `Gpu.parts`
    tenant: Tenant | None = None  # who has them, where that is known


def segments(gpu: Gpu) -> Iterator[Segment]:
    """Cut a GPU from its first part to its last; what a node says beyond its end is left out."""
    left = gpu.parts
    for one in _cut(gpu):
        parts = min(left, max(0, one.parts))
        left -= parts
        if parts:
            yield msgspec.structs.replace(one, parts=parts)


def _cut(gpu: Gpu) -> Iterator[Segment]:
    if gpu.granted is None:
        yield Segment(kind="unknown", parts=gpu.parts)
        return
    for tenant in gpu.tenants:
        yield Segment(kind="tenant", parts=tenant.parts, tenant=tenant)
    yield Segment(kind="unknown", parts=gpu.granted - sum(one.parts for one in gpu.tenants))
    yield Segment(kind="hidden", parts=gpu.hidden or 0)
    yield Segment(kind="free" if gpu.healthy else "unusable", parts=gpu.parts)


def owners(nodes: Sequence[NodeRow]) -> Owners:
    """Number the pods as they stand on the GPUs."""
    found: dict[tuple[str, str], int] = {}
    for node in nodes:
        for gpu in node.gpus:
            for tenant in gpu.tenants:
                found.setdefault((tenant.namespace, tenant.pod), len(found))
    return found


def letter(number: int) -> str:
    """A to Z, and again: there are 7 colours, so the 182 first pods look different."""
    return _LETTERS[number % len(_LETTERS)]
