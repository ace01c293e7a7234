"""What to do about a program that is out of memory of its GPU: its share is used up, or others have it."""

from collections.abc import Iterable, Iterator

from console.explain.remedies import Remedy, of_programs
from console.seen import Seen, SeenPod
from console.words import gib
from policies.node_state import Gpu, Tenant


def remedies_of_programs(texts: Iterable[str], pod: SeenPod, seen: Seen) -> tuple[Remedy, ...]:
    """List what to do about what programs of a pod said last, as its GPUs were *seen*."""
    taken = tuple(dict.fromkeys(_taken_by_others(pod, seen)))
    found = of_programs(texts)
    if not taken:
        return found
    what = f"others on the GPU leave it less than its share: {'; '.join(taken)}"
    return tuple(Remedy(says=one.says, what=what, page=one.page) for one in found)


def _taken_by_others(pod: SeenPod, seen: Seen) -> Iterator[str]:
    for node, gpu, tenant in seen.tenants():
        is_own = (tenant.namespace, tenant.pod, node.name) == (pod.namespace, pod.name, pod.node)
        if is_own and _has_less(gpu, tenant):
            yield from (_told(one) for one in gpu.tenants if one != tenant and _used(one) > _limit(one))


def _has_less(gpu: Gpu, tenant: Tenant) -> bool:
    others = sum(_used(one) for one in gpu.tenants if one != tenant)
    return gpu.memory_bytes is not None and others + _limit(tenant) > gpu.memory_bytes


def _used(tenant: Tenant) -> int:
    return (tenant.use.memory_bytes if tenant.use else None) or 0


def _limit(tenant: Tenant) -> int:
    return tenant.memory_limit_bytes or 0


def _told(tenant: Tenant) -> str:
    return f"{tenant.name} takes {gib(_used(tenant))}, and its limit is {gib(tenant.memory_limit_bytes)}"
