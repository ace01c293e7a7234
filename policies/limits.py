"""What a policy allows: whether there are shares at all, their placement, and what is attached in the pod."""

from collections.abc import Sequence

from policies.contract import FRAMEWORK_ANNOTATION_PREFIX, MPS_VOLUME
from policies.denial import DeniedError, Findings
from policies.errors import quoted
from policies.host_access import is_pipe_volume
from policies.pod import Pod, Slot
from policies.policy import EffectivePolicy

_SYSCTLS_OF_IPC = ("kernel.shm", "kernel.msg", "fs.mqueue.")


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


def check_pod(pod: Pod, containers: Sequence[Slot], policy: EffectivePolicy, found: Findings) -> None:
    """Deny a pod whose names or placement do not go with a share here."""
    _check_framework_names(pod, containers, found)
    if pod.spec.node_name:
        what = f"The pod names its node, {quoted(pod.spec.node_name, 64)}, where it may start without its share"
        fix = "Remove nodeName, and choose the node by nodeSelector: kubernetes.io/hostname"
        found.deny("ConflictingRequest", what, fix)
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
    """Deny a pod whose user namespace, sysctl or volume of that name excludes what is attached in the pod itself."""
    if pod.spec.host_users is False:
        found.deny(
            "HostUsersConflict",
            "The pod has hostUsers: false, which the hostIPC of its share excludes",
            "Remove hostUsers, or have the namespace's policy say mps: {attach: node}",
            by=policy.source("mps.attach"),
        )
    context = pod.spec.security_context
    if own := next((one.name for one in (context and context.sysctls) or () if _is_of_ipc(one.name)), ""):
        found.deny(
            "ConflictingRequest",
            f"The pod sets the sysctl {quoted(own)}, which the hostIPC of its share excludes",
            "Remove it, or have the namespace's policy say mps: {attach: node}",
            by=policy.source("mps.attach"),
        )
    for volume in pod.spec.volumes or ():
        if volume.name == MPS_VOLUME and not is_pipe_volume(volume, pipe_directory):
            what = f"The pod has a volume {MPS_VOLUME} of its own, a name that its share needs for {pipe_directory}"
            found.deny("ConflictingRequest", what, "Give the volume another name")


def _is_of_ipc(sysctl: str) -> bool:
    """Whether a sysctl is one of the IPC namespace, by the rules of the API server, which denies it beside hostIPC."""
    name = sysctl.replace("/", ".")
    return name == "kernel.sem" or name.startswith(_SYSCTLS_OF_IPC)


def _check_framework_names(pod: Pod, containers: Sequence[Slot], found: Findings) -> None:
    keys = [key for key in pod.metadata.annotations or () if key.startswith(FRAMEWORK_ANNOTATION_PREFIX)]
    names = {slot.name for slot in containers} if keys else ()
    for key in keys:
        if key.removeprefix(FRAMEWORK_ANNOTATION_PREFIX) not in names:
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
