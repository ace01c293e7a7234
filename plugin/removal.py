"""
Directories of the node that somebody removes while a container has them mounted.

The mount stays what it was: a directory that has no name any more, in which nothing can be made. What the node has by
that name afterwards is seen by a new container alone.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from plugin.errors import RemovedError


def removed(directories: Mapping[str, Path]) -> str:
    """
    Say which of *directories*, by the option that names each, was removed on the node, behind its mount.

    Empty where none was. One that is empty, cannot be read or does not exist may yet be as it should be, here.
    """
    gone = next((option for option, directory in directories.items() if _is_removed(directory)), None)
    if gone is None:
        return ""
    return (
        f"{gone} {directories[gone]}: somebody removed the directory on the node, and what is mounted here leads to "
        "nothing: a new container has the directory of the node again"
    )


def end_if_removed(directories: Mapping[str, Path]) -> None:
    """
    See that what is mounted as *directories*, by the option that names each, still is of the node.

    Raises:
        RemovedError: If one was removed there, which nothing in this container brings back.
    """
    if why := removed(directories):
        raise RemovedError(why)


def _is_removed(directory: Path) -> bool:
    for place in (directory, *directory.parents):
        with suppress(OSError):
            return not place.stat().st_nlink
    return False
