"""
Whether `gpu-share mps` lives: it holds a lock, which the kernel takes from it the moment it ends, however it ends.

The lock belongs to the open file (an OFD lock): others can ask who holds it without taking it for a moment themselves,
which could keep a new one of us from starting.
"""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plugin.errors import MpsError

LOCK_FILE = "mps.lock"
_READ_BY_ALL = 0o755
_LOCK = struct.Struct("hhlli")  # struct flock: type, whence, start, length, PID


@contextmanager
def alone(state_dir: Path) -> Iterator[None]:
    """
    Hold the node: two of us would end each other's daemons.

    Raises:
        MpsError: If another one runs, or the folder cannot be used.
    """
    try:
        state_dir.mkdir(mode=_READ_BY_ALL, parents=True, exist_ok=True)
        lock = os.open(state_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MpsError(f"--state-dir {state_dir}: not a folder that can be written to: {error.strerror}") from error
    try:
        try:
            fcntl.fcntl(lock, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        except BlockingIOError:
            raise MpsError(f"--state-dir {state_dir}: another gpu-share mps runs on this node: end it first") from None
        yield
    finally:
        os.close(lock)


def has_ended(state_dir: Path) -> bool:
    """Whether there was one on this node, and is none now; False where that cannot be told."""
    try:
        lock = os.open(state_dir / LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        answer = fcntl.fcntl(lock, fcntl.F_OFD_GETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return int(_LOCK.unpack(answer)[0]) == fcntl.F_UNLCK
    except OSError:
        return False
    finally:
        os.close(lock)
