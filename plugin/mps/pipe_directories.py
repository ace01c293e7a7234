"""
The directories that MPS daemons listen in.

Tenants reach them as root of their container: under `attach: pod` all of them, under `attach: node` that of their GPU.
So whatever lies in them may have been planted; nothing is followed, and nothing is reused but the directories
themselves, which containers have mounted.
"""

import errno
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from secrets import token_hex

from plugin.errors import MpsError

_log = logging.getLogger(__name__)

_ENTERED_BY_ALL = 0o755
_LONGEST_SOCKET_BYTES = 107  # of a unix socket's path
_LONGEST_SOCKET = "control_privileged"  # that a daemon makes
_AT_A_TIME = 1000  # entries of a directory: there can be millions
_MOST_ROUNDS = 100_000  # of so many; the least of them has one entry, of directories in each other
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ACLS = ("system.posix_acl_access", "system.posix_acl_default")  # the second is for what is made in a directory
_SELINUX = Path("/sys/fs/selinux/enforce")
_SELINUX_ATTRIBUTE = "security.selinux"
_SELINUX_LABEL = b"system_u:object_r:container_file_t:s0"  # what containers may use


def prepare_pipe_directory(path: Path) -> None:
    """
    Make the directory of all pipe directories, for everyone to enter and for us alone to write to.

    Raises:
        MpsError: If it cannot be had, or users other than root cannot reach it.
    """
    try:
        path.mkdir(mode=_ENTERED_BY_ALL, parents=True, exist_ok=True)
        with _opened(path) as directory:
            take(directory)
    except OSError as error:
        raise MpsError(
            f"mps.pipeDirectory {path}: expected a directory that can be written to, and no link: {error.strerror}"
        ) from error
    closed = next((parent for parent in path.parents if not parent.stat().st_mode & stat.S_IXOTH), None)
    if closed is not None:
        raise MpsError(
            f"mps.pipeDirectory {path}: users other than root cannot enter {closed}, so their programs would not reach "
            f"MPS: chmod o+x {closed}, or name another directory in _cluster.yaml"
        )


def prepare(pipe_directory: Path, name: str) -> Path:
    """
    Make a directory below, in place of whatever else has its name. One that is there stays, with its content.

    Raises:
        MpsError: If it cannot be had.
    """
    _check_name(pipe_directory, name)
    path = pipe_directory / name
    if len(os.fsencode(path / _LONGEST_SOCKET)) > _LONGEST_SOCKET_BYTES:
        raise MpsError(
            f"{path / _LONGEST_SOCKET}: longer than the {_LONGEST_SOCKET_BYTES} bytes that a socket's path may have: "
            "name a shorter mps.pipeDirectory in _cluster.yaml"
        )
    try:
        with opened_child(pipe_directory, name) as directory:
            take(directory)
    except OSError as error:
        raise MpsError(f"{path}: cannot be taken over: {error.strerror}") from error
    return path


def open_to_all(path: Path) -> None:
    """
    Have the directory of all pipe directories entered by all, whatever root in a container has made of it.

    Raises:
        OSError: If that cannot be, or it is not there.
    """
    with _opened(path) as directory:
        if take(directory):
            _log.warning("mps.pipeDirectory was closed to some users: opened again", extra={"directory": str(path)})


def clear(pipe_directory: Path, name: str) -> None:
    """
    Remove what a directory below holds: stale sockets and pid file, or what was planted.

    Raises:
        MpsError: If something cannot be removed.
    """
    _check_name(pipe_directory, name)
    try:
        with opened_child(pipe_directory, name) as directory:
            _empty(directory)
    except OSError as error:
        raise MpsError(f"{pipe_directory / name}: cannot be emptied: {error.strerror}: empty it by hand") from error


def label(directory: int, *, selinux: Path = _SELINUX) -> None:
    """Let containers use an open directory and what is made in it, where SELinux would not; a failure is logged."""
    if not selinux.exists():
        return
    with suppress(OSError):  # it has none
        if os.getxattr(directory, _SELINUX_ATTRIBUTE).rstrip(b"\0") == _SELINUX_LABEL:
            return
    try:
        os.setxattr(directory, _SELINUX_ATTRIBUTE, _SELINUX_LABEL)
    except OSError as error:
        _log.warning("SELinux label not set: pods may not reach MPS", extra={"reason": error.strerror})


def drop_acl(file: int | str) -> bool:
    """Remove the ACL that can keep some users from a file whose mode lets them in, and say whether there was one."""
    found = False
    for name in _ACLS:
        with suppress(OSError):  # it has none
            os.getxattr(file, name)  # to remove what is not there would count as a change
            os.removexattr(file, name)
            found = True
    return found


def take(directory: int, mode: int = _ENTERED_BY_ALL) -> bool:
    """Have an open directory for our own, with this mode and no ACL, and say whether it was not; OSError if not."""
    status = os.fstat(directory)
    changed = drop_acl(directory)  # first: with one, the mode says something else
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(directory, os.geteuid(), os.getegid())
        changed = True
    if stat.S_IMODE(os.fstat(directory).st_mode) != mode:  # for a new one that is the umask's doing
        os.fchmod(directory, mode)
        changed = True
    label(directory)
    return changed


@contextmanager
def opened_child(pipe_directory: Path, name: str) -> Iterator[int]:
    """
    Open a directory below; made if there is none, in place of a file or a link.

    Raises:
        OSError: If it cannot be had.
    """
    with _opened(pipe_directory) as parent, _child(parent, name) as directory:
        yield directory


def _check_name(pipe_directory: Path, name: str) -> None:
    """See that a name, which any process of the node may have given, leads nowhere else."""
    if name in ("", ".", "..") or "/" in name:
        raise MpsError(f"{pipe_directory}: expected the name of a directory in it, got {name!r}")


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    directory = os.open(path, _DIRECTORY)
    try:
        yield directory
    finally:
        os.close(directory)


@contextmanager
def _child(parent: int, name: str) -> Iterator[int]:
    with suppress(FileExistsError):
        os.mkdir(name, _ENTERED_BY_ALL, dir_fd=parent)
    try:
        directory = os.open(name, _DIRECTORY, dir_fd=parent)
    except NotADirectoryError:  # a link, too
        os.unlink(name, dir_fd=parent)
        os.mkdir(name, _ENTERED_BY_ALL, dir_fd=parent)
        directory = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        yield directory
    finally:
        os.close(directory)


def _empty(directory: int) -> None:
    """
    Remove all content, however deep it is and however much: what lies in a directory below is moved up first.

    Raises:
        OSError: If something cannot be removed, or somebody puts more there all the while.
    """
    for _ in range(_MOST_ROUNDS):
        found = _some(directory)
        if not found:
            return
        for name, is_directory in found:
            if not is_directory:
                _remove(name, directory)
                continue
            with _child(directory, name) as emptied:
                _move_up(emptied, directory)
            os.rmdir(name, dir_fd=directory)
    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))


def _move_up(emptied: int, directory: int) -> None:
    """Remove the files of one open directory, and move those in it to the other one."""
    for _ in range(_MOST_ROUNDS):
        found = _some(emptied)
        if not found:
            return
        for name, is_directory in found:
            if is_directory:
                os.rename(name, token_hex(), src_dir_fd=emptied, dst_dir_fd=directory)
            else:
                _remove(name, emptied)


def _remove(name: str, directory: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)


def _some(directory: int) -> list[tuple[str, bool]]:
    """List some entries of an open directory, and whether each is a directory."""
    with os.scandir(directory) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, _AT_A_TIME)]
