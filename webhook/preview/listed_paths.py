"""Whether a namespace itself lists the paths of the node that its pods mount: the API server goes by that alone."""

import re
from collections.abc import Iterator

from policies.contract import HOST_PATHS_ANNOTATION, MODE_LABEL
from policies.errors import quoted
from policies.host_paths import HostPathList
from policies.paths import normal
from policies.pod import Pod, slots
from policies.policy_set import PolicySet

_ENTRY = re.compile(r"(?:/[^/:]+)+(?::rw)?")
_WRITABLE = ":rw"


def unlisted(pod: Pod, place: str, policies: PolicySet, annotation: str | None) -> str:
    """
    Say which paths of a *pod* that the webhook admits its namespace does not list; empty if it lists all.

    *annotation* is the namespace's, and None where it is not known.
    """
    missing = [*dict.fromkeys(_unlisted(pod, annotation or "", policies.cluster.mps.pipe_directory))]
    if not missing:
        return ""
    paths = ", ".join(quoted(one, 200)[1:-1] for one in missing[:3])
    policy = policies.of(place).policy
    value = ",".join(f"{rule.path}{_WRITABLE if rule.writable else ''}" for rule in policy.host_paths)
    command = f"kubectl annotate --overwrite namespace {quoted(place, 63)[1:-1]} {HOST_PATHS_ANNOTATION}={value}"
    if annotation is None:
        unless = f" unless it has the label {MODE_LABEL}=warn" if policy.mode == "warn" else ""
        return (
            f"whether the namespace lists {paths} in its annotation {HOST_PATHS_ANNOTATION} is not known (a Namespace "
            f"beside the pods says so): if it does not, the API server denies the pod{unless}; {command}"
        )
    return (
        f"the namespace does not list {paths} in its annotation {HOST_PATHS_ANNOTATION} as the policy does: {command}"
    )


def _unlisted(pod: Pod, annotation: str, pipe_directory: str) -> Iterator[str]:
    entries = [one for one in annotation.replace(" ", "").split(",") if _ENTRY.fullmatch(one)]
    writable = frozenset(one.removesuffix(_WRITABLE) for one in entries if one.endswith(_WRITABLE))
    readable = frozenset(one for one in entries if not one.endswith(_WRITABLE))
    listed = HostPathList(readable=readable, writable=writable, written=writable)
    written = {mount.name for slot in slots(pod) for mount in slot.container.volume_mounts or () if not mount.read_only}
    for volume in pod.spec.volumes or ():
        if volume.host_path is None or (path := normal(volume.host_path.path)) == pipe_directory:
            continue
        access = listed.access(path)
        if access not in ("read-only", "writable") or (access == "read-only" and volume.name in written):
            yield path
