"""Files that another process reads at any moment: it sees the old content or the new, never half of one."""

import os
from contextlib import suppress
from pathlib import Path

_READABLE = 0o644


def write_atomically(path: Path, content: bytes) -> None:
    """
    Replace the file at *path*; a reader that has it open keeps what it has.

    The content is not forced to the disk: what is written here is worth nothing after a crash of the machine.

    Raises:
        OSError: If the folder is not there or cannot be written to; the old file stays.
    """
    unseen = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(unseen, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, _READABLE)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, so that a link is not followed
            file.write(content)
        unseen.replace(path)
    except OSError:
        with suppress(OSError):
            unseen.unlink()
        raise
