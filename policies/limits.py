"""What a policy allows: the size of a share, of a pod, and what may not stand beside a share."""

from collections.abc import Sequence

from policies.contract import (
    DRA,
    FRAMEWORK_ANNOTATION_PREFIX,
    MILLI_PER_GPU,
    MOST_GPUS_TOGETHER,
    MPS_VOLUME,
    SHARE_ANNOTATION,
    WHOLE,
)
from policies.denial import DeniedError, Findings
from policies.errors import quoted
from policies.host_access import is_pipe_volume
from policies.kind import Kind
from policies.peak import peak
from policies.pod import Pod, Slot, named
from policies.policy import EffectivePolicy
from policies.request import Ask
from policies.share import Share, milli_text


def check_sharing(policy: EffectivePolicy) -> None:
    """
    See that the namespace has shares at all.

    Raises:
        DeniedError: If its policy is broken, or disables them: nothing else has to be looked at.
    """
    if policy.broken is not None:
        raise DeniedError(
            "PolicyBroken",
            f"The policy of this namespace is broken: {policy.broken.told}",
            "Ask its administrator to correct the file",
            by=policy.broken.place,
        )
    if not policy.policy.enabled:
        raise DeniedError(
            "SharingDisabled",
            "Sharing of GPUs is disabled in this namespace",
            "Ask its administrator, or take the request out of the pod",
            by=policy.source("enabled"),
        )


def check_share(ask: Ask, policy: EffectivePolicy, found: Findings) -> None:
    """Deny a share that is too small, too large, or not exact where it must be; warn of a rounding."""
    rules, per_gpu = policy.policy.share, ask.kind.per_gpu
    size = _milli_times_vgpus(ask)
    asked = ask.kind.counted(ask.vgpus) if ask.share is None else f"{ask.share} of a GPU"
    if size < rules.minimum * per_gpu:
        least, fix = _least(rules.minimum, ask.kind, by_share=ask.share is not None)
        found.deny(
            "ShareBelowMinimum",
            f"{named(ask.slot)} asks for {asked}, at least {least} is allowed here",
            f"Ask for {fix}",
            by=policy.source("share.minimum"),
        )
    elif size > rules.maximum * per_gpu:
        most, fix = _most(rules.maximum, ask.kind, by_share=ask.share is not None)
        found.deny(
            "ShareAboveMaximum",
            f"{named(ask.slot)} asks for {asked}, at most {most} is allowed here",
            f"Ask for {fix}",
            by=policy.source("share.maximum"),
        )
    elif ask.vgpus > per_gpu and ask.vgpus % per_gpu:
        found.deny(
            "ShareMalformed",
            f"{named(ask.slot)} asks for {ask.vgpus} vGPUs: more than one GPU's {per_gpu} and not whole GPUs",
            f"Ask for at most {per_gpu}, or a multiple of it",
        )
    elif ask.kind.allocation == DRA and ask.vgpus > per_gpu * MOST_GPUS_TOGETHER:
        found.deny(
            "ShareAboveMaximum",
            f"{named(ask.slot)} asks for {asked}, at most {MOST_GPUS_TOGETHER} GPUs are allocated together by dra",
            f'Ask for "{MOST_GPUS_TOGETHER}" or less',
            by=policy.source("allocation"),
        )
    else:
        _check_rounding(ask, policy, found)


def _check_rounding(ask: Ask, policy: EffectivePolicy, found: Findings) -> None:
    vgpus_per_gpu = ask.kind.per_gpu
    if ask.share is None or ask.share.is_exact(vgpus_per_gpu):
        return
    exact = f"{milli_text(ask.share * vgpus_per_gpu)} of {vgpus_per_gpu} vGPUs"
    if policy.policy.share.rounding == "exact":
        rules = policy.policy.share
        near = ((ask.vgpus - less) * MILLI_PER_GPU for less in (1, 0))
        exact_ones = (one // vgpus_per_gpu for one in near if one and one % vgpus_per_gpu == 0)
        choices = [f'"{milli_text(one)}"' for one in exact_ones if rules.minimum <= one <= rules.maximum]
        found.deny(
            "NotWholeVgpus",
            f"{named(ask.slot)} asks for {ask.share} of a GPU, that is {exact}",
            f"Ask for {' or '.join(choices)}" if choices else _in_vgpus(ask, policy),
            by=policy.source("share.rounding"),
        )
    else:
        found.warnings.append(
            f"{quoted(ask.slot.name, 30)}: {ask.share} of a GPU is {exact}, rounded up to {ask.vgpus}"
        )


def _in_vgpus(ask: Ask, policy: EffectivePolicy) -> str:
    """What to do where no decimal near the share is a whole number of vGPUs."""
    rules = policy.policy.share
    if rules.minimum * ask.kind.per_gpu <= ask.vgpus * MILLI_PER_GPU <= rules.maximum * ask.kind.per_gpu:
        return f"Ask for {ask.kind.counted(ask.vgpus)} by a limit"
    return f"Ask for another share between {rules.minimum} and {rules.maximum}"


def check_pod(pod: Pod, containers: Sequence[Slot], policy: EffectivePolicy, found: Findings) -> None:
    """Deny a pod whose names or placement do not go with a share here."""
    _check_framework_names(pod, containers, found)
    if policy.places:
        _check_placement(pod, policy, found)


def attaches_in_pod(policy: EffectivePolicy, found: Findings, *, restricted: bool) -> bool:
    """Whether the pod itself gets hostIPC and the MPS volume; a warning says so where Pod Security will deny it."""
    match policy.policy.mps.attach:
        case "node":
            return False
        case "auto":
            return not restricted
    if restricted:
        found.warnings.append(
            f"mps.attach: pod ({policy.source('mps.attach')}) adds hostIPC and a hostPath volume, "
            "which this namespace's Pod Security forbids; mps.attach: node or auto adds neither"
        )
    return True


def check_attachment(pod: Pod, policy: EffectivePolicy, found: Findings, *, pipe_directory: str) -> None:
    """Deny a pod whose user namespace, or a volume of that name, excludes what is attached in the pod itself."""
    if pod.spec.host_users is False:
        found.deny(
            "HostUsersConflict",
            "The pod has hostUsers: false, which the hostIPC of its share excludes",
            "Remove hostUsers, or have the namespace's policy say mps: {attach: node}",
            by=policy.source("mps.attach"),
        )
    for volume in pod.spec.volumes or ():
        if volume.name == MPS_VOLUME and not is_pipe_volume(volume, pipe_directory):
            what = f"The pod has a volume {MPS_VOLUME} of its own, a name that its share needs for {pipe_directory}"
            found.deny("ConflictingRequest", what, "Give the volume another name")


def check_sum(
    containers: Sequence[Slot], asks: Sequence[Ask], policy: EffectivePolicy, kind: Kind, found: Findings
) -> None:
    """Deny a pod with more than one may have."""
    sizes = {(ask.slot.group, ask.slot.index): _milli_times_vgpus(ask) for ask in asks}
    most_held = peak(containers, sizes, kind)
    largest = policy.policy.share.largest_pod
    if most_held > largest * kind.per_gpu:
        by_share = any(ask.share is not None for ask in asks)
        most, fix = _most(largest, kind, by_share=by_share)
        share = f"{milli_text(-(-most_held // kind.per_gpu))} of a GPU"
        together = share if by_share else kind.counted(most_held // MILLI_PER_GPU)
        found.deny(
            "PodShareAboveMaximum",
            f"The pod's containers together ask for {together}, at most {most} per pod is allowed here",
            f"Bring the sum to {fix}",
            by=policy.source("share.podMaximum"),
        )


def _check_framework_names(pod: Pod, containers: Sequence[Slot], found: Findings) -> None:
    names = {slot.name for slot in containers}
    for key in pod.metadata.annotations or ():
        if key.startswith(FRAMEWORK_ANNOTATION_PREFIX) and key[len(FRAMEWORK_ANNOTATION_PREFIX) :] not in names:
            what = f"The annotation {quoted(key, 80)} names a container that is not in the pod"
            found.deny("UnknownContainer", what, "Name one of the pod's containers, or remove it")


def _check_placement(pod: Pod, policy: EffectivePolicy, found: Findings) -> None:
    placement = policy.policy.placement
    own = pod.spec.node_selector or {}
    pairs: list[tuple[str, str | None, str | None, str]] = [
        (f"nodeSelector {key}", own.get(key), value, "placement.nodeSelector")
        for key, value in placement.node_selector.items()
    ]
    pairs.append(
        (
            "runtimeClassName",
            pod.spec.runtime_class_name,
            placement.runtime_class_name,
            "placement.runtimeClassName",
        )
    )
    scheduler = pod.spec.scheduler_name
    # The API server fills the scheduler's name in before any webhook sees the pod.
    scheduler = None if scheduler == "default-scheduler" else scheduler or None
    pairs.append(("schedulerName", scheduler, placement.scheduler_name, "placement.schedulerName"))
    for what, said, wanted, field in pairs:
        if said is not None and wanted is not None and said != wanted:
            found.deny(
                "ConflictingRequest",
                f"The pod sets {what} to {quoted(said)}, pods with a share here have {quoted(wanted)}",
                "Remove it from the pod",
                by=policy.source(field),
            )


def _milli_times_vgpus(ask: Ask) -> int:
    """What is asked, in thousandths of a GPU times vGPUs per GPU: whole for shares and for vGPUs alike."""
    return ask.share * ask.kind.per_gpu if ask.share is not None else ask.vgpus * MILLI_PER_GPU


def _least(bound: Share, kind: Kind, *, by_share: bool) -> tuple[str, str]:
    """Write a lower bound in the unit of what is asked: for the sentence, and for the fix."""
    if by_share:
        return f"{bound}", f'"{bound}" or more'
    count = bound.vgpus(kind.per_gpu)
    return _with_share(count, bound, kind), f"{kind.counted(count)} or more"


def _most(bound: Share, kind: Kind, *, by_share: bool) -> tuple[str, str]:
    """Write an upper bound in the unit of what is asked: for the sentence, and for the fix."""
    count = bound * kind.per_gpu // MILLI_PER_GPU
    if by_share or not count:
        how = "" if by_share else f" by the annotation {SHARE_ANNOTATION}"
        return f"{bound}" if by_share else f"{bound} of a GPU", f'"{bound}" or less{how}'
    return _with_share(count, bound, kind), f"{kind.counted(count)} or less"


def _with_share(count: int, bound: Share, kind: Kind) -> str:
    return f"{count}" if kind.strategy == WHOLE else f"{count} ({bound} of a GPU)"
