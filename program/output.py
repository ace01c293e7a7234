"""Standard output as users have it: a closed pipe, a full disk, an encoding that lacks characters, or none at all."""

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_STDERR: Final = 2


class OutputError(Exception):
    """
    Standard output cannot be written: *reason* says why, and is empty if its reader has gone.

    It is no OSError, so that nobody takes it for an error of another file.
    """

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
    _occupy_standard_descriptors()
    if sys.stdout is None:  # closed by whoever started the program
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until the end of the process
    elif sys.stdout is sys.__stdout__ and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout = _checked(sys.stdout)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OutputError:
        # Else Python tries once more at its end, and says so in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _occupy_standard_descriptors() -> None:
    """
    Open what whoever started the program has closed of standard input, output and error: nothing can be written there.

    Else the next file or socket would have the number, and get the log.
    """
    with suppress(OSError):
        while (opened := os.open(os.devnull, os.O_RDONLY)) <= _STDERR:
            pass
        os.close(opened)


class _Descriptor(FileIO):
    """Standard output, whose errors are its own."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write what fits, as any file does."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise OutputError("") from None
        except OSError as error:
            raise OutputError(error.strerror or str(error)) from None


def _checked(before: TextIOWrapper) -> TextIOWrapper:
    before.flush()
    # An environment that says ASCII most often says nothing; Python and click take it for UTF-8 as well.
    is_ascii = codecs.lookup(before.encoding).name == "ascii"
    return TextIOWrapper(
        BufferedWriter(_Descriptor(before.fileno(), "w", closefd=False)),
        encoding="utf-8" if is_ascii else before.encoding,
        errors="backslashreplace",
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )
