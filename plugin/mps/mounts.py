"""mount(2) and umount2(2), and what is mounted where."""

import ctypes
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, NOSYMFOLLOW, BIND = 1, 2, 4, 8, 32, 256, 4096
_DETACH, _NOFOLLOW = 2, 8
_MOUNTS = Path("/proc/self/mountinfo")
_FIRST_PROCESS = Path("/proc/1/mountinfo")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A line of mountinfo."""

    id: int  # another one in each mount namespace
    device: str  # that `stat` gives for its files: major:minor
    point: str
    peers: str  # the group of mounts on which a mount on top shows too; empty where there is none
    source: str


def mounts(path: Path = _MOUNTS) -> tuple[Mount, ...]:
    """
    List what a process sees mounted, the topmost last.

    Names of tenants are in it, and the kernel ends a line by a newline alone.

    Raises:
        OSError: If *path* cannot be read.
    """
    return tuple(_mount(os.fsdecode(line)) for line in path.read_bytes().split(b"\n") if line)


def mount_of(path: str, among: Iterable[Mount]) -> Mount | None:
    """Find the mount that a resolved *path* is in."""
    best = None
    for one in among:
        inside = path == one.point or path.startswith(one.point.rstrip("/") + "/")
        if inside and (best is None or len(one.point) >= len(best.point)):
            best = one
    return best


def mounted_at(point: Path) -> Mount | None:
    """
    Say what is mounted on top at a resolved *point*; None if nothing is.

    Raises:
        OSError: If the list of mounts cannot be read.
    """
    return next((one for one in reversed(mounts()) if one.point == str(point)), None)


def mount(source: str, target: str, *, kind: str = "", flags: int = 0, options: str = "") -> None:
    """
    Attach a file system, as the system call does.

    Raises:
        OSError: As the kernel says.
    """
    arguments = [os.fsencode(text) or None for text in (source, target, kind)]
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(options) or None), target)


def unmount(target: str) -> None:
    """
    Take a mount out of the tree; who uses it keeps it.

    Raises:
        OSError: As the kernel says.
    """
    _check(_libc.umount2(os.fsencode(target), _DETACH | _NOFOLLOW), target)


def shows_to_us_alone(path: str, own: Sequence[Mount], first: Sequence[Mount] | None, *, pid: int) -> bool:
    """
    Whether a mount at *path* shows to this program alone, and not to the whole node.

    *own* is what this process, with *pid*, sees mounted, and *first* what the first process does, if that is known.
    """
    covering = mount_of(path, own)
    if covering is None:
        return False
    if pid == 1:  # of a container, and the node's mounts are not to be seen
        return not covering.peers
    if first is None or {one.id for one in own} & {one.id for one in first}:
        # The first process is the node's, or that of our container; there is no telling in the latter case.
        return False
    on_node = mount_of(path, first)
    return not covering.peers or on_node is None or covering.peers != on_node.peers


def first_mounts() -> Sequence[Mount] | None:
    """List what the first process sees mounted; None where that is not to be seen."""
    try:
        return mounts(_FIRST_PROCESS)
    except OSError:
        return None


def _check(code: int, target: str) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def _mount(line: str) -> Mount:
    fields = line.split(" ")
    end = fields.index("-", 6)
    return Mount(
        id=int(fields[0]),
        device=fields[2],
        point=re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4]),
        peers=next((field for field in fields[6:end] if field.startswith("shared:")), ""),
        source=fields[end + 2],
    )
