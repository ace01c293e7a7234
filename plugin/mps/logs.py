"""The logs that NVIDIA's programs write: to a tmpfs, and without an end."""

import os
from contextlib import suppress
from pathlib import Path

CONTROL_LOG = "control.log"
_LOGS = (CONTROL_LOG, "server.log")
_LARGEST_BYTES = 16 << 20


def trim(directory: Path) -> None:
    """Empty those that have grown too large."""
    for name in _LOGS:
        with suppress(OSError):
            if (directory / name).lstat().st_blocks * 512 > _LARGEST_BYTES:
                os.truncate(directory / name, 0)
