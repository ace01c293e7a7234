"""
The program nvidia-cuda-mps-control: one run for each command, one to start a daemon, and what a daemon answers.

Answers are read with suspicion: a program that is root in its container can take the daemon's socket away and answer
itself.
"""

import fcntl
import os
import re
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

from plugin.errors import ControlError

ServerState = Literal["INITIALIZING", "ACTIVE", "FAULT", "UNKNOWN"]  # the last is ours

_STATES: tuple[ServerState, ...] = ("INITIALIZING", "ACTIVE", "FAULT")
_PID = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
_WORD = re.compile(r"[A-Z][A-Z_]{2,30}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?%?", re.ASCII)
_SAYS_NONE = frozenset({"no", "none", "empty"})
_SERVERS = frozenset({"server", "servers"})
_BESIDE = frozenset(
    {"active", "are", "cuda", "currently", "found", "is", "list", "mps", "now", "running", "there", "yet"}
)
_MOST_SERVERS = 16  # a daemon has one, and another for a moment when the user changes
_LONGEST_EXCERPT = 200


def server_pids(answer: str) -> tuple[int, ...]:
    """
    Read the answer to `get_server_list`: one PID on each line, none where no client has come yet.

    That there is none may be said in words, which no document gives: a wrong guess would end a daemon that is fine.

    Raises:
        ControlError: If it is something else.
    """
    if _says_no_server(answer):
        return ()
    lines = answer.split()
    if len(lines) > _MOST_SERVERS or not all(_PID.fullmatch(line) for line in lines):
        raise ControlError(f"get_server_list: expected a few PIDs, one on each line, got {excerpt(answer)}")
    return tuple(dict.fromkeys(int(line) for line in lines))


def _says_no_server(answer: str) -> bool:
    """Whether it says that and no more: an error can have the same words, such as one about no connection."""
    words = set(re.findall(r"\w+", answer.lower()))
    return bool(words & _SAYS_NONE and words & _SERVERS) and words <= _SAYS_NONE | _SERVERS | _BESIDE


def server_state(answer: str) -> ServerState:
    """
    Read the answer to `get_server_status`.

    One word in capitals that is no documented state is "UNKNOWN": a newer driver may have more of them.

    Raises:
        ControlError: If it names no state, or several.
    """
    if _WORD.fullmatch(answer.strip()) and answer.strip() not in _STATES:
        return "UNKNOWN"
    words = re.findall(r"[A-Za-z_]+", answer)
    named = [state for state in _STATES if state in words]
    if len(named) != 1:
        raise ControlError(f"get_server_status: expected one of {', '.join(_STATES)}, got {excerpt(answer)}")
    return named[0]


def percentage(answer: str) -> float | None:
    """Read the answer to a question for an active thread percentage, such as 20.0; None if it is none."""
    text = answer.strip()
    return float(text.rstrip("%")) if _NUMBER.fullmatch(text) else None


def excerpt(text: str) -> str:
    """Quote the beginning of a text that may be anything."""
    words = " ".join(text.split())
    return ascii(words[:_LONGEST_EXCERPT]) if words else "nothing"


_LARGEST_ANSWER_BYTES = 64 * 1024
_FOR_OTHERS = 0o022  # umask: what a daemon makes can be read by all, and written by itself
_DEAD_WITHIN_SECONDS = 1.0
_INHERITED = ("PATH", "LD_LIBRARY_PATH")


class Control:
    """Speaks with the daemon of one pipe directory."""

    def __init__(self, program: str, environment: Mapping[str, str], *, timeout_seconds: float) -> None:
        """Use *program*, by name or path, with *environment*, and nothing of ours that a daemon might take up."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self._program = program
        self._environment = {**inherited, **environment}
        self._timeout_seconds = timeout_seconds

    def ask(self, command: str, *, timeout_seconds: float | None = None) -> str:
        """
        Send *command*, and give the answer; within the usual time, if *timeout_seconds* says no other.

        Raises:
            ControlError: If there is none in time, it is too large, or the command failed.
        """
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        return self._run([], command, what=command, timeout_seconds=seconds)

    def start(self, flags: Sequence[str], *, timeout_seconds: float) -> None:
        """
        Start a daemon; it listens when this returns.

        Raises:
            ControlError: With what the program wrote, if it did not start.
        """
        self._run(["-d", *flags], "", what=f"{self._program} -d", timeout_seconds=timeout_seconds)

    def _run(self, flags: Sequence[str], text: str, *, what: str, timeout_seconds: float) -> str:
        stdin, stdout, stderr = _memory_file(text.encode() + b"\n"), _memory_file(), _memory_file()
        try:
            code = self._exit_code(flags, stdin, stdout, stderr, timeout_seconds=timeout_seconds)
            answer, complaint = _written(stdout), _written(stderr)
        except OSError as error:
            raise ControlError(f"{self._program}: cannot be run: {error.strerror}") from error
        finally:
            for file in (stdin, stdout, stderr):
                os.close(file)
        if code is None:
            raise ControlError(f"{what}: no answer within {timeout_seconds:g} s")
        if code != 0:
            raise ControlError(f"{what}: failed with {code}: {excerpt(complaint or answer)}")
        return answer

    def _exit_code(
        self, flags: Sequence[str], stdin: int, stdout: int, stderr: int, *, timeout_seconds: float
    ) -> int | None:
        """Run the program; None if it did not end in time, and was killed."""
        # Files, no pipes: a daemon may keep them open for as long as it lives.
        process = subprocess.Popen(  # noqa: S603 - the administrator names the program
            [self._program, *flags],
            env=self._environment,
            cwd="/",
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            umask=_FOR_OTHERS,
        )
        if _ends_within(process, timeout_seconds):
            return process.wait()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # in a driver call that does not return
            process.wait(_DEAD_WITHIN_SECONDS)
        return None


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    file = os.pidfd_open(process.pid)
    try:
        waiting = select.poll()  # unlike select, for descriptors of any number
        waiting.register(file, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))
    finally:
        os.close(file)


def _memory_file(content: bytes | None = None) -> int:
    """Make a file in memory: with *content* at hand, or to be written to, no more than is ever read."""
    file = os.memfd_create("mps", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    if content is not None:
        os.write(file, content)
        os.lseek(file, 0, os.SEEK_SET)
        return file
    os.truncate(file, _LARGEST_ANSWER_BYTES)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return file


def _written(file: int) -> str:
    length = os.lseek(file, 0, os.SEEK_CUR)  # the position is shared with the program
    return os.pread(file, length, 0).decode(errors="replace")
