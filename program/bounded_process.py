"""The output of another program, which may be slow, talkative, or leave somebody behind who holds its output open."""

import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from subprocess import PIPE, Popen
from typing import Final, TextIO

from program.terminal import printable

_MOST_BYTES: Final = 1024 * 1024
_PIECE_BYTES: Final = 65536
_MOST_WORDS: Final = 200  # characters of what it says
_END_SECONDS: Final = 5.0  # from its end to that of its output
_LOOK_SECONDS: Final = 0.02  # between two looks whether it has ended


class ProcessError(Exception):
    """The program failed: what comes after its name, with the last of its own words."""


def output_of(
    command: Sequence[str], *, env: Mapping[str, str], stdin: int | None, is_attended: bool, within_seconds: float
) -> bytes:
    """
    Run a program, and give what it prints; whoever is at the terminal, if *is_attended*, sees what it says meanwhile.

    Raises:
        ProcessError: If it fails, prints too much, or takes too long.
        OSError, ValueError: If it cannot be started.
    """
    deadline = time.monotonic() + within_seconds
    is_shown = is_attended and is_terminal(sys.stderr)
    # In a group of its own it could not ask at the terminal for a password.
    is_group = not (is_shown or (is_attended and is_terminal(sys.stdin)))
    with Popen(  # noqa: S603 - the user's own
        command, env=env, stdin=stdin, stdout=PIPE, stderr=PIPE, process_group=0 if is_group else None
    ) as process:
        said = bytearray()
        try:
            printed = _read(process, said, deadline=deadline, is_shown=is_shown)
            code = process.wait()
        except TimeoutError:
            raise ProcessError(f"has not ended after {within_seconds:g} s{_words(said)}") from None
        finally:
            _end(process, is_group=is_group)
    if code:
        ended = f"failed with exit code {code}" if code > 0 else f"was ended by signal {-code}"
        raise ProcessError(f"{ended}{_words(said)}")
    return printed


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody is at the other end; a stream that was closed is None, or fails."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def _end(process: Popen[bytes], *, is_group: bool) -> None:
    """End a program that still runs, with those that it waits for; one that has ended may leave a browser behind."""
    if process.poll() is not None:
        return
    if is_group:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _read(process: Popen[bytes], said: bytearray, *, deadline: float, is_shown: bool) -> bytes:
    """
    Read until the program and what it prints have ended; of what is *said* only the last is kept.

    A browser that it has opened may hold what it says, and even what it prints, for hours.
    """
    printed = bytearray()
    with selectors.DefaultSelector() as outputs:
        prints = outputs.register(process.stdout or -1, selectors.EVENT_READ, printed)
        outputs.register(process.stderr or -1, selectors.EVENT_READ, said)
        is_running = True
        while is_running or prints.fd in outputs.get_map():
            if is_running and process.poll() is not None:
                is_running, deadline = False, min(deadline, time.monotonic() + _END_SECONDS)
            if time.monotonic() > deadline:
                if is_running:
                    raise TimeoutError
                break
            _read_ready(outputs, said, within_seconds=_LOOK_SECONDS, is_shown=is_shown)
            if len(printed) > _MOST_BYTES:
                raise ProcessError(f"printed more than {_MOST_BYTES} bytes")
        _read_ready(outputs, said, within_seconds=0, is_shown=is_shown)
    return bytes(printed)


def _read_ready(outputs: selectors.BaseSelector, said: bytearray, *, within_seconds: float, is_shown: bool) -> None:
    for key, _ in outputs.select(within_seconds):
        piece = os.read(key.fd, _PIECE_BYTES)
        key.data.extend(piece)
        if not piece:
            outputs.unregister(key.fileobj)
        elif key.data is said:
            del said[:-_PIECE_BYTES]
            if is_shown:
                sys.stderr.write(piece.decode(errors="replace"))
                sys.stderr.flush()


def _words(said: bytearray) -> str:
    words = printable(said.decode(errors="replace"))
    return f": {words[-_MOST_WORDS:]}" if words else ""
