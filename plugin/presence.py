"""
Whether a program of this node lives: it holds a lock that the kernel takes from it the moment it ends, by whatever.

The lock belongs to the open file (an OFD lock): others can ask who holds it without taking it for a moment themselves,
which could keep a new program from starting. There is one for each program in the directory of the node's state.

What a killed program has published stays, and would look like news once the next one lives. So a program takes two
locks: one by which it is the only one and, when what was published before is invalid, one by which others see it.
"""

import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from plugin.errors import AlreadyRunsError, StateDirectoryError

_READ_BY_ALL = 0o755
_OWNER_ONLY = 0o600
_LOCK = struct.Struct("hhlli")  # struct flock: type, whence, start, length, PID
_ONLY, _SEEN = 0, 1  # the bytes of the file that are locked


def lock_file(state_dir: Path, program: str) -> Path:
    """Name the file that *program*, such as mps, holds a lock on while it lives."""
    return state_dir / f"{program}.lock"


def _nothing() -> None:
    """Have published nothing that could be taken for news."""


@contextmanager
def alone(state_dir: Path, program: str, *, before_seen: Callable[[], None] = _nothing) -> Iterator[None]:
    """
    Be the only *program* of this node, which is what `gpu-share` calls it.

    *before_seen* makes invalid what an earlier one has published, before anybody sees that there is one again.

    Raises:
        AlreadyRunsError: If another one runs.
        StateDirectoryError: If *state_dir* cannot be used, or *before_seen* raises OSError.
    """
    try:
        state_dir.mkdir(mode=_READ_BY_ALL, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(lock_file(state_dir, program), flags, _OWNER_ONLY)
    except OSError as error:
        sentence = f"--state-dir {state_dir}: not a directory that can be written to: {error.strerror}"
        raise StateDirectoryError(sentence) from error
    try:
        try:
            _take(lock, _ONLY)
            before_seen()
            _take(lock, _SEEN)
        except BlockingIOError:
            sentence = f"--state-dir {state_dir}: another gpu-share {program} runs on this node: end it first"
            raise AlreadyRunsError(sentence) from None
        except OSError as error:
            sentence = f"--state-dir {state_dir}: what was published there cannot be replaced: {error.strerror}"
            raise StateDirectoryError(sentence) from error
        yield
    finally:
        os.close(lock)


def _take(lock: int, byte: int) -> None:
    fcntl.fcntl(lock, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0))


def lives(state_dir: Path, program: str) -> bool | None:
    """Whether a *program* runs on this node; None where that is not known: there never was one, or no right to ask."""
    try:
        lock = os.open(lock_file(state_dir, program), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = fcntl.fcntl(lock, fcntl.F_OFD_GETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _SEEN, 1, 0))
        return int(_LOCK.unpack(answer)[0]) != fcntl.F_UNLCK
    except OSError:
        return None
    finally:
        os.close(lock)
