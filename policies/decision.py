"""The decision: what a pod asks for, held against the policy of its namespace."""

from collections.abc import Iterable

from policies.changes import RemoveVariable
from policies.contract import (
    FRAMEWORK_ANNOTATION,
    FRAMEWORK_ANNOTATION_PREFIX,
    MILLI_PER_GPU,
    MIRROR_ANNOTATION,
    MPS,
    NO_DEVICES,
    NO_FRAMEWORK,
    RESERVED_VARIABLE_PREFIXES,
    RESERVED_VARIABLES,
    VISIBLE_DEVICES,
    is_reserved,
)
from policies.denial import DeniedError
from policies.errors import quoted
from policies.frameworks.budget import Budget
from policies.frameworks.memory import NOTHING, Advice, advise, advise_on_own
from policies.grant import ContainerGrant, Decision, Denied, Grant, Hidden, Untouched
from policies.host_access import check_host_access, check_mounts
from policies.limits import check_attachment, check_pod, check_share, check_sum
from policies.pod import Pod, Slot, Variable, named, slots
from policies.policy import EffectivePolicy
from policies.policy_set import PolicySet
from policies.request import Ask, asks_for_share, read_asks
from policies.share import milli_text


def decide(pod: Pod, namespace: str, policies: PolicySet) -> Decision:
    """Decide on *pod*, which is to be created in *namespace*."""
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
    try:
        return _grant(pod, containers, policy, policies)
    except DeniedError as error:
        deny = error.deny()
        denied = Denied(policy, deny)
        if policy.policy.mode == "enforce":
            return denied
        reason = f"mode is warn ({policy.source('mode')})"
        return Untouched(reason, (f"would be denied with {deny.code}: {deny.message}",), denied)


def _grant(pod: Pod, containers: list[Slot], policy: EffectivePolicy, policies: PolicySet) -> Grant:
    cluster, rules = policies.cluster, policy.policy
    if policy.broken is not None:
        raise DeniedError(
            "PolicyBroken",
            f"The policy of this namespace is broken: {policy.broken.told}",
            "Ask its administrator to correct the file",
            by=policy.broken.place,
        )
    if not rules.enabled:
        raise DeniedError(
            "SharingDisabled",
            "Sharing of GPUs is disabled in this namespace",
            "Ask its administrator, or take the request out of the pod",
            by=policy.source("enabled"),
        )
    kind, asks = read_asks(pod, containers, cluster=cluster, policy=policy)
    pipes, attached = cluster.mps.pipe_directory, kind.strategy == MPS and rules.mps.attach == "pod"
    warnings = [warning for ask in asks for warning in check_share(ask, policy)]
    check_sum(containers, asks, policy, kind)
    check_host_access(pod, containers, pipe_directory=pipes, attached=attached)
    check_pod(pod, containers, policy)
    if kind.strategy == MPS:
        check_mounts(pod, asks, pipe_directory=pipes)
    if attached:
        check_attachment(pod, policy, pipe_directory=pipes)
    granted = [_container(pod, ask, policy, policies, warnings) for ask in asks]
    asking = {(ask.slot.group, ask.slot.index) for ask in asks}
    return Grant(
        policy=policy,
        resource=kind.resource,
        vgpus_per_gpu=kind.per_gpu,
        pipe_directory=pipes,
        strategy=kind.strategy,
        attaches_in_pod=attached,
        containers=tuple(granted),
        hidden=tuple(
            Hidden(slot, _reserved(slot, policy, warnings, shares=False))
            for slot in containers
            if (slot.group, slot.index) not in asking
        ),
        warnings=tuple(warnings),
    )


def _container(pod: Pod, ask: Ask, policy: EffectivePolicy, policies: PolicySet, warnings: list[str]) -> ContainerGrant:
    per_gpu = ask.kind.per_gpu
    granted = min(ask.vgpus * MILLI_PER_GPU // per_gpu, MILLI_PER_GPU)
    requested = granted if ask.share is None else min(ask.share.milli, MILLI_PER_GPU)
    basis = requested if policy.policy.memory.basis == "requested" else granted
    _check_env_from(ask.slot, policy, warnings)
    target = basis - policy.policy.memory.headroom
    if target <= 0:
        target = basis
        warnings.append(
            f"{quoted(ask.slot.name, 30)}: memory.headroom would leave nothing of this share, so it is left out"
        )
    budget = Budget(share=basis, target=target, strategy=ask.kind.strategy, granted=granted)
    advice = _advice(pod, ask.slot, policy, policies, budget)
    warnings += _memory_warnings(ask.slot, advice, policy)
    return ContainerGrant(
        slot=ask.slot,
        vgpus=ask.vgpus,
        share=ask.share,
        share_text=milli_text(ask.vgpus * MILLI_PER_GPU // per_gpu if ask.share is None else ask.share),
        asked_by=ask.key,
        fraction_milli=target,
        advice=advice,
        removed=_reserved(ask.slot, policy, warnings, shares=True),
    )


def _advice(pod: Pod, slot: Slot, policy: EffectivePolicy, policies: PolicySet, budget: Budget) -> Advice:
    """Say what the framework needs that the pod names for the container, or that is recognised in it."""
    catalogue = policies.catalogue
    annotations = pod.metadata.annotations or {}
    wanted = annotations.get(f"{FRAMEWORK_ANNOTATION_PREFIX}{slot.name}", annotations.get(FRAMEWORK_ANNOTATION))
    if wanted == NO_FRAMEWORK or (wanted is None and not policy.policy.frameworks.detect):
        return NOTHING
    framework = catalogue.detect(slot.container) if wanted is None else catalogue.frameworks.get(wanted)
    if framework is not None:
        return advise(slot.container, framework, budget, catalogue)
    if wanted is not None:
        unknown = f"framework {quoted(wanted)} is not in the catalogue, so no memory setting was made"
        return Advice(warning=unknown)
    return advise_on_own(slot.container, budget, catalogue)


def _memory_warnings(slot: Slot, advice: Advice, policy: EffectivePolicy) -> Iterable[str]:
    """
    Say what was lowered and what could not be set.

    Raises:
        DeniedError: If the user's own value is too much, and the policy or the place where it stands forbids lowering.
    """
    for one in advice.too_much:
        denies = policy.policy.frameworks.on_conflict == "deny"
        if denies or one.change is None:
            why = "" if denies else ", in a shell's text, where it cannot be lowered"
            raise DeniedError(
                "MemoryArgumentAboveShare",
                f"{named(slot)} sets {one.setting} to {one.value}, more than its share{why}",
                "Lower it to the share, or remove it and it is set for you",
                by=policy.source("frameworks.onConflict") if denies else None,
            )
        yield f"{quoted(slot.name, 30)}: {one.setting} was {one.value}, more than the share: lowered"
    if advice.warning:
        yield advice.warning


def _reserved(slot: Slot, policy: EffectivePolicy, warnings: list[str], *, shares: bool) -> tuple[RemoveVariable, ...]:
    """
    Find the variables that the pod may not set.

    Raises:
        DeniedError: If there is one and the policy denies it.
    """
    if not slot.container.env:
        return ()
    found = [
        RemoveVariable(index, variable.name)
        for index, variable in enumerate(slot.container.env)
        if variable.name.startswith(_FIRST_LETTERS)
        and is_reserved(variable.name)
        # What hides the GPUs from a container without a share is ours.
        and (shares or variable.name != VISIBLE_DEVICES or variable.value != NO_DEVICES)
    ]
    reaching = [one for one in found if shares or not _hides(slot.container.env[one.index])]
    if reaching and policy.policy.environment.reserved == "deny":
        raise DeniedError(
            "ReservedEnvironment",
            f"{named(slot)} sets {quoted(reaching[0].name)}, which decides what a share is held to",
            "Remove it from env: the device plugin sets it",
            by=policy.source("environment.reserved"),
        )
    warnings += [f"{quoted(slot.name, 30)}: {quoted(one.name)} is reserved and was removed" for one in reaching]
    return tuple(found)


def _hides(variable: Variable) -> bool:
    """Whether a variable means what ours does, which takes its place: some runtimes read this one as all GPUs."""
    # NVIDIA/nvidia-container-toolkit#1555
    return variable.name == VISIBLE_DEVICES and variable.value == "none"


def _check_env_from(slot: Slot, policy: EffectivePolicy, warnings: list[str]) -> None:
    if not slot.container.env_from:
        return
    if policy.policy.environment.env_from == "deny":
        raise DeniedError(
            "ReservedEnvironment",
            f"{named(slot)} takes variables by envFrom, where admission cannot see reserved ones",
            "Name each variable in env with valueFrom",
            by=policy.source("environment.envFrom"),
        )
    warnings.append(f"{quoted(slot.name, 30)}: envFrom is not inspected, it could set reserved variables")


# One look at each variable's first letters is enough for most of them.
_FIRST_LETTERS = tuple({f"{name.partition('_')[0]}_" for name in (*RESERVED_VARIABLES, *RESERVED_VARIABLE_PREFIXES)})
