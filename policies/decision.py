"""The decision: what a pod asks for, held against the policy of its namespace."""

from collections.abc import Sequence

import msgspec

from policies.bounds import check_share, check_sum
from policies.changes import RemoveMount, ReplaceArgument
from policies.contract import DRA, MILLI_PER_GPU, MIRROR_ANNOTATION, MPS, PARTITION
from policies.denial import DeniedError, Findings
from policies.earlier_grant import with_fix
from policies.environment import check_env_from, check_prefixes, reserved
from policies.errors import quoted
from policies.frameworks.allowance import Allowance
from policies.frameworks.budget import Budget
from policies.frameworks.command_line import steps_beside
from policies.grant import ContainerGrant, Decision, Denied, Grant, Hidden, Untouched
from policies.host_access import check_host_access, check_mounts, check_paths
from policies.kind import Kind
from policies.limits import attaches_in_pod, check_attachment, check_pod, check_sharing
from policies.literals import literals
from policies.memory_settings import MemoryCheck
from policies.node_volumes import NodeVolumes, check_drivers, read_only
from policies.other_devices import check_other_devices
from policies.own_grids import not_taken_by
from policies.partitions import hiding_variables
from policies.pod import Pod, Slot, slots
from policies.policy import EffectivePolicy
from policies.policy_set import PolicySet
from policies.request import Ask, asks_for_share, read_asks
from policies.share import milli_text
from policies.size import check_shares, check_size
from policies.trial import denied_or_warned, kept_limits
from policies.volumes import Volumes


def decide(pod: Pod, namespace: str, policies: PolicySet, *, restricted: bool = False) -> Decision:
    """Decide on *pod*, to be created in *namespace*; *restricted*: Pod Security forbids hostIPC and hostPath there."""
    containers = slots(pod)
    if not asks_for_share(pod, containers, policies.cluster):
        return Untouched("it does not ask for a share")
    if not pod.spec.containers:
        return Untouched("it has no containers, so the API server will reject it")
    if MIRROR_ANNOTATION in (pod.metadata.annotations or ()):
        return Untouched(
            "it says that it mirrors a static pod, and the API server denies that to everybody but kubelets"
        )
    if exemption := policies.exemption(namespace):
        return Untouched(exemption, tuple(kept_limits(containers, policies.cluster)))
    policy = policies.of(namespace)
    found = Findings()
    try:
        grant = _grant(pod, containers, policy, policies, found, restricted=restricted)
        if not found.denials:
            return grant
    except DeniedError as error:
        found.end(error)
    reasons = with_fix(found.reasons(), pod, containers, policy=policy, cluster=policies.cluster)
    return denied_or_warned(Denied(policy, reasons), containers, policies.cluster)


def decide_on_unread(reason: DeniedError, namespace: str, policies: PolicySet) -> Denied | Untouched:
    """Decide on a pod that is not read at all, for *reason*."""
    if exemption := policies.exemption(namespace):
        return Untouched(exemption)
    return denied_or_warned(Denied(policies.of(namespace), (reason.deny(),)), (), policies.cluster)


class _Request(msgspec.Struct, frozen=True, gc=False):
    """What a pod asks for, and the rules that hold for it."""

    pod: Pod
    containers: list[Slot]
    policy: EffectivePolicy
    policies: PolicySet
    kind: Kind
    asks: list[Ask]
    attached: bool  # the pod itself is to carry hostIPC and the MPS volume

    @property
    def pipe_directory(self) -> str:
        """Of MPS, on the host."""
        return self.policies.cluster.mps.pipe_directory

    @property
    def is_partitioned(self) -> bool:
        """Whether its shares are partitions of their maker."""
        return bool(self.kind.partitions)

    def hidden(self) -> list[Slot]:
        """List the containers that ask for nothing."""
        if len(self.asks) == len(self.containers):  # each is in it at most once
            return []
        asking = {(ask.slot.group, ask.slot.index) for ask in self.asks}
        return [slot for slot in self.containers if (slot.group, slot.index) not in asking]


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
    kind, asks = read_asks(pod, containers, found, cluster=policies.cluster, policy=policy)
    check_shares(len(asks))
    attached = kind.strategy == MPS and attaches_in_pod(policy, found, restricted=restricted)
    request = _Request(pod, containers, policy, policies, kind, asks, attached)
    of_node = NodeVolumes(pod, policy, policies, attached=attached)
    _check(request, of_node, found)
    one_by_one = _Containers(request, found)
    granted = tuple(one_by_one.granted(ask) for ask in asks)
    return Grant(
        policy=policy,
        resource=kind.resource,
        vgpus_per_gpu=kind.per_gpu,
        pipe_directory=request.pipe_directory,
        strategy=kind.strategy,
        allocation=kind.allocation,
        device=kind.device,
        not_taken_by=_not_taken_by(request, granted),
        partition=kind.partition,
        attaches_in_pod=attached,
        containers=granted,
        hidden=_hidden(request, found),
        read_only=read_only(of_node, containers, found),
        warnings=found.told(),
    )


def _check(request: _Request, of_node: NodeVolumes, found: Findings) -> None:
    """Deny what the policy does not allow; the first reason is the one that users read."""
    pod, containers, policy = request.pod, request.containers, request.policy
    for ask in request.asks:
        check_share(ask, policy, found)
    check_sum(containers, request.asks, policy, request.kind, found)
    check_host_access(pod, containers, found, attached=request.attached)
    for slot in containers if request.kind.strategy == MPS else ():
        check_paths(slot, found, pipe_directory=request.pipe_directory)
    of_node.check(found)
    check_drivers(pod, found)
    check_other_devices(pod, found)
    for slot in containers:
        check_prefixes(slot, found, partitioned=request.is_partitioned)
    check_pod(pod, containers, policy, found)
    if request.attached:
        check_attachment(pod, policy, found, pipe_directory=request.pipe_directory)


def _not_taken_by(request: _Request, granted: Sequence[ContainerGrant]) -> tuple[str, ...]:
    """Name the entries of nodes whose GPUs have other sizes than those that are granted by DRA."""
    if request.kind.allocation != DRA:
        return ()
    return not_taken_by(request.policies.cluster, request.kind.strategy, [one.resource for one in granted])


def _hidden(request: _Request, found: Findings) -> tuple[Hidden, ...]:
    """Say what hides the GPUs from the containers that ask for none."""
    without = request.hidden()
    if not without:
        return ()
    hiding = hiding_variables(one.resource for one in request.kind.partitions)
    return tuple(
        Hidden(slot, reserved(slot, request.policy, found, shares=None, partitioned=request.is_partitioned), hiding)
        for slot in without
    )


class _Containers:
    """Decides on the containers with a share one by one; they have one allowance for what their texts expand to."""

    def __init__(self, request: _Request, found: Findings) -> None:
        self._request = request
        self._found = found
        beside = steps_beside([one.container for one in request.containers], shares=len(request.asks))
        self._allowance = Allowance(beside)
        self._memory = MemoryCheck(request.pod, request.policy, request.policies.catalogue, self._allowance, found)
        self._volumes = Volumes(request.pod, request.containers)

    def granted(self, ask: Ask) -> ContainerGrant:
        """Say what a container gets, and deny what it must not set itself."""
        policy, found, per_gpu = self._request.policy, self._found, ask.kind.per_gpu
        check_env_from(ask.slot, policy, found, overridden=self._is_by_cdi(ask))
        budget = _budget(ask, policy, found)
        advice = self._memory.of(ask.slot, budget)
        resource, quantity = ask.kind.asked(ask.vgpus)
        share = ask.vgpus * MILLI_PER_GPU // per_gpu if ask.share is None else ask.share
        return ContainerGrant(
            slot=ask.slot,
            vgpus=ask.vgpus,
            resource=resource,
            quantity=quantity,
            replaced=ask.limit if ask.limit != resource else "",
            share=ask.share,
            share_text=milli_text(share),
            asked_by=ask.key,
            fraction_milli=budget.target,
            tells_its_share=budget.target == min(share, MILLI_PER_GPU),
            advice=advice,
            removed=reserved(ask.slot, policy, found, shares=ask.kind.strategy),
            literals=self._literals(ask, budget),
            unmounted=self._unmounted(ask),
        )

    def _is_by_cdi(self, ask: Ask) -> bool:
        """Whether a CDI device of ours says what the container sees, whatever its variables say."""
        if ask.kind.allocation == DRA:
            return True
        # Several GPUs are no CDI device of ours, so they go by variables, and a partition is none of ours at all.
        is_ours = ask.kind.strategy != PARTITION and ask.vgpus <= ask.kind.per_gpu
        return is_ours and self._request.policies.cluster.overrides_pods

    def _literals(self, ask: Ask, budget: Budget) -> tuple[ReplaceArgument, ...]:
        """Replace what the kubelet cannot expand; it can what the device plugin answers for a container."""
        is_ours = ask.kind.strategy != PARTITION
        if is_ours and ask.kind.allocation != DRA:
            return ()
        fraction = min(budget.granted, budget.share)  # a second call judges what the first one has written
        return literals(ask.slot, milli_text(fraction), self._allowance, self._found, is_ours=is_ours)

    def _unmounted(self, ask: Ask) -> tuple[RemoveMount, ...]:
        if ask.kind.strategy != MPS or not ask.slot.container.volume_mounts:
            return ()
        request = self._request
        return check_mounts(self._volumes, ask, request.policy, self._found, pipe_directory=request.pipe_directory)


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
