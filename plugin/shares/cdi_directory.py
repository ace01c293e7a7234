"""The directory in which a container runtime looks for CDI specifications: ours come and go, no others are touched."""

import errno
import logging
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from plugin.errors import HandoverError
from plugin.shares.cdi import kind
from plugin.state_files import write_atomically
from program.files import read_file

_log = logging.getLogger(__name__)

_MODE = 0o755
_LARGEST_BYTES = 16 << 20  # 56 MIG instances of 100 vGPUs each are 5 MiB
# Runtimes read only what ends in .json or .yaml, so one that is being written (see `write_atomically`) is not read.
_SPECIFICATION = r"gpu-share_[a-z0-9-]+(\.[a-z0-9-]+)+_[A-Za-z][A-Za-z0-9_-]*\.json"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_OURS = re.compile(rf"{_SPECIFICATION}|\.{_SPECIFICATION}\.[0-9]+\.new", re.ASCII)


def write_specification(directory: Path, resource: str, content: bytes) -> None:
    """
    Put the specification of *resource* into *directory*, which is made if it is not there.

    A file that has this content is left alone: runtimes read all specifications anew at each change.

    Raises:
        HandoverError: If the directory cannot be made or written to.
    """
    path = directory / file_name(resource)
    with _failures_named(directory):
        if not directory.is_dir():
            directory.mkdir(parents=True)
            directory.chmod(_MODE)  # whatever the umask
        if not has(path, content):
            write_atomically(path, content)
            _log.info("CDI specification written", extra={"file": str(path), "resource": resource})


def restore_specification(directory: Path, resource: str, content: bytes) -> None:
    """
    Write the specification of *resource* again, if somebody has removed or changed it.

    Raises:
        HandoverError: If it cannot be written.
    """
    path = directory / file_name(resource)
    if not has(path, content):
        _log.warning("CDI specification was removed or changed: written again", extra={"file": str(path)})
        write_specification(directory, resource, content)


def read_specification(directory: Path, resource: str) -> bytes:
    """Read the specification of *resource*; nothing where there is none that can be read."""
    try:
        return read_file(directory / file_name(resource), most_bytes=_LARGEST_BYTES)
    except OSError:
        return b""


def remove_stale(directory: Path, resources: Collection[str]) -> None:
    """
    Remove our specifications of all but *resources*, and what a killed run left half written.

    Raises:
        HandoverError: If the directory cannot be read or written to.
    """
    kept = {file_name(resource) for resource in resources}
    with _failures_named(directory):
        if not directory.is_dir():
            return
        for path in directory.iterdir():
            if path.name not in kept and _OURS.fullmatch(path.name) and not path.is_dir():
                path.unlink()
                _log.info("CDI specification removed", extra={"file": str(path)})


def file_name(resource: str) -> str:
    """Name the file of a resource's specification; never the same one for two resources."""
    return f"gpu-share_{kind(resource).replace('/', '_')}.json"


def has(path: Path, content: bytes) -> bool:
    """Whether the file at *path* has that content and no more."""
    try:
        return read_file(path, most_bytes=len(content) + 1) == content
    except OSError:
        return False


def remedy(error: OSError) -> str:
    """Say what to do where a specification cannot be written."""
    if error.errno in _NO_ROOM:
        return "make room on that file system of the node"
    return "give the plugin this directory of the host, writable"


@contextmanager
def _failures_named(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HandoverError(
            f"--cdi-dir {directory}: CDI specifications cannot be written there: {error.strerror or error}: "
            f"{remedy(error)}, or leave cdi out of handover in _cluster.yaml"
        ) from error
