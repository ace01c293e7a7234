"""What of the node's file system a pod with a share may mount: what its policy lists, and as it lists it."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from policies.changes import SetMountField
from policies.contract import MPS_VOLUME
from policies.denial import Findings
from policies.errors import quoted
from policies.grant import ReadOnlyMounts
from policies.host_paths import Access, HostPathList, is_never_listed
from policies.paths import meet, normal
from policies.pod import HostPath, Pod, Slot, Volume, VolumeMount, named
from policies.policy import EffectivePolicy
from policies.policy_set import PolicySet

_FIELD: Final = "hostPaths"
_SPECIAL_TYPES: Final = ("Socket", "BlockDevice", "CharDevice")
_CREATING_TYPES: Final = ("DirectoryOrCreate", "FileOrCreate")
_LONGEST_NAMED = 60  # characters of a path in the part of a message that is never cut


class NodeVolumes:
    """The hostPath volumes of one pod; the MPS pipes that come with its share need not be listed."""

    def __init__(self, pod: Pod, policy: EffectivePolicy, policies: PolicySet, *, attached: bool) -> None:
        """*attached* says that the pod itself carries the directory of the pipes."""
        pipe_directory = policies.cluster.mps.pipe_directory
        self._policy = policy
        self._policies = policies
        self._pipe_directory = pipe_directory
        self._volumes: list[tuple[Volume, HostPath]] = []
        self._read_only: set[str] = set()
        # The volume that comes with the share is named before it is there, by who mounts it and does not have it.
        self._pipes = {MPS_VOLUME} if attached else set[str]()
        self._access: dict[str, Access] = {}  # by path, since it is asked for again
        for volume in pod.spec.volumes or ():
            host = volume.host_path
            if attached and host is not None and normal(host.path) == pipe_directory:
                self._pipes.add(volume.name)
                continue
            self._pipes.discard(volume.name)
            if host is None:
                continue
            self._volumes.append((volume, host))
            if not self._is_writable(host):
                self._read_only.add(volume.name)

    @cached_property
    def _listed(self) -> HostPathList:
        return HostPathList.of(self._policy.policy.host_paths, self._policies.written_host_paths.keys())

    @property
    def are_read_only(self) -> bool:
        """Whether some of them are, so that mounts have to be checked."""
        return bool(self._read_only or self._pipes)

    def check(self, found: Findings) -> None:
        """Deny what the policy does not list; how that is mounted is no matter any more."""
        for volume, host in self._volumes:
            if self._is_denied(volume, host, found):
                self._read_only.discard(volume.name)
            else:
                self._check_type(volume, host, found)

    def check_mounts(self, slot: Slot, found: Findings) -> Iterator[SetMountField]:
        """Deny a container that could write to what is read-only; yield what keeps it from that otherwise."""
        for index, mount in enumerate(slot.container.volume_mounts or ()):
            if mount.name in self._pipes:
                if _propagates(mount):
                    what = f"{named(slot)} mounts {quoted(mount.name)}, the MPS pipes, with mountPropagation"
                    found.deny("ConflictingRequest", what, "Remove mountPropagation")
                elif not mount.read_only:
                    yield SetMountField(index, "readOnly", True)  # noqa: FBT003 - the value
            elif mount.name not in self._read_only:
                continue
            elif not mount.read_only:
                what = f"{named(slot)} mounts {quoted(mount.name)} writable, a path of the node that is read-only here"
                self._deny(found, what, "Set readOnly: true in its volumeMounts")
            elif _propagates(mount):
                what = f"{named(slot)} mounts {quoted(mount.name)}, a path of the node, with mountPropagation"
                self._deny(found, what, "Remove mountPropagation: what the node mounts later would be writable")
            elif mount.recursive_read_only not in ("Enabled", "IfPossible"):
                yield SetMountField(index, "recursiveReadOnly", "IfPossible")

    def _access_to(self, path: str) -> Access:
        if path not in self._access:
            self._access[path] = self._listed.access(path)
        return self._access[path]

    def _is_writable(self, host: HostPath) -> bool:
        return self._access_to(normal(host.path)) == "writable"

    def _is_denied(self, volume: Volume, host: HostPath, found: Findings) -> bool:
        path = normal(host.path)
        this = f"The volume {quoted(volume.name)} is the node's {quoted(path)}"
        if is_never_listed(path) or meet(path, self._pipe_directory):
            found.deny("ConflictingRequest", f"{this}, which can bypass every share", "Remove the volume")
            return True
        shown = _shown(path)
        match self._access_to(path):
            case "unlisted":
                fix = f"Ask its administrator for {_FIELD}: [{{path: {shown}}}], or remove the volume"
                self._deny(found, f"{this}, which {_FIELD} of the policy does not list", fix)
            case "in a writable path":
                self._deny_written(this, path, found)
            case _ if host.path not in (path, f"{path}/"):
                what = f"The volume {quoted(volume.name)} writes a path of the node as {quoted(host.path)}"
                self._deny(found, what, f"Write it as {shown}")
            case _:
                return False
        return True

    def _deny_written(self, this: str, path: str, found: Findings) -> None:
        """Deny what lies in a path that pods may write, whichever namespace's they are."""
        above = self._listed.written_above(path)
        fix = "Mount the path that is listed, and what lies in it by subPath"
        if above not in self._listed.writable:
            fix = f"Ask the administrator to list {_shown(above)} here too, and mount that with subPath"
        what = f"{this}, which may be a link, since pods may write to {quoted(above)}"
        found.deny("ConflictingRequest", what, fix, by=self._policies.written_host_paths[above])

    def _check_type(self, volume: Volume, host: HostPath, found: Findings) -> None:
        if host.type in _SPECIAL_TYPES:
            what = f"The volume {quoted(volume.name)} is a hostPath of type {host.type}"
            self._deny(found, what, "Remove it: a pod with a share may mount files and directories alone")
        elif host.type in _CREATING_TYPES and not self._is_writable(host):
            what = f"The volume {quoted(volume.name)} has type {host.type}, and its path is not writable here"
            self._deny(found, what, f"Write type: {host.type.removesuffix('OrCreate')}")

    def _deny(self, found: Findings, what: str, fix: str) -> None:
        found.deny("ConflictingRequest", what, fix, by=self._policy.source(_FIELD))


def _propagates(mount: VolumeMount) -> bool:
    return mount.mount_propagation not in (None, "None")


def _shown(path: str) -> str:
    return path if len(path) <= _LONGEST_NAMED and path.isascii() and path.isprintable() else "..."


def check_drivers(pod: Pod, found: Findings) -> None:
    """Deny volumes for which the kubelet runs a program of the node, as root, on what the pod writes."""
    for volume in pod.spec.volumes or ():
        kind = "flexVolume" if volume.flex_volume is not None else "gitRepo" if volume.git_repo is not None else ""
        if kind:
            what = (
                f"The volume {quoted(volume.name)} is a {kind}: a program of the node, run as root on what a pod says"
            )
            found.deny("ConflictingRequest", what, "Use a volume of another kind")


def read_only(volumes: NodeVolumes, containers: Sequence[Slot], found: Findings) -> ReadOnlyMounts:
    """Check the mounts of all *containers*, and say which of them are to be read-only, and which below them, too."""
    if not volumes.are_read_only:
        return ()
    return tuple((slot, change) for slot in containers for change in volumes.check_mounts(slot, found))
