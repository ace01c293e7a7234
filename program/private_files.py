"""Files for what OpenSSL reads out of files alone, such as keys: for this user's eyes, until they have been read."""

import atexit
import os
from base64 import b64decode
from pathlib import Path
from tempfile import mkstemp

from kubernetes import config

_written: set[str] = set()


def of_data_or_file(data: str | None, name: str | None, *, directory: Path) -> str | None:
    """
    Give the path of what a kubeconfig in *directory* has itself, in base64, or names; None if it does neither.

    Raises:
        ConfigException: If there is no such file.
        ValueError: If it is not base64.
    """
    if data:
        return _with(b64decode(data))
    if name and not (directory / name).is_file():
        raise config.ConfigException(f"there is no file {directory / name}")
    return str(directory / name) if name else None


def remove(file: str) -> None:
    """Remove a file if it was written here: a signal would leave the key in it behind."""
    if file in _written:
        _written.discard(file)
        Path(file).unlink(missing_ok=True)


def _with(content: bytes) -> str:
    descriptor, name = mkstemp(prefix="gpu-share-")
    _written.add(name)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return name


@atexit.register
def _remove_all() -> None:
    for one in [*_written]:
        remove(one)
