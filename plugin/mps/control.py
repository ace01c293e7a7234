"""The program nvidia-cuda-mps-control: one run for each command, and one to start a daemon."""

import fcntl
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from plugin.errors import AnswerError, ControlError, NotAskedError
from plugin.mps.answers import excerpt
from plugin.mps.unanswered import Unanswered
from policies.contract import MPS_PIPE_DIRECTORY

SOCKET = "control"  # in the pipe directory
SOCKETS = (SOCKET, "control_privileged")  # which of them the program connects to is not documented
QUIT = "quit"
_LARGEST_ANSWER_BYTES = 64 * 1024
_FOR_OTHERS = 0o022  # umask: what a daemon makes can be read by all, and written by itself
_PACE_SECONDS = 0.05  # between two looks whether to wait on
_MOST_PATIENCE = 3  # times that for one question
# Of the loader, as where a library cannot be mapped, and of shells; and where the node has no memory or threads left.
_NOT_RUN = frozenset({126, 127, -signal.SIGKILL, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT})
_INHERITED = ("PATH", "LD_LIBRARY_PATH")


class _Patience(NamedTuple):
    seconds: float  # for one question
    deadline: float  # for all, in seconds of the clock `monotonic`
    goes_on: Callable[[], bool]

    def waits(self, since: float) -> bool:
        return self.goes_on() and time.monotonic() < min(since + self.seconds, self.deadline)


class Control:
    """Speaks with the daemon of one pipe directory."""

    def __init__(
        self, program: str, environment: Mapping[str, str], *, timeout_seconds: float, patience_seconds: float
    ) -> None:
        """
        Use *program*, by name or path, with *environment*, and nothing of ours that a daemon might take up.

        One without an answer within *timeout_seconds* waits on for *patience_seconds* in all, for who asks the same.
        """
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self._program = program
        self._start = f"{program} -d"
        self._environment = {**inherited, **environment}
        self._timeout_seconds = timeout_seconds
        self._patience_seconds = patience_seconds
        self._unanswered = Unanswered(program)
        self._led_to: Path | None = None
        self._patience: _Patience | None = None
        self.meanwhile: Callable[[], None] = lambda: None  # done now and then while an answer is waited for
        self.frees: Callable[[int], bool] = lambda _group: False  # the daemon of waiting for these processes to speak

    @contextmanager
    def patient(self, seconds: float, goes_on: Callable[[], bool]) -> Iterator[None]:
        """Give each question so many *seconds*, as long as it *goes_on*, and all together a few times as many."""
        self._patience = _Patience(seconds, time.monotonic() + _MOST_PATIENCE * seconds, goes_on)
        try:
            yield
        finally:
            self._patience = None

    @property
    def waiting(self) -> frozenset[int]:
        """Name the processes that wait for answers still, by PID."""
        return self._unanswered.pids

    def give_up(self) -> None:
        """Wait for no answer any more."""
        self._unanswered.clear()

    def lead_to(self, directory: Path | None) -> None:
        """Ask by the sockets in *directory*, or links to them, from now on; None: by those of the pipe directory."""
        if directory != self._led_to:
            self.give_up()  # by the others it may be that nobody answers
        self._led_to = directory

    def ask(self, command: str, *, timeout_seconds: float | None = None) -> str:
        """
        Send *command*, and give the answer; within the usual time, if *timeout_seconds* says no other.

        Raises:
            NotAskedError: If the program cannot be run, as on a node that has no more processes or memory.
            AnswerError: If the command failed.
            ControlError: If there is none in time.
        """
        directory = Path(self._environment[MPS_PIPE_DIRECTORY])
        if not self._led_to and (planted := planted_link(directory)):  # it could lead to another daemon
            raise ControlError(planted)
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        return self._run([], command, what=command, timeout_seconds=seconds)

    def start(self, flags: Sequence[str], *, timeout_seconds: float) -> None:
        """
        Start a daemon; it listens when this returns.

        Raises:
            ControlError: With what the program wrote, if it did not start.
        """
        self._run(["-d", *flags], "", what=self._start, timeout_seconds=timeout_seconds)

    def _run(self, flags: Sequence[str], text: str, *, what: str, timeout_seconds: float) -> str:
        try:
            with _memory_file(text.encode() + b"\n") as stdin, _memory_file() as stdout, _memory_file() as stderr:
                began = time.monotonic()
                patience = self._patience or _Patience(timeout_seconds, began + timeout_seconds, lambda: True)
                code = None
                if self._is_alone(what, patience):
                    code = self._exit_code(what, self._started(flags, stdin, stdout, stderr), patience)
                answer, complaint = _written(stdout), _written(stderr)
        except OSError as error:
            raise NotAskedError(f"{self._program}: cannot be run: {error.strerror}") from error
        if code is None:
            raise ControlError(f"{what}: no answer within {patience.seconds:g} s")
        if code in _NOT_RUN:
            raise NotAskedError(
                f"{self._program}: cannot be run: {_how_it_ended(code)}: {excerpt(complaint or answer)}"
            )
        if code != 0:
            raise AnswerError(f"{what}: failed with {code}: {excerpt(complaint or answer)}")
        return answer

    def _started(self, flags: Sequence[str], stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        # Files, no pipes: a daemon may keep them open for as long as it lives.
        led = {MPS_PIPE_DIRECTORY: str(self._led_to)} if self._led_to else {}
        return subprocess.Popen(  # noqa: S603 - the administrator names the program
            [self._program, *flags],
            env={**self._environment, **led},
            cwd="/",
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            umask=_FOR_OTHERS,
        )

    def _is_alone(self, what: str, patience: _Patience) -> bool:
        """Wait for an earlier program that asks the same: whether there is none any more."""
        self._unanswered.end_overtaken(what)
        while earlier := self._unanswered.find(what):
            rest = patience._replace(deadline=min(patience.deadline, earlier.until_seconds))
            if not self._ends_within(earlier.process, rest) and earlier.may_wait:
                return False
        return True

    def _exit_code(self, what: str, process: subprocess.Popen[bytes], patience: _Patience) -> int | None:
        """Wait for the end of the program; None if it did not come in time."""
        began = time.monotonic()
        try:
            is_over = self._ends_within(process, patience)
        except OSError:  # no descriptor is left to wait with
            self._unanswered.kill([process])
            raise
        if is_over:
            return process.wait()
        if what in (self._start, QUIT):  # which nobody waits for again
            self._unanswered.kill([process])
        else:
            self._unanswered.add(what, process, until_seconds=began + self._patience_seconds)
        return None

    def _ends_within(self, process: subprocess.Popen[bytes], patience: _Patience) -> bool:
        file = os.pidfd_open(process.pid)
        try:
            waiting = select.poll()  # unlike select, for descriptors of any number
            waiting.register(file, select.POLLIN)
            began = time.monotonic()
            while not waiting.poll(_PACE_SECONDS * 1000):
                goes_on = patience.waits(began)
                if not goes_on or time.monotonic() - began >= self._timeout_seconds:
                    self._end_silent(process)
                if not goes_on:
                    return False
                self.meanwhile()
            return True
        finally:
            os.close(file)

    def _end_silent(self, waited_for: subprocess.Popen[bytes]) -> None:
        """End those that the daemon itself waits for: they keep it from all others, and leave no command there."""
        silent = [one for one in (waited_for, *self._unanswered.programs) if self.frees(one.pid)]
        self._unanswered.kill(silent)
        if waited_for in silent:
            raise NotAskedError(f"{self._program}: cannot be run: it connects to the daemon, and says nothing")


def planted_link(directory: Path) -> str:
    """Say which link stands in the place of a socket in a pipe directory; empty if none does."""
    links = [str(directory / name) for name in SOCKETS if (directory / name).is_symlink()]
    return f"{links[0]}: expected a socket of this GPU's MPS daemon, got a link that a tenant made" if links else ""


def _how_it_ended(code: int) -> str:
    return f"it was ended by signal {-code}" if code < 0 else f"exit code {code}"


@contextmanager
def _memory_file(content: bytes | None = None) -> Iterator[int]:
    """Make a file in memory: with *content* at hand, or to be written to, no more than is ever read."""
    file = os.memfd_create("mps", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        if content is not None:
            os.write(file, content)
            os.lseek(file, 0, os.SEEK_SET)
        else:
            os.truncate(file, _LARGEST_ANSWER_BYTES)
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
        yield file
    finally:
        os.close(file)


def _written(file: int) -> str:
    length = os.lseek(file, 0, os.SEEK_CUR)  # the position is shared with the program
    return os.pread(file, length, 0).decode(errors="replace")
