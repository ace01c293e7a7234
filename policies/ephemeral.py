"""Ephemeral containers, which `kubectl debug` adds to a pod that runs: in a pod with a share they see no GPU."""

from policies.contract import GRANT_ANNOTATION, HIDES, PARTITION, SHARED_LABEL, VISIBLE_DEVICES
from policies.denial import DeniedError, Findings
from policies.environment import check_prefixes, reserved
from policies.errors import quoted
from policies.grant import Added, Denied, Hidden, ReadOnlyMounts, Untouched
from policies.host_access import check_paths
from policies.node_volumes import NodeVolumes, read_only
from policies.paths import is_within, normal
from policies.pod import Pod, Slot, named
from policies.policy_set import PolicySet
from policies.privileges import check_privileges
from policies.size import check_size


def decide_on_added(pod: Pod, before: Pod, namespace: str, policies: PolicySet) -> Added | Denied | Untouched:
    """
    Decide on the ephemeral containers of *pod* that are not in *before*; those that are cannot be changed.

    `mode: warn` denies them too: what is in question is not the pod's request, but a share that it has.
    """
    if not (_has_share(pod) or _has_share(before)):
        return Untouched("the pod has no share")
    if exemption := policies.exemption(namespace):
        return Untouched(exemption)
    added = _added(pod, before)
    policy = policies.of(namespace)
    found = Findings()
    hidden: tuple[Hidden, ...] = ()
    mounts: ReadOnlyMounts = ()
    pipes = policies.cluster.mps.pipe_directory
    partitioned = any(map(_has_partition, (pod, before)))
    try:
        check_size(pod, added)
        of_pipes = _pipe_volumes(pod, pipes)
        for slot in added:
            check_privileges(slot, found)
            check_paths(slot, found, pipe_directory=pipes)
            check_prefixes(slot, found, partitioned=partitioned)
            _check_mounts(slot, of_pipes, found)
        of_node = NodeVolumes(pod, policy, policies, attached=True)  # no mount of the pipes passes above
        mounts = read_only(of_node, added, found)
        variables = tuple(HIDES) if partitioned else (VISIBLE_DEVICES,)  # of which maker they are is not looked up
        hidden = tuple(
            Hidden(slot, reserved(slot, policy, found, shares=None, partitioned=partitioned), variables)
            for slot in added
        )
    except DeniedError as error:
        found.end(error)
    if found.denials:
        return Denied(policy, found.reasons())
    return Added(policy, hidden, mounts, found.told())


def _added(pod: Pod, before: Pod) -> list[Slot]:
    old = {one.name for one in before.spec.ephemeral_containers or ()}
    return [
        Slot("ephemeralContainers", index, one.name, one, True)  # noqa: FBT003 - runs_on
        for index, one in enumerate(pod.spec.ephemeral_containers or ())
        if one.name not in old
    ]


def _has_share(pod: Pod) -> bool:
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
    return SHARED_LABEL in labels or GRANT_ANNOTATION in annotations


def _has_partition(pod: Pod) -> bool:
    return f'"strategy":"{PARTITION}"' in (pod.metadata.annotations or {}).get(GRANT_ANNOTATION, "")


def _pipe_volumes(pod: Pod, pipe_directory: str) -> set[str]:
    return {
        volume.name
        for volume in pod.spec.volumes or ()
        if volume.host_path is not None and is_within(normal(volume.host_path.path), pipe_directory)
    }


def _check_mounts(slot: Slot, pipes: set[str], found: Findings) -> None:
    for mount in slot.container.volume_mounts or ():
        if mount.name in pipes:
            what = f"{named(slot)} mounts {quoted(mount.name)}, the MPS pipes of the pod's share"
            found.deny("ConflictingRequest", what, "Remove the mount: an ephemeral container has no share")
