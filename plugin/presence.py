"""
Whether a program of this node lives: it holds a lock that the kernel takes from it the moment it ends, by whatever.

The lock belongs to the open file (an OFD lock): others can ask who holds it without taking it for a moment themselves,
which could keep a new program from starting. There is one for each program in the directory of the node's state.

What a killed program has published stays, and would look like news once the next one lives. So a program takes two
locks: one by which it is the only one and, when what was published before is invalid, one by which others see it.

A file that somebody removes keeps its locks, where nobody sees them: so the program looks now and then. Where a
container has the directory by a mount, and it is removed on the node, nothing can be made there any more (`removal`).
"""

import fcntl
import logging
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from plugin.errors import AlreadyRunsError, StateDirectoryError

_log = logging.getLogger(__name__)

PLUGIN = "plugin"  # the program that gives the GPUs of the node away

_READ_BY_ALL = 0o755
_OWNER_ONLY = 0o600
_LOCK = struct.Struct("hhlli")  # struct flock: type, whence, start, length, PID
_ONLY, _SEEN = 0, 1  # the bytes of the file that are locked


def lock_file(state_dir: Path, program: str) -> Path:
    """Name the file that *program*, such as mps, holds a lock on while it lives."""
    return state_dir / f"{program}.lock"


def _nothing() -> None:
    """Have published nothing that could be taken for news."""


class Presence:
    """The locks that a program holds by the open file *lock*; for any thread."""

    def __init__(self, state_dir: Path, program: str, lock: int) -> None:
        self._state_dir = state_dir
        self._program = program
        self._lock = lock
        self._is_open = True
        self._said = ""
        self._looking = Lock()

    def look(self) -> None:
        """
        See that others can see the program: where its file was removed, take the locks on a new one.

        Where that cannot be, because another one has taken them meanwhile for instance, the log says so once.
        """
        with self._looking:
            if self._is_open and not self._is_seen():
                self._take_again()

    def close(self) -> None:
        """Let the locks go."""
        with self._looking:
            self._is_open = False
            os.close(self._lock)

    def _is_seen(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._lock), lock_file(self._state_dir, self._program).lstat())
        except OSError:
            return False

    def _take_again(self) -> None:
        path = lock_file(self._state_dir, self._program)
        try:
            lock = _opened(self._state_dir, self._program)
        except OSError as error:
            self._say(
                f"{path}: somebody removed it, and it cannot be made again: {error.strerror}: others believe "
                f"that no gpu-share {self._program} runs on this node: make the directory writable, or restart"
            )
            return
        try:
            _take(lock, _ONLY)
            _take(lock, _SEEN)
        except OSError:
            os.close(lock)
            self._say(
                f"{path}: somebody removed it, and another gpu-share {self._program} has started on this node: "
                "end one of the two"
            )
            return
        os.close(self._lock)
        self._lock, self._said = lock, ""
        _log.warning("lock file was removed: locked again", extra={"file": str(path)})

    def _say(self, why: str) -> None:
        if why != self._said:
            self._said = why
            _log.error("not seen by others any more", extra={"reason": why})


@contextmanager
def alone(state_dir: Path, program: str, *, before_seen: Callable[[], None] = _nothing) -> Iterator[Presence]:
    """
    Be the only *program* of this node, which is what `gpu-share` calls it.

    *before_seen* makes invalid what an earlier one has published, before anybody sees that there is one again. Have
    what is given look every second or so.

    Raises:
        AlreadyRunsError: If another one runs.
        StateDirectoryError: If *state_dir* cannot be used, or *before_seen* raises OSError.
    """
    try:
        lock = _opened(state_dir, program)
    except OSError as error:
        sentence = f"--state-dir {state_dir}: not a directory that can be written to: {error.strerror}"
        raise StateDirectoryError(sentence) from error
    presence = Presence(state_dir, program, lock)
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
        yield presence
    finally:
        presence.close()


def _opened(state_dir: Path, program: str) -> int:
    state_dir.mkdir(mode=_READ_BY_ALL, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(lock_file(state_dir, program), flags, _OWNER_ONLY)


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
