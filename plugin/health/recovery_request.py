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


def take(state_dir: Path, *, boot_id: str) -> RecoveryRequest | None:
    """Take the request that is there; None if there is none that counts. Whatever it is, it is gone then."""
    path = state_dir / _FILE
    try:
        return _taken(path, boot_id)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, _IgnoredError) as error:  # ValueError: not what `submit` has written
        withdraw(state_dir)
        _log.warning("recovery request ignored", extra={"file": str(path), "reason": str(error)})
        return None


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
