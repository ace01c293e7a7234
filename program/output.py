"""Standard output as users have it: a closed pipe, a full disk, an encoding that lacks characters, or none at all."""

import codecs
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper, UnsupportedOperation
from pathlib import Path
from typing import Final

# What a write says when it is not the program's fault. Such an error names no file, unlike those of opening one.
_OF_WRITING: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE}


class OutputError(Exception):
    """Standard output cannot be written: *reason* says why, and is empty if its reader has gone."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@contextmanager
def checked_output() -> Iterator[None]:
    """
    Have standard output take every character, and be whole at the end.

    Raises:
        OutputError: If something that was written in the block did not get there.
    """
    _take_every_character()
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in _OF_WRITING or error.filename is not None:
            raise
        _drop_the_rest()
        raise OutputError("" if isinstance(error, BrokenPipeError) else str(error.strerror)) from None


def _take_every_character() -> None:
    if sys.stdout is None:  # closed by whoever started the program
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until the end of the process
    if isinstance(sys.stdout, TextIOWrapper):
        # An environment that says ASCII most often says nothing; Python and click take it for UTF-8 as well.
        is_ascii = codecs.lookup(sys.stdout.encoding).name == "ascii"
        sys.stdout.reconfigure(encoding="utf-8" if is_ascii else None, errors="backslashreplace")


def _drop_the_rest() -> None:
    """Else Python tries once more at its end, and says so in its own words."""
    with suppress(UnsupportedOperation):  # of a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
