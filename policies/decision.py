"""The decision: what a pod asks for, held against the policy of its namespace."""

from policies.bounds import check_share, check_sum
from policies.changes import RemoveMount
from policies.contract import (
    DRA,
    MILLI_PER_GPU,
    MIRROR_ANNOTATION,
    MPS,
    PARTITION,
)
from policies.denial import DeniedError, Findings
from policies.environment import check_env_from, check_prefixes, reserved
from policies.errors import quoted
from policies.frameworks.budget import Budget
from policies.frameworks.expansion import Allowance
from policies.grant import ContainerGrant, Decision, Denied, Grant, Hidden, Untouched
from policies.host_access import check_host_access, check_mounts, check_paths
from policies.limits import attaches_in_pod, check_attachment, check_pod, check_sharing
from policies.literals import literals
from policies.memory_settings import MemoryCheck
from policies.node_volumes import NodeVolumes, check_drivers, recursive
from policies.other_devices import check_other_devices
from policies.own_grids import not_taken_by
from policies.partitions import hiding_variables
from policies.pod import Pod, Slot, slots
from policies.policy import EffectivePolicy
from policies.policy_set import PolicySet
from policies.request import Ask, asks_for_share, read_asks
from policies.share import milli_text
from policies.size import check_shares, check_size
from policies.volumes import Volumes


def decide(pod: Pod, namespace: str, policies: PolicySet, *, restricted: bool = False) -> Decision:
    """Decide on *pod*, to be created in *namespace*; *restricted*: Pod Security forbids hostIPC and hostPath there."""
    containers = slots(pod)
    if not asks_for_share(pod, containers, policies.cluster):
        return Untouched("it does not ask for a share")
    if not pod.spec.containers:
        return Untouched("it has no containers, so the API server will reject it")
    if MIRROR_ANNOTATION in (pod.metadata.annotations or ()):
        return Untouched("it mirrors a static pod, which runs whatever is decided here")
    if policies.is_exempt(namespace):
        return Untouched(f"the namespace {namespace} is exempt (_cluster.yaml: exemptNamespaces)")
    policy = policies.of(namespace)
    found = Findings()
    try:
        grant = _grant(pod, containers, policy, policies, found, restricted=restricted)
        if not found.denials:
            return grant
    except DeniedError as error:
        found.denials.append(error)
    return _refused(Denied(policy, found.reasons()))


def decide_on_unread(reason: DeniedError, namespace: str, policies: PolicySet) -> Denied | Untouched:
    """Decide on a pod that is not read at all, for *reason*."""
    if policies.is_exempt(namespace):
        return Untouched(f"the namespace {namespace} is exempt (_cluster.yaml: exemptNamespaces)")
    return _refused(Denied(policies.of(namespace), (reason.deny(),)))


def _refused(denied: Denied) -> Denied | Untouched:
    """Deny, or warn where the policy says so."""
    policy = denied.policy
    if policy.policy.mode == "enforce":
        return denied
    reason = f"mode is warn ({policy.source('mode')})"
    return Untouched(reason, (f"would be denied with {denied.deny.code}: {denied.message}",), denied)


def _grant(  # noqa: PLR0913 - all that decides
    pod: Pod,
    containers: list[Slot],
    policy: EffectivePolicy,
    policies: PolicySet,
    found: Findings,
    *,
    restricted: bool,
) -> Grant:
    """Say what the pod would get; it is denied if *found* has a reason for that in the end, or by a DeniedError."""
    check_sharing(policy)
    check_size(pod, containers)
    cluster = policies.cluster
    kind, asks = read_asks(pod, containers, found, cluster=cluster, policy=policy)
    check_shares(len(asks))
    pipes = cluster.mps.pipe_directory
    attached = kind.strategy == MPS and attaches_in_pod(policy, found, restricted=restricted)
    for ask in asks:
        check_share(ask, policy, found)
    check_sum(containers, asks, policy, kind, found)
    check_host_access(pod, containers, found, attached=attached)
    for slot in containers if kind.strategy == MPS else ():
        check_paths(slot, found, pipe_directory=pipes)
    of_node = NodeVolumes(pod, policy, policies, attached=attached)
    of_node.check(found)
    check_drivers(pod, found)
    check_other_devices(pod, found)
    for slot in containers:
        check_prefixes(slot, found, partitioned=bool(kind.partitions))
    check_pod(pod, containers, policy, found)
    if attached:
        check_attachment(pod, policy, found, pipe_directory=pipes)
    allowance = Allowance()
    memory = MemoryCheck(pod, policy, policies.catalogue, allowance, found)
    volumes = Volumes(pod, containers)
    granted = [_container(volumes, ask, policy, policies, found, memory=memory, allowance=allowance) for ask in asks]
    asking = {(ask.slot.group, ask.slot.index) for ask in asks}
    hiding = hiding_variables(one.resource for one in kind.partitions)
    return Grant(
        policy=policy,
        resource=kind.resource,
        vgpus_per_gpu=kind.per_gpu,
        pipe_directory=pipes,
        strategy=kind.strategy,
        allocation=kind.allocation,
        device=kind.device,
        not_taken_by=not_taken_by(cluster, kind.strategy, [one.resource for one in granted])
        if kind.allocation == DRA
        else (),
        partition=kind.partition,
        attaches_in_pod=attached,
        containers=tuple(granted),
        hidden=tuple(
            Hidden(slot, reserved(slot, policy, found, shares=None, partitioned=bool(kind.partitions)), hiding)
            for slot in containers
            if (slot.group, slot.index) not in asking
        ),
        recursive=recursive(of_node, containers, found),
        warnings=tuple(found.warnings),
    )


def _container(  # noqa: PLR0913 - all that decides
    volumes: Volumes,
    ask: Ask,
    policy: EffectivePolicy,
    policies: PolicySet,
    found: Findings,
    *,
    memory: MemoryCheck,
    allowance: Allowance,
) -> ContainerGrant:
    per_gpu = ask.kind.per_gpu
    # Several GPUs are no CDI device of ours, so they go by variables, and a partition is none of ours at all.
    is_ours = ask.kind.strategy != PARTITION
    by_cdi = ask.kind.allocation == DRA or (is_ours and policies.cluster.overrides_pods and ask.vgpus <= per_gpu)
    is_expanded = is_ours and ask.kind.allocation != DRA  # by the kubelet, from what the plugin answers
    check_env_from(ask.slot, policy, found, overridden=by_cdi)
    budget = _budget(ask, policy, found)
    advice = memory.of(ask.slot, budget)
    resource, quantity = ask.kind.asked(ask.vgpus)
    return ContainerGrant(
        slot=ask.slot,
        vgpus=ask.vgpus,
        resource=resource,
        quantity=quantity,
        replaced=ask.limit if ask.limit != resource else "",
        share=ask.share,
        share_text=milli_text(ask.vgpus * MILLI_PER_GPU // per_gpu if ask.share is None else ask.share),
        asked_by=ask.key,
        fraction_milli=budget.target,
        advice=advice,
        removed=reserved(ask.slot, policy, found, shares=ask.kind.strategy),
        literals=()
        if is_expanded
        else literals(ask.slot, milli_text(budget.granted), allowance, found, is_ours=is_ours),
        unmounted=_unmounted(volumes, ask, policy, policies, found),
    )


def _budget(ask: Ask, policy: EffectivePolicy, found: Findings) -> Budget:
    """Say how much of the GPU that it sees the container may take; a partition is a GPU of its own to its programs."""
    if ask.kind.strategy == PARTITION:
        return Budget(share=MILLI_PER_GPU, target=MILLI_PER_GPU, strategy=PARTITION, granted=MILLI_PER_GPU)
    granted = min(ask.vgpus * MILLI_PER_GPU // ask.kind.per_gpu, MILLI_PER_GPU)
    requested = granted if ask.share is None else min(ask.share.milli, MILLI_PER_GPU)
    basis = requested if policy.policy.memory.basis == "requested" else granted
    target = basis - policy.policy.memory.headroom
    if target <= 0:
        target = basis
        found.warnings.append(
            f"{quoted(ask.slot.name, 30)}: memory.headroom would leave nothing of this share, so it is left out"
        )
    return Budget(share=basis, target=target, strategy=ask.kind.strategy, granted=granted)


def _unmounted(
    volumes: Volumes, ask: Ask, policy: EffectivePolicy, policies: PolicySet, found: Findings
) -> tuple[RemoveMount, ...]:
    if ask.kind.strategy != MPS or not ask.slot.container.volume_mounts:
        return ()
    return check_mounts(volumes, ask, policy, found, pipe_directory=policies.cluster.mps.pipe_directory)
