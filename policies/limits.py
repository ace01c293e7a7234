"""What a policy allows: the size of a share, of a pod, and what may not stand beside a share."""

from collections.abc import Sequence

from policies.cluster import Cluster
from policies.contract import (
    FRAMEWORK_ANNOTATION_PREFIX,
    MILLI_PER_GPU,
    MPS,
    MPS_VOLUME,
)
from policies.denial import DeniedError
from policies.errors import quoted
from policies.host_access import check_host_access, check_mounts, is_pipe_volume
from policies.pod import Pod, Slot
from policies.policy import EffectivePolicy
from policies.request import Ask, named
from policies.share import milli_text


def check_share(ask: Ask, policy: EffectivePolicy, vgpus_per_gpu: int) -> list[str]:
    """
    Hold one container's share against the policy.

    Returns:
        Warnings: the rounding, if there was one.

    Raises:
        DeniedError: If the share is too small, too large, or not exact where it must be.
    """
    rules = policy.policy.share
    size = _milli_times_vgpus(ask, vgpus_per_gpu)
    if size < rules.minimum * vgpus_per_gpu:
        raise DeniedError(
            "ShareBelowMinimum",
            f"{named(ask.slot)} asks for {_asked(ask, vgpus_per_gpu)}, at least {rules.minimum} is allowed here",
            f'Ask for "{rules.minimum}" or more',
            by=policy.source("share.minimum"),
        )
    if size > rules.maximum * vgpus_per_gpu:
        raise DeniedError(
            "ShareAboveMaximum",
            f"{named(ask.slot)} asks for {_asked(ask, vgpus_per_gpu)}, at most {rules.maximum} is allowed here",
            f'Ask for "{rules.maximum}" or less',
            by=policy.source("share.maximum"),
        )
    if ask.vgpus > vgpus_per_gpu and ask.vgpus % vgpus_per_gpu:
        raise DeniedError(
            "ShareMalformed",
            f"{named(ask.slot)} asks for {ask.vgpus} vGPUs: more than one GPU's {vgpus_per_gpu} and not whole GPUs",
            f"Ask for at most {vgpus_per_gpu}, or a multiple of it",
        )
    return _rounding(ask, policy, vgpus_per_gpu)


def _rounding(ask: Ask, policy: EffectivePolicy, vgpus_per_gpu: int) -> list[str]:
    if ask.share is None or ask.share.is_exact(vgpus_per_gpu):
        return []
    exact = f"{milli_text(ask.share * vgpus_per_gpu)} of {vgpus_per_gpu} vGPUs"
    if policy.policy.share.rounding == "exact":
        rules = policy.policy.share
        near = ((ask.vgpus - less) * MILLI_PER_GPU for less in (1, 0))
        exact_ones = (one // vgpus_per_gpu for one in near if one and one % vgpus_per_gpu == 0)
        choices = [f'"{milli_text(one)}"' for one in exact_ones if rules.minimum <= one <= rules.maximum]
        raise DeniedError(
            "NotWholeVgpus",
            f"{named(ask.slot)} asks for {ask.share} of a GPU, that is {exact}",
            f"Ask for {' or '.join(choices)}" if choices else _in_vgpus(ask, policy, vgpus_per_gpu),
            by=policy.source("share.rounding"),
        )
    return [f"{quoted(ask.slot.name, 30)}: {ask.share} of a GPU is {exact}, rounded up to {ask.vgpus}"]


def _in_vgpus(ask: Ask, policy: EffectivePolicy, vgpus_per_gpu: int) -> str:
    """What to do where no decimal near the share is a whole number of vGPUs."""
    rules = policy.policy.share
    if rules.minimum * vgpus_per_gpu <= ask.vgpus * MILLI_PER_GPU <= rules.maximum * vgpus_per_gpu:
        return f"Ask for {ask.vgpus} vGPUs by a limit"
    return f"Ask for another share between {rules.minimum} and {rules.maximum}"


def check_pod(
    pod: Pod, containers: Sequence[Slot], asks: Sequence[Ask], policy: EffectivePolicy, cluster: Cluster
) -> None:
    """
    Hold the pod as a whole against the policy.

    Raises:
        DeniedError: If it holds too much in sum, or has something that does not go with a share.
    """
    attached = policy.policy.strategy == MPS and policy.policy.mps.attach == "pod"
    check_host_access(pod, containers, pipe_directory=cluster.mps.pipe_directory, attached=attached)
    _check_framework_names(pod, containers)
    if policy.places:
        _check_placement(pod, policy)
    if policy.policy.strategy == MPS:
        check_mounts(pod, asks, pipe_directory=cluster.mps.pipe_directory)
        if attached:
            _check_attachment(pod, policy, cluster.mps.pipe_directory)


def check_sum(containers: Sequence[Slot], asks: Sequence[Ask], policy: EffectivePolicy, vgpus_per_gpu: int) -> None:
    """
    Add up as the scheduler does: sidecars stay, other init containers run one after the other before the rest.

    Raises:
        DeniedError: If that is more than one pod may have.
    """
    sizes = {(ask.slot.group, ask.slot.index): _milli_times_vgpus(ask, vgpus_per_gpu) for ask in asks}
    staying = peak = 0
    for slot in containers:
        size = sizes.get((slot.group, slot.index), 0)
        if slot.runs_on:
            staying += size
        peak = max(peak, staying + (0 if slot.runs_on else size))
    largest = policy.policy.share.largest_pod
    if peak > largest * vgpus_per_gpu:
        raise DeniedError(
            "PodShareAboveMaximum",
            f"The pod's containers together ask for {milli_text(-(-peak // vgpus_per_gpu))} of a GPU, "
            f"at most {largest} per pod is allowed here",
            f'Bring the sum to "{largest}" or less',
            by=policy.source("share.podMaximum"),
        )


def _check_framework_names(pod: Pod, containers: Sequence[Slot]) -> None:
    names = {slot.name for slot in containers}
    for key in pod.metadata.annotations or ():
        if key.startswith(FRAMEWORK_ANNOTATION_PREFIX) and key[len(FRAMEWORK_ANNOTATION_PREFIX) :] not in names:
            what = f"The annotation {quoted(key, 80)} names a container that is not in the pod"
            raise DeniedError("UnknownContainer", what, "Name one of the pod's containers, or remove it")


def _check_placement(pod: Pod, policy: EffectivePolicy) -> None:
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
            raise DeniedError(
                "ConflictingRequest",
                f"The pod sets {what} to {quoted(said)}, pods with a share here have {quoted(wanted)}",
                "Remove it from the pod",
                by=policy.source(field),
            )


def _check_attachment(pod: Pod, policy: EffectivePolicy, pipe_directory: str) -> None:
    if pod.spec.host_users is False:
        raise DeniedError(
            "HostUsersConflict",
            "The pod has hostUsers: false, which the hostIPC of its share excludes",
            "Remove hostUsers, or have the namespace's policy say mps: {attach: node}",
            by=policy.source("mps.attach"),
        )
    for volume in pod.spec.volumes or ():
        if volume.name == MPS_VOLUME and not is_pipe_volume(volume, pipe_directory):
            what = f"The pod has a volume {MPS_VOLUME} of its own, a name that its share needs for {pipe_directory}"
            raise DeniedError("ConflictingRequest", what, "Give the volume another name")


def _milli_times_vgpus(ask: Ask, vgpus_per_gpu: int) -> int:
    """What is asked, in thousandths of a GPU times vGPUs per GPU: whole for shares and for vGPUs alike."""
    return ask.share * vgpus_per_gpu if ask.share is not None else ask.vgpus * MILLI_PER_GPU


def _asked(ask: Ask, vgpus_per_gpu: int) -> str:
    return f"{ask.share} of a GPU" if ask.share is not None else f"{ask.vgpus} of {vgpus_per_gpu} vGPUs"
