"""
No link below the pipe directory is followed, by a daemon or a server either.

They open what is there by its path, as root of the node, and tenants write to it: a link in the place of a pid file
would have one of the node's files overwritten, and one in the place of a socket takes a server to the daemon of another
GPU.
The flag is one of our own mount, and of those that are made of it for containers. The node sees its own as before.
"""

import logging
import os
from pathlib import Path

from plugin.mps import mounts

_log = logging.getLogger(__name__)

_IS_SET = 0x2000  # ST_NOSYMFOLLOW, which Python has no name for
_KEPT = os.ST_RDONLY | os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC  # of the same values in statvfs(3) and mount(2)


def follow_no_links(pipe_directory: Path) -> None:
    """Have no link followed there from now on; where that cannot be, a warning says so."""
    path = str(pipe_directory.resolve())
    try:
        if not any(one.point == path for one in mounts.mounts()):
            _warn(path, "it is not a mount of its own: run gpu-share mps in a container that mounts it")
            return
        flags = os.statvfs(path).f_flag
        if flags & _IS_SET:
            return
        mounts.mount("", path, flags=mounts.REMOUNT | mounts.BIND | mounts.NOSYMFOLLOW | flags & _KEPT)
        if not os.statvfs(path).f_flag & _IS_SET:
            _warn(path, "the kernel cannot do it: have Linux 5.10 or later")
    except OSError as error:
        _warn(path, error.strerror)


def _warn(path: str, reason: str | None) -> None:
    _log.warning(
        "links that tenants put into pipe directories are followed", extra={"directory": path, "reason": reason}
    )
