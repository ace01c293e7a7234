"""
What NVIDIA's container toolkit is told on this node about the variable NVIDIA_VISIBLE_DEVICES.

Its configuration is one file, `config.toml`. It is read when it has changed, by the thread that reconciles.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from policies.node_state import Toolkit
from program.files import read_file

_LARGEST_BYTES: Final = 64 * 1024  # as it is shipped, it has 2 KiB
# https://github.com/NVIDIA/nvidia-container-toolkit/blob/main/internal/config/config.go, with its default.
_ACCEPTS: Final = "accept-nvidia-visible-devices-envvar-when-unprivileged"
_ACCEPTS_BY_DEFAULT: Final = True


class ToolkitConfiguration:
    """The file at *path*; *is_needed* says whether some container of ours gets its GPU by the variable, or will."""

    def __init__(self, path: Path, is_needed: Callable[[], bool]) -> None:
        self._path = path
        self._is_needed = is_needed
        self._version: tuple[int, ...] | None = None  # of the file that was read
        self._accepts: bool | None = None

    def look(self) -> Toolkit:
        """Say what it says now."""
        version = self._state()
        if version != self._version:
            self._version = version
            self._accepts = _accepts(self._path)
        return Toolkit(accepts_variable=self._accepts, variable_needed=self._is_needed())

    def _state(self) -> tuple[int, ...] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns


def _accepts(path: Path) -> bool | None:
    """Whether containers that are not privileged get GPUs by the variable; None if the file does not tell."""
    try:
        content = read_file(path, most_bytes=_LARGEST_BYTES + 1)
        if len(content) > _LARGEST_BYTES:
            return None
        found = tomllib.loads(content.decode()).get(_ACCEPTS, _ACCEPTS_BY_DEFAULT)
    except (OSError, ValueError, RecursionError):  # ValueError: no UTF-8, or no TOML
        return None
    return found if isinstance(found, bool) else None
