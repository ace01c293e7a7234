"""Checks whether containers keep to their share, and whether all who use a GPU have one."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from console.doctor.framework_memory import is_told
from console.doctor.installation import Installation
from console.doctor.of_nodes import no_gpus
from console.doctor.verdict import OK, Check, Verdict, cut, fail, not_applicable, not_listed, not_seen, warn
from console.off_gpu import without_gpu
from console.seen import SHARED_PODS, STATES, SeenNode
from console.words import gib
from policies.contract import MILLI_PER_GPU
from policies.node_state import Gpu, Tenant
from policies.outsiders import END_IT, END_THEM, taking

_OLD_SECONDS: Final = 45.0  # of what `gpu-share mps` measures every ten; from then on the node does not tell it
_UNMEASURED: Final = (
    "the log of gpu-share-mps on that node says why; of single containers, a process on their GPU could be assigned to "
    "none: give pods and containers shorter names; if these are short, the driver does not list all processes"
)
_NOT_TOLD: Final = (
    "it is known half a minute after gpu-share-mps of this version has started there, where the kubelet names all who "
    "hold something of the GPU, which it does not of init containers, and it is known of each process whose it is"
)
_OF_INSTANCES: Final = "of MIG instances no driver tells it"
_UNSEEN: Final = "gpu-share explain POD -n NAMESPACE says what to do"


def within_share(on: Installation) -> Verdict:
    """See that no tenant takes more than its share, or can because nothing holds it to that."""
    made = _within_share(on)
    if made.status == "ok" and (untold := _untold(on)):
        made = Verdict(status="unknown", found=tuple(cut(untold)))
    return _beside_instances(made, on, _may_take_more)


def _untold(on: Installation) -> list[str]:
    """Say of which nodes nobody knows who has shares there: nothing found of them says nothing."""
    told = ((one.name, one.state.tenants_unknown) for one in on.seen.nodes if one.is_fresh and one.gpus and one.state)
    return [f"who has shares on {name} is not known: {why}" for name, why in told if why]


def _within_share(on: Installation) -> Verdict:
    over = [
        (gpu, f"{tenant.name} takes {gib(used)} of its {gib(limit)} on {node.name}")
        for node, gpu, tenant in on.seen.tenants()
        if (used := tenant.use.memory_bytes if tenant.use else None) is not None
        and (limit := tenant.memory_limit_bytes) is not None
        and used > limit
    ]
    if over:
        is_limited = all(gpu.limits_enforced_by for gpu, _ in over)
        by = "run fewer processes in it: each is limited for itself" if is_limited else "strategy: mps, which limits it"
        return fail(*cut([told for _, told in over]), hint=f"set the framework's memory setting, or {by}")
    found = _unheld(on)
    if found and (missing := not_listed(on, SHARED_PODS) or not_seen(on, "policies")):
        return missing
    if not found and (unmeasured := [*_unmeasured_nodes(on)] or [*_unmeasured(on)]):
        return warn(*cut(unmeasured), hint=_UNMEASURED)
    if not found and (
        unseen := [f"nobody sees on which GPU {pod.namespace}/{pod.name} is" for pod, _ in without_gpu(on.seen)]
    ):
        return Verdict(status="unknown", found=tuple(cut(unseen)), hint=_UNSEEN)
    return warn(*cut(found), hint="strategy: mps holds it to its share; else give it its framework's memory setting")


def _unmeasured_nodes(on: Installation) -> Iterator[str]:
    """Name the nodes with tenants of which nobody measures what they take; of simulated GPUs nobody does."""
    for node in on.seen.nodes:
        if node.state is not None and node.has_driver and any(_measured_tenants(node)):
            age_seconds = node.state.ages.use
            if age_seconds is None:
                yield f"what containers on {node.name} take has not been measured"
            elif age_seconds > _OLD_SECONDS:
                yield f"what containers on {node.name} take was last measured {age_seconds:.0f} s ago"


def _unmeasured(on: Installation) -> Iterator[str]:
    """Name the tenants of which nobody knows what they take, on nodes on which that is measured."""
    for node in on.seen.nodes:
        for tenant in _measured_tenants(node):
            if tenant.use is None and node.state is not None and node.state.ages.use is not None:
                yield f"what {tenant.name} takes on {node.name} is not known"


def _measured_tenants(node: SeenNode) -> Iterator[Tenant]:
    """Yield those of which it should be known: on no MIG instance, of which no driver lists the processes."""
    if node.is_fresh:
        yield from (tenant for gpu in node.gpus if not gpu.is_instance for tenant in gpu.tenants)


def _unheld(on: Installation) -> list[str]:
    """Name the tenants that nothing holds to their share: nothing on the node, and no setting of a framework."""
    containers = {
        (pod.namespace, pod.name, one.name): one
        for pod in on.seen.pods
        for one in (*pod.pod.spec.init_containers, *pod.pod.spec.containers)
    }
    found = []
    for node, gpu, tenant in on.seen.tenants():
        if gpu.limits_enforced_by or tenant.parts >= gpu.parts:
            continue
        container = containers.get((tenant.namespace, tenant.pod, tenant.container))
        share = MILLI_PER_GPU * tenant.parts // gpu.parts
        if container is None or on.policies is None or not is_told(container, share, on.policies.catalogue):
            strategy = gpu.strategy or "nobody knows what"
            found.append(
                f"{tenant.name} on {node.name}: {strategy} limits no memory, and no setting of a framework does"
            )
    return found


def has_share(on: Installation) -> Verdict:
    """See that nobody uses a GPU that is shared without a share of it."""
    return _beside_instances(_has_share(on), on, lambda gpu: gpu.outsiders is None)


def _has_share(on: Installation) -> Verdict:
    containers, of_nodes, not_known = [], [], []
    for node in on.seen.nodes:
        for gpu in node.gpus if node.is_fresh and node.has_driver else ():
            where = f"{gpu.called} on {node.name}"
            containers += [f"{one.name} has no share of {where}, and {taking(one)}" for one in gpu.outsiders or ()]
            of_nodes += [f"no container has {taking(one)} on {where}" for one in (gpu.of_node,) if one]
            if gpu.outsiders is None and not gpu.is_instance:
                not_known.append(f"who uses {where} without a share is not known")
    if containers or of_nodes:
        hints = (*((END_IT,) if containers else ()), *((END_THEM,) if of_nodes else ()))
        return warn(*cut([*containers, *of_nodes]), hint="; ".join(hints))
    return Verdict(status="unknown", found=tuple(cut(not_known)), hint=_NOT_TOLD) if not_known else OK


def _beside_instances(made: Verdict, on: Installation, is_untold: Callable[[Gpu], bool]) -> Verdict:
    """Say beside what is known of GPUs of how many MIG instances it is not; where there is nothing else, that alone."""
    gpus = [(node, gpu) for node in on.seen.nodes if node.is_fresh for gpu in node.gpus]
    untold = Counter(node.name for node, gpu in gpus if node.has_driver and gpu.is_instance and is_untold(gpu))
    if not untold:
        return made
    if made.status == "ok" and all(gpu.is_instance for _, gpu in gpus):
        return not_applicable(_OF_INSTANCES)
    told = ", ".join(cut([f"{count} on {name}" for name, count in untold.items()]))
    return msgspec.structs.replace(made, found=(*made.found, f"{_OF_INSTANCES}: {told}"))


def _may_take_more(gpu: Gpu) -> bool:
    """Whether somebody who is not measured may have more than its share: who has all of an instance has no more."""
    return any(one.use is None and one.parts < gpu.parts for one in gpu.tenants)


SHARES: Final = (
    Check(
        name="within-share",
        says="containers keep to their share",
        page="security.md#what-limits-a-container-on-the-node",
        judge=within_share,
        absent=no_gpus,
        rests_on=(STATES,),
    ),
    Check(
        name="with-share",
        says="all who use a shared GPU have a share of it",
        page="troubleshooting.md#a-gpu-is-used-without-a-share",
        judge=has_share,
        absent=no_gpus,
        rests_on=(STATES,),
    ),
)
