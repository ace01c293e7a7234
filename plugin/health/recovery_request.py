"""
How `gpu-share plugin recover` asks the plugin that runs: a file that root alone can write, and that is taken once.

A request that the plugin does not take soon is worth nothing: it was asked of what the GPU was then.
"""

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from plugin.health.state import FaultName
from plugin.state_files import boot_seconds, write_atomically

_log = logging.getLogger(__name__)

_FILE = "recover.json"
_LARGEST_BYTES = 64 * 1024
_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
TAKEN_WITHIN_SECONDS = 10.0  # the plugin looks every second


class RecoveryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One administrator's word about one GPU."""

    id: str  # under which the plugin answers
    boot_id: str
    asked_seconds: float  # `state_files.boot_seconds`
    gpu_uuid: str
    faults: tuple[FaultName, ...]  # that the administrator has seen
    reason: str
    by: str


def submit(state_dir: Path, request: RecoveryRequest) -> None:
    """
    Put a request where the plugin looks, in place of one that was there.

    Raises:
        OSError: If the directory cannot be written to.
    """
    write_atomically(state_dir / _FILE, msgspec.json.encode(request))


def withdraw(state_dir: Path) -> None:
    """Take back what was submitted, if it is still there."""
    with suppress(OSError):
        (state_dir / _FILE).unlink()


class _IgnoredError(Exception):
    """A file that is no request that counts."""


class RecoveryRequests:
    """Takes the requests that are put in *state_dir*."""

    def __init__(self, state_dir: Path, *, boot_id: str) -> None:
        self._state_dir = state_dir
        self._boot_id = boot_id
        self._said = ""  # of what could not be removed, such as a directory, and is found each time

    def take(self) -> RecoveryRequest | None:
        """Take the request that is there; None if there is none that counts. Whatever can be removed is gone then."""
        path, taken, reason = self._state_dir / _FILE, None, ""
        try:
            taken = _taken(path, self._boot_id)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, RecursionError, _IgnoredError) as error:  # ValueError: not what `submit` writes
            withdraw(self._state_dir)
            reason = str(error)
            if reason != self._said:
                _log.warning("recovery request ignored", extra={"file": str(path), "reason": reason})
        self._said = reason if os.path.lexists(path) else ""
        return taken


def _taken(path: Path, boot_id: str) -> RecoveryRequest:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        content = os.read(descriptor, _LARGEST_BYTES) if stat.S_ISREG(status.st_mode) else b""
    finally:
        os.close(descriptor)
    path.unlink()  # before anything follows from it
    if status.st_uid not in {0, os.geteuid()} or status.st_mode & _OF_OTHERS:
        raise _IgnoredError("others than root can have written it")
    request = msgspec.json.decode(content, type=RecoveryRequest)
    if request.boot_id != boot_id or not 0 <= boot_seconds() - request.asked_seconds <= TAKEN_WITHIN_SECONDS:
        raise _IgnoredError("it is too old")
    return request
