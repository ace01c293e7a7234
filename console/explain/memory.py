"""What to do about a program that is out of memory of its GPU: its share is used up, or others have it."""

from collections.abc import Container, Iterable

from console.explain.program_remedies import LESS_AT_START, OUT_OF_MEMORY
from console.explain.remedies import of_programs
from console.explain.remedy import Remedy
from console.seen import Seen, SeenNode, SeenPod
from console.words import gib
from policies.contract import MILLI_PER_GPU
from policies.node_state import Gpu, Tenant


def remedies_of_programs(texts: Iterable[str], pod: SeenPod, seen: Seen) -> tuple[Remedy, ...]:
    """List what to do about what programs of a pod said last, as its GPUs were *seen*."""
    held = [(gpu, one) for node, gpu, one in seen.tenants() if _is_of(pod, node, one)]
    taken = tuple(dict.fromkeys(_told(other) for gpu, one in held for other in over_their_limits(gpu, one)))
    found = of_programs(texts)
    if taken:
        what = f"others on the GPU leave it less than its share: {'; '.join(taken)}"
        return _instead(what, found, of=(*OUT_OF_MEMORY, *LESS_AT_START))
    if held and all(gpu.milli(one.parts) == MILLI_PER_GPU for gpu, one in held):
        what = "the memory of the GPU is used up: set the framework's memory lower"
        return _instead(what, found, of=OUT_OF_MEMORY)
    return found


def _instead(what: str, found: Iterable[Remedy], *, of: Container[Remedy]) -> tuple[Remedy, ...]:
    """Say *what* to do, once, in place of those *of* which the cause is known better."""
    told = (Remedy(says=one.says, what=what, page=one.page) if one in of else one for one in found)
    return tuple({one.what: one for one in told}.values())


def over_their_limits(gpu: Gpu, tenant: Tenant) -> list[Tenant]:
    """List the others that take more than their limit, where that leaves a tenant less than its share, or may."""
    others = [one for one in gpu.tenants if one != tenant]
    taken = sum(map(_used, others))
    has_less = gpu.memory_bytes is not None and taken + _limit(tenant) > gpu.memory_bytes
    return [one for one in others if _used(one) > _limit(one)] if has_less or not gpu.limits_enforced_by else []


def _is_of(pod: SeenPod, node: SeenNode, tenant: Tenant) -> bool:
    return (tenant.namespace, tenant.pod, node.name) == (pod.namespace, pod.name, pod.node)


def _used(tenant: Tenant) -> int:
    return (tenant.use.memory_bytes if tenant.use else None) or 0


def _limit(tenant: Tenant) -> int:
    return tenant.memory_limit_bytes or 0


def _told(tenant: Tenant) -> str:
    return f"{tenant.name} takes {gib(_used(tenant))}, and its limit is {gib(tenant.memory_limit_bytes)}"
