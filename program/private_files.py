"""Files for what OpenSSL reads out of files alone, such as keys: for this user's eyes, until they have been read."""

import atexit
import os
from pathlib import Path
from tempfile import mkstemp
from typing import Final

from kubernetes import config

from program.base64_field import decoded

_MOST_BYTES: Final = 16 * 1024 * 1024  # of a file with certificates or a key

_written: set[str] = set()


def of_data_or_file(data: str | None, name: str | None, *, directory: Path) -> str | None:
    """
    Give the path of what a kubeconfig in *directory* has itself, in base64, or names; None if it does neither.

    Raises:
        ConfigException: If there is no such file, or it is not base64.
    """
    if data:
        return _with(decoded(data, "client-certificate-data and client-key-data"))
    if name and "\n" in name:
        raise config.ConfigException("expected the name of a file with a certificate or key, got what is in one")
    if name:
        _check(directory / name)
    return str(directory / name) if name else None


def remove(file: str) -> None:
    """Remove a file if it was written here: a signal would leave the key in it behind."""
    if file in _written:
        _written.discard(file)
        Path(file).unlink(missing_ok=True)


def _check(path: Path) -> None:
    """See that OpenSSL, which reads without end, will come to one."""
    try:
        size_bytes = path.stat().st_size if path.is_file() else None
    except OSError as error:
        raise config.ConfigException(f"a file cannot be read: {error.strerror}: {path}") from None
    if size_bytes is None:
        raise config.ConfigException(f"there is no file {path}")
    if size_bytes > _MOST_BYTES:
        raise config.ConfigException(f"a file is larger than {_MOST_BYTES // 1024**2} MiB: {path}")


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
