"""What of the node a pod with a share may not touch, because it could bypass every limit there."""

import re
from collections.abc import Sequence
from posixpath import normpath

from policies.denial import DeniedError
from policies.errors import quoted
from policies.pod import Pod, Slot, Volume, named
from policies.request import Ask

# Device files; the sockets of the kubelet and of container runtimes, which start containers with anything in them.
_DIRECTORIES_OF_POWER = (
    "/dev",
    "/proc",
    "/sys",
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/run",
    "/run",
    "/etc/kubernetes",
)
_NORMAL = re.compile(r"(/[^/.][^/]*)+")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where the MPS server and its clients meet
_CAPABILITIES_OF_POWER = frozenset({"ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO"})


def check_host_access(pod: Pod, containers: Sequence[Slot], *, pipe_directory: str, attached: bool) -> None:
    """
    Hold the pod's privileges against its share; *attached* says that the pod itself carries the directory of the pipes.

    Raises:
        DeniedError: If it is privileged, or sees the node's processes, devices or sockets.
    """
    if pod.spec.host_pid:
        what = "The pod has hostPID, so it sees and can reach the processes of other shares"
        raise DeniedError("PrivilegedContainer", what, "Remove hostPID")
    if pod.spec.host_ipc and not attached:
        what = "The pod has hostIPC, which its share does not need: the device plugin brings what it needs"
        raise DeniedError("ConflictingRequest", what, "Remove hostIPC")
    for slot in containers:
        check_privileges(slot)
    for volume in pod.spec.volumes or ():
        if volume.host_path is not None and not (attached and is_pipe_volume(volume, pipe_directory)):
            _check_host_path(volume, pipe_directory)


def check_privileges(slot: Slot) -> None:
    """
    See that one container cannot bypass a share by what it may do.

    Raises:
        DeniedError: If it is privileged, or adds a capability that is as good.
    """
    security = slot.container.security_context
    if security is None:
        return
    if security.privileged:
        what = f"{named(slot)} is privileged, so it can bypass its own share and those of others"
        fix = "Remove securityContext.privileged, or ask for a whole GPU without gpu-share"
        raise DeniedError("PrivilegedContainer", what, fix)
    if security.capabilities and security.capabilities.add:
        _check_capabilities(slot, security.capabilities.add)


def check_mounts(pod: Pod, asks: Sequence[Ask], *, pipe_directory: str) -> None:
    """
    See that nothing of the pod's own lies where a container with a share meets its MPS server.

    Raises:
        DeniedError: If something does. CUDA would run without MPS then, and without any limit.
    """
    pipes = {volume.name for volume in pod.spec.volumes or () if is_pipe_volume(volume, pipe_directory)}
    for ask in asks:
        for mount in ask.slot.container.volume_mounts or ():
            path = mount.mount_path
            if not _NORMAL.fullmatch(path):
                if ".." in path.split("/"):
                    what = f"{named(ask.slot)} mounts {quoted(mount.name)} at a path with .., which hides where it lies"
                    raise DeniedError("ConflictingRequest", what, "Write the path without ..")
                path = normal(path)
            is_pipe_mount = (
                path == pipe_directory and mount.name in pipes and not (mount.sub_path or mount.sub_path_expr)
            )
            over_pipes = is_within(path, pipe_directory) and not is_pipe_mount
            if over_pipes or path == _SHARED_MEMORY:
                over = pipe_directory if over_pipes else _SHARED_MEMORY
                what = f"{named(ask.slot)} mounts {quoted(mount.name)} over {over}, where it meets its MPS server"
                raise DeniedError(
                    "ConflictingRequest", what, "Remove the mount: /dev/shm and the pipes come with the share"
                )


def is_pipe_volume(volume: Volume, pipe_directory: str) -> bool:
    """Whether this is the directory of the MPS pipes, as the webhook mounts it and users of the AWS plugin do."""
    return volume.host_path is not None and normal(volume.host_path.path) == pipe_directory


def is_within(path: str, directory: str) -> bool:
    """Whether *path* is *directory* or lies in it; both are normal paths."""
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def normal(path: str) -> str:
    """Write a path as the container runtime takes it: from the root, whatever its slashes and dots."""
    if _NORMAL.fullmatch(path):  # almost every path is; `normpath` takes ten times as long to say so
        return path
    return normpath(f"/{path.lstrip('/')}")


def _check_capabilities(slot: Slot, added: Sequence[str]) -> None:
    for capability in added:
        if capability.upper().removeprefix("CAP_") in _CAPABILITIES_OF_POWER:
            what = f"{named(slot)} adds the capability {quoted(capability)}, which can bypass every share"
            raise DeniedError("PrivilegedContainer", what, "Remove it from securityContext.capabilities.add")


def _check_host_path(volume: Volume, pipe_directory: str) -> None:
    path = normal(volume.host_path.path) if volume.host_path else ""
    for directory in (*_DIRECTORIES_OF_POWER, pipe_directory):
        if is_within(path, directory) or is_within(directory, path):
            what = f"The volume {quoted(volume.name)} is the node's {quoted(path)}, which can bypass every share"
            raise DeniedError("ConflictingRequest", what, "Remove the volume")
