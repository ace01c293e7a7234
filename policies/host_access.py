"""What of the node a pod with a share may not touch, because it could bypass every limit there."""

from collections.abc import Sequence

from policies.changes import RemoveMount
from policies.denial import Findings
from policies.errors import quoted
from policies.paths import is_plain, is_within, normal
from policies.pod import Pod, Slot, Volume, VolumeMount, named
from policies.policy import EffectivePolicy
from policies.privileges import check_privileges
from policies.request import Ask
from policies.volumes import Volumes

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where the MPS server and its clients meet


def check_host_access(pod: Pod, containers: Sequence[Slot], found: Findings, *, attached: bool) -> None:
    """
    Deny a pod that is privileged, or sees the node's processes.

    *attached* says that the pod itself carries the directory of the pipes.
    """
    if pod.spec.host_pid:
        what = "The pod has hostPID, so it sees and can reach the processes of other shares"
        found.deny("PrivilegedContainer", what, "Remove hostPID")
    if pod.spec.host_ipc and not attached:
        what = "The pod has hostIPC, which its share does not need: the device plugin brings what it needs"
        found.deny("ConflictingRequest", what, "Remove hostIPC")
    for slot in containers:
        check_privileges(slot, found)


def check_mounts(
    volumes: Volumes, ask: Ask, policy: EffectivePolicy, found: Findings, *, pipe_directory: str
) -> tuple[RemoveMount, ...]:
    """
    Deny a pod with something of its own where a container with a share meets its MPS server.

    CUDA would run without MPS then, and without any limit.

    Returns:
        The mounts that the shared memory of MPS takes the place of; warnings say so.
    """
    replaced = []
    for index, mount in enumerate(ask.slot.container.volume_mounts or ()):
        path = mount.mount_path
        if not is_plain(path):
            if ".." in path.split("/"):
                what = f"{named(ask.slot)} mounts {quoted(mount.name)} at a path with .., which is not allowed"
                found.deny("ConflictingRequest", what, "Write the path without ..")
                continue
            path = normal(path)
        if is_within(path, pipe_directory):
            is_whole = path == pipe_directory and not (mount.sub_path or mount.sub_path_expr)
            volume = volumes.named(mount.name)
            if not is_whole or volume is None or not is_pipe_volume(volume, pipe_directory):
                what = _in_the_way(mount, ask, pipe_directory)
                found.deny("ConflictingRequest", what, "Remove the mount: the pipes come with the share")
        elif path == _SHARED_MEMORY:
            if _is_replaced(mount, ask, volumes, policy, found):
                replaced.append(RemoveMount(index))
        elif is_within(path, _SHARED_MEMORY):
            what = f"{named(ask.slot)} mounts {quoted(mount.name)} in {_SHARED_MEMORY}, which all shares of a node have"
            found.deny("ConflictingRequest", what, f"Mount it outside {_SHARED_MEMORY}")
    return tuple(replaced)


def check_paths(slot: Slot, found: Findings, *, pipe_directory: str) -> None:
    """Deny a container with a message file or a block device, which are mounted too, where clients meet MPS."""
    if (path := slot.container.termination_message_path) is not None:
        _check_path(slot, "terminationMessagePath", path, found, pipe_directory)
    for device in slot.container.volume_devices or ():
        _check_path(slot, "volumeDevices.devicePath", device.device_path, found, pipe_directory)


def _check_path(slot: Slot, field: str, path: str, found: Findings, pipe_directory: str) -> None:
    if ".." in path and ".." in path.split("/"):
        what = f"{named(slot)} has a {field} with .., which is not allowed"
        found.deny("ConflictingRequest", what, "Write the path without ..")
    elif is_within(whole := normal(path), pipe_directory) or is_within(whole, _SHARED_MEMORY):
        what = f"{named(slot)} has the {field} {quoted(path)}, where shares meet their MPS server"
        found.deny("ConflictingRequest", what, f"Choose a path outside {pipe_directory} and {_SHARED_MEMORY}")


def _is_replaced(mount: VolumeMount, ask: Ask, volumes: Volumes, policy: EffectivePolicy, found: Findings) -> bool:
    """Whether the shared memory of MPS takes the place of a mount: not of more than scratch memory."""
    what = _in_the_way(mount, ask, _SHARED_MEMORY)
    volume = volumes.named(mount.name)
    if volume is None or (volume.empty_dir is None and volume.ephemeral is None):
        what += ": it is more than an emptyDir, so it is not replaced"
        found.deny("ConflictingRequest", what, "Mount it elsewhere, or remove the mount")
        return False
    if policy.policy.mps.shared_memory == "deny":
        fix = "Remove the mount: /dev/shm comes with the share"
        found.deny("ConflictingRequest", what, fix, by=policy.source("mps.sharedMemory"))
        return False
    limit = volume.empty_dir.size_limit if volume.empty_dir else None
    lost = "" if limit is None else f", without its sizeLimit {quoted(str(limit), 20)[1:-1]}"
    other = volumes.mounted_beside(mount.name, ask.slot.name)
    apart = "" if other is None else f"; {quoted(other, 30)} still has the volume"
    here = f"{quoted(ask.slot.name, 30)}: the volume {quoted(mount.name, 63)} at {_SHARED_MEMORY}"
    found.change(f"{here} was replaced by the shared memory of MPS{lost}{apart}")
    return True


def _in_the_way(mount: VolumeMount, ask: Ask, directory: str) -> str:
    return f"{named(ask.slot)} mounts {quoted(mount.name)} over {directory}, where it meets its MPS server"


def is_pipe_volume(volume: Volume, pipe_directory: str) -> bool:
    """Whether this is the directory of the MPS pipes, as the webhook mounts it and users of the AWS plugin do."""
    return volume.host_path is not None and normal(volume.host_path.path) == pipe_directory
