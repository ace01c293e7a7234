"""A mount namespace of its own for a test's process."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).parents[3]
ODD_ENDS_OF_LINES = ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\udcff"]  # for Python, but not for the kernel
ISOLATED = ("unshare", "--mount", "--propagation", "private")


def mounted(source: Path, target: Path) -> tuple[str, ...]:
    """Give what runs a program in a namespace in which *source* is mounted on *target*, as in a container."""
    script = 'mount --bind "$0" "$1" && shift && exec "$@"'
    return (*ISOLATED, "sh", "-c", script, str(source), str(target))


def _permitted() -> bool:
    return which("unshare") is not None and subprocess.run([*ISOLATED, "true"], check=False).returncode == 0


_PERMITTED = _permitted()
ISOLATED_IF_PERMITTED = ISOLATED if _PERMITTED else ()  # for what must fail before it mounts anything

needs_mounts = pytest.mark.skipif(not _PERMITTED, reason="needs unshare and the right to mount")
