"""
The time that all processes of one machine share until it starts anew.

Unlike the wall clock it is never set, and unlike Python's monotonic clock it goes on while the machine sleeps: the age
of what another process has written is the difference of two of these.
"""

import time
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_seconds() -> float:
    """Count the seconds since the machine started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """
    Name this run of the machine: `boot_seconds` of another run must not be compared with this one's.

    Raises:
        OSError: If /proc is not there.
    """
    return _BOOT_ID.read_text(encoding="ascii").strip()
