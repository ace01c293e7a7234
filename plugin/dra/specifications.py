"""CDI specifications of claims: one file for each, with one device for each of its requests."""

import logging
import os
import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from plugin.dra.checkpoint import Prepared
from plugin.errors import HandoverError
from plugin.shares.cdi import CDI_VERSION
from plugin.shares.cdi_directory import has, remedy
from plugin.state_files import write_atomically
from policies.contract import DRIVER

_log = logging.getLogger(__name__)

_KIND = f"{DRIVER}/claim"
_PREFIX = "gpu-share-claim_"  # unlike the specifications of resources, which the device plugin removes
_OURS = re.compile(rf"\.?{_PREFIX}(?P<uid>[A-Za-z0-9-]+)\.json(\.[0-9]+\.new)?", re.ASCII)
_MODE = 0o755
_TRIAL = "trial"  # no claim's UID
_LARGE_BYTES = 16 << 10  # for a specification


def device_id(uid: str, request: str) -> str:
    """Name the CDI device of a request, as the container runtime is asked for it."""
    return f"{_KIND}={_device_name(uid, request)}"


def write_specification(directory: Path, uid: str, prepared: Prepared) -> None:
    """
    Put the specification of a claim into *directory*, which is made if it is not there.

    A file that has this content is left alone: it is as good where there is no room to write another.

    Raises:
        HandoverError: If it cannot be written.
    """
    with _failures_named(directory):
        _make(directory)
        path, content = _path(directory, uid), _specification(uid, prepared)
        if not has(path, content):
            write_atomically(path, content)


def restore_specification(directory: Path, uid: str, prepared: Prepared) -> None:
    """
    Write the specification of a claim again, if somebody has removed or changed it.

    Raises:
        HandoverError: If it cannot be written.
    """
    path = _path(directory, uid)
    if not has(path, _specification(uid, prepared)):
        write_specification(directory, uid, prepared)
        _log.warning("CDI specification was removed or changed: written again", extra={"file": str(path)})


def remove_specification(directory: Path, uid: str) -> None:
    """
    Remove the specification of a claim, if it is there.

    Raises:
        HandoverError: If it cannot be removed.
    """
    with _failures_named(directory):
        _path(directory, uid).unlink(missing_ok=True)


def try_directory(directory: Path) -> None:
    """
    See whether specifications can be written into *directory*, which is made if it is not there.

    Raises:
        HandoverError: If not.
    """
    trial = directory / f".{_path(directory, _TRIAL).name}.{os.getpid()}.new"  # as a killed run leaves it
    with _failures_named(directory):
        _make(directory)
        try:
            trial.write_bytes(bytes(_LARGE_BYTES))
        finally:
            trial.unlink(missing_ok=True)


def remove_others(directory: Path, uids: Container[str]) -> None:
    """
    Remove our specifications of claims other than these, by UID, and what a killed run left half written.

    Raises:
        HandoverError: If one cannot be removed.
    """
    with _failures_named(directory):
        for path in directory.iterdir() if directory.is_dir() else ():
            match = _OURS.fullmatch(path.name)
            is_left = match and (match["uid"] not in uids or path.name.startswith("."))
            if is_left and not path.is_dir():
                path.unlink(missing_ok=True)


def _make(directory: Path) -> None:
    if not directory.is_dir():
        directory.mkdir(parents=True)
        directory.chmod(_MODE)  # whatever the umask


def _specification(uid: str, prepared: Prepared) -> bytes:
    devices = [{"name": _device_name(uid, one.request), "containerEdits": one.edits} for one in prepared.devices]
    return msgspec.json.encode({"cdiVersion": CDI_VERSION, "kind": _KIND, "devices": devices})


def _device_name(uid: str, request: str) -> str:
    return f"claim-{uid}-{request}"  # it begins with a letter, as the oldest runtimes need it


def _path(directory: Path, uid: str) -> Path:
    return directory / f"{_PREFIX}{uid}.json"


@contextmanager
def _failures_named(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HandoverError(
            f"--cdi-dir {directory}: the CDI specification of a claim cannot be changed there: "
            f"{error.strerror or error}: {remedy(error)}"
        ) from error
